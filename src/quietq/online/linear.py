"""A linear bandit with contexts: LinUCB on noisy running sums of zz', z = [x; y].

Theorem (Abbasi-Yadkori, Pal & Szepesvari 2011). Let x be the row of the arm that was shown, |x| <= 1, and
y = x.w + noise an answer, from -1/2 to 1/2, with |w| <= `weights`. Then the true value of every row lies within
`confidence` of its estimate, at all times at once, except with probability `wrong`, also if the sums of xx' and xy are
noisy (docs/theory.md#running-sums).

Theorem (Shariff & Sheffet 2018). The running sums of xx' and xy are those of `running_sums`, and all that
decides is computed from them and from the context of whoever is there. So what all others are shown is mu-GDP in one
person's contexts and answers: joint differential privacy (docs/theory.md#running-sums). With the widths of
`confidence`, regret is of order d sqrt(T) + d^(3/4) sqrt(T)/sqrt(mu), up to logarithms.

Proof of the widths. Symmetric noise N, of deviation s on the diagonal and s/sqrt(2) off it, is s times a standard
normal vector in Frobenius norm, in which the largest eigenvalue is 1-Lipschitz with mean at most s sqrt(2d) (Gordon);
so it is above s (sqrt(2d) + u) with probability at most exp(-u^2/2). The noise n on the sum of xy is s/sqrt(2) times a
standard normal vector. With V = G + N + (1 + 2U) I and U = s (sqrt(2d) + u), eigenvalues of what was added to G lie
between 1 + U and 1 + 3U, so w' = V^-1 (sum of xy + n) obeys

    |x.(w' - w)| <= |x|_(V^-1) (sqrt(2 ln(6/b) + d ln(1 + t/(d (1 + U))))/2 + sqrt(1 + 3U) |w|
                                + s (sqrt(d) + u)/sqrt(2 (1 + U)))

by the self-normalised bound of Abbasi-Yadkori, Pal & Szepesvari (2011) for answers of range 1 with regulariser 1 + U.
With u^2 = 2 ln(6 t^2/b) the three tails of all times add up to pi^2 b/12, and b/6 is left to sampling.

Proof of the regret. A visit loses at most twice the width of the arm that was shown, and V is at least I + G, so the
|x|_(V^-1) of T visits add up to O(sqrt(d T ln T)) (the elliptical potential lemma of the same paper). They are
multiplied by at most sqrt(d) + d^(1/4) sqrt(s), up to logarithms and |w|, because U is of order s sqrt(d), and s is of
order 1/mu.
"""

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float

from quietq.feedback.feedback import FOR_YOU
from quietq.mechanisms.release import SLACK
from quietq.online.policy import FARTHEST, UNITS, PrivateBandit, are_counts
from quietq.online.running_sums import PARTS, Factors, RunningSums
from quietq.privacy import Assumption, BudgetExhausted, Code, InvalidInput
from quietq.privacy.checks import count, numbers, positive
from quietq.privacy.norms import AnyNorm


def numbers_of(d: int) -> int:
    """How many numbers the `products` of a row of d features are."""
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


def may_be_sum(total: Float[np.ndarray, " numbers"], vectors: float, d: int) -> bool:
    """Says whether `total` can be the sum over `vectors` rows of length at most 1 and answers in [-1/2, 1/2]."""
    slack = 1e-6 * vectors  # for rounding
    if not (np.abs(total) <= vectors + slack).all():
        return False
    gram, moment = matrices(total, d)
    most, least = gram.trace(), np.linalg.eigvalsh(gram)[0]
    return bool(most <= vectors + slack and least >= -slack and np.linalg.norm(moment) <= vectors / 2 + slack)


def confidence(d: int, steps: int, deviation: float, wrong: float, weights: float) -> tuple[float, float]:
    """Returns what is added to the matrix, and the width of all rows' values, in lengths of a row in its inverse.

    Noise N on the matrix has |N| <= deviation (sqrt(2 d) + u), noise n on the vector |n| <= deviation (sqrt(d) +
    u)/sqrt(2), each at each time except with probability exp(-u^2/2), twice that for N's two ends.
    """
    u = math.sqrt(2 * math.log(6 * max(steps, 1) ** 2 / wrong))  # 3 tails, of all times together pi^2/12 of `wrong`
    largest = deviation * (math.sqrt(2 * d) + u)
    least, most = 1 + largest, 1 + 3 * largest  # of the shifted noise's eigenvalues
    sampling = 0.5 * math.sqrt(2 * math.log(6 / wrong) + d * math.log1p(steps / (d * least)))
    of_noise = deviation * (math.sqrt(d) + u) / math.sqrt(2) / math.sqrt(least)
    return 1 + 2 * largest, sampling + math.sqrt(most) * weights + of_noise


