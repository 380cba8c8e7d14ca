"""`check_plan`: a private go or no-go, before anybody trains in a private world or acts by what was planned there.

Theorem. Each person says yes or no, 1/2 or -1/2, as a function of their own rows, of the released world and of the
plan; replacing one of N people moves the mean by at most 1/N, and Gaussian noise of deviation 1/(N mu) makes it mu-GDP.
See `docs/theory.md`, section 12, and `own_worlds` for what they are asked.
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
from quietq.worlds.cross_entropy import LinearPolicy, policy_shape
from quietq.worlds.own_worlds import OwnWorlds, Played

_SURE = 1.96
"""Deviations of a 95 % interval."""
_PLAYED = 64
"""Episodes in the released world, for what it promises."""


@dataclass(frozen=True, eq=False)
class CheckedPlan(Receipted):
    """What people's own steps say of a plan that was made in a private world."""

    share: float
    """Of the people, those in whose own world the plan is worth as much as was wanted: noised, so it may be below 0."""
    error: float
    """The deviation of that noise."""
    wanted: float
    promised: float
    """What the plan is worth in the released world."""
    certificate: Certificate = field(repr=False)
    threshold: float | None = None
    """From which share on it is a go, as whoever asked said beforehand. There is no default: which share tells good
    plans from others differs from system to system."""
    played: Played | None = field(default=None, repr=False)
    """Which plan it is of, and in which world, for `publish` to hold against what is published; in memory only."""

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share would lie without noise, at 95 %. It is of noise alone: not of how right people's own worlds
        are, and not of other people.
        """
        return self.share - _SURE * self.error, self.share + _SURE * self.error

    @property
    def go(self) -> bool:
        """Whether the noisy share is the threshold or more."""
        if self.threshold is None:
            raise InvalidInput(
                "From which share of people on it is a go differs between systems, and nobody said: give it "
                "beforehand: check_plan(..., go=0.5), or look at share and interval."
            )
        return self.share >= self.threshold

    @property
    def is_close(self) -> bool:
        """Whether noise alone may have decided: the threshold lies within the interval."""
        low, high = self.interval
        return self.threshold is not None and low <= self.threshold <= high

    def to_dict(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name) for name in ("share", "error", "wanted", "promised", "threshold")}
        said = {"interval": list(self.interval), "go": None if self.threshold is None else self.go}
        return numbers | said | {"certificate": self.certificate.to_dict()}


class PlanCheck(Mechanism):
    """One noisy share of people."""

    name, releases, takes, asks_code = "check", "plan", "sessions", True

    def __init__(
        self, played: Played, wanted: float, sessions: Sessions, budget: Budget, threshold: float | None = None
    ) -> None:
        self.relation, self.box, self.budget = sessions.relation, sessions.box, budget
        self.largest, self.error, self.threshold = 1.0, 1e-12, threshold
        self.played, self.wanted, self.people = played, wanted, sessions.people
        held = "Each person says yes or no, once over all of their episodes, by their own steps and what was released."
        made = "World, plan and what is wanted were not made from these people's data, but for releases, which add up."
        self.conditions = (Assumption(held, True), Assumption(made, False))
        if played.world.known or played.world.model.moves:
            public = "Functions that were declared as known look at one state at a time, never fail and keep nothing."
            self.conditions += (Assumption(public, False),)
        self.promised = _promised(replace(played))  # now: what does not fit is refused before anything is spent

    def run(self) -> Generator[Query, np.ndarray, tuple[float, float]]:
        query = mean_of_people(OwnWorlds(self.played, self.wanted), self.people, self.budget.mu)
        answer = yield query
        return float(answer[0]) + 0.5, query.law.sigma

    def result(self, released: tuple[float, float], certificate: Certificate) -> CheckedPlan:
        return CheckedPlan(*released, self.wanted, self.promised, certificate, self.threshold, replace(self.played))


def _promised(played: Played) -> float:
    simulator = played.simulator
    first = simulator.start(np.random.default_rng(0).random((_PLAYED, simulator.draws)))
    weights = np.broadcast_to(played.world.weights, (_PLAYED, *played.world.weights.shape))
    return float(played.returns(first, weights).mean())


@shows_nothing
def check_plan(
    world: PrivateWorld, sessions: Sessions, plan: LinearPolicy, wanted: float, budget: Budget, *, steps: int = 300,
    go: float | None = None, account: Account | None = None, simulate: int | None = None,
) -> CheckedPlan:  # fmt: skip
    """Whether a plan made in a private world is worth as much as is wanted, by these people's own steps; released once.

    Every person has the plan played from where they began, for so many steps, in a world that is fitted to their own
    steps around the released one; the share of people for whom the return is at least `wanted` is released with noise.
    `go` is the share from which on you take it for a go: say it beforehand, from public knowledge (docs/sessions.md).
    A tenth of what the world is given (of mu squared) is enough. Ask it of `plan_linear(world)`, which takes seconds,
    before anybody trains.
    """
    instance("world", world, PrivateWorld, "a PrivateWorld, as privatise makes it of Sessions")
    instance("sessions", sessions, Sessions, "Sessions.read(...)")
    instance("plan", plan, LinearPolicy, "a LinearPolicy, as plan_linear(world) finds it")
    instance("budget", budget, Budget, "a Budget(epsilon, delta)")
    instance("account", account, Account | None, "an Accountant, or a source's account, Ledger(url).account(source)")
    if budget.is_pure:
        raise InvalidInput("A plan is checked with Gaussian noise: delta must be above 0.")
    if (
        type(plan) is not LinearPolicy
        or plan.weights.shape != policy_shape(world.spaces)
        or plan.spaces != world.spaces
    ):
        raise InvalidInput("plan must be one policy for this world, as plan_linear(world) finds it.")
    spaces = sessions.spaces
    if replace(spaces, told=world.spaces.told) != world.spaces:
        raise InvalidInput("sessions must have the box, the actions and the rewards that this world was made with.")
    learned = ["next", *(["reward"] if world.reward is not None else []), *(["end"] if world.ends is not None else [])]
    if missing := [name for name in learned if name not in spaces.told]:
        raise InvalidInput(f"sessions must tell what this world learned: {', '.join(missing)}.")
    if sentence := weak_delta(budget.delta, sessions.people):
        warnings.warn(sentence, PrivacyWarning, stacklevel=3)
    if go is not None and not 0 < real("go", go) <= 1:
        raise InvalidInput(f"go must be a share of the people, above 0 and at most 1, not {go:g}.")
    played = Played(world, plan, count("steps", steps))
    most = max(world.spaces.high * steps, world.spaces.high)
    if world.reward is not None and real("wanted", wanted) > most:
        raise InvalidInput(f"wanted must be at most {most:g}, the best reward in {steps} steps, not {wanted:g}.")
    mechanism = PlanCheck(played, real("wanted", wanted), sessions, budget, go)
    if simulate is not None:
        return simulate_release(mechanism, sessions, simulate)
    return release(mechanism, sessions, account)
