"""`check_plan`: a private go or no-go, before anybody trains in a private world or acts by what was planned there.

Theorem. Each person says yes or no, 1/2 or -1/2, as a function of their own rows, of the released world and of the
plan; replacing one of N people moves the mean by at most 1/N, and Gaussian noise of deviation 1/(N mu) makes it mu-GDP.
Proof: docs/theory.md#plan-check.

What each person is asked (`OwnWorlds`) is what the plan comes to from where they began, in a world that is fitted to
their own steps. That is the released world, moved as their own steps say and as far as the release's known noise makes
likely: the posterior's mean, with the size of what features do not explain learned from this person alone. So one
person's steps say much of a world that is nearly without chance, and nearly nothing of one that is full of it. Products
of matrices are taken person by person, so that nobody's company rounds them otherwise, and functions of the caller's
are asked person by person.
"""

import warnings
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from jaxtyping import Float

from quietq.feedback.sessions import Sessions
from quietq.feedback.spaces import stacked
from quietq.feedback.statistic import Columns, Starts, Vector
from quietq.feedback.transition_statistics import row_by_row
from quietq.mechanisms.release import (
    AnyFeedback,
    Mechanism,
    Query,
    mean_of_people,
    release,
    simulate as simulate_release,
)
from quietq.noise.own_values import shows_nothing
from quietq.privacy import Account, Budget, Certificate, InvalidInput, PrivacyWarning, weak_promise
from quietq.privacy.account import Receipted
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import ask_code, count, instance, real
from quietq.released.private_world import PrivateWorld
from quietq.released.publishable import Json
from quietq.released.release_file import digest_of
from quietq.released.world_model import Known
from quietq.worlds.planning import LinearPolicy, policy_shape
from quietq.worlds.private_env import Simulator

WORLDS_SPREAD = 10.0
"""How many times farther from the released world than its known noise says a person's own world may be."""
REWARDS_SPREAD = 1.0
"""How far off a person's own rewards may be from the released ones, in units of their range."""
ENDS_SPREAD = 2.0
"""By how much each term may move the log-odds of an end in a person's own world."""


@dataclass(frozen=True, eq=False)
class Played:
    """A plan in worlds that are near to a released one: a value that can be sent to other processes."""

    world: PrivateWorld
    policy: LinearPolicy
    steps: int

    @cached_property
    def simulator(self) -> Simulator:
        """Without scatter, and with the caller's functions asked person by person."""
        model = self.world.model
        alone = {name: _alone(getattr(model, name)) for name in ("reward", "end") if getattr(model, name) is not None}
        moves = {i: _alone(move) for i, move in model.moves.items()}
        return Simulator(replace(self.world, model=replace(model, moves=moves, **alone)), noise=False)

    def rewards(self, states: np.ndarray, actions: np.ndarray) -> Float[np.ndarray, " *some"]:
        """As they were released, in units of their range; for worlds that learned them."""
        spaces = self.world.spaces
        return (self.simulator.rewards(states, actions, states) - spaces.low) / (spaces.high - spaces.low)

    def returns(
        self,
        first: Float[np.ndarray, "people states"],
        weights: Float[np.ndarray, "people features moved"],
        rewards: Float[np.ndarray, "people terms"] | None = None,
        ends: Float[np.ndarray, "people others"] | None = None,
    ) -> Float[np.ndarray, " people"]:
        """In expectation over ends, each person for themselves; where nobody was, nothing more is gained."""
        return row_by_row(self._returns, first, weights, *(one for one in (rewards, ends) if one is not None))

    def _returns(self, states: np.ndarray, weights: np.ndarray, *own: np.ndarray) -> np.ndarray:
        spaces, given = self.world.spaces, iter(own)
        rewards = next(given) if self.world.reward is not None and own else None
        ends = next(given) if self.world.ends is not None and own else None
        alive, total = np.ones(states.shape[:-1]), np.zeros(states.shape[:-1])
        for _ in range(self.steps):
            actions = self.policy.acts(states)
            found = self.simulator.step(states, actions, None, weights=weights)
            worth, end = found.rewards, found.ends
            if rewards is not None:
                moved = _times(_bends(spaces.join(states, actions)), rewards)
                worth = np.clip(worth + (spaces.high - spaces.low) * moved, spaces.low, spaces.high)
            if ends is not None:
                end = _chance(_odds(end) + _times(_bends(found.states), ends))
            worth = self.simulator.worth(worth, end)
            total += np.where(alive == 0, 0.0, alive * worth)  # who is over stays so, however long others go on
            alive = np.where(found.halted, 0.0, alive * (1 - end))
            alive = np.where(alive < 1e-3, 0.0, alive)  # an episode that hardly ever goes on is over
            states = found.states
            if not alive.any():
                break
        return total


