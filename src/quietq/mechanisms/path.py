"""A path: Gaussian noise that is itself a function, on a fine public grid.

Theorem (Hall, Rinaldo & Wasserman 2013; Cameron-Martin). Let g be a Gaussian process with kernel K and let neighbours
satisfy |f - f'|_K <= Delta. Then f + (Delta/mu) g is mu-GDP *as a function*: at every point at once, for any number of
queries. On a grid the norm can only be smaller, and reading the released numbers off, by whatever rule, is
post-processing. The norm amplifies rounding errors of f, so the sensitivity has an allowance for them
(`noise.allowance`), and the grid is as fine as that allows. See `docs/theory.md`.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.laws import Gaussian
from quietq.mechanisms.mechanism import SLACK, Mechanism, Query, Task
from quietq.mechanisms.private_function import PrivateFunction, PrivateSum, PrivateTable
from quietq.noise import Entropy, Exponential, Kernel
from quietq.noise.allowance import check_allowance, finest_levels, largest_and_error, worst_norm
from quietq.noise.box import Box, box_for
from quietq.noise.evaluation import check_outputs, on_grid
from quietq.noise.grid_path import check_grid, draw_grid, grid_axes, grid_length
from quietq.noise.rounding import check_values
from quietq.privacy import Assumption, Budget, Certificate, InvalidInput, Relation
from quietq.privacy.checks import count
from quietq.privacy.norms import kernel_in_words

_FINEST = {1: 16, 2: 10, 3: 7}  # by the dimension of a table: some million values


@dataclass(frozen=True)
class GridShape:
    """A kernel's path on the grid {0, 2^-levels, ..., 1}^d: one table, or one per part of an additive kernel."""

    kernel: Kernel
    levels: int

    @property
    def norm(self) -> dict[str, Any]:
        return self.kernel.describe()

    def draw(self, shape: tuple[int, ...], entropy: Entropy) -> Float[np.ndarray, "..."]:
        return draw_grid(self.kernel, self.levels, shape[grid_axes(self.kernel) :], entropy)

    def length(self, difference: np.ndarray) -> float:
        return grid_length(self.kernel, self.levels, difference)


class Path(Mechanism):
    """The path of a kernel that has one: Exponential, Product or Additive."""

    name = "path"

    def __init__(
        self,
        relation: Relation,
        budget: Budget,
        kernel: Kernel,
        radius: float,
        box: Box,
        *,
        levels: int | None = None,
        largest: float | None = None,
        accuracy: float | None = None,
    ) -> None:
        """`radius` is the most that neighbours differ by in the kernel's norm, before rounding."""
        if not kernel.tables:
            raise InvalidInput(f"There is no exact path for {kernel_in_words(kernel.describe())}.")
        self.relation, self.budget, self.kernel, self.box = relation, budget, kernel, box
        outputs = getattr(relation, "actions", 1)
        self.largest, self.error = largest_and_error(radius / budget.mu, radius, relation.people, largest, accuracy)
        self._exact = accuracy is None
        finest = _FINEST[max(map(len, kernel.tables))]
        fitting = finest_levels(kernel, self.error, radius, finest, outputs) if levels is None else levels
        self.levels = count("levels", fitting)
        check_grid(kernel, self.levels)
        allowance = 2 * self.error * worst_norm(kernel, self.levels, outputs)
        check_allowance(allowance, radius, self.error)
        self.sensitivity = radius + allowance
        self.sigma = self.sensitivity / budget.mu
        looked = "The function was looked at on a public grid only, noised once, and not kept."
        self.conditions = (Assumption(looked, True),)

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        law = Gaussian(self.sigma, GridShape(self.kernel, self.levels))
        return (yield Query(self._values, self.sensitivity, law))

    def _values(self, feedback: Any) -> Float[np.ndarray, "..."]:
        functions, parts = feedback.functions(), len(self.kernel.tables)
        if len(functions) != parts:
            raise InvalidInput(f"The kernel takes one function per coordinate, {parts} in all, not {len(functions)}.")
        boxes = [self.box] if parts == 1 else [self.box.coordinate(i) for i in range(parts)]
        tables = [on_grid(f, box, self.levels, self._exact) for f, box in zip(functions, boxes, strict=True)]
        shapes = {table.shape for table in tables}
        if len(shapes) > 1:
            raise InvalidInput(f"All parts must have the same outputs, not of shapes {sorted(shapes)}.")
        values = tables[0] if parts == 1 else np.stack(tables)
        check_values(values, self.largest)
        outputs = check_outputs(values.shape[grid_axes(self.kernel) :], self.relation, self.box)
        check_grid(self.kernel, self.levels, outputs)
        return values

    def result(self, released: np.ndarray, certificate: Certificate) -> PrivateFunction:
        if len(self.kernel.tables) == 1:
            return PrivateTable(released, self.levels, self.box, certificate)
        return PrivateSum(released, self.levels, self.box, certificate)

    def expected_error(self) -> float:
        """Root mean square of the noise; in one dimension about its own mean."""
        if not isinstance(self.kernel, Exponential):
            return self.sigma
        beta = self.kernel.beta
        variance_of_mean = 2 * (beta + math.expm1(-beta)) / beta**2
        return self.sigma * math.sqrt(max(1 - variance_of_mean, 0.0))

    @classmethod
    def propose(cls, task: Task) -> list[Mechanism]:
        own = getattr(task.relation, "kernel", None)
        kernel = own if isinstance(own, Kernel) else Exponential(task.relation.best_beta())
        if not kernel.tables:
            return task.refuse("Weights of features have no path: use noise='weights', 'ball' or 'auto'.")
        if task.budget.is_pure:
            return task.refuse("A path is Gaussian and needs delta above 0; 'k-norm' works with delta = 0.")
        if task.pieces is not None and task.asked:
            raise InvalidInput("pieces belongs to noise on knots; a path has none.")
        radius, box = task.relation.rkhs_radius(kernel) * SLACK, box_for(kernel.dimension, task.domain)
        return [cls(task.relation, task.budget, kernel, radius, box, largest=task.largest, accuracy=task.accuracy)]
