"""Sixteen processes at once: nothing is overspent, and nothing that was there is lost."""

import os
from collections import Counter
from collections.abc import Callable

import pytest

from quietq import Budget, BudgetExhausted, InvalidInput, people
from quietq.ledger import Ledger

RACERS = 16
FIFTY = people(50, 0, 0.5, 1)
GOT, REFUSED = 0, 3


def race(body: Callable[[int], None]) -> Counter[int]:
    """How so many processes ended that did this at the same moment."""
    ready, gun = os.pipe(), os.pipe()
    children = []
    for number in range(RACERS):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(gun[1])
                os.write(ready[1], b".")
                os.read(gun[0], 1)  # ends when the parent closes the other end
                body(number)
                code = GOT
            except (BudgetExhausted, InvalidInput):
                code = REFUSED
            finally:
                os._exit(code)
        children.append(child)
    waiting = 0
    while waiting < RACERS:
        waiting += len(os.read(ready[0], RACERS))
    for end in (gun[1], gun[0], *ready):
        os.close(end)
    return Counter(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def race_for(shares: int, ledger: Ledger, source: str) -> None:
    """One more than `shares` fit in; all but these are gone before the race."""
    each = 0.05
    ledger.open(source, Budget.from_mu(each * (shares + 1.0001) ** 0.5, 1e-4), Budget(0.1 * shares, 0))
    account = ledger.account(source)
    account.charge(each, relation=FIFTY)
    assert race(lambda _: account.charge(each, relation=FIFTY)) == {GOT: shares, REFUSED: RACERS - shares}
    assert race(lambda _: account.charge_apart(0.1, relation=FIFTY)) == {GOT: shares, REFUSED: RACERS - shares}
    balance = ledger.balance(source)
    assert len(balance.charges) == 1 + 2 * shares
    assert balance.remaining_mu < each
    ledger.verify()


def test_exactly_one_of_sixteen_gets_the_last_share(url: str):
    ledger = Ledger.create(url)
    for round in range(2):
        race_for(1, ledger, f"round {round}")
    race_for(3, ledger, "three shares")


@pytest.mark.slow
def test_exactly_one_of_sixteen_gets_the_last_share_every_time(url: str):
    ledger = Ledger.create(url)
    for round in range(20):
        race_for(1, ledger, f"round {round}")


def test_a_ledger_and_a_source_are_made_once(url: str):
    def make(number: int) -> None:
        Ledger.create(url).open("ratings", Budget(1 + number, 1e-4))

    assert race(make) == {GOT: 1, REFUSED: RACERS - 1}
    assert len(Ledger(url).history()) == 1


def test_a_release_is_noted_once_whoever_is_first(url: str):
    ledger = Ledger.create(url)
    ledger.open("ratings", Budget(1, 1e-4))
    account = ledger.account("ratings")
    account.charge(0.1, relation=FIFTY)
    assert race(lambda number: account.committed(f"{number:064x}")) == {GOT: 1, REFUSED: RACERS - 1}
    assert len(ledger.history()) == 3
