"""What policies would have been worth to the people whose sessions others made.

Theorem. Each person's return under each of m policies is clipped to a range of half-width C, once over all of their
episodes (`feedback.returns`). Replacing one of N people moves the m means, and beside them `SQUARES` times the
means of squares, by at most 2 sqrt(m) C/N together: Gaussian noise of that over mu is mu-GDP, and squares cost nothing.
Proofs are in docs/theory.md#policy-values, and so is that of the intervals: they hold the noise and, for people who are
a sample, the sampling error (Maurer & Pontil 2009), all of them together with the stated probability. What the range
cuts off is not in them, and neither is the error of probabilities that had to be learnt.
"""

import math
from collections.abc import Generator, Mapping
from dataclasses import replace
from functools import partial
from statistics import NormalDist

import numpy as np
from jaxtyping import Float

from quietq.feedback.cells import Cells
from quietq.feedback.returns import SQUARES, ActionShares, Policy, Returns, asked
from quietq.feedback.sessions import Sessions
from quietq.mechanisms.release import Mechanism, Query, mean_of_people, release_or_simulate
from quietq.noise.box import Box
from quietq.noise.rounding import rounding_step
from quietq.privacy import Account, Budget, Certificate, InvalidInput
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import instance, interval, real, shown
from quietq.privacy.errors import shows_nothing
from quietq.released.evaluated_policies import LONGEST, EvaluatedPolicies
from quietq.released.publishable import Publishable

LEARNING_SHARE = 0.1
"""The share of mu squared that is spent on probabilities of actions that have to be learnt."""
AnyPolicy = Policy | Publishable | str
"""A function from states to probabilities of actions, a published agent, or the action that is always taken."""


class PolicyValues(Mechanism):
    """Gaussian noise on the mean returns, and on the means of their squares."""

    name, feedback_kind = "values", "sessions"
    releases = "policies"

    def __init__(
        self,
        sessions: Sessions,
        policies: Mapping[str, AnyPolicy],
        budget: Budget,
        *,
        returns: tuple[float, float],
        discount: float = 1.0,
        per_step: bool = False,
        against: str | None = None,
        behaviour: Policy | Cells | None = None,
        confidence: float = 0.95,
    ) -> None:
        """Checks all that is asked, as `evaluate_policies` explains it, without reading the rows."""
        instance("sessions", sessions, Sessions, "Sessions.read(...)")
        instance("budget", budget, Budget, "a Budget(epsilon, delta)")
        low, high = _check_ranges(returns, discount, confidence)
        if sessions.spaces.actions is None:
            raise InvalidInput("Policies are evaluated on sessions with a declared list of actions.")
        if "reward" not in sessions.columns:
            raise InvalidInput("These sessions have no rewards: name their column as Sessions.read(..., reward=...).")
        if behaviour is None and "propensity" not in sessions.columns:
            raise InvalidInput(
                "There must be a behaviour, the policy by which actions were chosen, or else a column that says how "
                "probable each was: Sessions.read(..., propensity=...)."
            )
        box, actions = sessions.box, sessions.spaces.action_names
        asked_of = _check_policies(policies, box, actions)
        if behaviour is not None and not isinstance(behaviour, Cells):
            behaviour = policy_of("behaviour", behaviour, box, actions)
        if against is not None and (against not in asked_of or len(asked_of) < 2):
            raise InvalidInput(f"against must be one of at least two policies, {list(asked_of)}, not {against!r}.")
        if against is not None and low != -high:
            raise InvalidInput(f"Advantages have either sign: returns must be a range around 0, not {returns!r}.")
        self.relation, self.box, self.budget, self.confidence = sessions.relation, box, budget, confidence
        self._cells = behaviour if isinstance(behaviour, Cells) else None
        self._statistic = Returns(
            tuple(policy for name, policy in asked_of.items() if name != against),
            None if isinstance(behaviour, Cells) else behaviour,
            box,
            len(actions),
            (sessions.spaces.low, sessions.spaces.high),
            (low, high),
            float(discount),
            bool(per_step),
            None if against is None else asked_of[against],
        )
        self.names = tuple(name for name in asked_of if name != against)
        self.largest, self.error = self._statistic.bound + 1, 1e-12
        self.conditions = (
            Code.RETURNS_CLIPPED(low, high),
            Code.FUNCTIONS_KEEP_NOTHING(),
            Code.NOT_MADE_OF_DATA(),
        )
        further = "" if self._cells is None else " nor errors of estimated propensities,"
        self.remarks = (
            f"Intervals cover noise and sampling error, all of them together with probability {confidence:g}, but not "
            f"the bias of clipping returns to [{low:g}, {high:g}],{further} and people without a usable session "
            "count as the middle of that range.",
        )
        if against is not None:
            self.remarks = (f"Values are advantages over the policy {against!r}.", *self.remarks)

    def run(self) -> Generator[Query, np.ndarray, tuple[np.ndarray, float]]:
        statistic, mu = self._statistic, self.budget.mu
        # How probable actions were, if that has to be learnt: their shares in each public cell.
        if self._cells is not None:
            shares = ActionShares(self._cells, self.box, statistic.actions)
            answer = yield mean_of_people(shares, self.people, mu * math.sqrt(LEARNING_SHARE))
            table = learned_probabilities(answer, self._cells.count, statistic.actions)
            statistic = replace(statistic, behaviour=partial(_by_cell, self._cells, table))
            mu *= math.sqrt(1 - LEARNING_SHARE)
        # The mean returns and squares, by the theorem above: squares cost nothing.
        query = mean_of_people(statistic, self.people, mu)
        return (yield query), query.law.sigma

    def result(self, released: tuple[np.ndarray, float], certificate: Certificate) -> EvaluatedPolicies:
        (answer, sigma), (low, high) = released, self._statistic.returns
        middle, half = (low + high) / 2, (high - low) / 2
        mean, width = intervals(answer, sigma, self.people, self.confidence)
        table = np.stack([mean, mean - width, mean + width], axis=-1)
        table = np.clip(middle + half * table, low, high)
        return EvaluatedPolicies(self.names, table, self.confidence, half * sigma, self.box, certificate)


