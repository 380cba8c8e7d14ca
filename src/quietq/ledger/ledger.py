"""A ledger: budgets by reward source that outlive the process, are shared by processes, and cannot be overspent.

Theorem. Gaussian releases of mu_i, chosen as one goes along, are together mu-GDP if the sum of mu_i^2 never passes mu^2
(Smith & Thakurta 2022): that is the cap `budget`. What has no mu (pure releases, and those with an (epsilon, delta)
guarantee only) is booked apart, where epsilons and deltas add up, each under a cap set beforehand (basic composition;
Rogers, Roth, Ullman & Vadhan 2016 for choices made as one goes along). Each part is one interactive mechanism; using
both at once, in any order, is their concurrent composition, which costs no more than one after the other (Vadhan &
Zhang 2023). So a source promises (epsilon + epsilon_apart, delta + delta_apart), whatever is asked of it.

What the code does for it: a charge is booked *before* noise is drawn, in a transaction in which nobody else writes, and
is never given back, whatever happens afterwards. So at any crash, what may have been released was charged.

Proof: docs/theory.md#adaptive-composition and docs/theory.md#two-caps.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from quietq.ledger.database import Database, LedgerUnavailable, Unanswered, add, entries_of
from quietq.ledger.entries import (
    Committed,
    LedgerEntry,
    Opened,
    Reserved,
    Statement,
    following,
    one_line,
    pair,
    tampered,
    verify,
)
from quietq.privacy import Account, Budget, BudgetExhausted, Cost, InvalidInput, Receipt, Spending
from quietq.privacy.checks import instance, plural, shown
from quietq.privacy.relations import Relation


@dataclass(frozen=True)
class Booking:
    """What one reservation took, and the release that it was for, if that is known."""

    reserved: Reserved
    release: str | None = None

    @property
    def cost(self) -> Cost:
        return self.reserved.cost

    def to_json(self) -> dict[str, Any]:
        said = self.reserved.to_dict()
        return {
            **{name: said[name] for name in ("id", "at", "relation", "method")},
            **said["cost"],
            "release": self.release,
        }


@dataclass(frozen=True)
class Balance:
    """A source as it stands."""

    source: str
    budget: Budget | None
    """The cap on all Gaussian releases together; None if there can be none."""
    apart: Budget | None
    """The cap on the sums of epsilon and of delta of releases without a mu; None if there can be none."""
    opened: str
    bookings: tuple[Booking, ...] = ()

    @cached_property
    def spending(self) -> Spending:
        return Spending(self.budget, self.apart, Counter(booking.cost for booking in self.bookings))

    @property
    def unit(self) -> str | None:
        """What neighbours differ by, once something was booked."""
        return self.bookings[0].reserved.relation.unit if self.bookings else None

    @property
    def without_release(self) -> tuple[Booking, ...]:
        """Bookings whose release was not noted: the process ended in between, or the release was never written."""
        return tuple(booking for booking in self.bookings if booking.release is None)

    def adds_up_with(self, relation: Relation) -> bool:
        """Says whether a release for this relation protects what all others of the source protect."""
        return not self.bookings or self.bookings[0].reserved.relation.adds_up_with(relation)

    def rows(self) -> list[tuple[str, ...]]:
        rows, spending = [], self.spending
        gaussian = sum(booking.cost.mu is not None for booking in self.bookings)
        if self.budget is not None:
            cap = f"{pair(self.budget.epsilon, self.budget.delta)}, mu {spending.mu:.4g}"
            left = f"mu {spending.remaining_mu:.4g}{spending.in_epsilon()}"
            rows.append((cap, f"mu {spending.spent_mu:.4g}", left, str(gaussian)))
        if self.apart is not None:
            cap = f"apart {pair(self.apart.epsilon, self.apart.delta)}"
            apart = str(len(self.bookings) - gaussian)
            rows.append((cap, pair(*spending.spent_apart), pair(*spending.remaining_apart), apart))
        return [(self.source, *row, self.opened[:10]) for row in rows]

    def to_json(self) -> dict[str, Any]:
        amounts = ("promised", "spent", "spent_apart", "remaining_apart")
        return {
            "source": self.source,
            "opened": self.opened,
            "protects": self.unit,
            "budget": self.budget and self.budget.to_dict(),
            "apart": self.apart and self.apart.to_dict(),
            **{name: getattr(self.spending, name) for name in ("mu", "spent_mu", "remaining_mu")},
            **{name: dict(zip(("epsilon", "delta"), getattr(self.spending, name), strict=True)) for name in amounts},
            "bookings": [booking.to_json() for booking in self.bookings],
            "without_release": [booking.reserved.id for booking in self.without_release],
        }


Books = Mapping[str, Balance]


def balances(entries: Sequence[LedgerEntry]) -> dict[str, Balance]:
    """Every source, by its name, from entries whose chain was verified; TamperedLedger if they make no sense."""
    found: dict[str, Balance] = {}
    bookings: dict[str, dict[str, Booking]] = {}
    used: set[str] = set()
    for entry in entries:
        said, own = entry.read(), bookings.get(entry.source)
        booking = None if own is None else own.get(said.id)
        if isinstance(said, Opened) and own is None and said.id not in used:
            found[entry.source] = Balance(entry.source, said.budget, said.apart, said.at)
            bookings[entry.source] = {}
        elif isinstance(said, Reserved) and own is not None and said.id not in used:
            own[said.id] = Booking(said)
        elif isinstance(said, Committed) and own is not None and booking is not None and booking.release is None:
            own[said.id] = replace(booking, release=said.release)
        else:
            raise tampered(entry.number)
        used.add(said.id)
    return {name: replace(balance, bookings=tuple(bookings[name].values())) for name, balance in found.items()}


class Ledger:
    """Keeps budgets by source, in a file (SQLite) or in a PostgreSQL database.

    Args:
        url: The file, or the address of the database.

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
        """Creates a ledger without sources; one that is there already is left as it is.

        Args:
            url: The file, or the address of the database.

        """
        Database(url, create=True)
        return cls(url)

    def open(self, source: str, budget: Budget | None, apart: Budget | None = None) -> None:
        """Adds a source, whose caps never grow.

        Args:
            source: Its name.
            budget: The cap on Gaussian releases; None if there is none.
            apart: The cap on releases without a mu.

        """
        source = one_line("source", source)

        def decide(books: Books) -> bool:
            if source in books:
                raise InvalidInput(f"The ledger has a source {source!r} already, and a budget is set once.")
            return True

        self._add(source, Opened(budget=budget, apart=apart), decide)

    def account(self, source: str, method: str = "") -> "SourceAccount":
        """Returns the source's account, to be charged by whatever draws noise: `privatise(..., account=account)`.

        Args:
            source: The name of the source.
            method: A line for the history that says what it is for.

        """
        return SourceAccount(self, source, one_line("method", method, least=0))

    def reserve(self, source: str, cost: Cost, relation: Relation | None, method: str = "") -> str:
        """Charges a release before its noise is drawn, or raises BudgetExhausted; nothing is given back.

        Args:
            source: The name of the source.
            cost: The cost of the release.
            relation: Its neighbouring relation.
            method: A line for the history.

        Returns:
            The reservation's id.

        """
        instance("cost", cost, Cost, "a Cost, e.g. Cost.gaussian(0.1) or Cost.apart(epsilon=0.5)")
        if not isinstance(relation, Relation):
            raise InvalidInput(
                f"relation must say what the release protects, e.g. people(50, low=0, high=0.5, slope=1), "
                f"not {shown(relation)}: a ledger cannot add up what it does not know. Nothing was booked."
            )
        reserved = Reserved(cost=cost, relation=relation, method=method)  # pyright: ignore[reportArgumentType]

        def decide(books: Books) -> bool:
            balance = _find(books, source)
            if not balance.adds_up_with(reserved.relation):
                raise InvalidInput(
                    f"Source {source!r} adds up releases that protect {balance.unit}, and a sum with one that protects "
                    f"{relation.unit} would mean nothing: open a source of its own; nothing was booked."
                )
            if not balance.spending.covers(cost):
                times = [one.reserved.at for one in balance.bookings]
                last = f" {plural(len(times), 'charge')} came before, the last at {times[-1]}." if times else ""
                raise BudgetExhausted(
                    f"Of source {source!r}, {balance.spending.shortage(cost)}; nothing was booked.{last}"
                )
            return True

        self._add(source, reserved, decide)
        return reserved.id

    def commit(self, source: str, reservation: str, release: str) -> None:
        """Notes which release a reservation was for; it charges nothing.

        Args:
            source: The name of the source.
            reservation: The reservation's id.
            release: The hash that `publish` gives.

        """

        def decide(books: Books) -> bool:
            booking = next((one for one in _find(books, source).bookings if one.reserved.id == reservation), None)
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
                    f"Release {release} was noted for reservation {noted[0].reserved.id} already, and a release is "
                    "charged once."
                )
            return booking.release is None

        self._add(source, Committed(id=reservation, release=release), decide)

    def _add(self, source: str, statement: Statement, decide: Callable[[Books], bool]) -> None:
        """Adds what is decided with the books at hand. If no answer comes, looks whether it is there, and else adds it.

        The same id goes in both times, so that nothing is booked twice. The second time waits until the server has
        decided about the first.
        """
        unanswered: str | None = None
        there, body = False, statement.body()
        for _ in range(2):
            try:
                with self._database.alone() as connection:
                    entries = entries_of(connection)
                    verify(entries)
                    books = balances(entries)
                    there = unanswered is not None and any((one.source, one.body) == (source, body) for one in entries)
                    if not there and decide(books):
                        add(connection, following(entries, source, body))
                return
            except Unanswered as error:
                if there:  # and nothing was added just now
                    return
                unanswered = str(error)
            except LedgerUnavailable:
                if unanswered is None:
                    raise
        raise LedgerUnavailable(
            f"{unanswered} It is entry {statement.id} of {source!r}, if it is there: see the history."
        )

    def balance(self, source: str) -> Balance:
        """Returns what was spent of a source's budget, and what is left.

        Args:
            source: The name of the source.

        """
        return _find(self.balances(), source)

    def balances(self) -> dict[str, Balance]:
        return self._read()[1]

    def history(self) -> list[LedgerEntry]:
        """Returns all entries, their chain verified and each of them read."""
        return self._read()[0]

    def verify(self, head: str | None = None) -> str:
        """Checks the chain of entries, and returns the hash of the last one, to be noted elsewhere.

        Args:
            head: A hash that was noted earlier, which must be in the chain.

        """
        return verify(self._read(head)[0])

    def _read(self, head: str | None = None) -> tuple[list[LedgerEntry], dict[str, Balance]]:
        entries = self._database.read()
        verify(entries, head)
        return entries, balances(entries)

    @property
    def place(self) -> tuple[int, int] | None:
        """Which file it is in; None where there is a server."""
        return self._database.place

    def __repr__(self) -> str:
        return f"Ledger({str(self._database)!r})"


