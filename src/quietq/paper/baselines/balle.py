"""Private policy evaluation: the value function of the policy that people's trajectories come from.

Theorem (after Balle, Gomrokchi & Precup 2016). Let theta(X) be the weights of LSW or LSL on the first-visit returns of
m trajectories X, and S a beta-smooth bound of how far replacing one, states and rewards alike, can move theta.
Then theta(X) + (S(X)/alpha) N(0, I) is (epsilon, delta)-DP for the alpha and beta of `smooth_sensitivity`; S comes from
the bounds of `LeastSquares`, and everything computed from theta is post-processing. There is no mu: an account
books it separately.

S(X) depends on the data, so it is *not* private and stays in here: neither the result nor the certificate has it, and
the step that values are rounded to comes from the smallest S that any m trajectories could have
(docs/theory.md#visits).

This is the one release that does not go through `release`: its noise follows the data, so there is no public law that
could own a distance between two sets of numbers. As there, functions of the caller's see nothing before the charge.

Least squares. n_s trajectories visited cell s; each return lies in [-V, V]; row s of Phi are the cell's features, w_s >
0 its public weight. Two data sets at distance k have counts that differ by at most k, so a bound of the local
sensitivity that never falls when counts (and Sum w_s n_s) move against us is one at distance k if it is evaluated at n
- k (and n + k).

`Weighted` (LSW): theta = A F with A = (W^(1/2) Phi)^+ W^(1/2), F_s the mean return, 0 where nobody came. Whoever is
replaced, F_s moves by b_s = 2V/max(n_s, 1) at most, hence theta by the smaller of |(W^(1/2) Phi)^+| sqrt(Sum w_s b_s^2)
(Balle, Gomrokchi & Precup 2016) and sqrt(b' |A'A| b), absolute values entry by entry.

`Ridge` (LSL): theta = H^-1 Phi' W T with H = Phi' W N Phi + ridge I, T_s the sum of returns, N = diag(n). If H' is the
neighbour's, theta' - theta = H'^-1 Sum_s c_s phi_s exactly, where |c_s| <= C_s = w_s max(2V, V + |phi_s.theta|) and
|phi_s.theta| <= V sqrt(Sum w n) min(sqrt(phi_s' H^-1 phi_s), |phi_s|/(2 sqrt(ridge))). With L = H at counts n - 1,
which is below H and H', that is at most |L^-1| |Phi' c| and sqrt(|L^-1|) Sum_s C_s sqrt(phi_s' L^-1 phi_s).
Where the rows of Phi are orthogonal, cells do not meet, and each moves theta by at most
2 V w_s |phi_s|/(w_s |phi_s|^2 max(n_s, 1) + ridge): the bound of LSW as the ridge goes to 0.

Visits. Each trajectory counts at most once in a cell, with the discounted sum of its rewards from its first visit
on. Rewards are clipped to [-R, R], trajectories cut at the horizon H, and returns clipped to [-V, V] *here*, for
V = R (1 - gamma^H)/(1 - gamma) as floating point has it. So replacing one trajectory changes each count by at most 1,
whatever the data hold. Cells are asked about one trajectory at a time: none can move another's.

Counts and sums: docs/theory.md#visits.

`walk_by_evaluation` makes it act, as the paper's figure 2 compares with it. The paper says that "the value function is
learned on a one-step MDP using a linear function approximator", and no more. The rest is ours:

- Every step of the walk is a trajectory of length one. Its state is the position's cell and the action, its return the
  reward, between 0 and 0.5. There is a weight a cell, so the fit is linear. How many cells is not said, and matters
  most: it is run with 2, 3 and 4. Two flatter it, because their border is the reward's peak.
- In the first half of the samples all actions are random. Then DP-LSW (`quietq.paper.baselines.balle`, with its smooth
  sensitivity) releases the mean reward of all cells, once. In the second half the better action by what was released
  is taken, but for a share of random ones that is the authors' in the long run, 0.05.
- Why in halves: the noise follows the least visited cell. In ten walks of 1,000 random samples its standard deviation,
  with four cells, was 2.3 to 3.1 at epsilon 0.9, where two actions differ by 0.17; with 2,500 it was 0.10 to 0.26, and
  2.5 to 3.9 at epsilon 0.45. Later, greedy samples hardly visit some cells: releases from them would have more noise.

It is (epsilon, delta)-DP for another relation than the paper's: one step's reward is replaced, and each step enters one
release. If the reward *function* changes, all steps change together, and nothing is promised.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy.special import ndtri

from quietq.feedback.cells import Cells
from quietq.noise import SeededEntropy
from quietq.noise.exact_gaussian import add_exactly, as_they_are
from quietq.noise.rounding import largest_value, round_release, rounding_step
from quietq.privacy import Budget, Cost, InvalidInput, PrivacyWarning, Trajectories, weak_promise
from quietq.privacy.account import Account, Issued
from quietq.privacy.assumptions import Assumption, Code
from quietq.privacy.certificate import Certificate
from quietq.privacy.checks import LARGEST, SMALLEST, count, instance, numbers, positive, positive_delta, real
from quietq.privacy.errors import shows_nothing
from quietq.privacy.norms import SmoothBound
from quietq.privacy.smooth_sensitivity import MOST_BETA, dilation, exact_delta, threshold
from quietq.privacy.transcript import Law, Query, Transcript
from quietq.worlds.walk import WALK

_Counts = Int[np.ndarray, " cells"]
_Distances = Int[np.ndarray, " distances"]
_Bounds = Float[np.ndarray, " distances"]
Trajectory = tuple[ArrayLike, ArrayLike]
"""States s_0 .. s_(T-1), and the rewards that followed each of them."""


_AT_ONCE = 256
"""Distances of which a smooth bound is computed together."""


@dataclass(frozen=True)
class Admissible:
    """How smooth a bound must be (beta), and how much of it is one standard deviation of the noise (alpha).

    >>> pair = Admissible.for_budget(Budget(1.0, 1e-6), dimension=5)
    >>> round(1 / pair.alpha, 1), round(1 / pair.beta, 1)
    (5.9, 65.9)
    """

    alpha: float
    """The noise is N(0, (S/alpha)^2) in each coordinate."""
    beta: float
    """S must change by a factor of at most e^beta between neighbours."""

    @classmethod
    @lru_cache(maxsize=64)
    def for_budget(cls, budget: Budget, dimension: int, share: float = 0.5) -> "Admissible":
        """The largest beta that takes this `share` of epsilon by tail bounds, then the largest alpha that it leaves."""
        d, delta = count("dimension", dimension), positive_delta(budget.delta)
        if not 0 < real("share", share) < 1:
            raise InvalidInput(f"share must lie between 0 and 1, not {share!r}.")
        epsilon, most = budget.epsilon, share * budget.epsilon
        beta, _ = threshold(lambda b: max(dilation(b, d, delta)) >= most, 0.0, min(MOST_BETA, epsilon), 1e-15)
        (narrower, wider), z = dilation(positive("beta", beta), d, delta), -float(ndtri(delta / 2))
        least = positive("alpha", min(_root(math.exp(beta) * z, epsilon - narrower), _root(z, epsilon - wider)))
        more = threshold(lambda a: exact_delta(a, beta, d, epsilon, delta) > delta, least, max(budget.mu, least))
        return cls(alpha=more[0], beta=beta)


def _root(slope: float, rest: float) -> float:
    """The positive alpha with slope alpha + alpha^2/2 = rest."""
    return 2 * rest / (slope + math.sqrt(slope**2 + 2 * rest))


def smooth_bound(
    reach: Callable[[Int[np.ndarray, " distances"]], Float[np.ndarray, " distances"]], last: int, beta: float
) -> float:
    """The largest e^(-k beta) reach(k) over all distances k.

    `reach(k)` bounds the local sensitivity of all data within distance k; it must never fall with k, stay the same from
    k = `last` on, and be at most reach(k + 1) of any neighbour's data. The last of these makes the result smooth:
    S(X') = max e^(-k beta) reach'(k) <= max e^(-k beta) reach(k + 1) <= e^beta S(X).

    >>> smooth_bound(lambda k: 1 / np.maximum(10.0 - k, 1.0), last=10, beta=0.5)
    0.1
    """
    first, end = (float(value) for value in reach(np.array([0, last])))
    # beyond `stop`, e^(-k beta) reach(last) is below reach(0)
    stop = min(last, math.ceil(math.log(end / first) / beta)) if end > first else 0
    best = first
    for start in range(0, stop + 1, _AT_ONCE):
        distances = np.arange(start, min(start + _AT_ONCE, stop + 1))
        best = max(best, float(np.max(np.exp(-beta * distances) * reach(distances))))
    return best


@dataclass(frozen=True, eq=False, repr=False)
class Visits:
    """First-visit Monte Carlo: private, and never part of a release."""

    counts: Int[np.ndarray, " cells"]
    """The number of trajectories that visited each cell."""
    sums: Float[np.ndarray, " cells"]
    """The sum of their returns from the first visit on, in each cell."""

    @classmethod
    def of(cls, data: Sequence[Trajectory], cells: Cells, gamma: float, relation: Trajectories) -> "Visits":
        """Counts and sums of all trajectories; refuses what is not finite before the cells are asked."""
        returns: list[list[float]] = [[] for _ in range(cells.count)]
        most = largest_return(relation, gamma)
        for states, rewards in checked(data, relation):
            for cell, later in first_visits(states, rewards, cells, gamma, most):
                returns[cell].append(later)
        # fsum is exact up to its last place: the order and the number of people leave no trace in the rounding
        return cls(np.array([len(r) for r in returns]), np.array([math.fsum(r) for r in returns]))


def first_visits(
    states: np.ndarray, rewards: np.ndarray, cells: Cells, gamma: float, largest: float
) -> Iterator[tuple[int, float]]:
    """Each cell that one trajectory visits, with the return from its first visit on, clipped to the largest."""
    later = np.clip(_returns(rewards, gamma), -largest, largest).tolist()
    visited, first = np.unique(cells.index(states), return_index=True)
    return ((cell, later[step]) for cell, step in zip(visited.tolist(), first.tolist(), strict=True) if cell >= 0)


def largest_return(relation: Trajectories, gamma: float) -> float:
    """The most that a return can be: R (1 - gamma^H)/(1 - gamma), or R/(1 - gamma) without a horizon.

    >>> largest_return(Trajectories(count=9, largest_reward=1.0, horizon=2), gamma=0.5)
    1.5
    """
    if not 0 <= gamma <= 1:
        raise InvalidInput(f"gamma must lie between 0 and 1, not {gamma!r}.")
    if gamma == 1:
        if relation.horizon is None:
            raise InvalidInput("gamma must be below 1, not 1.0, unless a horizon is declared.")
        return relation.largest_reward * relation.horizon
    left = 0.0 if relation.horizon is None else gamma**relation.horizon
    return relation.largest_reward * (1 - left) / (1 - gamma)


def checked(data: Sequence[Trajectory], relation: Trajectories) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns as many as were declared, as finite arrays, clipped and cut; no code of the caller's sees them."""
    if len(data) != relation.count:
        raise InvalidInput(f"{relation.count} trajectories were declared, but {len(data)} given.")
    return [_checked(trajectory, relation) for trajectory in data]


def _checked(trajectory: object, relation: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(trajectory, tuple | list) or len(trajectory) != 2:
        raise InvalidInput("Each trajectory must be a pair (states, rewards).")
    states, rewards = numbers("States", trajectory[0]), numbers("Rewards", trajectory[1])
    if rewards.ndim != 1 or states.ndim < 1 or len(states) != len(rewards):
        raise InvalidInput("Each trajectory must have one reward for each of its states.")
    if not (np.isfinite(states).all() and np.isfinite(rewards).all()):
        raise InvalidInput("States and rewards must be finite numbers; nothing was drawn.")
    largest, end = relation.largest_reward, relation.horizon
    return states[:end], np.clip(rewards[:end], -largest, largest)


def _returns(rewards: np.ndarray, gamma: float) -> list[float]:
    later, total = [], 0.0
    for reward in rewards[::-1].tolist():
        total = reward + gamma * total
        later.append(total)
    return later[::-1]


class LeastSquares(ABC):
    """An estimator from counts and sums of returns, with its local sensitivity."""

    dimension: int
    """Number of weights."""
    _weights: Float[np.ndarray, " cells"]

    @abstractmethod
    def estimate(self, visits: Visits) -> Float[np.ndarray, " weights"]:
        """The weights, without noise."""

    @abstractmethod
    def reach(self, counts: _Counts, distances: _Distances, people: int) -> _Bounds:
        """The most that one replacement moves the weights, for any data within each distance of these counts."""

    def least(self, people: int) -> float:
        """A public number that `reach` is never below, whatever the counts: where everybody visited every cell."""
        everyone = np.full(len(self._weights), people)
        return float(self.reach(everyone, np.zeros(1, dtype=np.int64), people)[0])


class Weighted(LeastSquares):
    """LSW: the mean return of each cell counts by its public weight, however many visited it."""

    def __init__(
        self, features: Float[np.ndarray, "cells weights"], weights: Float[np.ndarray, " cells"], largest: float
    ) -> None:
        root = np.sqrt(weights)
        inverse = np.linalg.pinv(root[:, None] * features)
        self.dimension = features.shape[1]
        self._map = inverse * root
        self._gram = np.abs(self._map.T @ self._map)
        self._norm, self._weights, self._largest = float(np.linalg.norm(inverse, 2)), weights, largest

    def estimate(self, visits: Visits) -> Float[np.ndarray, " weights"]:
        return self._map @ (visits.sums / np.maximum(visits.counts, 1))

    def reach(self, counts: _Counts, distances: _Distances, people: int) -> _Bounds:
        moved = 2 * self._largest / np.maximum(counts - distances[:, None], 1)
        spectral = self._norm * np.sqrt(moved**2 @ self._weights)
        return np.minimum(spectral, np.sqrt(np.sum((moved @ self._gram) * moved, axis=1)))


class Ridge(LeastSquares):
    """LSL: every first visit counts alike, but for its cell's public weight, and `ridge` times |theta|^2 is added."""

    def __init__(
        self,
        features: Float[np.ndarray, "cells weights"],
        weights: Float[np.ndarray, " cells"],
        largest: float,
        ridge: float,
    ) -> None:
        self.dimension = features.shape[1]
        self._features, self._weights, self._largest, self._ridge = features, weights, largest, ridge
        gram = features @ features.T
        self._lengths, self._gram = np.sqrt(np.diag(gram)), np.abs(gram)
        self._norm = float(np.linalg.norm(features * np.sqrt(weights)[:, None], 2))
        self.orthogonal = bool((gram == np.diag(np.diag(gram))).all())
        """Whether no two cells share a feature, so that each can be looked at alone."""

    def estimate(self, visits: Visits) -> Float[np.ndarray, " weights"]:
        pull = self._weights * visits.sums
        if self.orthogonal:
            return self._features.T @ (pull / (self._weights * self._lengths**2 * visits.counts + self._ridge))
        return np.linalg.solve(self._hessians(visits.counts[None, :])[0], self._features.T @ pull)

    def reach(self, counts: _Counts, distances: _Distances, people: int) -> _Bounds:
        if self.orthogonal:
            pull = self._weights * self._lengths
            fewest = np.maximum(counts - distances[:, None], 1)
            return 2 * self._largest * np.linalg.norm(pull / (pull * self._lengths * fewest + self._ridge), axis=1)
        most = np.minimum(counts + distances[:, None], people)
        return self._moved(np.maximum(counts - distances[:, None] - 1, 0), most @ self._weights)

    def least(self, people: int) -> float:
        if self.orthogonal:
            return super().least(people)
        return float(self._moved(np.full((1, len(self._weights)), people - 1), np.zeros(1))[0])

    def _moved(
        self, fewest: Int[np.ndarray, "distances cells"], total: Float[np.ndarray, " distances"]
    ) -> Float[np.ndarray, " distances"]:
        """The bound at the fewest visits and the largest total weight of returns that there may be."""
        values, vectors = np.linalg.eigh(self._hessians(fewest))
        values = np.maximum(values, self._ridge)  # as it is, but for rounding
        leverage = np.sqrt(np.sum((self._features @ vectors) ** 2 / values[:, None, :], axis=2))
        size = np.minimum(leverage, self._lengths / (2 * math.sqrt(self._ridge))) * np.sqrt(total)[:, None]
        residual = self._largest * np.maximum(2, 1 + size)
        moved = self._weights * residual
        together = np.minimum(
            self._norm * np.sqrt(residual**2 @ self._weights), np.sqrt(np.sum((moved @ self._gram) * moved, axis=1))
        )
        lowest = values[:, 0]
        return np.minimum(together / lowest, np.sum(moved * leverage, axis=1) / np.sqrt(lowest))

    def _hessians(self, counts: Int[np.ndarray, "sets cells"]) -> Float[np.ndarray, "sets weights weights"]:
        weighted = (counts * self._weights)[:, :, None] * self._features
        return self._features.T @ weighted + self._ridge * np.eye(self.dimension)


Regression = Literal["lsw", "lsl"]
SLACK = 1 + 1e-6
"""This much more noise covers the rounding errors of the bound and of the weights."""
REMARKS = ("An (epsilon, delta) guarantee only: it has no mu, and its noise has no public size.",)


@dataclass(frozen=True)
class SmoothNoise(Law):
    """Gaussian noise of deviation `size` times a bound that neighbours change by a factor of at most e^beta."""

    family = "smooth"
    weights: int
    beta: float
    size: float
    sigma: float
    """The noise is never smaller: a public number, which fixes what weights are rounded to."""
    budget: Budget

    @property
    def norm(self) -> SmoothBound:  # pyright: ignore[reportIncompatibleVariableOverride]
        return SmoothBound(self.weights, self.beta)

    @property
    def most(self) -> float:
        """Weights are clipped to this size."""
        return largest_value(self.sigma)

    def cost(self, sensitivity: float) -> Cost:
        epsilon = self.norm.epsilon(self.size / sensitivity, self.budget.delta)
        return Cost.apart(epsilon, self.budget.delta)

    def check_size(self, largest: float) -> None:
        """Weights are clipped to what rounding can hold."""

    def check_values(self, numbers: np.ndarray) -> None:
        """Weights are clipped to what rounding can hold."""

    def add(
        self, numbers: np.ndarray, simulated: SeededEntropy | None = None, given: float = 1.0
    ) -> Float[np.ndarray, " weights"]:
        """Returns weights with noise, for the smooth bound that is given: it is as secret as the weights."""
        if simulated is not None:
            return round_release(numbers, self.size * given * simulated.normals(numbers.shape), self.sigma)
        step = rounding_step(self.sigma)
        return add_exactly(as_they_are(numbers, step), self.size * given, step)

    def assumptions(self, largest: float, error: float) -> tuple[Assumption, ...]:
        return Code.EXACT_NOISE(rounding_step(self.sigma)), Code.WEIGHTS_CLIPPED(self.most), Code.WEIGHTS_EXACT()


@dataclass(frozen=True, eq=False)
class ReleasedValue(Issued):
    """A value function that can be published: noised weights, public cells and features, and the certificate."""

    weights: Float[np.ndarray, " weights"]
    cells: Cells
    features: Float[np.ndarray, "cells weights"] = field(repr=False)
    certificate: Certificate = field(repr=False)

    def __post_init__(self) -> None:
        self.weights.flags.writeable = False

    def __call__(self, states: object) -> Float[np.ndarray, " states"]:
        """The released value of each state, that of its cell; NaN where there is no cell."""
        points = numbers("states", states)
        if points.ndim < 1 or not np.isfinite(points).all():
            raise InvalidInput("states must be an array of finite numbers, one row per state.")
        index = self.cells.index(points)
        return np.where(index < 0, np.nan, (self.features @ self.weights)[index])


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """Evaluates a fixed policy from the trajectories of people who followed it, one each.

    >>> walks = [([0, 1, 2], [0.0, 0.0, 1.0])] * 3000
    >>> everyone = Trajectories(count=3000, largest_reward=1.0, horizon=3)
    >>> evaluation = Evaluation(budget=Budget(1.0, 1e-6), relation=everyone, gamma=0.5, cells=Cells.states(3))
    >>> value = evaluation.release(walks)
    >>> bool(np.abs(value([0, 1, 2]) - [0.25, 0.5, 1.0]).max() < 0.5), value.certificate.standing
    (True, 'certified')
    """

    budget: Budget
    """What each release spends; delta must be above 0."""
    relation: Trajectories
    """How many trajectories there are, and the bounds that they are clipped and truncated to."""
    gamma: float
    """The discount: below 1, or 1 if there is a horizon."""
    cells: Cells
    """The public partition of the states in which first visits are counted."""
    features: Float[np.ndarray, "cells weights"] | None = None
    """A row of public features for each cell; None gives each cell a weight of its own."""
    kind: Regression = "lsw"
    """`lsw` fits the cells' mean returns; `lsl` fits every first-visit return, with a ridge, and weights the cells
    as they are visited: more robust where some are rarely seen and features are shared."""
    ridge: float | None = None
    """For `lsl`: what |theta|^2 is multiplied by; as much as this many trajectories pulling to 0."""
    importance: Float[np.ndarray, " cells"] | None = None
    """The public weight of each cell in the fit; None weights them alike."""
    share: float = 0.5
    """The share of epsilon that hides the size of the noise itself. Less of it means less noise if every cell is
    visited by very many, and more if some are not."""

    def __post_init__(self) -> None:
        instance("budget", self.budget, Budget, "a Budget, e.g. Budget(epsilon=1.0, delta=1e-6)")
        instance("relation", self.relation, Trajectories, "a Trajectories(count, largest_reward, horizon)")
        instance("cells", self.cells, Cells, "Cells, e.g. Cells.between([0, 0.5, 1])")
        positive_delta(self.budget.delta)
        self.budget.require_mu(None, "noise whose size follows the data")
        if self.kind not in get_args(Regression):
            raise InvalidInput(f"kind must be one of {get_args(Regression)}, not {self.kind!r}.")
        if (self.ridge is None) == (self.kind == "lsl"):
            raise InvalidInput("ridge must be given for kind 'lsl', and for no other.")
        object.__setattr__(self, "gamma", real("gamma", self.gamma))
        n = self.cells.count
        features, importance = self._arrays
        if features.ndim != 2 or len(features) != n or not features.any() or not (np.abs(features) <= LARGEST).all():
            matrix = f"a matrix of numbers up to {LARGEST:g}, not all 0, one row for each of {n} cells"
            raise InvalidInput(f"features must be {matrix}.")
        if importance.shape != (n,) or not ((importance > 0) & (importance <= LARGEST)).all():
            raise InvalidInput(f"importance must be {n} numbers above 0 and up to {LARGEST:g}, one for each cell.")
        for name, array in (("features", features), ("importance", importance)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        self._check_sizes()
        if sentence := weak_promise(self.budget, self.relation.count):
            warnings.warn(sentence, PrivacyWarning, stacklevel=3)

    def _check_sizes(self) -> None:
        """Refuses numbers whose noise, the smallest or the largest that any data could need, floating point lacks."""
        fit, people = self._fit(), self.relation.count
        alpha = Admissible.for_budget(self.budget, fit.dimension, self.share).alpha
        nobody, everybody = np.zeros(self.cells.count, np.int64), np.array([people])
        least = most = math.nan
        with np.errstate(all="ignore"), suppress(np.linalg.LinAlgError):
            least, most = fit.least(people) / alpha, float(fit.reach(nobody, everybody, people)[0]) / alpha
        if not (least >= SMALLEST and most <= LARGEST):
            raise InvalidInput(
                f"Noise would be from {least:g} to {most:g} in size, and it must lie between {SMALLEST:g} and "
                f"{LARGEST:g}: state largest_reward, features, importance and ridge in other units; nothing was spent."
            )

    @shows_nothing
    def release(
        self,
        trajectories: Sequence[Trajectory],
        *,
        account: Account | None = None,
        simulate: int | None = None,
    ) -> ReleasedValue:
        """Releases the value function with noise: each call is a release of its own and spends the budget again.

        Args:
            trajectories: One for each person: states and rewards.
            account: Is charged before the draw, and before a rule of your own sees any state; it needs a cap `apart`.
            simulate: A seed for the noise, which then protects nobody (standing `none`) and is not charged.

        Returns:
            The released value function, with its certificate.

        """
        instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
        fit, people = self._fit(), self.relation.count
        pair = Admissible.for_budget(self.budget, fit.dimension, self.share)
        law = SmoothNoise(fit.dimension, pair.beta, SLACK / pair.alpha, fit.least(people) / pair.alpha, self.budget)
        query = Query(np.atleast_1d, 1.0, law)
        transcript = Transcript(
            self.relation,
            self.budget,
            account,
            cost=Cost.apart(self.budget.epsilon, self.budget.delta),
            simulated=None if simulate is None else SeededEntropy(simulate),
        )
        look = partial(Visits.of, checked(trajectories, self.relation), self.cells, self.gamma, self.relation)
        transcript.ask(query)
        certify = partial(transcript.certificate, self.method, None, self._conditions(), REMARKS)
        certify()  # in rehearsal: what it refuses costs nothing
        if self.cells.asks_code:
            transcript.charge()
        visits = transcript.look(look)
        transcript.charge()
        bound = smooth_bound(lambda k: fit.reach(visits.counts, k, people), people, pair.beta)
        # Clipping before is a contraction, and clipping after is post-processing: no refusal depends on the data.
        weights = np.clip(fit.estimate(visits), -law.most, law.most)
        noised = np.clip(transcript.answer(query, weights, bound), -law.most, law.most)
        released = ReleasedValue(noised, self.cells, self._arrays[0], certify())
        return released.issued(transcript.receipt)

    def _conditions(self) -> tuple[Assumption, ...]:
        relation = self.relation
        cut = () if relation.horizon is None else (Code.TRAJECTORIES_CUT(relation.horizon),)
        return (
            Code.TRAJECTORY_REWARDS_CLIPPED(relation.largest_reward),
            *cut,
            Code.TRAJECTORIES_DECLARED(relation.count),
            Code.ONE_TRAJECTORY_EACH(),
            Code.FUNCTIONS_KEEP_NOTHING(),
        )

    @property
    def method(self) -> str:
        return f"evaluation/{self.kind}"

    @property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Features and importance, as they were given."""
        n = self.cells.count
        features = np.eye(n) if self.features is None else numbers("features", self.features)
        return features, np.ones(n) if self.importance is None else numbers("importance", self.importance)

    def _fit(self) -> LeastSquares:
        allowed = "The largest return that largest_reward, horizon and gamma allow"
        largest = positive(allowed, largest_return(self.relation, self.gamma))
        if self.ridge is None:
            return Weighted(*self._arrays, largest)
        return Ridge(*self._arrays, largest, positive("ridge", self.ridge))


CELLS = (2, 3, 4)
"""The number of cells of the position, by reading; twice as many with the action."""
EXPLORE = 0.05


def walk_by_evaluation(budget: Budget, steps: int, seed: int, cells: int) -> Float[np.ndarray, " episodes"]:
    """The return of every episode of one simulated run.

    >>> walk_by_evaluation(Budget(0.9, 1e-4), steps=200, seed=0, cells=4).shape
    (4,)
    """
    generator = np.random.default_rng([seed, 0])
    first = steps // WALK.steps // 2 * WALK.steps
    states, actions, rewards = _walk(first, generator, lambda state: int(generator.random() < 0.5))
    relation = Trajectories(count=first, largest_reward=0.5, horizon=1)
    numbered = Cells(cells * WALK.actions, partial(cell, cells=cells))
    evaluation = Evaluation(budget=budget, relation=relation, gamma=0.0, cells=numbered)
    data = [([pair], [reward]) for pair, reward in zip(np.stack([states, actions], axis=1), rewards, strict=True)]
    value = evaluation.release(data, simulate=seed)

    def greedy(state: float) -> int:
        if generator.random() < EXPLORE:
            return int(generator.random() < 0.5)
        return int(np.argmax(value(np.array([[state, action] for action in range(WALK.actions)]))))

    _, _, later = _walk(steps - first, generator, greedy)
    whole = np.concatenate([rewards, later])
    return whole[: len(whole) // WALK.steps * WALK.steps].reshape(-1, WALK.steps).sum(axis=1)


def cell(pairs: Float[np.ndarray, "pairs 2"], cells: int) -> Int[np.ndarray, " pairs"]:
    """The number of the cell of each position and action.

    >>> cell(np.array([[0.1, 0], [0.1, 1], [1.0, 1]]), cells=4)
    array([0, 4, 7])
    """
    position = np.clip(np.floor(pairs[:, 0] * cells), 0, cells - 1)
    return (cells * pairs[:, 1] + position).astype(np.int64)


def _walk(steps: int, generator: np.random.Generator, policy: Callable[[float], int]) -> tuple[np.ndarray, ...]:
    states, actions, rewards = np.empty(steps), np.empty(steps), np.empty(steps)
    state = np.full(1, math.nan)
    for step in range(steps):
        if step % WALK.steps == 0:
            state = np.asarray(WALK.start(generator.random(WALK.draws), np))
        action = policy(float(state[0]))
        states[step], actions[step] = state[0], action
        moved, _ = WALK.move(state, np.asarray(action), generator.random(WALK.draws), np)
        state = np.asarray(moved)
        rewards[step] = WALK.reward(state, np)
    return states, actions, rewards
