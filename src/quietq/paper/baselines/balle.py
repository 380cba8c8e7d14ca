"""Private policy evaluation: the value function of the policy that people's trajectories come from.

Theorem (after Balle, Gomrokchi & Precup 2016). Let theta(X) be the weights of LSW or LSL on the first-visit returns of
m trajectories X, and S a beta-smooth bound of how far replacing one, states and rewards alike, can move theta.
Then theta(X) + (S(X)/alpha) N(0, I) is (epsilon, delta)-DP for the alpha and beta of `smooth_sensitivity`; S comes from
the bounds of `least_squares`, and everything computed from theta is post-processing. There is no mu: an account
books it apart.

S(X) depends on the data, so it is *not* private and stays in here: neither the result nor the certificate has it, and
the step that values are rounded to comes from the smallest S that any m trajectories could have. See `docs/theory.md`.
This is the one release that does not go through `release`: its noise follows the data, so there is no public law that
could own a distance between two sets of numbers. As there, functions of the caller's see nothing before the charge.
"""

import math
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from quietq.feedback.sessions import Sessions
from quietq.feedback.trajectories import Bins, Cells, Trajectory, Visits, checked, largest_return
from quietq.mechanisms.release import CHARGED, or_say
from quietq.noise import Box, SeededEntropy
from quietq.noise.exact_gaussian import add_exactly
from quietq.noise.own_values import shows_nothing
from quietq.noise.rounding import largest_value, round_release, rounding_step
from quietq.noise.whitening import as_they_are
from quietq.paper.baselines.first_visits import check_sessions, visits_of
from quietq.paper.baselines.least_squares import LeastSquares, Ridge, Weighted
from quietq.privacy import Budget, Cost, InvalidInput, PrivacyWarning, Trajectories, weak_promise
from quietq.privacy.account import Account, Receipted
from quietq.privacy.assumptions import Assumption, Code
from quietq.privacy.certificate import Certificate
from quietq.privacy.checks import LARGEST, SMALLEST, instance, numbers, positive, positive_delta, real
from quietq.privacy.norms import SmoothBound
from quietq.privacy.smooth_sensitivity import Admissible, smooth_bound
from quietq.privacy.transcript import Law, Query, Transcript
from quietq.released.private_function import PrivateCells

Regression = Literal["lsw", "lsl"]
SLACK = 1 + 1e-6
"""This much more noise covers the rounding errors of the bound and of the weights."""
REMARKS = ("An (epsilon, delta) guarantee only: it has no mu, and its noise has no public size.",)


@dataclass(frozen=True)
class SmoothNoise(Law):
    """Gaussian noise of deviation `scale` times a bound that neighbours change by a factor of at most e^beta."""

    family = "smooth"
    weights: int
    beta: float
    scale: float
    least: float
    """The noise is never smaller: a public number, which fixes what weights are rounded to."""
    budget: Budget

    @property
    def norm(self) -> SmoothBound:
        return SmoothBound(self.weights, self.beta)

    @property
    def size(self) -> float:
        return self.scale

    @property
    def sigma(self) -> float:
        return self.least

    @property
    def most(self) -> float:
        """Weights are clipped to this size."""
        return largest_value(self.least)

    def cost(self, sensitivity: float) -> Cost:
        epsilon = self.norm.epsilon(self.scale / sensitivity, self.budget.delta)
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
            return round_release(numbers, self.scale * given * simulated.normals(numbers.shape), self.least)
        step = rounding_step(self.least)
        return add_exactly(as_they_are(numbers, step), self.scale * given, step)

    def assumptions(self, largest: float, error: float) -> tuple[Assumption, ...]:
        clipped = Code.WEIGHTS_CLIPPED(self.most, rounding_step(self.least))
        return Code.SMOOTH_NOISE(), clipped, Code.WEIGHTS_EXACT()


@dataclass(frozen=True, eq=False)
class ReleasedValue(Receipted):
    """A value function that may leave: noised weights, public cells and features, and the certificate."""

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

    def as_function(self) -> PrivateCells:
        """What of it may leave: the value of each cell, which its noised weights give."""
        if not isinstance(self.cells.rule, Bins):
            raise InvalidInput("Only a value function on Cells.between(edges) can be published: other cells are code.")
        edges = np.array(self.cells.rule.edges)
        box = Box((float(edges[0]),), (float(edges[-1]),))
        return PrivateCells(edges, self.features @ self.weights, box, self.certificate)


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
    """How many trajectories there are, and the bounds that they are clipped and cut to."""
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
        self, trajectories: Sequence[Trajectory] | Sessions, *, account: Account | None = None,
        simulate: int | None = None,
    ) -> ReleasedValue:  # fmt: skip
        """The value function, noised once: each call is a release of its own and spends the budget again.

        Of Sessions, which are released once unless there is an account, one episode of each person counts.

        `account` (with something set apart) is charged before the draw, and before a rule of your own sees any state.
        With `simulate`, the noise comes from that seed, protects nobody (standing `none`) and is not charged.
        """
        instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
        from_sessions = isinstance(trajectories, Sessions)
        fit, people = self._fit(), self.relation.count
        pair = Admissible.for_budget(self.budget, fit.dimension, self.share)
        law = SmoothNoise(fit.dimension, pair.beta, SLACK / pair.alpha, fit.least(people) / pair.alpha, self.budget)
        query = Query(np.atleast_1d, 1.0, law)
        transcript = Transcript(
            self.relation,
            self.budget,
            account,
            cost=Cost.apart(self.budget.epsilon, self.budget.delta),
            once=trajectories.once if isinstance(trajectories, Sessions) and simulate is None else None,
            simulated=None if simulate is None else SeededEntropy(simulate),
        )
        if isinstance(trajectories, Sessions):
            check_sessions(trajectories, self.relation)
            look = partial(visits_of, trajectories, self.cells, self.gamma, self.relation)
        else:
            look = partial(Visits.of, checked(trajectories, self.relation), self.cells, self.gamma, self.relation)
        transcript.ask(query)
        certificate = transcript.certificate(self.method, None, self._conditions(from_sessions), REMARKS)
        visits = None if self.cells.asks_code else or_say("nothing was spent", look)
        transcript.charge()
        visits = or_say(CHARGED, look) if visits is None else visits
        bound = smooth_bound(lambda k: fit.reach(visits.counts, k, people), people, pair.beta)
        # Clipping before is a contraction, and clipping after is post-processing: no refusal depends on the data.
        weights = np.clip(fit.estimate(visits), -law.most, law.most)
        noised = np.clip(transcript.answer(query, weights, bound), -law.most, law.most)
        released = ReleasedValue(noised, self.cells, self._arrays[0], certificate)
        return released.with_receipt(transcript.receipt)

    def _conditions(self, from_sessions: bool) -> tuple[Assumption, ...]:
        relation = self.relation
        cut = () if relation.horizon is None else (Code.TRAJECTORIES_CUT(relation.horizon),)
        each = (Code.ONE_EPISODE_COUNTED(), Code.NAMES()) if from_sessions else (Code.ONE_TRAJECTORY_EACH(),)
        return (
            Code.TRAJECTORY_REWARDS_CLIPPED(relation.largest_reward),
            *cut,
            Code.TRAJECTORIES_DECLARED(relation.count),
            Code.NOISE_FOLLOWS_DATA(),
            *each,
            Code.CELLS_KEEP_NOTHING(),
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
