"""Functions of the caller's see people's rows only after the charge, wherever they are given.

A function that fails where somebody is tells by that where they are: what is refused and costs nothing would be a free
answer. So all entry points that take functions are walked through here. What such a function may be asked before the
charge are public points. A function of one's own, or an environment's own reward, is never shown rows at all.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest
from linear_people import read, rows_of

from quietq import (
    Accountant,
    Budget,
    BudgetExhausted,
    GaussianProcessMechanism,
    PrivateReward,
    Trajectories,
    WorldModel,
    check,
    evaluate_policies,
    people,
    privatise,
)
from quietq.feedback.cells import Cells
from quietq.feedback.sessions import Sessions
from quietq.feedback.statistic import Vector
from quietq.mechanisms.release import Mechanism, mean_of_people, release
from quietq.paper import Evaluation
from quietq.privacy import Certificate, QuietqError
from quietq.privacy.account import Issued
from quietq.worlds.planning import linear_policy

PEOPLE, HALF = 20, Budget(1.0, 1e-5)
ROWS = [rows_of(PEOPLE, steps=3, seed=seed) for seed in (1, 2)]
"""Of some people, and of others."""
COIN = {"behaviour": lambda states: np.full((len(states), 2), 0.5)}
RANGE = {"returns": (-5, 5), "budget": HALF}


class Unheard(Exception):
    pass


@dataclass
class Code:
    """A function of the caller's. It learns what it is shown whoever came by, and fails at anything else: a row."""

    answer: Callable[..., Any]
    public: set[Any] = field(default_factory=set)
    account: Accountant | None = None
    """Of the release by which it is to be shown rows; before, it learns."""
    charged: list[bool] = field(default_factory=list)
    """Whether the account was charged when it was first shown a row."""

    def __call__(self, *given: np.ndarray) -> Any:
        shown = tuple(np.asarray(one).tobytes() for one in given)
        if self.account is None:
            self.public.add(shown)
        elif shown not in self.public:
            self.charged.append(is_charged(self.account))
            raise Unheard(f"Ann is at {given}")
        return self.answer(*given)


def new_account() -> Accountant:
    return Accountant(HALF, apart=HALF)


def is_charged(account: Accountant) -> bool:
    return account.spending.spent_mu > 0 or account.spending.spent_apart[0] > 0


Entry = Callable[[pl.DataFrame, Accountant], Any]


def cells(code: Callable[..., Any]) -> Evaluation:
    return Evaluation(budget=HALF, relation=Trajectories(PEOPLE, 1.0, 9), gamma=0.5, cells=Cells(2, code))


def trajectories(rows: pl.DataFrame) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        (one.select("x", "y").to_numpy(), one["reward"].to_numpy())
        for one in rows.partition_by("who", maintain_order=True)
    ]


def evaluated(given: dict[str, Any], entry: Callable[..., Any] = evaluate_policies) -> Entry:
    asked: dict[str, Any] = {"policies": {"a": "0"}, **COIN, **RANGE, **given}
    return lambda rows, account: entry(read(rows, PEOPLE), account=account, **asked)


def planned(**known: Any) -> Entry:
    """In a world that was released before, of other people."""
    model = WorldModel(**known)
    world = privatise(read(rows_of(PEOPLE, seed=9), PEOPLE), HALF, world=model)
    plan = linear_policy(world, np.ones((3, 1)))
    return lambda rows, account: check(plan, read(rows, PEOPLE), HALF, 1.0, steps=3, account=account)


class Own(Mechanism):
    """A mechanism of somebody's own, whose statistic is code."""

    name, releases = "own", "reward"
    conditions = ()

    @classmethod
    def is_for(cls, feedback):
        return isinstance(feedback, Sessions)

    def __init__(self, code: Code, sessions: Any) -> None:
        self.relation, self.box, self.budget, self.largest, self.error = (
            sessions.relation,
            sessions.box,
            HALF,
            2.0,
            1e-9,
        )
        self.code = code

    def run(self):
        return (yield mean_of_people(OwnVector(self.code), self.people, self.budget.mu))

    def result(self, released: Any, certificate: Certificate) -> Issued:
        return Issued()


@dataclass(frozen=True, eq=False)
class OwnVector(Vector):
    code: Code
    size: int = 1
    bound: float = 1.0

    def of_people(self, starts, columns):
        return np.array([self.code(one) for one in np.split(columns["s0"], starts[1:])])


def by_own_mechanism(code: Code) -> Entry:
    def enter(rows: pl.DataFrame, account: Accountant) -> Any:
        sessions = read(rows, PEOPLE)
        return release(Own(code, sessions), sessions, account)

    return enter


def zeros(*given: np.ndarray) -> np.ndarray:
    return np.zeros(np.shape(given[0])[:-1])


def even(*given: np.ndarray) -> np.ndarray:
    return np.full((*np.shape(given[0])[:-1], 2), 0.5)


