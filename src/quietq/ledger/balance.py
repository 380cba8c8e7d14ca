"""What a source's entries add up to: its caps, what was reserved of them, and what is left.

Squares of mu are summed as an Accountant sums them. Epsilons and deltas of what is booked apart are summed as the
decimal numbers that were written, exactly: three times 0.1 is 0.3.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from quietq.ledger.chain import Entry, canonical, tampered
from quietq.ledger.record import Committed, Opened, Reserved, read
from quietq.privacy.accountant import TOLERANCE
from quietq.privacy.budget import Budget
from quietq.privacy.words import relation_in_words


@dataclass(frozen=True)
class Charge:
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
    charges: tuple[Charge, ...] = ()

    @property
    def mu(self) -> float:
        """The cap on Gaussian releases; 0 if there can be none."""
        return 0.0 if self.budget is None else _mu(self.budget)

    @property
    def spent_mu(self) -> float:
        """Of all Gaussian releases together."""
        return math.sqrt(self._squares())

    @property
    def remaining_mu(self) -> float:
        """The largest Gaussian release that would still be booked."""
        return math.sqrt(max(self.mu**2 - self._squares(), 0.0))

    @property
    def spent_apart(self) -> tuple[float, float]:
        """Epsilon and delta of all releases without a mu: they add up."""
        epsilon, delta = self._apart()
        return float(epsilon), float(delta)

    @property
    def remaining_apart(self) -> tuple[float, float]:
        """What is left for releases without a mu."""
        if self.apart is None:
            return 0.0, 0.0
        epsilon, delta = self._apart()
        return _at_most(Fraction(repr(self.apart.epsilon)) - epsilon), _at_most(
            Fraction(repr(self.apart.delta)) - delta
        )

    @property
    def promised(self) -> tuple[float, float]:
        """(epsilon, delta) of everything that can ever be released under this source: both caps together."""
        caps = [cap for cap in (self.budget, self.apart) if cap is not None]
        return math.fsum(cap.epsilon for cap in caps), math.fsum(cap.delta for cap in caps)

    @property
    def unit(self) -> str | None:
        """What neighbours differ by, once something was booked."""
        return self.charges[0].unit if self.charges else None

    @property
    def without_release(self) -> tuple[Charge, ...]:
        """Charges whose release was not noted: the process ended in between, or the release was never written."""
        return tuple(charge for charge in self.charges if charge.release is None)

    def covers(self, mu: float | None, epsilon: float | None, delta: float | None) -> bool:
        """Whether another release of this size stays within the caps."""
        if mu is not None:
            return self.budget is not None and self._squares(mu) <= self.mu**2 * (1 + TOLERANCE)
        assert epsilon is not None
        assert delta is not None
        if self.apart is None:
            return False
        sums = self._apart(epsilon, delta)
        return sums[0] <= Fraction(repr(self.apart.epsilon)) and sums[1] <= Fraction(repr(self.apart.delta))

    def adds_up_with(self, relation: Mapping[str, Any]) -> bool:
        """Whether a release for this relation protects what all others of the source protect."""
        return not self.charges or _key(self.charges[0].relation) == _key(relation)

    def _squares(self, *further: float) -> float:
        return math.fsum(mu * mu for mu in (*(charge.mu for charge in self.charges), *further) if mu is not None)

    def _apart(self, epsilon: float = 0.0, delta: float = 0.0) -> tuple[Fraction, Fraction]:
        charges = [charge for charge in self.charges if charge.mu is None]
        return (
            _sum([*(charge.epsilon for charge in charges), epsilon]),
            _sum([*(charge.delta for charge in charges), delta]),
        )


def balances(entries: Sequence[Entry]) -> dict[str, Balance]:
    """Every source, by its name, from entries whose chain was verified; TamperedLedger if they make no sense."""
    found: dict[str, Balance] = {}
    charges: dict[str, dict[str, Charge]] = {}
    used: set[str] = set()
    for entry in entries:
        record, own = read(entry), charges.get(entry.source)
        known = own is not None and record.id in own
        if isinstance(record, Opened) and own is None and record.id not in used:
            found[entry.source] = Balance(entry.source, record.budget, record.apart, record.at)
            charges[entry.source] = {}
        elif isinstance(record, Reserved) and own is not None and record.id not in used:
            own[record.id] = Charge(**vars(record))
        elif isinstance(record, Committed) and own is not None and known and own[record.id].release is None:
            own[record.id] = replace(own[record.id], release=record.release)
        else:
            raise tampered(entry.number)
        used.add(record.id)
    return {name: replace(balance, charges=tuple(charges[name].values())) for name, balance in found.items()}


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


def _sum(values: Iterable[float | None]) -> Fraction:
    return sum((Fraction(repr(value)) for value in values if value), Fraction(0))


def _at_most(value: Fraction) -> float:
    """The largest number that would still be accepted."""
    number = max(float(value), 0.0)
    return number if Fraction(repr(number)) <= value or number == 0 else math.nextafter(number, 0.0)


@lru_cache(maxsize=1024)
def _mu(budget: Budget) -> float:
    return budget.mu
