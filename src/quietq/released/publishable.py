"""What can be written to a file: each kind of released thing owns its numbers, the way back, and the check of both.

A file may come from anywhere. `from_arrays` believes nothing before it was checked against the rest, and `require` is
how it refuses.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.noise import Box
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.account import Receipted
from quietq.privacy.norms import AnyNorm, SmoothBound
from quietq.privacy.trained_methods import TRAINED_METHODS

Json = dict[str, Any]
"""A JSON object."""
Unchecked = Any
"""A value that a file holds, before it was checked."""
Details = Json
"""All that describes a released thing besides its numbers."""
Arrays = dict[str, np.ndarray]
IN_TRAINING = tuple(entry.norm for entry in TRAINED_METHODS.values() if entry.norm is not None)
"""Norms in which nothing is released but what methods release that noise as they train."""


class InvalidRelease(InvalidInput):
    """The file is not a release that can be trusted to be whole; the message says what is wrong with it."""


def require(true: object, otherwise: str) -> None:
    if not true:
        raise InvalidRelease(f"This is not a release: {otherwise}.")


class Stored(NamedTuple):
    """What a file says of a released thing."""

    details: Details
    arrays: Arrays
    box: Box
    certificate: Certificate

    def expect(self, details: Iterable[str], arrays: Iterable[str]) -> None:
        for what, found, named in (("details", self.details, details), ("arrays", self.arrays, arrays)):
            require(set(found) == set(named), f"its {what} must be {sorted(named)}")


class Publishable(Receipted, ABC):
    """A function of states made of released numbers, with the certificate that covers them."""

    kind: ClassVar[str] = ""
    """Its name in a file."""
    details: ClassVar[tuple[str, ...]] = ()
    """Fields that a file holds as JSON."""
    arrays: ClassVar[tuple[str, ...]] = ()
    """Fields that it holds as numbers."""
    check: ClassVar[Callable[..., None]]
    """Refuses details and arrays, by their names, that do not fit each other or the box."""
    what: ClassVar[Literal["agent", "function"]] = "function"
    """Whether it acts."""
    own_box: ClassVar[bool] = False
    """Whether its box is not the one that its certificate names: what was made of a release may have other inputs."""
    box: Box
    certificate: Certificate

    @abstractmethod
    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        """The released values; further axes are outputs, if the function has more than one."""

    def __post_init__(self) -> None:
        self._freeze()

    def to_arrays(self) -> tuple[Details, Arrays]:
        """All that leaves of it: the allow-list."""
        return {name: getattr(self, name) for name in self.details}, {name: getattr(self, name) for name in self.arrays}

    @classmethod
    def from_arrays(cls, stored: Stored) -> "Publishable":
        stored.expect(cls.details, cls.arrays)
        parts: Any = {**stored.details, **stored.arrays, "box": stored.box}
        cls.check(**parts)
        return cls(**parts, certificate=stored.certificate)  # pyright: ignore[reportCallIssue]

    @abstractmethod
    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        """Refuses numbers that a mechanism whose noise is measured in these norms could not have released."""

    def check_certificate(self, certificate: Certificate) -> None:
        """Refuses what its certificate, which is certified, is not for."""
        sides = tuple(zip(self.box.low, self.box.high, strict=True))
        norms = tuple(query.norm for query in certificate.queries)
        follows_data = isinstance(norms[0], SmoothBound)  # noise of people's trajectories, which have no box
        named = certificate.domain == sides
        other = self.own_box or (follows_data and certificate.domain is None)
        require(named or other, "its certificate must name its box")
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
        """What a reader of its values should know."""
        return []

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


def check_outputs(array: np.ndarray, start: list[int]) -> None:
    """Refuses an array whose shape does not start as it must, or whose values are not numbers or rows of them."""
    require(list(array.shape[: len(start)]) == start, f"an array has shape {array.shape} and must start with {start}")
    require(array.ndim <= len(start) + 1, "values must be numbers, or rows of numbers")
