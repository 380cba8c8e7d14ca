"""What an entry may say: a source was opened, a release was reserved, a release was noted.

Both ways go through the same checks: what is written, and what is read back from a database that somebody else may have
written to. A row that says anything else is refused, so that no NaN, negative or huge number can grant a budget.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from quietq.ledger.chain import Entry, canonical, check_hash, is_hash, tampered
from quietq.privacy.budget import Budget
from quietq.privacy.checks import positive, probability, shown
from quietq.privacy.cost import check_caps
from quietq.privacy.errors import InvalidInput, QuietqError

LONGEST = 200
"""Letters in a source's name, or in a method's."""


@dataclass(frozen=True)
class Opened:
    """A source has these caps from now on."""

    id: str
    at: str
    budget: Budget | None
    apart: Budget | None


@dataclass(frozen=True)
class Reserved:
    """A release was charged: mu, or else epsilon and delta."""

    id: str
    at: str
    mu: float | None
    epsilon: float | None
    delta: float | None
    relation: Mapping[str, Any]
    method: str


@dataclass(frozen=True)
class Committed:
    """The release of a reservation has this hash."""

    id: str
    at: str
    release: str


Record = Opened | Reserved | Committed


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def one_line(name: str, value: object, least: int = 1) -> str:
    """`value` as one printable line.

    >>> one_line("source", "ratings of May")
    'ratings of May'
    """
    good = isinstance(value, str) and value.isprintable() and value == value.strip()
    if isinstance(value, str) and good and least <= len(value) <= LONGEST:
        return value
    raise InvalidInput(
        f"{name} must be one printable line of {least} to {LONGEST} letters without spaces around it, "
        f"not {shown(value)}."
    )


def opened(id: str, at: str, budget: Budget | None, apart: Budget | None) -> dict[str, object]:
    """What an opening says, in JSON."""
    return {"what": "open", "id": id, "at": at, "budget": _amount(budget), "apart": _amount(apart)}


def reserved(id: str, at: str, mu: float | None, epsilon: float | None, delta: float | None,
             relation: Mapping[str, Any], method: str) -> dict[str, object]:  # fmt: skip
    """What a reservation says, in JSON."""
    return {"what": "reserve", "id": id, "at": at, "mu": mu, "epsilon": epsilon, "delta": delta,
            "relation": relation, "method": method}  # fmt: skip


def committed(id: str, at: str, release: str) -> dict[str, object]:
    """What a commit says, in JSON."""
    return {"what": "commit", "id": id, "at": at, "release": release}


def read(entry: Entry) -> Record:
    """What an entry says; TamperedLedger if it is nothing that a ledger writes."""
    try:
        one_line("source", entry.source)
        said = json.loads(entry.body)
        if isinstance(said, dict) and canonical(said) == entry.body:
            kind, keys = _KINDS[said.pop("what")]
            if said.keys() == keys and is_hash(said["id"], 32) and _is_time(said["at"]):
                return kind(said)
    except (QuietqError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        pass
    raise tampered(entry.number)


def _amount(budget: Budget | None) -> dict[str, float] | None:
    return None if budget is None else {"epsilon": budget.epsilon, "delta": budget.delta}


def _is_time(value: Any) -> bool:
    return datetime.fromisoformat(value).replace(tzinfo=UTC).isoformat(timespec="seconds") == value


def _opened(said: Any) -> Opened:
    budget, apart = (None if said[name] is None else _budget(said[name]) for name in ("budget", "apart"))
    check_caps(budget, apart)
    return Opened(said["id"], said["at"], budget, apart)


def _budget(amount: Any) -> Budget:
    if amount.keys() != {"epsilon", "delta"}:
        raise ValueError
    return Budget(positive("epsilon", amount["epsilon"]), probability("delta", amount["delta"]))


def _reserved(said: Any) -> Reserved:
    mu, epsilon, delta = said["mu"], said["epsilon"], said["delta"]
    if (mu is None) == (epsilon is None) or (epsilon is None) != (delta is None):
        raise ValueError
    if not isinstance(said["relation"], dict):
        raise ValueError
    return Reserved(
        said["id"],
        said["at"],
        None if mu is None else positive("mu", mu),
        None if epsilon is None else positive("epsilon", epsilon),
        None if delta is None else probability("delta", delta),
        said["relation"],
        one_line("method", said["method"], least=0),
    )


def _committed(said: Any) -> Committed:
    return Committed(said["id"], said["at"], check_hash("release", said["release"]))


_KINDS = {
    "open": (_opened, {"id", "at", "budget", "apart"}),
    "reserve": (_reserved, {"id", "at", "mu", "epsilon", "delta", "relation", "method"}),
    "commit": (_committed, {"id", "at", "release"}),
}
