"""What the ledger's entries may say, and the chain that they make.

A source was opened, a release was reserved, a release was noted: an entry says nothing else. What is written and what
is read back, from a database that somebody else may have written to, go through the same checks, so that no NaN,
negative or huge number can grant a budget.

Every entry carries a hash of itself and of the entry before it, so that none can be changed, taken out or put in
between without all later hashes changing. Somebody who may write to the database can compute the whole chain anew, or
cut off its end. Against them it takes a hash that was noted elsewhere: `verify(entries, head=...)`.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar

from quietq.privacy import Budget, InvalidInput, QuietqError
from quietq.privacy.checks import Checked, shown
from quietq.privacy.cost import Cost, check_caps

GENESIS = "0" * 64
"""What the first entry has before it."""
LONGEST = 200
"""Letters in a source's name, or in a method's."""
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_HEXADECIMAL = frozenset("0123456789abcdef")


class TamperedLedger(QuietqError, RuntimeError):
    """The ledger's entries are not those that were written; nothing is spent from it."""


def canonical(said: Mapping[str, object]) -> str:
    """JSON that is the same for the same content, whoever writes it."""
    return _ENCODER.encode(said)


def check_hash(name: str, value: object, digits: int = 64) -> str:
    if isinstance(value, str) and len(value) == digits and _HEXADECIMAL.issuperset(value):
        return value
    raise InvalidInput(
        f"{name} must be {'a SHA-256 hash' if digits == 64 else 'an id'} of {digits} digits 0-9 and a-f."
    )


def one_line(name: str, value: object, least: int = 1) -> str:
    """`value` as one printable line."""
    if isinstance(value, str) and value.isprintable() and value == value.strip() and least <= len(value) <= LONGEST:
        return value
    raise InvalidInput(
        f"{name} must be one printable line of {least} to {LONGEST} letters without spaces around it, "
        f"not {shown(value)}."
    )


def _utc(name: str, value: Any) -> str:
    if datetime.fromisoformat(value).replace(tzinfo=UTC).isoformat(timespec="seconds") == value:
        return value
    raise InvalidInput(f"{name} must be a time in UTC, to the second.")


def pair(epsilon: float | None, delta: float | None) -> str:
    return f"({epsilon:.4g}, {delta:.4g})"


@dataclass(frozen=True, kw_only=True)
class Statement(Checked):
    """What an entry says, about the release or the source of this id."""

    fields: ClassVar = {"id": partial(check_hash, digits=32), "at": _utc}
    what: ClassVar[str]
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def body(self) -> str:
        return canonical({"what": self.what, **asdict(self)})

    @classmethod
    def read(cls, **said: Any) -> "Statement":
        return cls(**said)


@dataclass(frozen=True, kw_only=True)
class Opened(Statement):
    """A source has these caps from now on."""

    what = "open"
    budget: Budget | None
    apart: Budget | None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_caps(self.budget, self.apart)

    @classmethod
    def read(cls, **said: Any) -> "Opened":
        return cls(**{**said, **{cap: said[cap] and Budget(**said[cap]) for cap in ("budget", "apart")}})

    def __str__(self) -> str:
        caps = (("", self.budget), ("apart ", self.apart))
        return ", ".join(name + pair(cap.epsilon, cap.delta) for name, cap in caps if cap is not None)


@dataclass(frozen=True, kw_only=True)
class Reserved(Statement):
    """A release was charged: mu, or else epsilon and delta, which are booked apart."""

    fields: ClassVar = {**Statement.fields, "method": partial(one_line, least=0)}
    what = "reserve"
    mu: float | None
    epsilon: float | None
    delta: float | None
    relation: Mapping[str, Any]
    method: str

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in vars(self.cost).items():
            object.__setattr__(self, name, value)
        if not isinstance(self.relation, dict):
            raise InvalidInput("relation must be what relation.describe() returns.")

    @property
    def cost(self) -> Cost:
        return Cost(self.mu, self.epsilon, self.delta)

    def __str__(self) -> str:
        size = f"mu {self.mu:.4g}" if self.mu is not None else f"apart {pair(self.epsilon, self.delta)}"
        return f"{size}, id {self.id}" + (f", {self.method}" if self.method else "")


@dataclass(frozen=True, kw_only=True)
class Committed(Statement):
    """The release of the reservation with this id has this hash."""

    fields: ClassVar = {**Statement.fields, "release": check_hash}
    what = "commit"
    release: str

    def __str__(self) -> str:
        return f"id {self.id}, release {self.release}"


_STATEMENTS: dict[str, type[Statement]] = {kind.what: kind for kind in (Opened, Reserved, Committed)}


@dataclass(frozen=True)
class LedgerEntry:
    """One entry of the ledger, as it is stored."""

    number: int
    """From 1, without gaps."""
    source: str
    body: str
    """What happened, as canonical JSON."""
    hash: str

    @classmethod
    def of_row(cls, place: int, row: Sequence[Any]) -> "LedgerEntry":
        """An entry from a database's row, in which SQLite would let any column hold anything."""
        if [type(value) for value in row] != [int, str, str, str]:
            raise tampered(place)
        return cls(*row)

    def read(self) -> Statement:
        """What it says; TamperedLedger if it is nothing that a ledger writes."""
        try:
            one_line("source", self.source)
            said = json.loads(self.body)
            if isinstance(said, dict) and canonical(said) == self.body:
                return _STATEMENTS[said.pop("what")].read(**said)
        except (QuietqError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
            pass
        raise tampered(self.number)

    def __str__(self) -> str:
        said = self.read()
        return f"{self.number}  {said.at}  {said.what} {self.source!r}: {said}; hash {self.hash[:12]}"

    def to_json(self) -> dict[str, Any]:
        return {"number": self.number, "source": self.source, **json.loads(self.body), "hash": self.hash}


def tampered(place: int) -> TamperedLedger:
    return TamperedLedger(
        f"Entry {place} of the ledger was changed, or one before it is missing: nothing is spent from it."
    )


def link(before: str, number: int, source: str, body: str) -> str:
    """The hash of an entry that comes after `before`."""
    whole = canonical({"before": before, "number": number, "source": source, "body": body})
    return hashlib.sha256(whole.encode()).hexdigest()


def following(entries: Sequence[LedgerEntry], source: str, body: str) -> LedgerEntry:
    number, before = len(entries) + 1, entries[-1].hash if entries else GENESIS
    return LedgerEntry(number, source, body, link(before, number, source, body))


def verify(entries: Iterable[LedgerEntry], head: str | None = None) -> str:
    """The hash of the last entry, if every one follows from the one before; else raises TamperedLedger.

    With `head`, a hash that was noted earlier, an entry with that hash must be among them.
    """
    before, seen = GENESIS, head is None or check_hash("head", head) == GENESIS
    for place, entry in enumerate(entries, start=1):
        if entry.number != place or entry.hash != link(before, entry.number, entry.source, entry.body):
            raise tampered(place)
        before = entry.hash
        seen = seen or before == head
    if not seen:
        raise TamperedLedger(
            f"No entry of the ledger has the hash {head} that was noted: its end was cut off or it was written anew."
        )
    return before
