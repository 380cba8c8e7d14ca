"""A ledger: budgets by reward source that outlive the process, are shared by processes, and cannot be overspent.

Theorem. Gaussian releases of mu_i, chosen as one goes along, are together mu-GDP if the sum of mu_i^2 never passes mu^2
(Smith & Thakurta 2022): that is the cap `budget`. What has no mu (pure releases, and those with an (epsilon, delta)
guarantee only) is booked apart, where epsilons and deltas add up, each under a cap set beforehand (basic composition;
Rogers, Roth, Ullman & Vadhan 2016 for choices made as one goes along). Each part is one interactive mechanism; using
both at once, in any order, is their concurrent composition, which costs no more than one after the other (Vadhan &
Zhang 2023). So a source promises (epsilon + epsilon_apart, delta + delta_apart) whatever is asked of it.

What the code does for it: a charge is booked *before* noise is drawn, in a transaction in which nobody else writes, and
is never given back, whatever happens afterwards. So at any crash, what may have been released was charged.
"""

import os
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from quietq.ledger import record
from quietq.ledger.account import SourceAccount
from quietq.ledger.balance import Balance, balances, unit_of
from quietq.ledger.chain import Entry, check_hash, following, verify
from quietq.ledger.database import Database, LedgerUnavailable, Unanswered
from quietq.ledger.refusal import refusal
from quietq.privacy.budget import Budget
from quietq.privacy.checks import instance, shown
from quietq.privacy.cost import Cost, check_caps
from quietq.privacy.errors import BudgetExhausted, InvalidInput
from quietq.privacy.relations import Relation

Books = Mapping[str, Balance]


