"""Checks of a policy: a private go or no-go, by people's own steps, before anybody acts by it.

Theorem. Each person gives a vote, 1/2 or -1/2, and a sign, in [-1, 1], as functions of their own rows, of the policy,
of what was released and of earlier noisy answers. Two people are never more than sqrt(5) apart, so replacing one of N
moves the mean by at most sqrt(5)/N, and Gaussian noise of deviation sqrt(5)/(N mu) makes it mu-GDP. The two medians
that signs are taken against are answers of the same release. Proof: docs/theory.md#policy-check.

- The *vote* is model-based: what the policy comes to from where this person began, in a world that is fitted to their
  own steps (`OwnWorlds`). That is the released world, moved as their own steps say and as far as the release's known
  noise makes likely: the posterior's mean, with the size of what features do not explain learned from this person
  alone. So one person's steps say much of a world that is nearly without chance, and nearly nothing of one that is full
  of it. Where the class of worlds is wrong, everybody's own world is wrong alike, and votes are worth nothing.
- The *sign* is model-free: do people whose own actions are nearer to the policy's do better? It is the sign of their
  return above the median, times that of their distance below the median. The mean is the quadrant correlation
  (Blomqvist 1950), here called *agreement*. It needs no world, and says little of policies unlike anything people did.

Products of matrices are taken person by person, so that their rounding does not depend on the batch, and functions of
the caller's are asked person by person.
"""

import json
import math
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from quietq.feedback.imitation_statistics import OwnReturns
from quietq.feedback.row_statistics import row_by_row
from quietq.feedback.sessions import Sessions
from quietq.feedback.spaces import Spaces, stacked
from quietq.feedback.statistic import Columns, Starts, Vector
from quietq.mechanisms.clone import noisy_quantile
from quietq.mechanisms.release import AnyFeedback, Mechanism, Query, mean_of_people
from quietq.privacy import Budget, Certificate, InvalidInput
from quietq.privacy.account import Issued
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import ask_code, count, interval, real
from quietq.released.private_network import PrivatePolicy
from quietq.released.private_world import PrivateWorld
from quietq.released.publishable import Json, hash_of
from quietq.released.release_file import digest_of
from quietq.released.world_model import Known
from quietq.worlds.private_env import Simulator

MEDIANS_SHARE = 0.3
"""The share of mu squared that the two medians have; votes and signs have the rest."""
MEDIAN_ROUNDS = 8
"""The number of counts for each median: it is found to 1/256 of its range."""
ENOUGH = 60.0
"""People times mu from which on signs are asked for beside votes: below, medians are mostly noise, and votes have the
whole budget. All three were chosen by draws of normal returns and distances."""
CLEARLY = 1.0
"""The z-score from which on an agreement counts as different from 0."""
WORLDS_SPREAD = 10.0
"""How many times farther from the released world than its known noise says a person's own world may be."""
REWARDS_SPREAD = 1.0
"""How much a person's own rewards may differ from the released ones, in units of their range."""
ENDS_SPREAD = 2.0
"""How much each term may move the log-odds of an end in a person's own world."""
GO = 0.7
"""The share of people from which on votes are for a policy, unless the caller says otherwise; with `CLEARLY`, it was
chosen on the development systems of benchmarks/go.py, and on two whose rewards jump or whose people are good."""


Medians = tuple[float, float]
"""The noisy answers that signs are taken against: people's own returns, and their distances from the policy."""


@dataclass(frozen=True, eq=False)
class PolicyOnRows:
    """A policy as people's rows have states and actions: in the unit box, or an action's number in its list."""

    policy: PrivatePolicy
    spaces: Spaces

    def acts(self, states: Float[np.ndarray, "*some states"]) -> np.ndarray:
        """The best action in each state, whoever else's state is asked about."""
        box, acting = self.spaces.box, self.spaces.action_box
        values = self.policy.one_by_one(np.array(box.low) + states * np.array(box.width))
        if acting is None:
            return values.argmax(axis=-1)
        return np.clip((values - acting.low) / np.array(acting.width), 0.0, 1.0)

    def __call__(self, starts: Starts, columns: Columns) -> Float[np.ndarray, " people"]:
        """Each person's distance from the policy: the mean over their rows, in [0, 1].

        Of a list of actions it is the share of rows in which another one was taken, else the mean absolute difference
        in units of the action's range.
        """
        chosen = self.acts(stacked(columns, "s", self.spaces.states))
        if self.spaces.actions is None:
            apart = np.abs(chosen - stacked(columns, "a", self.spaces.numbers)).mean(axis=1)
        else:
            apart = (chosen != columns["action"]).astype(np.float64)
        return np.add.reduceat(apart, starts) / np.diff(starts, append=len(apart))


