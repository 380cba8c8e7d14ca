"""Linear bandits with context (Shariff & Sheffet 2018): LinUCB on noisy running sums of zz', z = [x; y].

Theorem. x is a row of features of length at most 1, for the arm that was shown, and y an answer, from -1/2 to 1/2. The
running sums of xx' and xy are those of `running_sums`, and all that decides is computed from them and from the context
of whoever is there. So what all others are shown is mu-GDP in one person's contexts and answers: joint differential
privacy. If y = x.w + noise with |w| <= `weights`, then the true value of every row lies within its width below, at all
times at once, except with probability 1/arrivals; regret is of order d sqrt(T) + d^(3/4) sqrt(T)/sqrt(mu), up to
logarithms (`docs/theory.md`, section 14).
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.learning.bandits.policy import UNITS, Policy, PrivatePolicy
from quietq.learning.bandits.running_sums import PARTS, Factors, RunningSum, Sums, Tree
from quietq.mechanisms.mechanism import SLACK
from quietq.noise.feature_maps import FeatureMap, is_data
from quietq.privacy import Assumption, BudgetExhausted, InvalidInput, norms
from quietq.privacy.checks import count, numbers, positive

LENGTH = math.sqrt(1.25)
"""Of z = [x; y], with |x| <= 1 and |y| <= 1/2."""
Features = Callable[[np.ndarray], Any]
OWN_FEATURES = Assumption(
    "The map of features is not one of quietq's: it never fails, keeps nothing and is the same whatever the data is.",
    enforced=False,
)


@dataclass(eq=False)
class _Rows(Policy):
    """What policies with contexts share: rows of features, one for each arm, and sums of their products."""

    _: KW_ONLY
    dimension: int = 0
    """How many features a row has."""
    features: Features | None = field(default=None, repr=False)
    """A public map of one row at a time: one of quietq's, for coordinates from 0 to 1, or one of your own."""
    weights: float = 0.5
    """How long the weights of a linear model of answers, from -1/2 to 1/2, may be."""
    width: float = 0.1
    """By how many of the theorem's widths a value is raised; less explores less, and changes no promise. The default
    was chosen by regret on made-up problems; 1 is what the theorem needs, and loses several times as much."""

    def __post_init__(self) -> None:
        self.dimension = count("dimension", self.dimension, most=1000)
        self.weights, self.width = positive("weights", self.weights), positive("width", self.width)
        self._solved: tuple[np.ndarray, np.ndarray, float] | None = None
        super().__post_init__()

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
        if isinstance(self.features, FeatureMap):
            given = np.clip(np.where(np.isfinite(given), given, 0.5), 0.0, 1.0)
        maps: Any = self.features
        try:
            single = [numbers("features", maps(row)).ravel() for row in np.atleast_2d(given)]
        except Exception as error:  # its words may hold a context
            raise InvalidInput(f"features must give numbers for each row, and raised {type(error).__name__}.") from None
        if len({len(row) for row in single}) != 1:
            raise InvalidInput("features must give as many numbers for each row.")
        return single[0] if given.ndim == 1 else np.stack(single)

    def choose(self, context: Any = None) -> int:
        rows = self.rows(context)
        if self._solved is None:
            self._solved = self._solve()
        theta, inverse, width = self._solved
        raised = np.sqrt(np.maximum(np.einsum("ai,ij,aj->a", rows, inverse, rows), 0.0))
        return int(np.argmax(rows @ theta + self.width * width * raised))

    def _shown(self, context: Any, arm: int) -> Float[np.ndarray, " dimension"]:
        return self.rows(context)[arm]

    def _take(self, shown: Float[np.ndarray, " dimension"], units: int) -> None:
        self._add(np.rint(products(shown, units / UNITS - 0.5) * PARTS))
        self._solved = None

    def _skip(self, shown: Float[np.ndarray, " dimension"]) -> None:
        super()._skip(np.zeros(self.dimension))  # what they bring does not count either

    @abstractmethod
    def _add(self, vector: Float[np.ndarray, " numbers"]) -> None: ...

    @abstractmethod
    def _total(self) -> tuple[Float[np.ndarray, " numbers"], float, int]:
        """The sums that decide, the deviation of their noise, and of how many answers they are."""

    def _solve(self) -> tuple[np.ndarray, np.ndarray, float]:
        total, deviation, steps = self._total()
        d = self.dimension
        gram, moment = matrices(total, d)
        shift, width = confidence(d, steps, deviation, self._wrong, self.weights)
        inverse = np.linalg.inv(gram + shift * np.eye(d))
        return inverse @ moment, inverse, width

    @property
    def _wrong(self) -> float:
        return 0.05


def numbers_of(d: int) -> int:
    return d * (d + 3) // 2


def products(x: Float[np.ndarray, " d"], y: float) -> Float[np.ndarray, " numbers"]:
    """zz' without its last number, each pair of equal numbers as one of sqrt(2) times the size."""
    pairs = np.triu_indices(len(x), 1)
    return np.concatenate([x**2, math.sqrt(2) * x[pairs[0]] * x[pairs[1]], math.sqrt(2) * y * x])