class SourceAccount(Account):
    """An account whose book is a ledger: it may be shared by threads, forks and processes, and survives them."""

    persists = True

    def __init__(self, ledger: Ledger, source: str, method: str = "") -> None:
        if hasattr(self, "source"):
            raise InvalidInput("This account belongs to a source already, and is not begun anew: make another.")
        ledger.balance(source)  # refuses a source that is not there
        self.ledger, self.source, self.method = ledger, source, method

    @property
    def spending(self) -> Spending:
        return self.ledger.balance(self.source).spending

    @property
    def book(self) -> object:
        """Its first entry, which no two ledgers share unless one is a copy of the other, and for a file which one."""
        return self.ledger.history()[0].hash, self.source, self.ledger.place

    def charge(self, cost: Cost, relation: Relation | None = None) -> Receipt:
        return self.receipt(self.ledger.reserve(self.source, cost, relation, self.method))

    def receipt(self, id: str) -> Receipt:
        return Receipt(id, lambda release: self.ledger.commit(self.source, id, release))

    def __repr__(self) -> str:
        return f"SourceAccount({self.source!r}, {self.ledger!r})"


def _find(books: Books, source: str) -> Balance:
    if source not in books:
        raise InvalidInput(f"The ledger has no source {shown(source)}; it has: {', '.join(books) or 'none yet'}.")
    return books[source]
