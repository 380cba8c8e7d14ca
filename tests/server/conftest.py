"""Releases for all tests of the server, and an application that serves them, made once."""

import pytest
from kinds import make_kinds
from serving import Asked, make_files


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("releases"))


@pytest.fixture(scope="session")
def ask(files):
    return Asked(files)


@pytest.fixture(scope="session")
def kinds(tmp_path_factory):
    return make_kinds(tmp_path_factory.mktemp("kinds"))
