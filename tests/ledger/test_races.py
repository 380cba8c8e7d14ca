"""Sixteen processes at once: nothing is overspent, and nothing that was there is lost."""

import os
import traceback
from collections import Counter
from collections.abc import Callable

import pytest
from ledger_cases import FIFTY

from quietq import Budget, BudgetExhausted, InvalidInput
from quietq.ledger import Ledger
from quietq.privacy import Cost

RACERS = 16
READY, GOT, REFUSED, FAILED = b".", b"+", b"-", b"!"


def race(*heats: Callable[[int], None]) -> list[Counter[bytes]]:
    """How so many processes fared in each heat, which they all began at the same moment."""
    told, guns = os.pipe(), [os.pipe() for _ in heats]
    children = []
    for number in range(RACERS):
        child = os.fork()
        if child == 0:
            try:
                for _, held in guns:
                    os.close(held)
                os.write(told[1], READY)
                for (gun, _), body in zip(guns, heats, strict=True):
                    os.read(gun, 1)  # ends when the parent closes the other end
                    os.write(told[1], outcome(body, number))
            finally:
                os._exit(0)
        children.append(child)
    assert answers(told[0]) == {READY: RACERS}
    results = []
    for gun in guns:
        for end in reversed(gun):
            os.close(end)
        results.append(answers(told[0]))
    for end in told:
        os.close(end)
    for child in children:
        os.waitpid(child, 0)
    return results


def outcome(body: Callable[[int], None], number: int) -> bytes:
    try:
        body(number)
    except (BudgetExhausted, InvalidInput):
        return REFUSED
    except Exception:
        traceback.print_exc()
        return FAILED
    return GOT


def answers(told: int) -> Counter[bytes]:
    """One of each racer."""
    heard = b""
    while len(heard) < RACERS:
        heard += os.read(told, RACERS)
    return Counter(bytes([answer]) for answer in heard)


def races_for(ledger: Ledger, *races: int) -> None:
    """In each race one more than so many shares fit in; all but these are gone before it."""
    each, heats = 0.05, []
    for place, shares in enumerate(races):
        source = f"race {place}"
        ledger.open(source, Budget.from_mu(each * (shares + 1.0001) ** 0.5, 1e-4), Budget(0.1 * shares, 0))
        account = ledger.account(source)
        account.charge(Cost.gaussian(each), FIFTY)
        heats.append(lambda _, account=account: account.charge(Cost.gaussian(each), FIFTY))
        heats.append(lambda _, account=account: account.charge(Cost.apart(0.1), FIFTY))
    results = race(*heats)
    balances = ledger.balances()
    for place, shares in enumerate(races):
        assert results[2 * place : 2 * place + 2] == [{GOT: shares, REFUSED: RACERS - shares}] * 2
        balance = balances[f"race {place}"]
        assert len(balance.bookings) == 1 + 2 * shares
        assert balance.spending.remaining_mu < each
    ledger.verify()


def test_exactly_one_of_sixteen_gets_the_last_share(url: str):
    races_for(Ledger.create(url), 1, 3)


@pytest.mark.slow
def test_exactly_one_of_sixteen_gets_the_last_share_every_time(url: str):
    races_for(Ledger.create(url), *[1] * 20)


@pytest.mark.slow
def test_a_ledger_and_a_source_are_made_once(url: str):
    def make(number: int) -> None:
        Ledger.create(url).open("ratings", Budget(1 + number, 1e-4))

    assert race(make) == [{GOT: 1, REFUSED: RACERS - 1}]
    assert len(Ledger(url).history()) == 1


def test_a_release_is_noted_once_whoever_is_first(url: str):
    ledger = Ledger.create(url)
    ledger.open("ratings", Budget(1, 1e-4))
    account = ledger.account("ratings")
    receipt = account.charge(Cost.gaussian(0.1), FIFTY)
    assert race(lambda number: receipt.commit(f"{number:064x}")) == [{GOT: 1, REFUSED: RACERS - 1}]
    assert len(ledger.history()) == 3
