"""The only thing that may state an epsilon: what was promised, to whom, under which assumptions.

A Certificate is a statement, not a proof or a signature: it refuses to be built in a state that claims more than its
own parts support, and whoever signs a release off reads its assumptions.
"""

import dataclasses
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from quietq.privacy.checks import count, positive, probability, real, shown
from quietq.privacy.cost import gaussian_event
from quietq.privacy.errors import InvalidInput
from quietq.privacy.gaussian import delta_from_mu
from quietq.privacy.norms import GAUSSIAN, PURE, dimension, largest_difference, smooth_epsilon
from quietq.privacy.words import norm_in_words, relation_in_words
from quietq.version import __version__

if TYPE_CHECKING:
    import dp_accounting

SCHEMA = 2
Standing = Literal["certified", "claimed", "none"]
_NEVER_ENFORCED = (
    "chosen without the private data",
    "Neighbouring inputs are",
    "and changes as the relation says",
    "depend on the reward through",
    "depend on the private reward through",
    "taken for ideal",
    "taken for exact",
    "gave one trajectory",
    "depend on no other trajectory",
    "under two names",
    "from what this certificate covers",
    "whatever the data is",
    "checked",
    "No account was given",
)
"""Words of assumptions that are trusted by their nature."""
_CLOSE = 1e-9
"""Relative: what rounding may do to two ways of computing one number."""


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
    """Standard deviation of the noise; in `norm`, if it is Gaussian."""
    scale: float | None = None
    """Size of noise that is no Gaussian of a public deviation: the s of a density exp(-|z|/s) in `norm` where it is
    pure, and how many smooth bounds its deviation is where it follows the data."""
    sensitivity: float | None = None
    """The most that neighbours differ by, in `norm`."""
    norm: Mapping[str, object] | None = None
    """What sensitivity and noise are measured in: a kernel's `describe()`, or another kind of `privacy.norms`."""
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
        object.__setattr__(self, "relation", _frozen("relation", self.relation))
        object.__setattr__(self, "norm", _frozen("norm", self.norm))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "remarks", tuple(self.remarks))
        for name in ("epsilon", "mu", "sigma", "scale", "sensitivity"):
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
        for name in ("relation", "norm", "domain"):
            record[name] = _thawed(record[name])
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
        if self.norm is not None:
            lines.append(f"Sensitivity and noise are measured in {norm_in_words(self.norm)}.")
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
    "scale": _NUMBER,
    "sensitivity": _NUMBER,
    "norm": (dict, type(None)),
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
        ("norm", Mapping | None, "what kernel.describe() returns, or another kind of norm"),
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


CHOSEN = Assumption(
    "Box, bounds, numbers of people, settings and budget were chosen without the private data.", enforced=False
)
"""No code can see it, so every certified promise trusts somebody for it, in these words."""
_METHOD = re.compile("[a-z][a-z0-9/-]*")


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
    _check_certified(c, c.epsilon, c.delta, c.relation)


def _check_certified(c: Certificate, epsilon: float, delta: float, relation: Mapping[str, Any]) -> None:
    """What is certified has a method, assumptions, and numbers that follow from each other."""
    if _METHOD.fullmatch(c.method) is None:
        raise InvalidCertificate(f"A certified method must be a plain name such as reward/path, not {shown(c.method)}.")
    if c.method == "published":
        raise InvalidCertificate("The published theorem does not hold, so it can be 'claimed' but not 'certified'.")
    if not c.assumptions:
        raise InvalidCertificate("A certified promise must state what it assumes, even if all of it is enforced.")
    _check_assumptions(c.assumptions)
    if c.norm is None or c.sensitivity is None:
        raise InvalidCertificate("What is certified needs the sensitivity, and the norm that it is measured in.")
    needed = largest_difference(c.norm, relation)
    if not c.sensitivity >= needed * (1 - _CLOSE):
        raise InvalidCertificate(
            f"sensitivity {c.sensitivity!r} is below {needed!r}, which {relation_in_words(relation)} can come to in "
            f"{norm_in_words(c.norm)}."
        )
    coordinates = dimension(c.norm)
    if coordinates is not None and (c.domain is None or len(c.domain) != coordinates):
        raise InvalidCertificate(f"domain must be the box that the norm is defined on, of {coordinates} coordinate(s).")
    if c.mu is not None:
        _check_gaussian(c, epsilon, delta, c.mu, c.sensitivity)
    else:
        _check_other_noise(c, c.norm, epsilon, delta, c.sensitivity)


