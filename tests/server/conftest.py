"""Releases for all tests of the server, and a server with two workers, made once."""

import pytest
from serving import Asked, make_files, running, until


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("releases"))


@pytest.fixture(scope="session")
def ask(files):
    return Asked(files)


@pytest.fixture(scope="session")
def pair(files, tmp_path_factory):
    with running(*files.values(), workers=2, log=tmp_path_factory.mktemp("serve") / "log") as server:
        until(lambda: len(server.workers()) == 2)
        yield server
