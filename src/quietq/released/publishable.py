"""What can be written to a file: each kind of released thing owns its numbers, the way back, and the check of both.

A file may come from anywhere. Its text is a record (`Details`), so that types and ranges of single fields are checked
before anything else sees them; `check` then holds fields, arrays and box against each other, and `require` is how it
refuses.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_origin, get_type_hints

import numpy as np
from jaxtyping import Float
from msgspec import Meta, defstruct

from quietq.noise import Box
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.account import Issued
from quietq.privacy.checks import Record, checked_by, checked_names
from quietq.privacy.norms import AnyNorm

Kind = TypeVar("Kind", bound="Publishable")
Json = dict[str, Any]
"""A JSON object."""
Arrays = dict[str, np.ndarray]


class InvalidRelease(InvalidInput):
    """The file is not a release that can be trusted to be whole; the message says what is wrong with it."""


def require(true: object, otherwise: str) -> None:
    if not true:
        raise InvalidRelease(f"This is not a release: {otherwise}.")


class Details(Record, frozen=True):
    """All that a file says of a released thing besides its numbers; each kind has a record with its tag."""


def details_of(kind: "type[Publishable]", tag: str) -> type[Details]:
    """Returns the record of a kind: every field of its class but its arrays and what all kinds have, with its type."""
    beside = {*kind.arrays, *kind.parts, *kind.not_in_files, *Issued.__annotations__, "box", "certificate", "labels"}
    hints = get_type_hints(kind, include_extras=True)
    said = [(name, hint) for name, hint in hints.items() if name not in beside and get_origin(hint) is not ClassVar]
    # Of a part, which is a released thing itself, the record holds that part's record.
    said += [(name, one.details | None) for name, one in kind.parts.items()]
    name = f"{kind.__name__}Details"
    return defstruct(name, said, bases=(Details,), frozen=True, tag=tag)  # pyright: ignore[reportReturnType]


def _names(name: str, value: Any) -> tuple[str, ...]:
    return checked_names(name.removesuffix("s"), value, len(value))


class Labels(Record, frozen=True, tag=False, tag_field=None):
    """What the coordinates of states and the actions were called when they were declared; empty if nobody said."""

    states: Annotated[tuple[str, ...], checked_by(_names), Meta(max_length=5_000)] = ()
    actions: Annotated[tuple[str, ...], checked_by(_names), Meta(max_length=5_000)] = ()


UNNAMED = Labels()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Labelled:
    """Something whose coordinates and actions have names."""

    labels: Labels = UNNAMED


class Publishable(Labelled, Issued, ABC):
    """A function of states made of released numbers, with the certificate that covers them."""

    details: ClassVar[type[Details]]
    """The record of what a file says of it, whose fields are fields of this class."""
    arrays: ClassVar[tuple[str, ...]] = ()
    """Fields that a file holds as numbers; one with a default may be absent."""
    layered: ClassVar[tuple[str, ...]] = ()
    """The names of those that are tuples of arrays."""
    parts: ClassVar["dict[str, type[Publishable]]"] = {}
    """Fields that are released things themselves, under the same certificate, or None."""
    not_in_files: ClassVar[tuple[str, ...]] = ()
    """Fields that no file holds."""
    what: ClassVar[Literal["agent", "function"]] = "function"
    """Whether it acts."""
    own_box: ClassVar[bool] = False
    """Whether its box is not the one that its certificate names: what was made of a release may have other inputs."""
    box: Box
    certificate: Certificate

    def __init_subclass__(cls, tag: str | None = None) -> None:
        """A kind that files can hold says by which tag they call it."""
        if tag is not None:
            cls.details = details_of(cls, tag)

    @abstractmethod
    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        """The released values; further axes are outputs, if the function has more than one."""

    def __post_init__(self) -> None:
        self._freeze()

    def describe(self) -> Details:
        """Returns all that leaves of it besides its numbers: the allow-list."""
        said = {name: getattr(self, name) for name in self.details.__struct_fields__}
        described = {name: said[name].describe() for name in self.parts if said[name] is not None}
        return self.details(**said | described)

    def to_arrays(self) -> tuple[Json, Arrays]:
        """All that leaves of it; an array in a tuple or in a part is called by the field, a dot and its own name."""
        found: Arrays = {}
        for name in self.arrays:
            value = getattr(self, name)
            if name in self.layered:
                found |= {f"{name}.{i}": layer for i, layer in enumerate(value)}
            elif value is not None:
                found[name] = value
        for name in self.parts:
            if (part := getattr(self, name)) is not None:
                found |= {f"{name}.{own}": array for own, array in part.to_arrays()[1].items()}
        return self.describe().to_dict(), found

    def fingerprint(self) -> str | None:
        if not hasattr(self, "details"):  # a kind that no file holds
            return None
        details, arrays = self.to_arrays()
        said = {"details": details, "certificate": self.certificate.to_dict(), "box": [self.box.low, self.box.high]}
        return hash_of(json.dumps(said, sort_keys=True), arrays)

    def require_as_issued(self) -> None:
        """Refuses a certified release whose numbers, or whose certificate, are not those that were issued together."""
        if self.certificate.standing == "certified" and not self.is_as_issued():
            raise InvalidInput(
                f"This {type(self).__name__} is not what was released under its certificate, which holds for no other "
                "numbers: give what privatise returned, or quietq.load read, as it is."
            )

    @classmethod
    def from_file(
        cls: "type[Kind]",
        details: Any,
        arrays: Arrays,
        box: Box,
        certificate: Certificate,
        labels: Labels = UNNAMED,
        **parts: "Publishable",
    ) -> "Kind":
        """It, of a file's record, numbers, box and certificate, once all of them were found to fit."""
        fields: Any = {name: getattr(details, name) for name in cls.details.__struct_fields__}
        fields |= dict.fromkeys(cls.parts) | parts
        fields |= {name: array for name, array in arrays.items() if name in cls.arrays}
        for name in cls.layered:
            fields[name] = tuple(array for key, array in arrays.items() if key.startswith(f"{name}."))
        expected = f"its arrays must be {', '.join(cls.arrays)}, where its record says that they are there"
        require(all(name in fields or hasattr(cls, name) for name in cls.arrays), expected)
        found = cls(**fields | {"box": box, "certificate": certificate, "labels": labels})
        # A file has exactly the arrays that this would be written with, in their order.
        require(list(found.to_arrays()[1]) == list(arrays), expected)
        found.check()
        found.check_labels()
        return found

    def check(self) -> None:
        """Refuses fields that do not fit each other or the box."""

    def check_labels(self) -> None:
        """Refuses names unless there is one for each coordinate, and one for each action."""
        counted = ((self.labels.states, self.box.dimension), (self.labels.actions, self.outputs))
        fit = all(len(names) in (0, number) for names, number in counted)
        require(fit, "it must have a name for each coordinate and each action, or none")

    @abstractmethod
    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        """Refuses numbers that a mechanism whose noise is measured in these norms could not have released."""

    def check_certificate(self, certificate: Certificate) -> None:
        """Refuses what its certificate, which is certified, is not for."""
        sides = tuple(zip(self.box.low, self.box.high, strict=True))
        norms = tuple(query.norm for query in certificate.queries)
        require(self.own_box or certificate.domain == sides, "its certificate must name its box")
        self.check_norms(norms, certificate)

    @property
    def outputs(self) -> int:
        return np.size(self([self.box.low] if self.box.dimension > 1 else self.box.low[0]))

    @property
    def choices(self) -> int | None:
        """How many actions an agent chooses among, by the largest output; None where outputs are no such values."""
        return self.outputs if self.what == "agent" else None

    def as_function(self) -> "Publishable":
        return self

    def in_words(self) -> list[str]:
        """Returns what a reader of its values should know."""
        named = (("Coordinates of a state", self.labels.states), ("Actions", self.labels.actions))
        return [f"{what}: {', '.join(names)}." for what, names in named if names]

    def _shape(self) -> str:
        return f"shape={getattr(self, self.arrays[-1]).shape}"

    def __repr__(self) -> str:
        standing = self.certificate.standing
        shown = f"{type(self).__name__}({self._shape()}, domain={self.box}, standing={standing})"
        return shown if standing == "certified" else f"NOT PRIVATE: {shown}"

    def __setstate__(self, state: dict[str, object]) -> None:
        """Copies and what comes out of a pickle are read-only too."""
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self._freeze()

    def _freeze(self) -> None:
        for value in vars(self).values():
            for array in value if isinstance(value, tuple) else (value,):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False


def hash_of(text: str, arrays: Arrays) -> str:
    """The name of a release: SHA-256 of its text, of its arrays' names and shapes, and of its numbers."""
    digest = hashlib.sha256(b"quietq release\0")
    named = json.dumps([[name, list(array.shape)] for name, array in arrays.items()])
    for part in (text.encode(), named.encode()):
        digest.update(len(part).to_bytes(8, "little") + part)
    digest.update(sum(8 * array.size for array in arrays.values()).to_bytes(8, "little"))
    for array in arrays.values():
        digest.update(raw(array))
    return digest.hexdigest()


def raw(array: np.ndarray) -> bytes:
    """The numbers as a file holds them."""
    return np.ascontiguousarray(array, dtype="<f8").tobytes()