def matrices(total: Float[np.ndarray, " numbers"], d: int) -> tuple[np.ndarray, np.ndarray]:
    """The matrix of the xx', and the vector of the xy."""
    gram, moment = np.diag(total[:d]), total[-d:] / math.sqrt(2)
    pairs = np.triu_indices(d, 1)
    gram[pairs] = total[d:-d] / math.sqrt(2)
    gram.T[pairs] = gram[pairs]
    return gram, moment


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


@dataclass
class _Exact:
    steps: int
    total: Float[np.ndarray, " numbers"]


@dataclass(eq=False)
class LinUCB(_Rows):
    """Without privacy, to compare with (Abbasi-Yadkori, Pal & Szepesvari 2011)."""

    name: ClassVar[str] = "linucb"

    def _start(self) -> _Exact:
        return _Exact(0, np.zeros(numbers_of(self.dimension)))

    def _add(self, vector: Float[np.ndarray, " numbers"]) -> None:
        self.state.steps += 1
        self.state.total = self.state.total + vector / PARTS

    def _total(self) -> tuple[Float[np.ndarray, " numbers"], float, int]:
        return self.state.total, 0.0, self.state.steps


@dataclass(eq=False)
class Linear(_Rows, PrivatePolicy):
    """Running sums by a matrix factorisation.

    >>> from quietq import Budget
    >>> policy = Linear(2, Budget(1.0, 1e-5), dimension=3, arrivals=1000)
    >>> context = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    >>> policy.learn(context, policy.choose(context), 1.0)
    >>> policy.certificate.norm["kind"]
    'encoded-moments'
    """

    name: ClassVar[str] = "linear-factors"
    contexts: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    way: ClassVar[type[RunningSum]] = Factors

    def __post_init__(self) -> None:
        if self.budget.is_pure:
            raise InvalidInput("A linear policy adds Gaussian noise, so the budget's delta must be above 0.")
        super().__post_init__()

    def _start(self) -> Sums:
        return self._sums.start()

    @cached_property
    def _sums(self) -> RunningSum:
        return self.way(self.arrivals or 2, numbers_of(self.dimension), LENGTH)

    @property
    def norm(self) -> dict[str, Any]:
        return self._sums.norm

    @cached_property
    def sensitivity(self) -> float:
        """By the theorem, with what floating point adds to it."""
        largest = norms.largest_difference(self.norm, self.relation.describe())
        return largest * SLACK + self.visits * self._sums.rounding

    @property
    def _wrong(self) -> float:
        return 1 / (self.arrivals or 2)

    @property
    def _error(self) -> float:
        return 1 / PARTS + self._sums.rounding

    def _conditions(self) -> tuple[Assumption, ...]:
        shortened = Assumption("Rows of features were shortened to a length of 1.", True)
        known = self.features is None or (isinstance(self.features, FeatureMap) and is_data(self.features))
        own = () if known else (OWN_FEATURES,)
        return shortened, *own, *super()._conditions()

    def expected_error(self) -> float:
        """How far off noise alone puts the value of a row, once all arrivals were learned from: its deviation.

        That is if rows look in all directions alike. `weights` is the largest value that there can be: where this is
        not far below it, hardly anything can be learned.

        >>> from quietq import Budget
        >>> policies = [Linear(2, Budget(1.0, 1e-6), dimension=5, arrivals=n, simulate=0) for n in (2000, 200_000)]
        >>> [round(policy.expected_error(), 4) for policy in policies]
        [0.0462, 0.0007]
        """
        arrivals = self.arrivals or 2
        return self.law.sigma * math.sqrt(self._sums.variance(arrivals) / 2) * self.dimension / arrivals

    def _cautions(self) -> list[Warning]:
        error, found = self.expected_error(), super()._cautions()
        if error > self.weights / 2:
            found.append(UserWarning(
                f"Hardly anything can be learned from {self.arrivals} arrivals: noise alone will put values off by "
                f"{error:.2g}, and the largest that there can be is {self.weights:g}. More arrivals, fewer features or "
                "a larger budget would help."
            ))  # fmt: skip
        return found

    def _make_room(self, answers: int) -> None:
        super()._make_room(answers)
        if self.state.steps + answers > (self.arrivals or 0):
            raise BudgetExhausted(
                f"Of {self.arrivals} arrivals that were declared {self.state.steps} were learned from, and there is no "
                f"room for {answers} more."
            )

    def _add(self, vector: Float[np.ndarray, " numbers"]) -> None:
        self._sums.add(self.state, vector, self._noised)

    def _total(self) -> tuple[Float[np.ndarray, " numbers"], float, int]:
        deviation = self.law.sigma * math.sqrt(self._sums.spread(self.state))
        return self._sums.total(self.state), deviation, self.state.steps

    def _forget(self) -> None:
        self.state = self._sums.forget(self.state)


@dataclass(eq=False)
class LinearTree(Linear):
    """Running sums by a binary tree."""

    name: ClassVar[str] = "linear-tree"
    way: ClassVar[type[RunningSum]] = Tree
