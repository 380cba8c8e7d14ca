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
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from quietq.privacy.assumption import (
    CHOSEN as CHOSEN,
    FAIR as FAIR,
    Assumption as Assumption,
    InvalidCertificate as InvalidCertificate,
    flag,
    line,
    require,
)
from quietq.privacy.certified import check_certified
from quietq.privacy.checks import Check, Checked, optional, positive, probability, real, shown
from quietq.privacy.cost import gaussian_event
from quietq.privacy.errors import InvalidInput
from quietq.privacy.kinds import UnknownKind, thaw
from quietq.privacy.printed import in_print
from quietq.privacy.relations import RELATIONS
from quietq.version import __version__

if TYPE_CHECKING:
    import dp_accounting

SCHEMA = 3
Standing = Literal["certified", "claimed", "none"]


def _several(kind: type, words: str) -> Check:
    def check(name: str, value: object) -> tuple[Any, ...]:
        if isinstance(value, list | tuple) and all(isinstance(one, kind) for one in value):
            return tuple(value)
        raise InvalidCertificate(f"{name} must be a tuple of {words}, not {shown(value)}.")

    return check


def _remarks(name: str, value: object) -> tuple[str, ...]:
    return tuple(line("A remark", one) for one in _several(str, "sentences")(name, value))


def _one_of(*allowed: object) -> Check:
    def check(name: str, value: object) -> object:
        known = any(type(value) is type(one) and value == one for one in allowed)
        require(known, f"{name} must be one of {allowed}, not {shown(value)}.")
        return value

    return check


def _box(name: str, value: object) -> tuple[tuple[float, float], ...]:
    sides = value if isinstance(value, list | tuple) else ()
    pairs = bool(sides) and all(isinstance(side, list | tuple) and len(side) == 2 for side in sides)
    require(pairs, f"{name} must be pairs (low, high), one for each coordinate, not {shown(value)}.")
    box = tuple((real(name, low), real(name, high)) for low, high in sides)
    require(all(low < high for low, high in box), f"{name} must have low below high, not {shown(value)}.")
    return box


def _record(name: str, value: object) -> Any:
    require(isinstance(value, Mapping), f"{name} must be what describe() returns, not {shown(value)}.")
    return _frozen(name, value)


