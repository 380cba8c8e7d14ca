"""`check_plan`: a private go or no-go, before anybody trains in a private world or acts by what was planned there.

Theorem. Each person's number is a function of their own rows, of the released world and of the plan, held to
[-1/2, 1/2]; replacing one of N people moves its mean by at most 1/N, and Gaussian noise of deviation 1/(N mu) makes it
mu-GDP. See `docs/theory.md`, section 12, and `own_worlds` for what the number is.
"""

import warnings
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from quietq.feedback.sessions import Sessions
from quietq.mechanisms.mechanism import Mechanism, Query
from quietq.mechanisms.people_mean import mean_of_people
from quietq.mechanisms.private_world import PrivateWorld
from quietq.mechanisms.release import release, simulate as simulate_release
from quietq.noise.evaluation import shows_nothing
from quietq.privacy import Account, Assumption, Budget, Certificate, InvalidInput, PrivacyWarning, weak_delta
from quietq.privacy.account import Receipted
from quietq.privacy.checks import count, instance, real
from quietq.worlds.cross_entropy import LinearPolicy
from quietq.worlds.own_worlds import WIDER, OwnWorlds, Played

_TRIED = 64
"""Plausible worlds, and plans at random, by which the range of returns is found: public."""
_APART = 2.0
"""How far plans at random are from doing nothing."""


@dataclass(frozen=True, eq=False)
class CheckedPlan(Receipted):
    """What people's own steps say of a plan that was made in a private world."""

    expected: float
    """The mean over people of what the plan comes to in a world fitted to their own steps: noised."""
    error: float
    """The deviation of that noise."""
    promised: float
    """What the plan comes to in the released world."""
    low: float
    high: float
    """What each person's return was held to."""
    certificate: Certificate = field(repr=False)

    def go(self, wanted: float) -> bool:
        """Whether the plan is worth at least so much, and by more than the deviation of the noise."""
        return self.expected - self.error >= real("wanted", wanted)

    def to_dict(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name) for name in ("expected", "error", "promised", "low", "high")}
        return numbers | {"certificate": self.certificate.to_dict()}


class PlanCheck(Mechanism):
    """One noisy mean of what a plan comes to for each person."""

    name, releases, takes, asks_code = "check", "plan", "sessions", True

    def __init__(self, played: Played, sessions: Sessions, budget: Budget) -> None:
        self.relation, self.box, self.budget = sessions.relation, sessions.box, budget
        self.largest, self.error = 1.0, 1e-12
        self.played, self.people = played, sessions.count
        self.low, self.high, self.promised = _range(played)
        held = f"Each person's return was held to [{self.low:g}, {self.high:g}], once over all of their episodes."
        self.conditions = (Assumption(held, True),)
        if played.world.known or played.world.model.moves:
            public = "Functions that were declared as known look at one state at a time, never fail and keep nothing."
            self.conditions += (Assumption(public, False),)

    def run(self) -> Generator[Query, np.ndarray, tuple[float, float]]:
        query = mean_of_people(OwnWorlds(self.played, self.low, self.high), self.people, self.budget.mu)
        answer = yield query
        return float(answer[0]) + 0.5, query.law.sigma

    def result(self, released: tuple[float, float], certificate: Certificate) -> CheckedPlan:
        share, error = released
        width = self.high - self.low
        expected = self.low + width * share
        return CheckedPlan(expected, width * error, self.promised, self.low, self.high, certificate)


@shows_nothing
def check_plan(
    world: PrivateWorld, sessions: Sessions, plan: LinearPolicy, budget: Budget, *, steps: int = 300,
    account: Account | None = None, simulate: int | None = None,
) -> CheckedPlan:  # fmt: skip
    """What these people's own steps say of a plan made in the world that was released of them; released once.

    Every person has the plan played from where they began, for so many steps, in a world fitted to their own steps
    around the released one; the mean of the returns is released with noise. A tenth of what the world was given (of mu
    squared) is enough. Ask it of `plan_linear(world)`, which takes seconds, before anybody trains.
    """
    instance("world", world, PrivateWorld, "a PrivateWorld, as privatise makes it of Sessions")
    instance("sessions", sessions, Sessions, "Sessions.read(...)")
    instance("plan", plan, LinearPolicy, "a LinearPolicy, as plan_linear(world) finds it")
    instance("budget", budget, Budget, "a Budget(epsilon, delta)")
    instance("account", account, Account | None, "an Accountant, or a source's account, Ledger(url).account(source)")
    if budget.is_pure:
        raise InvalidInput("A plan is checked with Gaussian noise: delta must be above 0.")
    if plan.weights.ndim != 2 or plan.spaces != world.spaces:
        raise InvalidInput("plan must be one policy for this world, as plan_linear(world) finds it.")
    spaces = sessions.spaces
    if replace(spaces, told=world.spaces.told) != world.spaces:
        raise InvalidInput("sessions must have the box, the actions and the rewards that this world was made with.")
    learned = ["next", *(["reward"] if world.reward is not None else []), *(["end"] if world.ends is not None else [])]
    if missing := [name for name in learned if name not in spaces.told]:
        raise InvalidInput(f"sessions must tell what this world learned: {', '.join(missing)}.")
    if sentence := weak_delta(budget.delta, sessions.count):
        warnings.warn(sentence, PrivacyWarning, stacklevel=3)
    mechanism = PlanCheck(Played(world, plan, count("steps", steps)), sessions, budget)
    if simulate is not None:
        return simulate_release(mechanism, sessions, simulate)
    return release(mechanism, sessions, account)


def _range(played: Played) -> tuple[float, float, float]:
    """From the released world alone: what returns may be, and what the plan promises.

    From the least to the most of the plan in plausible worlds, and of plans at random; as much again on both sides if
    rewards were learned, which may be off, but nothing beyond what is declared of rewards.
    """
    world, policy, rng = played.world, played.policy, np.random.default_rng(0)
    first = played.simulator.start(rng.random((_TRIED, played.simulator.draws)))
    same = np.broadcast_to(world.weights, (_TRIED, *world.weights.shape))
    others = same + WIDER * (world.plausible(_TRIED, rng) - same)
    random = replace(policy, weights=_APART * rng.standard_normal((_TRIED, 1, *policy.weights.shape)))
    promised = played.returns(first, same)
    found = np.concatenate([promised, played.returns(first, others), replace(played, policy=random).returns(first, same)])
    low, high = float(found.min()), float(found.max())
    if world.reward is not None:
        low, high = 2 * low - high, 2 * high - low
    least, most = (played.steps * end for end in (min(world.spaces.low, 0.0), max(world.spaces.high, 0.0)))
    low, high = max(low, least), min(high, most)
    return low, max(high, low + 1e-9 * (most - least)), float(promised.mean())
