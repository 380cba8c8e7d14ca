"""Releases for all tests of the server, and an application that serves them, made once."""

import pytest
from serving import Asked, make_files
from stages import make_stages


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("releases"))


@pytest.fixture(scope="session")
def ask(files):
    return Asked(files)


@pytest.fixture(scope="session")
def stages(tmp_path_factory):
    return make_stages(tmp_path_factory.mktemp("stages"))


@pytest.fixture(scope="session")
def stage(stages):
    return Asked(stages)