@dataclass(eq=False)
class Linear(PrivateBandit):
    """The policy is LinUCB on noisy running sums: least squares on rows of features, raised by confidence widths.

    >>> from quietq import Budget
    >>> policy = Linear(2, Budget(1.0, 1e-5), dimension=3, arrivals=1000)
    >>> context = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    >>> policy.learn(context, policy.choose(context), 1.0)
    >>> print(policy.certificate.queries[0].norm)
    the Frobenius norm of encoded sums of zz' with |z| at most 1.11803, by a Toeplitz matrix of ... buffers

    The standard error that noise alone gives the value of a row, once all arrivals were learned from:

    >>> policies = [Linear(2, Budget(1.0, 1e-6), dimension=5, arrivals=n, simulate=0) for n in (2000, 200_000)]
    >>> [round(policy.expected_error(), 4) for policy in policies]
    [0.0462, 0.0007]
    """

    fields: ClassVar = {
        **PrivateBandit.fields,
        "dimension": partial(count, most=1000),
        "weights": positive,
        "width": positive,
    }
    name: ClassVar[str] = "linear-factors"
    contexts: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    remarks: ClassVar[tuple[str, ...]] = (
        "Joint differential privacy: what a person is shown follows from their own context, and what all others are "
        "shown, together, is differentially private in that person.",
    )
    _: KW_ONLY
    dimension: int = 0
    """How many features a row has."""
    weights: float = 0.5
    """How long the weights of a linear model of answers, from -1/2 to 1/2, may be."""
    width: float = 0.1
    """The multiple of the theorem's width that raises a value; less explores less, and changes no promise. The default
    was chosen by regret on synthetic problems; 1 is what the theorem needs, and loses several times as much."""

    @property
    def is_pure(self) -> bool:
        """Running sums have Gaussian noise alone, so that a budget without a delta is refused."""
        return False

    def rows(self, context: object) -> Float[np.ndarray, "arms dimension"]:
        """Returns a row of features for each arm. Rows longer than 1 are scaled to length 1; those not finite are 0.

        What is no such context is refused here, and nowhere else: in `choose` and `learn` it counts as zeros.

        Args:
            context: A row of numbers for each arm, or one row for all, which becomes as many blocks as there are arms.

        """
        return self._read(context)[0]

    @property
    def bad_contexts(self) -> int:
        """Answers whose row was no finite numbers of the right shape, and counted as zeros. PRIVATE, like the state."""
        return self.state.bad_contexts

    def _read(self, context: object) -> tuple[Float[np.ndarray, "arms dimension"], Bool[np.ndarray, " arms"]]:
        """The rows, and which of them were given as finite numbers."""
        given = numbers("context", context)
        of_all = given.ndim == 1 and len(given) * self.arms == self.dimension
        if not of_all and given.shape != (self.arms, self.dimension):
            raise InvalidInput(
                f"A context must have features of shape ({self.arms}, {self.dimension}), one row for each arm, or one "
                f"row of {self.dimension}/{self.arms} for all arms, not {given.shape}."
            )
        usable = np.isfinite(given).all(axis=-1) & np.ones(self.arms, bool)
        rows = np.kron(np.eye(self.arms), np.nan_to_num(given)) if of_all else given
        rows = np.where(usable[:, None], rows, 0.0)
        largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1.0)  # so that no square overflows
        rows = rows / largest / np.maximum(np.linalg.norm(rows / largest, axis=1, keepdims=True), 1 / largest)
        return rows, usable

    def _read_or_zero(self, context: object) -> tuple[Float[np.ndarray, "arms dimension"], Bool[np.ndarray, " arms"]]:
        """Whatever one person brings, it is no error: a refusal would tell of it, and stop others' answers."""
        try:
            return self._read(context)
        except Exception:  # of whatever kind
            return np.zeros((self.arms, self.dimension)), np.zeros(self.arms, bool)

    def _choose(self, context: object) -> int:
        (rows, _), (estimate, inverse, width) = self._read_or_zero(context), self._solved
        # LinUCB: the value x.w of each arm's row, raised by its length in the inverse of the matrix times the width.
        raised = np.sqrt(np.maximum(np.einsum("ai,ij,aj->a", rows, inverse, rows), 0.0))
        return int(np.argmax(rows @ estimate + self.width * width * raised))

    @cached_property
    def _solved(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The estimate, the inverse of the matrix and the width of all rows' values."""
        d, deviation = self.dimension, self.law.sigma * math.sqrt(self._sums.spread(self.state))
        gram, moment = matrices(self._sums.total(self.state), d)
        shift, width = confidence(d, self.state.steps, deviation, 1 / self._sums.arrivals, self.weights)
        # The shift is a ridge above the noise's eigenvalues, so that the matrix is positive definite, except with
        # the probability of being wrong that `confidence` is given.
        inverse = np.linalg.inv(gram + shift * np.eye(d))
        return inverse @ moment, inverse, width

    def _shown(self, context: object, arm: int) -> Float[np.ndarray, " dimension"] | None:
        rows, usable = self._read_or_zero(context)
        return rows[arm] if usable[arm] else None

    def _warn_of(self, names: list[str], taken: list[tuple[object, int]]) -> None:
        bad = self.state.bad_contexts + sum(shown is None for shown, _ in taken)
        self._warn_from_a_tenth(
            f"contexts were not finite numbers of shape ({self.arms}, {self.dimension}), nor one row for all arms, and "
            "count as zeros, from which nothing is learned: `policy.rows(context)` says what is wrong with one. "
            f"{FOR_YOU}",
            bad,
            self.state.steps + len(taken),
        )
        super()._warn_of(names, taken)

    def _take(self, shown: Float[np.ndarray, " dimension"] | None, units: int) -> None:
        if shown is None:
            self.state.bad_contexts += 1
            shown = np.zeros(self.dimension)
        self._sums.add(self.state, np.rint(products(shown, units / UNITS - 0.5) * PARTS), self._noised)
        vars(self).pop("_solved", None)

    @cached_property
    def _sums(self) -> Factors:
        length = math.sqrt(1.25)  # of z = [x; y] at most, with |x| <= 1 and |y| <= 1/2
        return Factors(self.arrivals or 2, numbers_of(self.dimension), length)

    @property
    def norm(self) -> AnyNorm:
        return self._sums.norm

    @cached_property
    def sensitivity(self) -> float:
        """Returns the theorem's sensitivity, with what floating point adds to it."""
        return self.norm.sensitivity(self.relation) * SLACK + self.visits * self._sums.rounding

    @property
    def _error(self) -> float:
        return 1 / PARTS + self._sums.rounding

    def _conditions(self) -> tuple[Assumption, ...]:
        return Code.FEATURES_SHORTENED(), *super()._conditions()

    def expected_error(self) -> float:
        """Returns the standard error that noise alone gives the value of a row, once all arrivals were learned from.

        It is public, and for rows that look in all directions alike; `weights` is the largest value there can be.
        """
        arrivals = self._sums.arrivals
        return self.law.sigma * math.sqrt(self._sums.variance(arrivals) / 2) * self.dimension / arrivals

    def _cautions(self) -> list[Warning]:
        error = self.expected_error()
        if error <= self.weights / 2:
            return super()._cautions()
        caution = UserWarning(
            f"Hardly anything can be learned from {self.arrivals} arrivals: noise alone has a standard error of "
            f"{error:.2g} on values of at most {self.weights:g}. More arrivals, fewer features or "
            "a larger budget would help."
        )
        return [*super()._cautions(), caution]

    def _admit(self, names: list[str]) -> list[bool]:
        counted = super()._admit(names)
        if self.state.steps + sum(counted) > self._sums.arrivals:
            raise BudgetExhausted(
                f"Of {self.arrivals} arrivals that were declared {self.state.steps} were learned from, and there is no "
                f"room for {sum(counted)} more."
            )
        return counted

    def _start(self) -> RunningSums:
        return self._sums.start()

    def _learned(self) -> int:
        return self.state.steps

    def _possible(self) -> Iterator[tuple[str, bool]]:
        state, sums = self.state, self._sums
        yield "steps", are_counts(state.steps, min(sums.arrivals, self._drawn))
        yield "bad_contexts", are_counts(state.bad_contexts, state.steps)
        for vectors, row in zip(sums.sizes(state.steps), state.secret, strict=True):
            yield "secret", may_be_sum(row, float(vectors), self.dimension)
        yield "spread", 0 <= state.spread < math.inf
        yield "before", bool(np.isfinite(state.before).all()) and (state.spread > 0 or not state.before.any())
        yield "public", bool(np.isfinite(state.public).all()) and (state.steps > 0 or not state.public.any())
        noise = FARTHEST * self.law.sigma * math.sqrt(sums.variance(state.steps))
        yield "public", bool((np.abs(sums.total(state) - state.before) <= state.steps + noise).all())
        yield from super()._possible()

    def _forget(self) -> None:
        self._replace(state=self._sums.forget(self.state))