def _check_assumptions(assumptions: tuple[Assumption, ...]) -> None:
    """What no code can see is trusted, and one such thing is behind every promise.

    Sentences are plain ASCII, so that none can look like another and be read differently.
    """
    for assumption in assumptions:
        if not assumption.text.isascii():
            raise InvalidCertificate(f"A certified assumption must be plain ASCII text, not {shown(assumption.text)}.")
        if assumption.enforced and any(words in assumption.text for words in _NEVER_ENFORCED):
            raise InvalidCertificate(f"No code can enforce this, so it must be trusted: {assumption.text}")
    if CHOSEN not in assumptions:
        raise InvalidCertificate(f"A certified promise must trust somebody for this, in these words: {CHOSEN.text}")


def _check_gaussian(c: Certificate, epsilon: float, delta: float, mu: float, sensitivity: float) -> None:
    if delta == 0:
        raise InvalidCertificate("mu must be absent when delta is 0: Gaussian noise is never pure.")
    if not delta_from_mu(mu, epsilon) <= delta * (1 + _CLOSE):
        raise InvalidCertificate(f"mu {mu!r} does not imply ({epsilon!r}, {delta!r})-DP.")
    if c.sigma is None or c.scale is not None or (c.norm or {}).get("kind") not in GAUSSIAN:
        raise InvalidCertificate("A certified mu needs the sigma of Gaussian noise that it comes from, and no scale.")
    if not mu >= sensitivity / c.sigma * (1 - _CLOSE):
        raise InvalidCertificate(
            f"Noise of sigma {c.sigma!r} on sensitivity {sensitivity!r} is mu = {sensitivity / c.sigma!r}, "
            f"more than the stated {mu!r}."
        )


def _check_other_noise(
    c: Certificate, norm: Mapping[str, Any], epsilon: float, delta: float, sensitivity: float
) -> None:
    if c.scale is None:
        raise InvalidCertificate("What is certified without a mu needs the scale of its noise.")
    if norm["kind"] == "smooth-bound" and delta > 0:
        if c.sigma is not None:
            raise InvalidCertificate("Noise that follows the data has no sigma that could be stated.")
        found = smooth_epsilon(norm, c.scale / sensitivity, delta)
    elif norm["kind"] in PURE and delta == 0:
        found = sensitivity / c.scale
    else:
        raise InvalidCertificate(f"Without a mu, delta {delta!r} does not belong to {norm_in_words(norm)}.")
    if not epsilon >= found * (1 - _CLOSE):
        raise InvalidCertificate(
            f"Noise of scale {c.scale!r} on sensitivity {sensitivity!r} is epsilon = {found!r}, more than the stated "
            f"{epsilon!r}."
        )


def _frozen(what: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InvalidCertificate(f"The {what}'s keys must be text.")
        for key in value:
            _check_line(f"The {what}'s text", key)
        return MappingProxyType({key: _frozen(what, item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(_frozen(what, item) for item in value)
    if isinstance(value, str):
        _check_line(f"The {what}'s text", value)
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InvalidCertificate(f"The {what} must hold JSON values only, not {type(value).__name__}.")


def _thawed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thawed(item) for key, item in value.items()}
    return [_thawed(item) for item in value] if isinstance(value, tuple) else value
