"""A function of one's own as feedback: what it owes to each person is the caller's word, and its relation says it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quietq.privacy.assumptions import Assumption, Code
from quietq.privacy.relations import Relation

Function = Callable[[np.ndarray], np.ndarray]
Input = Function | Sequence[Function] | Sequence[float] | np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class OwnFunction:
    """One vectorised function of states, one per coordinate, or weights: whatever the mechanism takes."""

    source: Input
    relation: Relation
    assumptions: tuple[Assumption, ...] = ()
    """How the caller makes sure of the relation; without any, certificates say that it is trusted."""
    once: None = None
    """Nothing tells one function from another, so only an account can add releases up."""

    def __post_init__(self) -> None:
        if not self.assumptions:
            object.__setattr__(self, "assumptions", (Code.NEIGHBOURS(),))

    def functions(self) -> list[Any]:
        return list(self.source) if isinstance(self.source, Sequence) else [self.source]
