"""The only thing that may state an epsilon: what was promised, to whom, under which assumptions.

A Certificate is a statement, not a proof or a signature: it refuses to be built in a state that claims more than its
own parts support, and whoever signs a release off reads its assumptions.
"""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from quietq.privacy.accountant import gaussian_event
from quietq.privacy.checks import count, positive, probability, real, shown
from quietq.privacy.errors import InvalidInput
from quietq.privacy.gaussian import delta_from_mu
from quietq.privacy.words import relation_in_words
from quietq.version import __version__

if TYPE_CHECKING:
    import dp_accounting

SCHEMA = 1
Standing = Literal["certified", "claimed", "none"]


class InvalidCertificate(InvalidInput):
    """The certificate would claim more than its parts support, or the text is not one."""


@dataclass(frozen=True)
class Assumption:
    """Something the promise stands on: `enforced` by this code, or else trusted to the caller."""

    text: str
    enforced: bool

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise InvalidCertificate(f"An assumption's text must be a sentence, not {shown(self.text)}.")
        _check_line("An assumption's text", self.text)
        if not isinstance(self.enforced, bool):
            raise InvalidCertificate(f"An assumption's enforced must be True or False, not {shown(self.enforced)}.")


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """An immutable statement of privacy, in JSON and in plain words.

    `standing` is `certified` (there is a theorem and the code enforces its conditions), `claimed` (the paper's theorem,
    which does not hold) or `none`.

    >>> seeded = Certificate(method="gaussian-process", standing="none", reproducible=True)
    >>> Certificate.from_json(seeded.to_json()) == seeded
    True
    """

    method: str
    standing: Standing
    relation: Mapping[str, object] | None = None
    """Which two inputs must look alike, as `relation.describe()` has it."""
    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    """The Gaussian-DP parameter; None for pure and for (epsilon, delta)-only methods."""
    sigma: float | None = None
    """Standard deviation of the noise."""
    sensitivity: float | None = None
    """The most that neighbours differ by, in the norm that the noise is scaled to."""
    domain: Sequence[Sequence[float]] | None = None
    """The public box of states, a pair (low, high) a coordinate; slopes and norms are those over this box."""
    assumptions: tuple[Assumption, ...] = ()
    remarks: tuple[str, ...] = ()
    """For the reader: choices made and why, conditions that failed."""
    reproducible: bool = False
    """A seed or key was given, so that whoever knows it can subtract the noise: not private."""
    version: str = __version__
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        _check_types(self)
        object.__setattr__(self, "relation", _frozen(self.relation))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "remarks", tuple(self.remarks))
        for name in ("epsilon", "mu", "sigma", "sensitivity"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.delta is not None:
            object.__setattr__(self, "delta", probability("delta", self.delta))
        if self.domain is not None:
            object.__setattr__(self, "domain", _box(self.domain))
        if self.relation:
            _check_relation(self.relation, others=self.standing != "certified")
        _check_claims(self)

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain JSON types."""
        record = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        record["relation"], record["domain"] = _thawed(self.relation), _thawed(self.domain)
        record["assumptions"] = [dataclasses.asdict(a) for a in self.assumptions]
        record["remarks"] = list(self.remarks)
        return record

    def to_json(self) -> str:
        """One JSON object."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """The certificate back from its JSON; raises InvalidCertificate for anything else."""
        try:
            record = json.loads(text, object_pairs_hook=_without_duplicates)
        except InvalidCertificate:
            raise
        except (ValueError, RecursionError) as error:
            raise InvalidCertificate("A certificate must be a JSON object, and this text is not JSON.") from error
        return cls.from_dict(record)

    @classmethod
    def from_dict(cls, record: object) -> "Certificate":
        """The certificate back from its JSON types; raises InvalidCertificate for anything else."""
        if not isinstance(record, dict):
            raise InvalidCertificate("A certificate must be a JSON object.")
        if record.get("schema") != SCHEMA:
            raise InvalidCertificate(f"Certificate schema {record.get('schema')!r} is not known here, only {SCHEMA}.")
        if set(record) != set(_JSON_TYPES):
            raise InvalidCertificate(f"A certificate has exactly the fields {sorted(_JSON_TYPES)}.")
        for name, types in _JSON_TYPES.items():
            if not isinstance(record[name], types) or (isinstance(record[name], bool) and types is not bool):
                raise InvalidCertificate(f"{name} is of the wrong type, {type(record[name]).__name__}.")
        if not all(_is_assumption(a) for a in record["assumptions"]):
            raise InvalidCertificate("Each assumption must have exactly a text and enforced, true or false.")
        if not all(isinstance(remark, str) for remark in record["remarks"]):
            raise InvalidCertificate("Each remark must be text.")
        if record["standing"] not in get_args(Standing):
            raise InvalidCertificate(f"standing must be one of {get_args(Standing)}, not {record['standing']!r}.")
        try:
            return cls(
                **{
                    **record,
                    "domain": None if record["domain"] is None else _box(record["domain"]),
                    "assumptions": tuple(Assumption(**a) for a in record["assumptions"]),
                    "remarks": tuple(record["remarks"]),
                }
            )
        except InvalidCertificate:
            raise
        except (InvalidInput, OverflowError) as error:
            raise InvalidCertificate(str(error)) from error

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.to_dict(),)

    def to_event(self) -> "dp_accounting.DpEvent":
        """The release as a dp-accounting event, for an accountant with its default neighbouring relation."""
        if self.standing != "certified" or self.mu is None:
            raise InvalidInput(f"Only a certified Gaussian release has an event; this one is {self.standing!r}.")
        return gaussian_event({self.mu: 1})

    def __str__(self) -> str:
        if self.standing == "none":
            head = f"{self.method}: no privacy is promised"
            head += " (a seed was given: whoever knows it can subtract the noise)." if self.reproducible else "."
        else:
            verb = "is certified" if self.standing == "certified" else "is only CLAIMED, not proven,"
            mu = "" if self.mu is None else f" (mu = {self.mu:.5g})"
            head = f"{self.method}: {verb} to be ({self.epsilon:g}, {self.delta:g})-differentially private{mu}."
        lines = [head]
        if self.relation is not None:
            lines.append(f"Promised to look alike: {relation_in_words(self.relation)}.")
        if self.domain is not None:
            lines.append(f"The box: {' x '.join(f'[{low:.10g}, {high:.10g}]' for low, high in self.domain)}.")
        lines += [f"- {'enforced' if a.enforced else 'trusted'}: {a.text}" for a in self.assumptions]
        lines += [f"- note: {remark}" for remark in self.remarks]
        return "\n".join(lines)


_NUMBER = (int, float, type(None))
_JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "method": str,
    "standing": str,
    "relation": (dict, type(None)),
    "epsilon": _NUMBER,
    "delta": _NUMBER,
    "mu": _NUMBER,
    "sigma": _NUMBER,
    "sensitivity": _NUMBER,
    "domain": (list, type(None)),
    "assumptions": list,
    "remarks": list,
    "reproducible": bool,
    "version": str,
    "schema": int,
}


def _check_types(certificate: Certificate) -> None:
    """Each field of its own kind; numbers are checked by their values."""
    for name, kind, words in (
        ("method", str, "text"),
        ("version", str, "text"),
        ("reproducible", bool, "True or False"),
        ("relation", Mapping | None, "what relation.describe() returns"),
        ("assumptions", list | tuple, "a tuple of Assumption"),
        ("remarks", list | tuple, "a tuple of sentences"),
    ):
        if not isinstance(getattr(certificate, name), kind):
            raise InvalidCertificate(f"{name} must be {words}, not {shown(getattr(certificate, name))}.")
    for assumption in certificate.assumptions:
        if not isinstance(assumption, Assumption):
            raise InvalidCertificate(f"assumptions must hold Assumption only, not {shown(assumption)}.")
    for remark in certificate.remarks:
        if not isinstance(remark, str):
            raise InvalidCertificate(f"remarks must hold text only, not {shown(remark)}.")
        _check_line("A remark", remark)
    _check_line("method", certificate.method)
    _check_line("version", certificate.version)


def _check_line(name: str, text: str) -> None:
    """Line breaks and control characters could forge lines of what is printed."""
    if not text.isprintable():
        raise InvalidCertificate(f"{name} must be printable text in one line, not {shown(text)}.")


def _box(domain: object) -> tuple[tuple[float, float], ...]:
    """Pairs of numbers, low below high."""
    sides = domain if isinstance(domain, list | tuple) else ()
    if not sides or not all(isinstance(side, list | tuple) and len(side) == 2 for side in sides):
        raise InvalidCertificate(f"domain must be pairs (low, high), one a coordinate, not {shown(domain)}.")
    box = tuple((real("domain", low), real("domain", high)) for low, high in sides)
    if not all(low < high for low, high in box):
        raise InvalidCertificate(f"domain must have low below high, not {shown(domain)}.")
    return box


_RELATIONS = {
    "sup-ball": {"kind", "radius", "people"},
    "lipschitz-ball": {"kind", "radius", "lipschitz", "actions", "people"},
    "rkhs-ball": {"kind", "radius", "kernel", "actions", "people"},
    "replace-trajectory": {"kind", "count", "largest_reward", "horizon"},
}


def _check_relation(relation: Mapping[str, Any], others: bool) -> None:
    """A relation as its own `describe()` has it; another kind goes by only where nothing is certified."""
    kind = relation.get("kind")
    if not isinstance(kind, str) or kind not in _RELATIONS:
        if others:
            return
        raise InvalidCertificate(f"A certified relation must be one of {sorted(_RELATIONS)}, not {shown(kind)}.")
    if set(relation) != _RELATIONS[kind]:
        raise InvalidCertificate(f"A {kind} has exactly the fields {sorted(_RELATIONS[kind])}.")
    for name, value in relation.items():
        if name in ("radius", "lipschitz", "largest_reward"):
            positive(f"The relation's {name}", value)
        elif name in ("actions", "count") or (name in ("people", "horizon") and value is not None):
            count(f"The relation's {name}", value)
        elif name == "kernel" and not (isinstance(value, Mapping) and isinstance(value.get("kind"), str)):
            raise InvalidCertificate("The relation's kernel must be what kernel.describe() returns.")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise InvalidCertificate("A certificate must not state a field twice.")
    return record


def _restored(record: dict[str, Any]) -> Certificate:
    """What a pickle calls: a function by its name, whatever made the pickle."""
    return Certificate.from_dict(record)


def _is_assumption(record: object) -> bool:
    return (
        isinstance(record, dict)
        and set(record) == {"text", "enforced"}
        and isinstance(record["text"], str)
        and isinstance(record["enforced"], bool)
    )


def _check_claims(certificate: Certificate) -> None:
    """Nothing may be promised that the parts don't add up to."""
    c = certificate
    if c.standing not in get_args(Standing) or c.schema != SCHEMA or not c.method.strip():
        raise InvalidCertificate(f"standing must be one of {get_args(Standing)}, schema {SCHEMA}, and method named.")
    if c.standing == "none":
        if (c.epsilon, c.delta, c.mu) != (None, None, None):
            raise InvalidCertificate("A certificate of standing 'none' must not state epsilon, delta or mu.")
        return
    if c.reproducible:
        raise InvalidCertificate(
            f"A reproducible draw is not private, so its standing must be 'none', not {c.standing!r}."
        )
    if c.epsilon is None or c.delta is None or not c.relation:
        raise InvalidCertificate(f"Standing {c.standing!r} needs epsilon, delta and the relation that they hold for.")
    if c.standing == "claimed":
        if not c.remarks:
            raise InvalidCertificate("A claim must remark what keeps it from being certified.")
        return
    if c.method == "published":
        raise InvalidCertificate("The published theorem does not hold, so it can be 'claimed' but not 'certified'.")
    if not c.assumptions:
        raise InvalidCertificate("A certified promise must state what it assumes, even if all of it is enforced.")
    if c.mu is None:
        if c.sensitivity is not None:
            raise InvalidCertificate("A certified sensitivity needs the mu that comes of it.")
        return
    if c.delta == 0:
        raise InvalidCertificate("mu must be absent when delta is 0: Gaussian noise is never pure.")
    if not delta_from_mu(c.mu, c.epsilon) <= c.delta * (1 + 1e-9):
        raise InvalidCertificate(f"mu {c.mu!r} does not imply ({c.epsilon!r}, {c.delta!r})-DP.")
    if c.sigma is None or c.sensitivity is None:
        raise InvalidCertificate("A certified mu needs the sigma and the sensitivity that it comes from.")
    if not c.mu >= c.sensitivity / c.sigma * (1 - 1e-9):
        raise InvalidCertificate(
            f"Noise of sigma {c.sigma!r} on sensitivity {c.sensitivity!r} is mu = {c.sensitivity / c.sigma!r}, "
            f"more than the stated {c.mu!r}."
        )


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InvalidCertificate("The relation's keys must be text.")
        for key in value:
            _check_line("The relation's text", key)
        return MappingProxyType({key: _frozen(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, str):
        _check_line("The relation's text", value)
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InvalidCertificate(f"The relation must hold JSON values only, not {type(value).__name__}.")


def _thawed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thawed(item) for key, item in value.items()}
    return [_thawed(item) for item in value] if isinstance(value, tuple) else value
