"""A fresh ledger's address for each test, in SQLite and on a real PostgreSQL server that the tests start themselves."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_cases import BUDGET
from postgresql_server import Server, find_binaries

from quietq import Budget
from quietq.ledger import Ledger


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All cases of a test run in SQLite; the first of them runs on the server, too, and the others there are slow."""
    seen: set[str] = set()
    for item in items:
        if item.path.parent != Path(__file__).parent or not isinstance(item, pytest.Function):
            continue
        if hasattr(item, "callspec") and item.callspec.params.get("url") == "postgresql":
            if item.originalname in seen:
                item.add_marker(pytest.mark.slow)
            seen.add(item.originalname)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One for all tests."""
    binaries = find_binaries()
    if binaries is None:
        if os.environ.get("QUIETQ_TEST_PROGRAMS") == "required":
            pytest.fail("PostgreSQL is not installed, and QUIETQ_TEST_PROGRAMS asks for it.")
        pytest.skip("PostgreSQL is not installed.")
    started = Server(binaries)
    started.start()
    yield started
    started.close()


@pytest.fixture
def postgresql(server: Server) -> str:
    """The address of a database without a ledger."""
    server.execute("DROP TABLE IF EXISTS quietq_ledger")
    return server.url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger can be made."""
    return str(tmp_path / "ledger.db") if request.param == "sqlite" else request.getfixturevalue("postgresql")


@pytest.fixture
def ledger(url: str) -> Ledger:
    """One with a source, in both of its parts."""
    ledger = Ledger.create(url)
    ledger.open("ratings", BUDGET, Budget(0.3, 1e-6))
    return ledger
