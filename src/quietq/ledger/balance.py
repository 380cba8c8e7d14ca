"""What a source's entries add up to: its caps, what was reserved of them, and what is left."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from quietq.ledger.chain import Entry, canonical, tampered
from quietq.ledger.record import Committed, Opened, Reserved, read
from quietq.privacy.budget import Budget
from quietq.privacy.cost import Cost, Spending
from quietq.privacy.relations import relation_in_words


@dataclass(frozen=True)
class Booking:
    """What one reservation took, and the release that it was for, if that is known."""

    id: str
    at: str
    method: str
    mu: float | None
    """Of a Gaussian release."""
    epsilon: float | None
    """Of a release that has no mu; it is booked apart, with its `delta`."""
    delta: float | None
    relation: Mapping[str, Any]
    release: str | None = None

    @property
    def cost(self) -> Cost:
        """What it took."""
        return Cost(self.mu, self.epsilon, self.delta)

    @property
    def unit(self) -> str:
        """What neighbours differ by."""
        return unit_of(self.relation)


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
        """The caps, and what was booked under them."""
        return Spending(self.budget, self.apart, Counter(booking.cost for booking in self.bookings))

    @property
    def unit(self) -> str | None:
        """What neighbours differ by, once something was booked."""
        return self.bookings[0].unit if self.bookings else None

    @property
    def without_release(self) -> tuple[Booking, ...]:
        """Bookings whose release was not noted: the process ended in between, or the release was never written."""
        return tuple(booking for booking in self.bookings if booking.release is None)

    def adds_up_with(self, relation: Mapping[str, Any]) -> bool:
        """Whether a release for this relation protects what all others of the source protect."""
        return not self.bookings or _key(self.bookings[0].relation) == _key(relation)


def balances(entries: Sequence[Entry]) -> dict[str, Balance]:
    """Every source, by its name, from entries whose chain was verified; TamperedLedger if they make no sense."""
    found: dict[str, Balance] = {}
    bookings: dict[str, dict[str, Booking]] = {}
    used: set[str] = set()
    for entry in entries:
        record, own = read(entry), bookings.get(entry.source)
        known = own is not None and record.id in own
        if isinstance(record, Opened) and own is None and record.id not in used:
            found[entry.source] = Balance(entry.source, record.budget, record.apart, record.at)
            bookings[entry.source] = {}
        elif isinstance(record, Reserved) and own is not None and record.id not in used:
            own[record.id] = Booking(**vars(record))
        elif isinstance(record, Committed) and own is not None and known and own[record.id].release is None:
            own[record.id] = replace(own[record.id], release=record.release)
        else:
            raise tampered(entry.number)
        used.add(record.id)
    return {name: replace(balance, bookings=tuple(bookings[name].values())) for name, balance in found.items()}


def unit_of(relation: Mapping[str, Any]) -> str:
    """What neighbours differ by. One person is one person, whatever their number was when something was released.

    >>> unit_of({"kind": "sup-ball", "radius": 0.01, "people": 50})
    'any one person'
    """
    if relation.get("kind") == "replace-trajectory":
        return "any one trajectory"
    if relation.get("people") is not None:
        return "any one person"
    words = relation_in_words(relation)
    return "".join(letter if letter.isprintable() else "?" for letter in words)


def _key(relation: Mapping[str, Any]) -> str:
    """What has to be the same for a sum to mean something: words leave out digits."""
    unit = unit_of(relation)
    return unit if unit.startswith("any one ") else canonical(relation)
