"""What a source's entries add up to: its caps, what was reserved of them, what is left; for code, people and JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from quietq.ledger.entries import Committed, LedgerEntry, Opened, Reserved, pair, tampered
from quietq.privacy import Budget, Cost, Spending
from quietq.privacy.relations import Relation
from quietq.privacy.words import plural

SHOWN = 3
"""Charges that a refusal lists."""


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

    def __str__(self) -> str:
        size = f"mu {self.cost.mu:g}" if self.cost.mu is not None else f"epsilon {self.cost.epsilon:g}"
        method = f"{self.reserved.method}, " if self.reserved.method else ""
        return f"{self.reserved.at} ({method}{size})"


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
        """Whether a release for this relation protects what all others of the source protect."""
        return not self.bookings or self.bookings[0].reserved.relation.adds_up_with(relation)

    def refusal(self, cost: Cost) -> str:
        """Why a charge was refused: what was asked, what is left, and when the rest was spent."""
        refused = f"Of source {self.source!r}, {self.spending.shortage(cost)}; nothing was booked."
        if (self.apart if cost.mu is None else self.budget) is None:
            return refused
        bookings = [booking for booking in self.bookings if (booking.cost.mu is None) == (cost.mu is None)]
        return f"{refused} {_spent_on(bookings)}"

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


def _spent_on(bookings: list[Booking]) -> str:
    if not bookings:
        return "Nothing was spent of it yet: it is too small for this release."
    *earlier, last = bookings[-SHOWN:]
    more = len(bookings) - len(earlier) - 1
    listed = [f"{plural(more, 'release')} before {(earlier[0] if earlier else last).reserved.at}"] if more else []
    listed += [str(booking) for booking in earlier]
    return f"It was spent on {', '.join(listed)}{' and ' if listed else ''}{last}."