@dataclass(frozen=True, eq=False)
class OwnWorlds(Vector):
    """Whether a plan is worth as much as is wanted in each person's own world: 1/2 if it is, and -1/2 if not."""

    played: Played
    wanted: float
    size: int = 1
    bound: float = 0.5
    rows_at_once: int = 2**14

    @np.errstate(all="ignore")  # what is not finite counts as the middle, and nothing is said of it
    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        world, spaces = self.played.world, self.played.world.spaces
        states, after = (stacked(columns, name, spaces.states) for name in "sn")
        actions = columns["action"] if spaces.actions is not None else stacked(columns, "a", spaces.numbers)
        people = np.split(np.arange(len(states)), starts[1:])
        root, unit = WORLDS_SPREAD * world.left, np.linalg.inv(world.right)
        design, moved = world.features_of(states, actions), 2 * (after - states)[:, world.moved]
        weights = []
        for own in people:
            left = (moved[own] - design[own] @ world.weights) @ unit
            weights.append(world.weights + root @ _own(design[own] @ root, left) @ world.right)
        rewards = ends = None
        if world.reward is not None:
            terms = _bends(spaces.join(states, actions))
            scale = REWARDS_SPREAD / np.sqrt(terms.shape[1])
            differ = columns["reward"] - row_by_row(self.played.rewards, states, actions)
            if world.end_reward is not None:  # such a step says nothing of the others' rewards
                differ = np.where(columns["end"] > 0, 0.0, differ)
            rewards = np.stack([scale * _own(scale * terms[own], differ[own][:, None])[:, 0] for own in people])
        if world.ends is not None:
            terms, odds = ENDS_SPREAD * _bends(after), _odds(row_by_row(self.played.simulator.ends, after))
            ended = columns["end"] > 0
            ends = ENDS_SPREAD * np.stack([_own_odds(terms[own], odds[own], ended[own]) for own in people])
        return self.says(self.played.returns(states[starts], np.stack(weights), rewards, ends))

    def says(self, returns: Float[np.ndarray, " people"]) -> Float[np.ndarray, "people size"]:
        """A vote for each person, by the plan's return in their world; who has no return counts for neither."""
        return np.where(np.isnan(returns), 0.0, np.where(returns >= self.wanted, 0.5, -0.5))[:, None]


def _bends(points: Float[np.ndarray, "*some d"]) -> Float[np.ndarray, "*some terms"]:
    """By what a person's rewards and log-odds may differ from released ones: terms up to the second degree."""
    points = np.sqrt(12) * (points - 0.5)
    row, column = np.triu_indices(points.shape[-1])
    return np.concatenate([np.ones((*points.shape[:-1], 1)), points, points[..., row] * points[..., column]], axis=-1)


def _times(terms: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Each person's terms by their own slopes."""
    return (terms[..., None, :] @ own[..., None])[..., 0, 0]


def _odds(chance: np.ndarray) -> np.ndarray:
    chance = np.clip(chance, 1e-12, 1 - 1e-12)
    return np.log(chance / (1 - chance))


def _chance(odds: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(odds, -50, 50)))


def _own_odds(design: Float[np.ndarray, "rows k"], odds: np.ndarray, ended: np.ndarray) -> Float[np.ndarray, " k"]:
    """Slopes of what is added to log-odds, by Newton's steps towards the posterior's mode, if standard normal."""
    slopes = np.zeros(design.shape[1])
    for _ in range(8):
        chance = _chance(odds + design @ slopes)
        gradient = design.T @ (ended - chance) - slopes
        curvature = (design.T * (chance * (1 - chance))) @ design + np.eye(len(slopes))
        slopes = slopes + np.linalg.solve(curvature, gradient)
    return slopes


