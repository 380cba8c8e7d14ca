"""The chain: every entry carries a hash of itself and of the entry before it, so that no entry can be changed, taken
out or put in between without all later hashes changing.

Somebody who may write to the database can compute the whole chain anew, or cut off its end. Against them it takes a
hash that was noted elsewhere: `verify(entries, head=...)`.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quietq.privacy.errors import InvalidInput, QuietqError

GENESIS = "0" * 64
"""What the first entry has before it."""
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_HEXADECIMAL = frozenset("0123456789abcdef")


class TamperedLedger(QuietqError, RuntimeError):
    """The ledger's entries are not those that were written; nothing is spent from it."""


@dataclass(frozen=True)
class Entry:
    """One line of the ledger, as it is stored."""

    number: int
    """From 1, without gaps."""
    source: str
    body: str
    """What happened, as canonical JSON."""
    hash: str


def tampered(place: int) -> TamperedLedger:
    """The refusal to go on when an entry is not what it should be."""
    return TamperedLedger(
        f"Entry {place} of the ledger was changed, or one before it is missing: nothing is spent from it."
    )


def is_hash(value: object, digits: int = 64) -> bool:
    """Whether it is a hash in lower-case hexadecimal digits."""
    return isinstance(value, str) and len(value) == digits and _HEXADECIMAL.issuperset(value)


def check_hash(name: str, value: object) -> str:
    """`value` as a SHA-256 hash."""
    if isinstance(value, str) and is_hash(value):
        return value
    raise InvalidInput(f"{name} must be a SHA-256 hash of 64 digits 0-9 and a-f.")


def canonical(said: Mapping[str, object]) -> str:
    """JSON that is the same for the same content, whoever writes it.

    >>> canonical({"b": 0.1, "a": None})
    '{"a":null,"b":0.1}'
    """
    return _ENCODER.encode(said)


def link(before: str, number: int, source: str, body: str) -> str:
    """The hash of an entry that comes after `before`."""
    whole = canonical({"before": before, "number": number, "source": source, "body": body})
    return hashlib.sha256(whole.encode()).hexdigest()


def following(entries: Sequence[Entry], source: str, said: Mapping[str, object]) -> Entry:
    """The entry that says this, after all others."""
    number, body = len(entries) + 1, canonical(said)
    return Entry(number, source, body, link(entries[-1].hash if entries else GENESIS, number, source, body))


def entry_of(place: int, row: Sequence[object]) -> Entry:
    """An entry from a database's row, in which SQLite would let any column hold anything."""
    number, source, body, digest = row
    if number.__class__ is int and isinstance(source, str) and isinstance(body, str) and isinstance(digest, str):
        return Entry(number, source, body, digest)  # pyright: ignore[reportArgumentType]
    raise tampered(place)


def verify(entries: Iterable[Entry], head: str | None = None) -> str:
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