@dataclass(frozen=True, eq=False)
class OwnWorlds:
    """What a policy comes to in each person's own world: a value that can be sent to other processes."""

    world: PrivateWorld
    acting: PolicyOnRows
    steps: int

    @cached_property
    def simulator(self) -> Simulator:
        """Without scatter, and with the caller's functions asked person by person."""
        model = self.world.model
        alone = {name: _alone(getattr(model, name)) for name in ("reward", "end") if getattr(model, name) is not None}
        moves = {i: _alone(move) for i, move in model.moves.items()}
        return Simulator(replace(self.world, model=replace(model, moves=moves, **alone)), noise=False)

    @cached_property
    def promised(self) -> float:
        """What the policy is worth in the released world, by 64 episodes of it."""
        first = self.simulator.start(np.random.default_rng(0).random((64, self.simulator.draws)))
        weights = np.broadcast_to(self.world.weights, (64, *self.world.weights.shape))
        return float(self.returns(first, weights).mean())

    def __call__(self, starts: Starts, columns: Columns) -> Float[np.ndarray, " people"]:
        """The policy's return for each person, played from where they began."""
        world, spaces = self.world, self.world.spaces
        states, after = (stacked(columns, name, spaces.states) for name in "sn")
        actions = columns["action"] if spaces.actions is not None else stacked(columns, "a", spaces.numbers)
        people = np.split(np.arange(len(states)), starts[1:])
        # The law of motion, in whitened coordinates, where the released world's known noise is the prior.
        root, unit = WORLDS_SPREAD * world.left, np.linalg.inv(world.right)
        design, moved = world.features_of(states, actions), 2 * (after - states)[:, world.moved]
        left = [moved[own] - design[own] @ world.weights for own in people]
        slopes = [_own(design[own] @ root, rest @ unit) for own, rest in zip(people, left, strict=True)]
        weights = np.stack([world.weights + root @ own @ world.right for own in slopes])
        # Rewards: what is added to the released ones, in units of their range.
        rewards = ends = None
        if world.reward is not None:
            terms = _bends(spaces.join(states, actions))
            scale = REWARDS_SPREAD / np.sqrt(terms.shape[1])
            differ = columns["reward"] - row_by_row(self._unit_rewards, states, actions)
            if world.end_reward is not None:  # such a step says nothing of the others' rewards
                differ = np.where(columns["end"] > 0, 0.0, differ)
            rewards = np.stack([scale * _own(scale * terms[own], differ[own][:, None])[:, 0] for own in people])
        # Ends: what is added to the released log-odds.
        if world.ends is not None:
            terms, odds = ENDS_SPREAD * _bends(after), _odds(row_by_row(self.simulator.ends, after))
            ended = columns["end"] > 0
            ends = ENDS_SPREAD * np.stack([_own_odds(terms[own], odds[own], ended[own]) for own in people])
        return self.returns(states[starts], weights, rewards, ends)

    def _unit_rewards(self, states: np.ndarray, actions: np.ndarray) -> Float[np.ndarray, " *some"]:
        """Returns the rewards as they were released, in units of their range."""
        spaces = self.world.spaces
        return (self.simulator.rewards(states, actions, states) - spaces.low) / (spaces.high - spaces.low)

    def returns(
        self,
        first: Float[np.ndarray, "people states"],
        weights: Float[np.ndarray, "people features moved"],
        rewards: Float[np.ndarray, "people terms"] | None = None,
        ends: Float[np.ndarray, "people others"] | None = None,
    ) -> Float[np.ndarray, " people"]:
        """Returns the expectation over ends, each person for themselves.

        Where nobody was, nothing more is gained: a halted episode costs the least declared reward for each step that is
        left, if that is below 0. What costs less there would be a vote for policies that leave.
        """
        nothing = np.zeros((len(first), 0))
        given = (nothing if own is None else own for own in (rewards, ends))
        return row_by_row(self._returns, first, weights, *given)

    def _returns(
        self, states: np.ndarray, weights: np.ndarray, rewards: np.ndarray, ends: np.ndarray
    ) -> Float[np.ndarray, " *people"]:
        spaces = self.world.spaces
        alive, total = np.ones(states.shape[:-1]), np.zeros(states.shape[:-1])
        for left in reversed(range(self.steps)):
            actions = self.acting.acts(states)
            found = self.simulator.step(states, actions, None, weights=weights)
            worth, end = found.rewards, found.ends
            if rewards.size:
                moved = _times(_bends(spaces.join(states, actions)), rewards)
                worth = np.clip(worth + (spaces.high - spaces.low) * moved, spaces.low, spaces.high)
            if ends.size:
                end = expit(np.clip(_odds(end) + _times(_bends(found.states), ends), -50, 50))
            worth = self.simulator.worth(worth, end)
            total += np.where(alive == 0, 0.0, alive * worth)  # who is over stays so, however long others go on
            alive = alive * (1 - end)
            total += np.where(found.halted & (alive > 0), alive * left * min(spaces.low, 0.0), 0.0)
            alive = np.where(found.halted, 0.0, alive)
            alive = np.where(alive < 1e-3, 0.0, alive)  # an episode that hardly ever goes on is over
            states = found.states
            if not alive.any():
                break
        return total