def _check_ranges(returns: tuple[float, float], discount: float, confidence: float) -> tuple[float, float]:
    low, high = interval("returns", returns)
    if not 0 <= real("discount", discount) <= 1:
        raise InvalidInput(f"discount must lie between 0 and 1, not {discount!r}.")
    if not 0 < real("confidence", confidence) < 1:
        raise InvalidInput(f"confidence must lie between 0 and 1, not {confidence!r}.")
    return low, high


def _check_policies(policies: Mapping[str, AnyPolicy], box: Box, actions: tuple[str, ...]) -> dict[str, Policy]:
    if not isinstance(policies, Mapping) or not policies:
        raise InvalidInput("policies must name at least one policy, such as {'always high': 'high'}.")
    for name in map(str, policies):
        if not name.isprintable() or not 0 < len(name) <= LONGEST:
            raise InvalidInput(
                f"Names of policies must be printable, and of 1 to {LONGEST} letters, not {shown(name)}."
            )
    return {str(name): policy_of(f"Policy {name!r}", policy, box, actions) for name, policy in policies.items()}


def intervals(
    answer: Float[np.ndarray, " twice"], sigma: float, people: int, confidence: float
) -> tuple[Float[np.ndarray, " policies"], Float[np.ndarray, " policies"]]:
    """Means from -1 to 1, and how far each may be from that of all people who could have come, all at once.

    For each policy a twentieth of what may go wrong is left to the noise of the mean, as much to that of the squares,
    and the rest to who came.
    """
    mean, squares = np.split(answer, 2)
    wrong = (1 - confidence) / len(mean)
    step = rounding_step(sigma)
    of_mean = NormalDist().inv_cdf(1 - wrong / 40) * sigma + step
    of_squares = NormalDist().inv_cdf(1 - wrong / 20) * sigma + step
    variance = (squares + of_squares) / SQUARES - np.maximum(np.abs(mean) - of_mean, 0.0) ** 2
    log, others = math.log(4 / (0.9 * wrong)), max(people - 1, 1)
    sampling = np.sqrt(2 * np.clip(variance, 0.0, 1.0) * log / others) + 14 * log / (3 * others)
    return mean, of_mean + sampling


def learned_probabilities(
    answer: Float[np.ndarray, " size"], cells: int, actions: int
) -> Float[np.ndarray, "cells_and_none actions"]:
    """Probabilities of actions from released shares, one row for each public cell; all alike where there is no cell."""
    shares = np.maximum(answer.reshape(cells, actions), 0.0)
    table = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    # No person's step counts more than a hundred times, or twice as often as there are actions, if that is more.
    least = min(0.01, 0.5 / actions)
    table = least + (1 - least * actions) * np.where(shares.any(axis=1, keepdims=True), table, 1 / actions)
    return np.vstack([table, np.full((1, actions), 1 / actions)])


def _by_cell(cells: Cells, table: Float[np.ndarray, "cells_and_none actions"], states: np.ndarray) -> np.ndarray:
    """The policy that has one row of probabilities for each public cell."""
    return table[cells.index(states)]


# Policies as they are given, as functions from states to probabilities; what is none is refused at public points.


