"""LinUCB (Abbasi-Yadkori, Pal & Szepesvari 2011): least squares on rows of features, raised by their widths.

Theorem. Let x be the row of the arm that was shown, |x| <= 1, and y = x.w + noise an answer, from -1/2 to 1/2, with
|w| <= `weights`. Then the true value of every row lies within `confidence` of its estimate, at all times at once,
except with probability `wrong`, also if the sums of xx' and xy are noisy (`docs/theory.md`, section 14).
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.learning.bandits.policy import UNITS, Policy
from quietq.learning.bandits.running_sums import PARTS
from quietq.noise.feature_maps import FeatureMap
from quietq.privacy import InvalidInput
from quietq.privacy.checks import count, numbers, positive


@dataclass
class _State:
    steps: int
    total: Float[np.ndarray, " numbers"]


@dataclass(eq=False)
class LinUCB(Policy):
    """Without privacy, to compare with."""

    fields: ClassVar = {
        **Policy.fields, "dimension": partial(count, most=1000), "weights": positive, "width": positive,
    }  # fmt: skip
    name: ClassVar[str] = "linucb"
    _: KW_ONLY
    dimension: int = 0
    """How many features a row has."""
    features: Callable[[np.ndarray], Any] | None = field(default=None, repr=False)
    """A public map of one row at a time: one of quietq's, for coordinates from 0 to 1, or one of your own."""
    weights: float = 0.5
    """How long the weights of a linear model of answers, from -1/2 to 1/2, may be."""
    width: float = 0.1
    """By how many of the theorem's widths a value is raised; less explores less, and changes no promise. The default
    was chosen by regret on made-up problems; 1 is what the theorem needs, and loses several times as much."""

    def rows(self, context: Any) -> Float[np.ndarray, "arms dimension"]:
        """A row of features for each arm, from a row of numbers for each arm, or from one row that is all arms'.

        The latter becomes as many blocks as there are arms. Rows longer than 1 are shortened; what is not finite is 0.
        """
        given = numbers("context", context)
        seen = given if self.features is None else self._mapped(given)
        rows = np.kron(np.eye(self.arms), seen) if seen.ndim == 1 else seen
        if given.ndim not in (1, 2) or rows.shape != (self.arms, self.dimension):
            raise InvalidInput(
                f"A context must have features of shape ({self.arms}, {self.dimension}), one row for each arm, or one "
                f"row of {self.dimension}/{self.arms} for all arms, not {seen.shape}."
            )
        rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
        largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1.0)  # so that no square overflows
        return rows / largest / np.maximum(np.linalg.norm(rows / largest, axis=1, keepdims=True), 1 / largest)

    def _mapped(self, given: np.ndarray) -> Float[np.ndarray, "..."]:
        """Row by row, so that no row changes what another is mapped to."""
        maps: Any = self.features
        if isinstance(maps, FeatureMap):
            given = np.clip(np.where(np.isfinite(given), given, 0.5), 0.0, 1.0)
        try:
            single = [numbers("features", maps(row)).ravel() for row in np.atleast_2d(given)]
        except Exception as error:  # its words may hold a context
            raise InvalidInput(f"features must give numbers for each row, and raised {type(error).__name__}.") from None
        if len({len(row) for row in single}) != 1:
            raise InvalidInput("features must give as many numbers for each row.")
        return single[0] if given.ndim == 1 else np.stack(single)

    def choose(self, context: Any = None) -> int:
        rows, (estimate, inverse, width) = self.rows(context), self._solved
        raised = np.sqrt(np.maximum(np.einsum("ai,ij,aj->a", rows, inverse, rows), 0.0))
        return int(np.argmax(rows @ estimate + self.width * width * raised))

    @cached_property
    def _solved(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The estimate, the inverse of the matrix and the width of all rows' values."""
        (total, deviation), d = self._total(), self.dimension
        gram, moment = matrices(total, d)
        shift, width = confidence(d, self.state.steps, deviation, self._wrong, self.weights)
        inverse = np.linalg.inv(gram + shift * np.eye(d))
        return inverse @ moment, inverse, width

    @property
    def _wrong(self) -> float:
        return 0.05

    def _shown(self, context: Any, arm: int) -> Float[np.ndarray, " dimension"]:
        return self.rows(context)[arm]

    def _take(self, shown: Float[np.ndarray, " dimension"], units: int) -> None:
        self._add(np.rint(products(shown, units / UNITS - 0.5) * PARTS))
        vars(self).pop("_solved", None)

    def _skip(self, shown: Float[np.ndarray, " dimension"]) -> None:
        super()._skip(np.zeros(self.dimension))  # what they bring does not count either

    def _start(self) -> Any:
        return _State(0, np.zeros(numbers_of(self.dimension)))

    def _add(self, vector: Float[np.ndarray, " numbers"]) -> None:
        self.state.steps += 1
        self.state.total += vector / PARTS

    def _total(self) -> tuple[Float[np.ndarray, " numbers"], float]:
        """The sums that decide, and the deviation of their noise."""
        return self.state.total, 0.0


def numbers_of(d: int) -> int:
    return d * (d + 3) // 2


def products(x: Float[np.ndarray, " d"], y: float) -> Float[np.ndarray, " numbers"]:
    """zz' for z = [x; y] without its last number, each pair of equal numbers as one of sqrt(2) times the size."""
    first, second = np.triu_indices(len(x), 1)
    return np.concatenate([x**2, math.sqrt(2) * x[first] * x[second], math.sqrt(2) * y * x])


def matrices(total: Float[np.ndarray, " numbers"], d: int) -> tuple[np.ndarray, np.ndarray]:
    """The matrix of the xx', and the vector of the xy."""
    gram, pairs = np.diag(total[:d]), np.triu_indices(d, 1)
    gram[pairs] = gram.T[pairs] = total[d:-d] / math.sqrt(2)
    return gram, total[-d:] / math.sqrt(2)


def confidence(d: int, steps: int, deviation: float, wrong: float, weights: float) -> tuple[float, float]:
    """What is added to the matrix, and the width of all rows' values, in lengths of a row in its inverse.

    Noise N on the matrix has |N| <= deviation (sqrt(2 d) + u), noise n on the vector |n| <= deviation (sqrt(d) +
    u)/sqrt(2), each at each time except with probability exp(-u^2/2), twice that for N's two ends.
    """
    u = math.sqrt(2 * math.log(6 * max(steps, 1) ** 2 / wrong))  # 3 tails, of all times together pi^2/12 of `wrong`
    largest = deviation * (math.sqrt(2 * d) + u)
    least, most = 1 + largest, 1 + 3 * largest  # of the shifted noise's eigenvalues
    sampling = 0.5 * math.sqrt(2 * math.log(6 / wrong) + d * math.log1p(steps / (d * least)))
    of_noise = deviation * (math.sqrt(d) + u) / math.sqrt(2) / math.sqrt(least)
    return 1 + 2 * largest, sampling + math.sqrt(most) * weights + of_noise