SEE_ROWS: dict[str, tuple[Callable[..., Any], Callable[[Code], Entry]]] = {
    "cells of trajectories": (zeros, lambda code: lambda rows, account: cells(code).release(
        trajectories(rows), account=account)),
    "a policy": (even, lambda code: evaluated({"policies": {"a": code}})),
    "the policy that others are compared with": (even, lambda code: evaluated(
        {"policies": {"a": "0", "b": code}, "against": "b"})),
    "a behaviour": (even, lambda code: evaluated({"behaviour": code})),
    "cells of a behaviour that is learnt": (zeros, lambda code: evaluated({"behaviour": Cells(2, code)})),
    "a known reward": (zeros, lambda code: planned(reward=code)),
    "a known end": (zeros, lambda code: planned(end=code)),
    "a known coordinate": (zeros, lambda code: planned(moves={0: code})),
    "a mechanism of one's own": (lambda column: [0.5], by_own_mechanism),
}  # fmt: skip


@pytest.mark.parametrize("where", SEE_ROWS)
def test_a_function_that_fails_at_a_row_was_paid_for_before_it_saw_one(where):
    answer, made = SEE_ROWS[where]
    code = Code(answer)
    enter = made(code)
    enter(ROWS[0], new_account())
    code.account = account = new_account()
    with pytest.raises(QuietqError) as caught:
        enter(ROWS[1], account)
    assert code.charged
    assert all(code.charged)
    assert is_charged(account)
    assert "failed with Unheard" in str(caught.value)
    assert "charged" in str(caught.value)  # it says so, too
    assert "Ann" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    with pytest.raises(BudgetExhausted):
        enter(ROWS[1], account)


class Place(gymnasium.Env):
    """Stands still; its own reward is a function of where."""

    observation_space, action_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float64), gymnasium.spaces.Discrete(2)

    def __init__(self, reward: Code) -> None:
        self.reward = reward

    def reset(self, *, seed=None, options=None):
        return np.array([0.5]), {}

    def step(self, action):
        return np.array([0.5]), float(self.reward(np.array([0.5]))), False, False, {}


def stepped(code: Code, account: Accountant) -> None:
    env = PrivateReward.of(Place(code), people(50, 0, 1, 1), HALF, account=account)
    env.reset()
    env.step(0)


BALL = people(50, 0, 1, 1)
SEE_NONE: dict[str, tuple[Callable[..., Any], Callable[[Code], Entry]]] = {
    **{f"a function of one's own, {noise}": (np.zeros_like, lambda code, noise=noise: lambda rows, account: privatise(
        code, HALF, noise=noise, relation=BALL, account=account)) for noise in ("path", "knots", "k-norm")},
    "the Gaussian process mechanism": (np.zeros_like, lambda code: lambda rows, account:
        GaussianProcessMechanism.for_relation(BALL, HALF, account=account).apply(code)),
    "an environment's own reward": (lambda state: state[0], lambda code: lambda rows, account: stepped(code, account)),
    "what is known of a world": (zeros, lambda code: lambda rows, account: privatise(
        read(rows, PEOPLE), HALF, world=WorldModel(reward=code, end=code, start=code, moves={0: code}),
        account=account)),
}  # fmt: skip


@pytest.mark.parametrize("where", SEE_NONE)
def test_other_functions_are_shown_the_same_whoever_came_by(where):
    answer, made = SEE_NONE[where]
    code = Code(answer)
    enter = made(code)
    enter(ROWS[0], new_account())
    code.account = account = new_account()
    enter(ROWS[1], account)
    assert is_charged(account)
    assert not code.charged


def test_refusals_do_not_find_out_where_somebody_is():
    """A rule that always fails, in one of two ways, would halve what is unknown of a state at every refusal."""
    somebody, low, high = float(trajectories(ROWS[0])[0][0][0, 0]), -2.0, 2.0
    account = Accountant(None, apart=Budget(2.5, 1e-4))

    def compares_with(middle: float) -> Callable[[np.ndarray], np.ndarray]:
        def rule(states: np.ndarray) -> np.ndarray:
            if np.isclose(states[0, 0], somebody):
                raise KeyError if states[0, 0] > middle else ValueError
            return np.zeros(len(states))

        return rule

    for _ in range(20):
        middle = (low + high) / 2
        with pytest.raises(QuietqError) as caught:
            cells(compares_with(middle)).release(trajectories(ROWS[0]), account=account)
        if "KeyError" in str(caught.value):
            low = middle
        elif "ValueError" in str(caught.value):
            high = middle
    assert high - low == 1.0  # two answers, both of them paid for
    assert account.spending.spent_apart == pytest.approx((2.0, 2e-5))


def test_rules_that_are_not_code_cost_nothing_where_they_do_not_fit():
    """Nobody's function saw anything, so that what is refused at once is refused for nothing."""
    account = new_account()
    ours = Evaluation(budget=HALF, relation=Trajectories(PEOPLE, 1.0, 9), gamma=0.5, cells=Cells.states(2))
    with pytest.raises(QuietqError, match="one number for each state"):
        ours.release(trajectories(ROWS[0]), account=account)
    assert not is_charged(account)