@dataclass(frozen=True, eq=False)
class Opinions(Vector):
    """Each person's vote, 1/2 or -1/2, and sign, in [-1, 1]: those of the two that can be computed."""

    worlds: OwnWorlds | None
    wanted: float
    returns: OwnReturns | None
    distances: PolicyOnRows
    medians: Medians | None
    rows_at_once: int = 2**14

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (self.worlds is not None) + (self.medians is not None)

    @property
    def bound(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The root of 1/4 for a vote and 1 for a sign: half of the farthest that two people can be apart."""
        return ((self.worlds is not None) / 4 + (self.medians is not None)) ** 0.5

    @np.errstate(all="ignore")  # what is not finite counts as the middle, and nothing is said of it
    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        told = []
        if self.worlds is not None:
            worth = self.worlds(starts, columns)
            told.append(np.where(np.isnan(worth), 0.0, np.where(worth >= self.wanted, 0.5, -0.5)))
        if self.returns is not None and self.medians is not None:
            returned, distance = self.medians
            better = np.sign(self.returns(starts, columns) - returned)
            told.append(better * np.sign(distance - self.distances(starts, columns)))
        return np.stack(told, axis=-1)


def _bends(points: Float[np.ndarray, "*some d"]) -> Float[np.ndarray, "*some terms"]:
    """Returns the terms, up to the second degree, by which a person's rewards and log-odds may differ."""
    points = np.sqrt(12) * (points - 0.5)
    row, column = np.triu_indices(points.shape[-1])
    return np.concatenate([np.ones((*points.shape[:-1], 1)), points, points[..., row] * points[..., column]], axis=-1)


def _times(terms: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Each person's terms by their own slopes."""
    return (terms[..., None, :] @ own[..., None])[..., 0, 0]


def _odds(chance: np.ndarray) -> np.ndarray:
    chance = np.clip(chance, 1e-12, 1 - 1e-12)
    return np.log(chance / (1 - chance))


def _own_odds(design: Float[np.ndarray, "rows k"], odds: np.ndarray, ended: np.ndarray) -> Float[np.ndarray, " k"]:
    """Slopes of what is added to log-odds, by Newton's steps towards the posterior's mode, if standard normal."""
    slopes = np.zeros(design.shape[1])
    for _ in range(8):
        chance = expit(np.clip(odds + design @ slopes, -50, 50))
        gradient = design.T @ (ended - chance) - slopes
        curvature = (design.T * (chance * (1 - chance))) @ design + np.eye(len(slopes))
        try:
            slopes = slopes + np.linalg.solve(curvature, gradient)
        except np.linalg.LinAlgError:  # whose text would tell of somebody's rows; what is not finite counts as no
            return np.full(len(slopes), np.nan)
    return slopes


def _own(design: Float[np.ndarray, "rows k"], targets: Float[np.ndarray, "rows m"]) -> Float[np.ndarray, "k m"]:
    """Slopes by their posterior mean, if they are standard normal, with each target's own noise (Dempster, Laird &
    Rubin's iteration).
    """
    try:
        values, vectors = np.linalg.eigh(design.T @ design)
    except np.linalg.LinAlgError:
        return np.full((design.shape[1], targets.shape[1]), np.nan)  # without a fit somebody counts as the middle
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
        return np.stack([np.asarray(one, np.float64) for one in each])  # no array's type becomes another's

    where = "arrays of states, with any shape in front: it must take them; what was charged before stays charged"
    return partial(ask_code, "A function that was declared as known", asked, where=where)


@dataclass(frozen=True, eq=False)
class CheckedPolicy(Issued):
    """What people's own steps say of a policy. Numbers are noised, so they may lie outside their range."""

    share: float | None
    """The share of people in whose own world the policy is worth as much as was wanted; None without a world."""
    agreement: float | None
    """The quadrant correlation of doing well and of acting as the policy does, from -1 to 1; None if it was not asked
    for, because sessions tell no rewards, or because there are votes and too few people for both."""
    error: float
    """The deviation of the noise of either."""
    people: int
    wanted: float | None
    promised: float | None
    """What the policy is worth in the released world."""
    medians: Medians | None
    certificate: Certificate = field(repr=False)
    threshold: float
    """The share from which on votes are for it."""
    policy: str
    """Which policy it is of: the digest of its numbers, which `publish` holds against what is published."""
    world: PrivateWorld | None = field(default=None, repr=False)
    """The world in which it was played, for `publish`; in memory only."""

    def fingerprint(self) -> str:
        """Returns a digest of all that it says, so that `publish` can tell whether that is what people were asked."""
        world = None if self.world is None else self.world.fingerprint()
        return hash_of(json.dumps([self.to_dict(), self.policy, self.threshold, world], sort_keys=True), {})

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share, or without a world the agreement, would lie without noise, at 95 %.

        It is of noise alone: not of how right people's own worlds are, and not of other people.
        """
        middle = self.agreement if self.share is None else self.share
        assert middle is not None
        return middle - 1.96 * self.error, middle + 1.96 * self.error

    @property
    def z_score(self) -> float | None:
        """The agreement in standard deviations of what it is if actions and returns have nothing to do with each other.

        These are of its noise, and of chance in who was asked: the sign of a person has variance 1.
        """
        return None if self.agreement is None else self.agreement / math.hypot(self.error, self.people**-0.5)

    @property
    def go(self) -> bool | None:
        """Whether votes are for the policy, and signs not clearly against it; None without votes.

        Signs alone say whether a policy is better than what people do, and not whether it is good enough.
        """
        if self.share is None:
            return None
        return self.share >= self.threshold and (self.z_score is None or self.z_score > -CLEARLY)

    def to_dict(self) -> Json:
        names = ("share", "agreement", "error", "z_score", "wanted", "promised", "threshold", "go")
        numbers = {name: getattr(self, name) for name in names}
        return numbers | {"interval": list(self.interval), "certificate": self.certificate.to_dict()}


class PolicyCheck(Mechanism):
    """Two noisy medians, and one noisy mean of votes and signs."""

    name, releases = "check", "policy"

    @classmethod
    def is_for(cls, feedback: AnyFeedback) -> bool:
        return isinstance(feedback, Sessions)

    def __init__(
        self,
        policy: PrivatePolicy,
        sessions: Sessions,
        budget: Budget,
        *,
        world: PrivateWorld | None = None,
        wanted: float | None = None,
        steps: int = 300,
        returns: tuple[float, float] | None = None,
        threshold: float = GO,
    ) -> None:
        """Refuses what does not fit; only what is public of the sessions is looked at.

        Args:
            policy: What is asked about.
            sessions: People's sessions.
            budget: The (epsilon, delta) that the check may cost.
            world: The world that the policy is played in; without it there are no votes.
            wanted: What the policy must be worth in a person's own world.
            steps: How many steps it is played for.
            returns: The public range of people's own returns; by default what `steps` steps can come to.
            threshold: From which share of the people on votes are for it.

        """
        self.relation, self.box, self.budget = sessions.relation, sessions.box, budget
        self.largest, self.error = 1.0, 1e-12
        self.policy, self.world, self.wanted, self.threshold = policy, world, wanted, checked_go(threshold)
        spaces, steps = sessions.spaces, count("steps", steps)
        if (policy.box.dimension, policy.choices) != (spaces.states, spaces.actions) or (
            spaces.actions is None and policy.outputs != spaces.numbers
        ):
            raise InvalidInput("policy must take states, and choose actions, as the sessions have them.")
        self.distances = PolicyOnRows(policy, spaces)
        least, most = min(spaces.low * steps, spaces.low), max(spaces.high * steps, spaces.high)
        self.returns = None
        if "reward" in spaces.told and (world is None or self.people * budget.mu >= ENOUGH):
            self.returns = OwnReturns((spaces.low, spaces.high), interval("returns", returns or (least, most)))
        self.conditions = (Code.ONE_VOTE(), Code.NOT_MADE_OF_DATA())
        self.worlds, self.promised = None, None
        if world is not None:
            self._check_world(world, spaces)
            if wanted is None:
                raise InvalidInput("wanted must say what the policy must be worth in people's own worlds.")
            if world.reward is not None and real("wanted", wanted) > most:
                raise InvalidInput(
                    f"wanted must be at most {most:g}, the best reward in {steps} steps, not {wanted:g}."
                )
            if world.known or world.model.moves:
                self.conditions += (Code.FUNCTIONS_KEEP_NOTHING(),)
            self.worlds = OwnWorlds(world, self.distances, steps)
            # Now, so that what fails is refused before it is paid for; on a copy, so that nothing cached is sent about.
            self.promised = replace(self.worlds).promised
        elif self.returns is None:
            raise InvalidInput("sessions must contain rewards, or the policy must have a world: give it as trained_on.")

    def _check_world(self, world: PrivateWorld, spaces: Spaces) -> None:
        """Refuses a world of other spaces than the sessions', or one that learned what they do not tell."""
        if replace(spaces, told=world.spaces.told) != world.spaces:
            raise InvalidInput("sessions must have the box, the actions and the rewards that this world was made with.")
        learned = {"next": True, "reward": world.reward is not None, "end": world.ends is not None}
        if missing := [name for name, needed in learned.items() if needed and name not in spaces.told]:
            raise InvalidInput(f"sessions must contain what this world learned: {', '.join(missing)}.")

    def run(self) -> Generator[Query, np.ndarray, tuple[Medians | None, np.ndarray, float]]:
        medians, left = None, 1.0
        if self.returns is not None:
            left = 1 - MEDIANS_SHARE
            mu = self.budget.mu * (MEDIANS_SHARE / (2 * MEDIAN_ROUNDS)) ** 0.5
            returned = yield from noisy_quantile(
                self.returns, self.returns.returns, 0.5, self.people, mu, MEDIAN_ROUNDS
            )
            distance = yield from noisy_quantile(self.distances, (0.0, 1.0), 0.5, self.people, mu, MEDIAN_ROUNDS)
            medians = (returned, distance)
        opinions = Opinions(self.worlds, self.wanted or 0.0, self.returns, self.distances, medians)
        query = mean_of_people(opinions, self.people, self.budget.mu * left**0.5)
        answer = yield query
        return medians, answer, query.law.sigma

    def result(self, released: tuple[Medians | None, np.ndarray, float], certificate: Certificate) -> CheckedPolicy:
        medians, answer, error = released
        share = None if self.worlds is None else float(answer[0]) + 0.5
        agreement = None if medians is None else float(answer[-1])
        return CheckedPolicy(
            share,
            agreement,
            error,
            self.people,
            self.wanted,
            self.promised,
            medians,
            certificate,
            self.threshold,
            digest_of(self.policy),
            self.world,
        )


def checked_go(go: float) -> float:
    """The share of the people from which on votes are for a policy, if it can be one."""
    if not 0 < real("go", go) <= 1:
        raise InvalidInput(f"go must be a share of the people, above 0 and at most 1, not {go:g}.")
    return go