def _own(design: Float[np.ndarray, "rows k"], targets: Float[np.ndarray, "rows m"]) -> Float[np.ndarray, "k m"]:
    """Slopes by their posterior mean, if they are standard normal, with each target's own noise (Dempster, Laird &
    Rubin's iteration).
    """
    try:
        values, vectors = np.linalg.eigh(design.T @ design)
    except np.linalg.LinAlgError:
        return np.full((design.shape[1], targets.shape[1]), np.nan)  # who is not told counts as the middle
    values, along = np.maximum(values, 0.0)[:, None], vectors.T @ (design.T @ targets)
    whole, noise = (targets**2).sum(axis=0), np.ones(targets.shape[1])
    for _ in range(30):
        known = values + noise
        slopes = along / known
        rest = whole - 2 * (along * slopes).sum(axis=0) + (values * slopes**2).sum(axis=0)
        noise = np.maximum((rest + noise * (values / known).sum(axis=0)) / len(targets), 1e-12)
    return vectors @ (along / (values + noise))


def _alone(function: Known) -> Known:
    """The same, asked of one person after the other, on copies."""

    def asked(*given: np.ndarray) -> np.ndarray:
        each = [function(*(one[i].copy() for one in given)) for i in range(len(given[0]))]
        return np.stack([np.asarray(one, np.float64) for one in each])  # nobody's type becomes another's

    where = "arrays of states, with any shape in front"
    return partial(ask_code, "A function that was declared as known", asked, where=where)


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
    policy: str = ""
    """Which policy it is of: the digest of its numbers, which `publish` holds against what is published."""
    played: Played | None = field(default=None, repr=False)
    """In which world it is played, for `publish`; in memory only."""

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share would lie without noise, at 95 %. It is of noise alone: not of how right people's own worlds
        are, and not of other people.
        """
        return self.share - 1.96 * self.error, self.share + 1.96 * self.error

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

    def to_dict(self) -> Json:
        numbers = {name: getattr(self, name) for name in ("share", "error", "wanted", "promised", "threshold")}
        said = {"interval": list(self.interval), "go": None if self.threshold is None else self.go}
        return numbers | said | {"certificate": self.certificate.to_dict()}


class PlanCheck(Mechanism):
    """One noisy share of people."""

    name, releases = "check", "plan"

    @classmethod
    def is_for(cls, feedback: AnyFeedback) -> bool:
        return isinstance(feedback, Sessions)

    def __init__(
        self, played: Played, wanted: float, sessions: Sessions, budget: Budget, threshold: float | None = None
    ) -> None:
        self.relation, self.box, self.budget = sessions.relation, sessions.box, budget
        self.largest, self.error, self.threshold = 1.0, 1e-12, threshold
        self.played, self.wanted = played, wanted
        self.conditions = (Code.ONE_VOTE(), Code.PLAN_NOT_MADE_OF_DATA())
        if played.world.known or played.world.model.moves:
            self.conditions += (Code.KNOWN_FUNCTIONS(),)
        self.promised = _promised(replace(played))  # now: what does not fit is refused before anything is spent

    def run(self) -> Generator[Query, np.ndarray, tuple[float, float]]:
        query = mean_of_people(OwnWorlds(self.played, self.wanted), self.people, self.budget.mu)
        answer = yield query
        return float(answer[0]) + 0.5, query.law.sigma

    def result(self, released: tuple[float, float], certificate: Certificate) -> CheckedPlan:
        policy = digest_of(self.played.policy.as_policy(certificate))
        played = replace(self.played)
        return CheckedPlan(*released, self.wanted, self.promised, certificate, self.threshold, policy, played)


def _promised(played: Played) -> float:
    """What a plan is worth in the released world, by 64 episodes of it."""
    simulator = played.simulator
    first = simulator.start(np.random.default_rng(0).random((64, simulator.draws)))
    weights = np.broadcast_to(played.world.weights, (64, *played.world.weights.shape))
    return float(played.returns(first, weights).mean())


@shows_nothing
def check_plan(
    world: PrivateWorld,
    sessions: Sessions,
    plan: LinearPolicy,
    wanted: float,
    budget: Budget,
    *,
    steps: int = 300,
    go: float | None = None,
    account: Account | None = None,
    simulate: int | None = None,
) -> CheckedPlan:
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
    if sentence := weak_promise(budget, sessions.people):
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