def _frozen(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return MappingProxyType({line(f"The {name}'s text", key): _frozen(name, item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(_frozen(name, item) for item in value)
    if isinstance(value, str):
        return line(f"The {name}'s text", value)
    is_json = value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
    require(is_json, f"The {name} must hold JSON values only, not {type(value).__name__}.")
    return value


@dataclass(frozen=True, kw_only=True)
class Certificate(Checked):
    """An immutable statement of privacy, in JSON and in plain words.

    `standing` is `certified` (there is a theorem and the code enforces its conditions), `claimed` (the paper's theorem,
    which does not hold) or `none`.

    >>> seeded = Certificate(method="gaussian-process", standing="none", reproducible=True)
    >>> Certificate.from_json(seeded.to_json()) == seeded
    True
    """

    fields: ClassVar = {
        "method": line,
        "standing": _one_of(*get_args(Standing)),
        "relation": optional(_record),
        "delta": optional(probability),
        **dict.fromkeys(("epsilon", "mu", "sigma", "scale", "sensitivity", "expected_error"), optional(positive)),
        "norm": optional(_record),
        "domain": optional(_box),
        "assumptions": _several(Assumption, "Assumption"),
        "remarks": _remarks,
        "reproducible": flag,
        "version": line,
        "schema": _one_of(SCHEMA),
    }
    method: str
    standing: Standing
    relation: Mapping[str, object] | None = None
    """Which two inputs must look alike, as `relation.describe()` has it."""
    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    """The Gaussian-DP parameter; None for pure and for (epsilon, delta)-only methods."""
    sigma: float | None = None
    """Standard deviation of the noise, if it is one number: several queries have noise of several sizes."""
    scale: float | None = None
    """Size of noise that is no Gaussian of a public deviation: the s of a density exp(-|z|/s) in `norm` where it is
    pure, and how many smooth bounds its deviation is where it follows the data."""
    sensitivity: float | None = None
    """The most that neighbours differ by, in `norm`."""
    expected_error: float | None = None
    """How far off the released values must be expected to be: root mean square, apart from a constant. It is public: by
    the law of the noise, over the box; for models of rows where people's states lie, with chance in who was asked, for
    rewards as their prior has them, and without what given features cannot represent."""
    norm: Mapping[str, object] | None = None
    """What sensitivity and noise are measured in: a kernel's `describe()`, or another kind of `privacy.norms`."""
    domain: Sequence[Sequence[float]] | None = None
    """The public box of states, a pair (low, high) for each coordinate; slopes and norms are those over this box."""
    assumptions: tuple[Assumption, ...] = ()
    remarks: tuple[str, ...] = ()
    """For the reader: choices made and why, conditions that failed."""
    reproducible: bool = False
    """A seed or key was given, so that whoever knows it can subtract the noise: not private."""
    version: str = __version__
    schema: int = SCHEMA

    def with_assumption(self, assumption: Assumption) -> "Certificate":
        """The certificate with one more assumption; one that promises nothing stays as it is."""
        if self.standing != "certified":
            return self
        return dataclasses.replace(self, assumptions=(*self.assumptions, assumption))

    def __post_init__(self) -> None:
        super().__post_init__()
        require(bool(self.method.strip()), "method must be named.")
        certified = self.standing == "certified"
        if self.relation:
            try:
                RELATIONS.find(self.relation)
            except UnknownKind:  # which goes by only where nothing is certified
                if certified:
                    raise
        if self.standing == "none":
            silent = (self.epsilon, self.delta, self.mu) == (None, None, None)
            require(silent, "A certificate of standing 'none' must not state epsilon, delta or mu.")
            return
        standing = f"standing {self.standing!r}"
        seeded = f"A reproducible draw is not private, so it cannot have {standing}, only 'none'."
        require(not self.reproducible, seeded)
        complete = self.epsilon is not None and self.delta is not None and bool(self.relation)
        require(complete, f"The {standing} needs epsilon, delta and the relation that they hold for.")
        require(certified or bool(self.remarks), "A claim must remark what keeps it from being certified.")
        if certified:
            check_certified(self)

    def to_dict(self) -> dict[str, Any]:
        record = {f.name: thaw(getattr(self, f.name)) for f in dataclasses.fields(self)}
        return {**record, "assumptions": [dataclasses.asdict(one) for one in self.assumptions]}

    def to_json(self) -> str:
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
        schema = record.get("schema")
        require(schema == SCHEMA, f"Certificate schema {shown(schema)} is not known here, only {SCHEMA}.")
        require(set(record) == set(cls.fields), f"A certificate has exactly the fields {sorted(cls.fields)}.")
        try:
            stated = {**record, "assumptions": _assumptions(record["assumptions"])}
            return cls(**{name: check(name, stated[name]) for name, check in cls.fields.items()})
        except InvalidCertificate:
            raise
        except RecursionError:
            raise InvalidCertificate("A certificate is not nested as deeply as this.") from None
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
        return in_print(self)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    require(len(record) == len(pairs), "A certificate must not state a field twice.")
    return record


def _assumptions(records: object) -> tuple[Assumption, ...]:
    found = _several(dict, "a text and enforced, each")("assumptions", records)
    exact = all({name: type(value) for name, value in one.items()} == {"text": str, "enforced": bool} for one in found)
    require(exact, "Each assumption must have exactly a text and enforced, true or false.")
    return tuple(Assumption(**one) for one in found)


def _restored(record: dict[str, Any]) -> Certificate:
    """What a pickle calls: a function by its name, whatever made the pickle."""
    return Certificate.from_dict(record)