class Ledger:
    """Budgets by reward source, in a file (SQLite) or at the address of a PostgreSQL database.

    >>> import tempfile
    >>> from quietq.privacy import people
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(f"{folder.name}/ledger.db")
    >>> ledger.open("ratings", Budget(epsilon=0.9, delta=1e-4))
    >>> receipt = ledger.account("ratings").charge(Cost.gaussian(0.2), people(50, low=0, high=0.5, slope=1))
    >>> round(ledger.balance("ratings").spending.remaining_mu, 4)
    0.2044
    >>> folder.cleanup()
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self._database = Database(url, create=False)

    @classmethod
    def create(cls, url: str | os.PathLike[str]) -> "Ledger":
        """A new ledger without sources; one that is there already is left as it is."""
        Database(url, create=True)
        return cls(url)

    def open(self, source: str, budget: Budget | None, apart: Budget | None = None) -> None:
        """A new source: `budget` caps Gaussian releases, `apart` those without a mu. Neither ever grows."""
        source = record.one_line("source", source)
        for name, cap in (("budget", budget), ("apart", apart)):
            instance(name, cap, Budget | None, "a Budget, e.g. Budget(epsilon=0.9, delta=1e-4), or None")
        check_caps(budget, apart)
        said = record.opened(secrets.token_hex(16), record.now(), budget, apart)

        def decide(books: Books) -> dict[str, object]:
            if source in books:
                raise InvalidInput(f"The ledger has a source {source!r} already, and a budget is set once.")
            return said

        self._add(source, said, decide)

    def account(self, source: str, method: str = "") -> SourceAccount:
        """The source's account, to be charged by whatever draws noise: `privatise(..., account=account)`.

        `method` is a line for the history that says what it is for.
        """
        return SourceAccount(self, source, record.one_line("method", method, least=0))

    def reserve(self, source: str, cost: Cost, relation: Relation | None, method: str = "") -> str:
        """Books a release before its noise is drawn, and gives the reservation's id; or raises BudgetExhausted.

        Nothing gives it back.
        """
        instance("cost", cost, Cost, "a Cost, e.g. Cost.gaussian(0.1) or Cost.apart(epsilon=0.5)")
        if not isinstance(relation, Relation):
            raise InvalidInput(
                f"relation must say what the release protects, e.g. people(50, low=0, high=0.5, slope=1), "
                f"not {shown(relation)}: a ledger cannot add up what it does not know. Nothing was booked."
            )
        unit, line = relation.describe(), record.one_line("method", method, least=0)
        name = secrets.token_hex(16)
        said = record.reserved(name, record.now(), cost.mu, cost.epsilon, cost.delta, unit, line)

        def decide(books: Books) -> dict[str, object]:
            balance = _find(books, source)
            if not balance.adds_up_with(unit):
                raise InvalidInput(
                    f"Source {source!r} adds up releases that protect {balance.unit}, and a sum with one that protects "
                    f"{unit_of(unit)} would mean nothing: open a source of its own; nothing was booked."
                )
            if not balance.spending.covers(cost):
                raise BudgetExhausted(refusal(balance, cost))
            return said

        self._add(source, said, decide)
        return name

    def commit(self, source: str, reservation: str, release: str) -> None:
        """Notes which release the reservation was for, by the hash that `publish` gives. It charges nothing."""
        release = check_hash("release", release)
        said = record.committed(reservation, record.now(), release)

        def decide(books: Books) -> dict[str, object] | None:
            booking = next((one for one in _find(books, source).bookings if one.id == reservation), None)
            if booking is None:
                raise InvalidInput(f"Source {source!r} has no reservation {shown(reservation)}.")
            if booking.release not in (None, release):
                raise InvalidInput(
                    f"Reservation {reservation} was for another release, {booking.release}: each release needs a "
                    "reservation of its own."
                )
            noted = [one for balance in books.values() for one in balance.bookings if one.release == release]
            if booking.release is None and noted:
                raise InvalidInput(
                    f"Release {release} was noted for reservation {noted[0].id} already, and a release is charged once."
                )
            return said if booking.release is None else None

        self._add(source, said, decide)

    def _add(self, source: str, said: Mapping[str, Any], decide: Callable[[Books], Mapping[str, Any] | None]) -> None:
        """Adds what is decided with the books at hand. If no answer comes, looks whether it is there, and else adds it.

        The same id goes in both times, so that nothing is booked twice. The second time waits until the server has
        decided about the first.
        """
        unanswered: str | None = None
        there = False
        for _ in range(2):
            try:
                with self._database.alone() as session:
                    entries = session.entries()
                    verify(entries)
                    books = balances(entries)
                    there = unanswered is not None and _is_there(entries, source, said)
                    entry = None if there else decide(books)
                    if entry is not None:
                        session.add(following(entries, source, entry))
                return
            except Unanswered as error:
                if there:  # and nothing was added just now
                    return
                unanswered = str(error)
            except LedgerUnavailable:
                if unanswered is None:
                    raise
        raise LedgerUnavailable(
            f"{unanswered} It is entry {said['id']} of {source!r}, if it is there: see the history."
        )

    def balance(self, source: str) -> Balance:
        """How the source stands."""
        return _find(self.balances(), source)

    def balances(self) -> dict[str, Balance]:
        """How all sources stand."""
        return balances(self._verified())

    def history(self) -> list[Entry]:
        """All entries, their chain verified and each of them read."""
        entries = self._verified()
        balances(entries)
        return entries

    def verify(self, head: str | None = None) -> str:
        """The hash of the last entry, to be noted elsewhere; with `head`, a noted one, checks that it is there."""
        entries = self._verified(head)
        balances(entries)
        return entries[-1].hash if entries else verify(())

    def _verified(self, head: str | None = None) -> list[Entry]:
        entries = self._database.read()
        verify(entries, head)
        return entries

    def __repr__(self) -> str:
        return f"Ledger({str(self._database)!r})"


def _find(books: Books, source: str) -> Balance:
    if source not in books:
        raise InvalidInput(f"The ledger has no source {shown(source)}; it has: {', '.join(books) or 'none yet'}.")
    return books[source]


def _is_there(entries: list[Entry], source: str, said: Mapping[str, Any]) -> bool:
    body = record.canonical(said)
    return any(entry.source == source and entry.body == body for entry in entries)
