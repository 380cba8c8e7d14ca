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

from quietq.feedback.feedback import NAMED
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
from quietq.privacy.account import Account, Receipted, accounted
from quietq.privacy.certificate import CHOSEN, FAIR, Assumption, Certificate
from quietq.privacy.checks import LARGEST, SMALLEST, instance, numbers, positive, positive_delta, real
from quietq.privacy.smooth_sensitivity import Admissible, smooth_bound
from quietq.released.private_function import PrivateCells

Regression = Literal["lsw", "lsl"]
SLACK = 1 + 1e-6
"""This much more noise covers the rounding errors of the bound and of the weights."""
ONE_EACH = (Assumption("Each person gave one trajectory.", False),)
ONE_COUNTED = (
    Assumption("Of each person's sessions one episode counted, all of whose rows had met in one place.", True), NAMED,
)  # fmt: skip


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
        once = trajectories.once if isinstance(trajectories, Sessions) and simulate is None else None
        if once is not None:
            once.check(account)
        if isinstance(trajectories, Sessions):
            check_sessions(trajectories, self.relation)
            look = partial(visits_of, trajectories, self.cells, self.gamma, self.relation)
        else:
            look = partial(Visits.of, checked(trajectories, self.relation), self.cells, self.gamma, self.relation)
        visits = None if self.cells.asks_code else or_say("nothing was spent", look)
        fit, people = self._fit(), self.relation.count
        pair = Admissible.for_budget(self.budget, fit.dimension, self.share)
        least, scale = fit.least(people) / pair.alpha, SLACK / pair.alpha  # public: the noise is never below `least`
        receipt = None
        if simulate is None:
            one = ONE_EACH if once is None else ONE_COUNTED
            certificate = self._certificate(fit.dimension, least, scale, pair.beta, account, one)
            cost = Cost.apart(self.budget.epsilon, self.budget.delta)
            if once is not None:
                receipt = once.spend(account, cost, self.relation)
            elif account is not None:
                receipt = account.charge(cost, self.relation)
        else:
            remark = f"Simulates ({self.budget.epsilon:g}, {self.budget.delta:g})-DP; a seed protects nobody."
            certificate = Certificate(method=self.method, standing="none", reproducible=True, remarks=(remark,))
        visits = or_say(CHARGED, look) if visits is None else visits
        bound = smooth_bound(lambda k: fit.reach(visits.counts, k, people), people, pair.beta)
        # Clipping before is a contraction, and clipping after is post-processing: no refusal depends on the data.
        most, step = largest_value(least), rounding_step(least)
        weights = np.clip(fit.estimate(visits), -most, most)
        if simulate is None:
            weights = add_exactly(as_they_are(weights, step), scale * bound, step)
        else:
            noise = scale * bound * SeededEntropy(simulate).normals((fit.dimension,))
            weights = round_release(weights, noise, least)
        released = ReleasedValue(np.clip(weights, -most, most), self.cells, self._arrays[0], certificate)
        return released.with_receipt(receipt)

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

    def _certificate(
        self,
        dimension: int,
        least: float,
        scale: float,
        beta: float,
        account: Account | None,
        one: tuple[Assumption, ...],
    ) -> Certificate:
        """Of noise of deviation `scale` times a bound that neighbours change by a factor of at most e^beta."""
        relation = self.relation
        cut = "" if relation.horizon is None else f", trajectories cut after {relation.horizon} steps"
        clipped = f"clipped to {relation.largest_reward:g} in size{cut}"
        most, step = largest_value(least), rounding_step(least)
        enforced = (
            f"Rewards were {clipped}, and each trajectory counted once in a cell.",
            f"Visits and returns were summed over {relation.count} trajectories, as declared: whoever gave none "
            "counts as an empty one.",
            "The size of the noise follows the data by a smooth bound, and is not released.",
            "Noise of exactly its law was drawn once from the operating system's generator.",
            f"Weights were clipped to {most:g} in size, and the sum was rounded to multiples of {step:g}.",
        )
        trusted = (
            "The rule of the cells looks at one trajectory at a time, never fails and keeps nothing.",
            "Weights were computed to within 1e-7 of their bound, and that to twelve digits, which the noise covers.",
        )
        return Certificate(
            method=self.method,
            standing="certified",
            relation=relation.describe(),
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            scale=scale,
            sensitivity=1.0,
            norm={"kind": "smooth-bound", "weights": dimension, "beta": beta},
            assumptions=(
                *(Assumption(sentence, True) for sentence in enforced),
                *one,
                CHOSEN,
                *(Assumption(sentence, False) for sentence in trusted),
                FAIR,
                accounted(account),
            ),
            remarks=("An (epsilon, delta) guarantee only: it has no mu, and its noise has no public size.",),
        )
