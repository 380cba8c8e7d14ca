"""Killed at any point, a process leaves a ledger that opens, and in which what it may have released is charged once."""

import gc
import hashlib
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from ledger_cases import FIFTY

from quietq import Budget, BudgetExhausted, GaussianProcessMechanism
from quietq.ledger import Ledger
from quietq.privacy import Cost

SHARE = Budget.from_mu(0.2, 1e-4)
TWO_SHARES = Budget.from_mu(0.2001 * 2**0.5, 1e-4)


def life(url: str, release: Path) -> None:
    """All of it: make the ledger, open a source, charge, draw, publish, note."""
    ledger = Ledger.create(url)
    ledger.open("ratings", TWO_SHARES)
    account = ledger.account("ratings", "a trial")
    mechanism = GaussianProcessMechanism.for_relation(FIFTY, SHARE, levels=4, account=account)
    private = mechanism.apply(np.sin)
    content = np.asarray(private(np.linspace(0, 1, 17))).tobytes()
    with open(release, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    assert private.receipt is not None
    private.receipt.commit(hashlib.sha256(content).hexdigest())


def forked(body: Callable[[], None]) -> int:
    """The id of a child that does this and ends."""
    child = os.fork()
    if child:
        return child
    try:
        body()
        os._exit(0)
    finally:
        os._exit(1)


def killed_at_event(at: tuple[int, int] | None, body: Callable[[], None], count_into: Path | None = None) -> int:
    """The child's status: it kills itself when its interpreter calls or returns for so many times in this stage.

    Stages end with the charge and with the release: how many events a draw takes is chance.
    """

    def counted() -> None:
        seen = [0]

        def tick(frame: FrameType, event: str, called: object) -> None:
            seen[-1] += 1
            if (len(seen) - 1, seen[-1]) == at:
                os.kill(os.getpid(), signal.SIGKILL)
            charged = event == "return" and frame.f_code.co_name == "charge"
            written = event == "c_return" and called is os.fsync
            if (charged and len(seen) == 1) or (written and len(seen) == 2):
                seen.append(0)

        gc.disable()  # when it runs, and what it calls, is chance, too
        sys.setprofile(tick)
        body()
        sys.setprofile(None)
        if count_into is not None:
            count_into.write_text(" ".join(map(str, seen)))

    return os.waitpid(forked(counted), 0)[1]


def killed_after(seconds: float, body: Callable[[], None]) -> int:
    """The child's status: it is killed from outside, wherever it is, inside the database's own code, too."""
    child = forked(body)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def check(url: str, release: Path) -> str:
    """What the child left behind is in order; how far it came."""
    ledger = Ledger.create(url)
    ledger.verify()
    if "ratings" not in ledger.balances():
        assert not release.exists()
        ledger.open("ratings", TWO_SHARES)
        return spend_the_rest(ledger, 2, "not opened")
    charges = ledger.balance("ratings").bookings
    assert len(charges) <= 1, "one release was charged twice"
    if release.exists():
        assert charges, "a release was written that was not charged"
    if charges and charges[0].release is not None:
        assert hashlib.sha256(release.read_bytes()).hexdigest() == charges[0].release
        return spend_the_rest(ledger, 1, "noted")
    return spend_the_rest(
        ledger, 2 - len(charges), ("released" if release.exists() else "charged") if charges else "opened"
    )


def spend_the_rest(ledger: Ledger, shares: int, came: str) -> str:
    """The ledger works on, and has exactly so many shares left."""
    account = ledger.account("ratings")
    for _ in range(shares):
        account.charge(Cost.gaussian(SHARE.mu), FIFTY)
    with pytest.raises(BudgetExhausted):
        account.charge(Cost.gaussian(SHARE.mu), FIFTY)
    ledger.verify()
    return came


class Trials:
    """One after another, each with a ledger of its own."""

    def __init__(self, request: pytest.FixtureRequest, kind: str, folder: Path) -> None:
        self._server = request.getfixturevalue("server") if kind == "postgresql" else None
        self._folder, self._done = folder, 0
        self.run(lambda body: body() or 0)  # so that what is loaded and cached at first use is, for all children

    def run(self, kill: Callable[[Callable[[], None]], int]) -> tuple[int, str]:
        self._done += 1
        release = self._folder / f"{self._done}.release"
        if self._server is None:
            url = str(self._folder / f"{self._done}.db")
        else:
            url = self._server.url
            self._server.execute("DROP TABLE IF EXISTS quietq_ledger")  # waits for what a killed child left running
        return kill(lambda: life(url, release)), check(url, release)

    def events(self) -> list[int]:
        """How many there are in each stage."""
        counted = self._folder / "events"
        assert self.run(lambda body: killed_at_event(None, body, counted)) == (0, "noted")
        return [int(number) for number in counted.read_text().split()]


def kill_at_events(trials: Trials, number: int) -> Counter[str]:
    """As many before the charge as after it, where there is less to do and more to go wrong."""
    came = Counter[str]()
    shares = (number // 2, number // 5, 3 * number // 10)
    for stage, (events, share) in enumerate(zip(trials.events(), shares, strict=True)):
        for at in [1 + trial * events // share for trial in range(share)]:
            status, how_far = trials.run(lambda body, at=(stage, at): killed_at_event(at, body))
            assert status == signal.SIGKILL or (stage == 1 and at > events / 2)  # this draw took fewer
            came[how_far] += 1
    return came


def test_only_a_draw_takes_more_or_fewer_calls(request: pytest.FixtureRequest, tmp_path: Path):
    trials = Trials(request, "sqlite", tmp_path)
    assert len({(before, after) for before, _, after in (trials.events() for _ in range(6))}) == 1


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_killed_at_any_call(kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    came = kill_at_events(Trials(request, kind, tmp_path), 10)
    assert set(came) >= {"not opened", "opened", "charged", "released"}, came


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_killed_at_any_of_a_thousand_calls(kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    came = kill_at_events(Trials(request, kind, tmp_path), 1000)
    assert set(came) == {"not opened", "opened", "charged", "released", "noted"}, came


def kill_at_times(trials: Trials, number: int) -> Counter[str]:
    start = time.perf_counter()
    trials.run(lambda body: os.waitpid(forked(body), 0)[1])
    whole, came = time.perf_counter() - start, Counter[str]()
    for trial in range(number):
        came[trials.run(lambda body, part=trial / number: killed_after(part * whole, body))[1]] += 1
    return came


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_killed_at_any_time(kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    number = 6 if kind == "sqlite" else 3
    assert kill_at_times(Trials(request, kind, tmp_path), number).total() == number


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_killed_at_many_times(kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    came = kill_at_times(Trials(request, kind, tmp_path), 1000)
    assert len(came) >= 3, came
