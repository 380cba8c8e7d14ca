"""A function of one's own as feedback: what it owes to each person is the caller's word, and its relation says it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from quietq.noise.box import Box
from quietq.privacy.assumptions import Assumption, Code
from quietq.privacy.relations import Relation

Function = Callable[[np.ndarray], np.ndarray]
Input = Function | Sequence[Function] | Sequence[float] | np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class OwnFunction:
    """One vectorised function of states, one per coordinate, or weights: whatever the mechanism takes."""

    source: Input | None
    """None where only what is declared about it matters: for a choice of noise, or for an audit."""
    relation: Relation
    assumptions: tuple[Assumption, ...] = ()
    """How the caller makes sure of the relation; without any, certificates say that it is trusted."""
    box: Box | None = None
    """Where states lie; by default the unit box."""
    slope: float | None = None
    """The function's slope per width of the box, if it was declared."""
    largest: float | None = None
    """A bound on the size of all values, if it was declared."""
    accuracy: float | None = None
    """The largest error of a value, if values are less exact than float64."""
    once: ClassVar[None] = None
    """Nothing tells one function from another, so only an account can add releases up."""
    names: ClassVar[tuple[tuple[str, ...], ...]] = ((), ())
    """Nobody said what its states' coordinates are called."""
    kind: ClassVar[str] = "function"
    loss: ClassVar[None] = None
    """It has no rows that a model could be fitted to."""

    def __post_init__(self) -> None:
        if not self.assumptions:
            object.__setattr__(self, "assumptions", (Code.NEIGHBOURS(),))

    def functions(self) -> list[Any]:
        return list(self.source) if isinstance(self.source, Sequence) else [self.source]
