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
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import msgspec

from quietq.privacy import Budget, InvalidInput, QuietqError
from quietq.privacy.account import Cost, check_caps
from quietq.privacy.checks import Record, checked_by, read_record, shown
from quietq.privacy.relations import AnyRelation

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
    return f"({epsilon or 0:.4g}, {delta or 0:.4g})"


class Statement(Record, frozen=True, kw_only=True, tag_field="what"):
    """What an entry says, about the release or the source of this id."""

    id: Annotated[str, checked_by(partial(check_hash, digits=32))] = msgspec.field(
        default_factory=lambda: secrets.token_hex(16)
    )
    at: Annotated[str, checked_by(_utc)] = msgspec.field(
        default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds")
    )

    def body(self) -> str:
        """Returns the statement as an entry holds it."""
        return canonical(self.to_dict())


class Opened(Statement, frozen=True, kw_only=True, tag="open"):
    """A source has these caps from now on."""

    budget: Budget | None
    apart: Budget | None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_caps(self.budget, self.apart)

    def __str__(self) -> str:
        caps = (("", self.budget), ("apart ", self.apart))
        return ", ".join(name + pair(cap.epsilon, cap.delta) for name, cap in caps if cap is not None)


class Reserved(Statement, frozen=True, kw_only=True, tag="reserve"):
    """A release was charged: mu, or else epsilon and delta, which are booked apart."""

    cost: Cost
    relation: AnyRelation
    method: Annotated[str, checked_by(partial(one_line, least=0))]

    def __str__(self) -> str:
        size = (
            f"mu {self.cost.mu:.4g}"
            if self.cost.mu is not None
            else f"apart {pair(self.cost.epsilon, self.cost.delta)}"
        )
        return f"{size}, id {self.id}" + (f", {self.method}" if self.method else "")


class Committed(Statement, frozen=True, kw_only=True, tag="commit"):
    """The release of the reservation with this id has this hash."""

    release: Annotated[str, checked_by(check_hash)]

    def __str__(self) -> str:
        return f"id {self.id}, release {self.release}"


@dataclass(frozen=True)
class LedgerEntry:
    """One entry of the ledger, as it is stored."""

    number: int
    """The entries' numbers, from 1 on without gaps."""
    source: str
    body: str
    """What happened, as canonical JSON."""
    hash: str

    @classmethod
    def of_row(cls, place: int, row: Sequence[Any]) -> "LedgerEntry":
        """Returns an entry from a database's row, in which SQLite would let any column hold anything."""
        if [type(value) for value in row] != [int, str, str, str]:
            raise tampered(place)
        return cls(*row)

    def read(self) -> Opened | Reserved | Committed:
        """Returns what it says; TamperedLedger if it is nothing that a ledger writes."""
        try:
            one_line("source", self.source)
            said = json.loads(self.body)
            if isinstance(said, dict) and canonical(said) == self.body:
                return read_record(Opened | Reserved | Committed, said)
        except (QuietqError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
            pass
        raise tampered(self.number)

    def __str__(self) -> str:
        said = self.read()
        what = said.to_dict()["what"]
        return f"{self.number}  {said.at}  {what} {self.source!r}: {said}; hash {self.hash[:12]}"

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