def policy_of(what: str, given: AnyPolicy, box: Box, actions: tuple[str, ...]) -> Policy:
    """Returns the policy as a function from states to probabilities; refuses it if it is none at public points."""
    if isinstance(given, str):
        if given not in actions:
            raise InvalidInput(f"{what} must name one of the actions {list(actions)}, not {given!r}.")
        return partial(_always, actions.index(given), len(actions))
    if isinstance(given, Publishable):
        if given.choices != len(actions):
            raise InvalidInput(f"{what} must be an agent that chooses among {len(actions)} actions.")
        same = given.box.dimension == box.dimension
        if not same or (np.less(box.low, given.box.low) | np.greater(box.high, given.box.high)).any():
            raise InvalidInput(f"{what} is an agent for states in {given.box}, and these sessions' lie in {box}.")
        return partial(_greedy, given, len(actions))
    found = values_at_points(what, given, box, len(actions))
    if (found < -1e-9).any() or np.abs(found.sum(axis=1) - 1).max() > 1e-6:
        raise InvalidInput(f"{what} must give probabilities of {len(actions)} actions, which add up to 1.")
    return given


def values_at_points(what: str, function: Policy, box: Box, actions: int) -> Float[np.ndarray, "points actions"]:
    """What it says at public points; it is refused if that depends on what else it is asked."""
    if not callable(function):
        raise InvalidInput(f"{what} must be a function of states, not {type(function).__name__}.")
    low, high, points = np.array(box.low), np.array(box.high), 32
    states = low + np.random.default_rng(0).random((points, box.dimension)) * (high - low)
    ask = partial(asked, function, actions=actions, what=what, where="public states; nothing was spent")
    found = ask(states, starts=np.zeros(1, int))
    if not np.isfinite(found).all():
        raise InvalidInput(f"{what} must give finite numbers.")
    alone = ask(states, starts=np.arange(points))
    again = ask(states[::-1], starts=np.zeros(1, int))[::-1]
    if not all(np.allclose(found, other, rtol=1e-6, atol=1e-9) for other in (alone, again)):
        raise InvalidInput(f"{what} must be a function of one state at a time: its value of one depends on the others.")
    return found


def _always(action: int, actions: int, states: np.ndarray) -> np.ndarray:
    """The policy that takes the same action everywhere."""
    return np.tile(np.eye(actions)[action], (len(states), 1))


def _greedy(agent: Publishable, actions: int, states: np.ndarray) -> np.ndarray:
    """The policy of a published agent, which takes its best action."""
    values = agent(states[:, 0] if agent.box.dimension == 1 else states)
    return np.eye(actions)[np.asarray(values).reshape(len(states), -1).argmax(axis=1)]


# Sessions and policies in, released values out.


@shows_nothing
def evaluate_policies(
    sessions: Sessions,
    policies: Mapping[str, AnyPolicy],
    budget: Budget,
    *,
    returns: tuple[float, float],
    discount: float = 1.0,
    per_step: bool = False,
    against: str | None = None,
    behaviour: Policy | Cells | None = None,
    confidence: float = 0.95,
    account: Account | None = None,
    simulate: int | None = None,
) -> EvaluatedPolicies:
    """Returns what each policy would have been worth to these people, with intervals; released once.

    Args:
        sessions: What people did, with rewards and a declared list of actions.
        policies: By name. A policy is a function from states, shape (states, d), to probabilities of the declared
            actions; or a published agent; or the name of an action that is always taken.
        budget: The (epsilon, delta) that the release may cost.
        returns: The range that each person's mean weighted return, over their episodes, is clipped to: declare it from
            what you know of the task.
        discount: What a reward counts for one step later.
        per_step: Whether an episode's return is divided by its number of steps.
        against: Names the policy that all others are compared with: then it is their advantage over that one which is
            clipped to the range, around 0, and released, with narrower intervals than a difference of two values has.
        behaviour: The policy by which actions were chosen, unless a column of the sessions says how probable each was.
            Public `Cells` of states have it learnt, for a tenth of the budget, as shares of actions in each cell.
        confidence: With which probability all intervals hold together.
        account: An Accountant, or a source's account in a Ledger, which is charged before the draw.
        simulate: A seed to draw from instead, for experiments: protects nobody and is not charged.

    >>> import polars
    >>> rows = polars.DataFrame({"person": range(400), "x": [0.5] * 400, "go": [0, 1] * 200, "y": [0.0, 1.0] * 200})
    >>> sessions = Sessions.read(rows, state="x", next_state=[], action="go", actions=[0, 1], reward="y", box=(0, 1),
    ...                          people=400)
    >>> coin = lambda states: [[0.5, 0.5]] * len(states)
    >>> found = evaluate_policies(sessions, {"go": "1", "stay": "0"}, Budget(1, 1e-5), returns=(-2, 2), behaviour=coin)
    >>> found["go"].low < 1 < found["go"].high, found.difference("go", "stay").low > 0
    (True, True)

    """
    mechanism = PolicyValues(
        sessions,
        policies,
        budget,
        returns=returns,
        discount=discount,
        per_step=per_step,
        against=against,
        behaviour=behaviour,
        confidence=confidence,
    )
    return release_or_simulate(mechanism, sessions, account, simulate)
