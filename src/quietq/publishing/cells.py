"""A released value function that is constant on cells of one coordinate: what `Evaluation` releases."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.private_function import PrivateFunction
from quietq.noise.box import Box
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput

if TYPE_CHECKING:
    from quietq.mechanisms.evaluation import ReleasedValue


@dataclass(frozen=True, eq=False, repr=False)
class PrivateCells(PrivateFunction):
    """One released value a cell; cells lie between edges that rise from one end of the box to the other."""

    edges: Float[np.ndarray, " edges"]
    values: Float[np.ndarray, " cells"]
    box: Box
    certificate: Certificate

    def __post_init__(self) -> None:
        self.edges.flags.writeable = self.values.flags.writeable = False

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        """The value of each state's cell."""
        self.box.to_unit(states)  # refuses what lies outside
        return np.asarray(self.values[np.searchsorted(self.edges[1:-1], np.asarray(states, float), side="right")])

    def _shape(self) -> str:
        return f"cells={len(self.values)}"


def function_of_value(value: "ReleasedValue") -> PrivateCells:
    """What of an evaluation's release may leave: the value of each cell, which its noised weights give."""
    from quietq.feedback.trajectories import Bins

    if not isinstance(value.cells.rule, Bins):
        raise InvalidInput("Only a value function on Cells.between(edges) can be published: other cells are code.")
    edges = np.array(value.cells.rule.edges)
    box = Box((float(edges[0]),), (float(edges[-1]),))
    return PrivateCells(edges, value.features @ value.weights, box, value.certificate)
