import copy
import math
import multiprocessing
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import Autoreset, RecordEpisodeStatistics

from quietq.mechanisms import GaussianProcessMechanism
from quietq.noise.rounding import rounding_step
from quietq.privacy import (
    Accountant,
    Budget,
    BudgetExhausted,
    Exponential,
    InvalidInput,
    LipschitzBall,
    PrivacyWarning,
    QuietqError,
    Relation,
    RkhsBall,
    SupBall,
    people,
)
from quietq.worlds.own_reward import OwnReward
from quietq.worlds.private_reward import PrivateReward

BUDGET = Budget(0.9, 1e-4)
BALL = people(50, 0, 0.5, 1)


class Line(gymnasium.Env):
    """Visits the given states in turn; its reward is a function of the step, of the state and of the action."""

    def __init__(
        self,
        states: list[float],
        reward: Callable[[int, float, int], Any] = lambda t, s, a: 0.5 - abs(s - 0.5),
        dtype: type = np.float64,
    ) -> None:
        self.observation_space = Box(0.0, 1.0, (1,), dtype)
        self.action_space = Discrete(2)
        self.states, self.reward, self.t, self.dtype = states, reward, 0, dtype

    def _observation(self) -> np.ndarray:
        return np.array([self.states[self.t % len(self.states)]], self.dtype)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.t = 0
        return self._observation(), {"reward": 1.0}

    def step(self, action: Any) -> tuple[np.ndarray, Any, bool, bool, dict]:
        before = float(self._observation()[0])
        self.t += 1
        reward = self.reward(self.t, float(self._observation()[0]), action)
        return self._observation(), reward, self.t >= len(self.states), False, {"raw": reward, "at": before}


def run(env: OwnReward, steps: int, action: int = 0) -> np.ndarray:
    return np.array([env.step(action)[1] for _ in range(steps)])


def test_a_state_keeps_its_value_whatever_the_reward_does() -> None:
    env = PrivateReward.of(Line([0.2, 0.7], reward=lambda t, s, a: float(t)), BALL, BUDGET)
    assert env.reset()[1] == {}
    rewards = run(env, 10)
    assert len(set(rewards.tolist())) == 2
    env.reset()
    assert np.array_equal(run(env, 10), rewards)
    assert env.step(0)[4] == {}


def test_the_noise_has_the_path_s_law() -> None:
    # With beta = 40,000, clusters of states that lie 1/400 apart are independent: one path is 400 samples.
    ball, clusters = LipschitzBall(radius=0.01, lipschitz=400.0), 400
    offsets = np.linspace(0, 1e-4, 6)
    states = (np.arange(clusters)[:, None] / clusters + offsets).ravel()
    env = PrivateReward.of(Line(states.tolist(), lambda t, s, a: 3.0), ball, BUDGET)
    env.reset()
    noises = np.roll(run(env, len(states)), 1).reshape(clusters, 6) - 3.0
    sigma, beta = env.certificate.sigma, ball.best_beta()
    assert sigma == pytest.approx(ball.rkhs_radius(Exponential(beta)) / BUDGET.mu, rel=3e-6)
    assert sigma is not None
    expected = sigma**2 * np.exp(-beta * abs(offsets[:, None] - offsets))
    # A sample covariance has a standard deviation of at most sqrt(2/n) sigma^2 an entry; 6 of them are p < 1e-8.
    assert abs(noises.T @ noises / clusters - expected).max() < 6 * math.sqrt(2 / clusters) * sigma**2


def test_values_are_rounded_and_the_certificate_adds_up() -> None:
    env = PrivateReward.of(Line(np.linspace(0, 1, 50).tolist()), BALL, BUDGET)
    env.reset()
    sigma = env.certificate.sigma
    assert sigma is not None
    steps = run(env, 50) / rounding_step(sigma)
    assert np.array_equal(steps, np.rint(steps))
    certificate = env.certificate
    assert (certificate.standing, certificate.mu) == ("certified", BUDGET.mu)
    declared = certificate.assumptions[0]
    assert "is a function of the state" in declared.text
    assert not declared.enforced


def test_a_path_is_of_states_alone() -> None:
    with pytest.raises(InvalidInput, match="on must be 'next-state' or 'state'"):
        PrivateReward.of(Line([0.2]), BALL, BUDGET, on="state-action")
    env = PrivateReward.of(Line([0.2]), SupBall(0.01), BUDGET, on="state-action", rewards=3)
    assert "(here: state-action)" in env.certificate.assumptions[0].text


def test_the_state_before_and_the_box() -> None:
    env = PrivateReward.of(Line([0.2, 0.7, 0.4], lambda t, s, a: 0.0), BALL, BUDGET, on="state")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset()
    first = env.step(0)[1]
    run(env, 2)
    assert env.step(0)[1] == first
    narrow = PrivateReward.of(Line([0.1, 0.5], dtype=np.float32), BALL, BUDGET, box=(0, 0.1))
    narrow.reset()
    with pytest.raises(InvalidInput, match=r"value 0\.5, outside the reward's box \[0, 0\.1\]"):
        narrow.step(0)
    narrow.step(0)  # float32's 0.1 is a hair above 0.1
    with pytest.raises(InvalidInput, match="give the reward's `box`"):
        PrivateReward.of(Line([0.1]), BALL, BUDGET, state=lambda batch: batch)


def test_neighbouring_numbers_have_neighbouring_noise() -> None:
    near = np.nextafter(0.5, 1.0)
    env = PrivateReward.of(Line([0.5, near], lambda t, s, a: 0.0), BALL, BUDGET)
    env.reset()
    a, b = run(env, 2)
    assert abs(a - b) < 1e-6


def test_sup_ball_counts_and_draws_afresh() -> None:
    n, ball = 1000, SupBall(0.01)
    seen = []
    env = PrivateReward.of(Line([0.5], lambda t, s, a: seen.append(t) or 0.25), ball, BUDGET, rewards=n)
    env.reset()
    rewards = run(env, n)
    with pytest.raises(BudgetExhausted, match="All 1000 rewards"):
        env.step(0)
    assert len(seen) == n  # the environment was not even asked
    sigma = 0.01 * math.sqrt(n) / BUDGET.mu
    (query,) = env.certificate.queries
    assert (query.size, query.sensitivity) == pytest.approx((sigma, 0.01 * math.sqrt(n)))
    assert env.certificate.sigma == query.size
    assert "assumed to be ideal" not in str(env.certificate)  # it is drawn exactly
    noise = (rewards - 0.25) / sigma
    assert abs(noise.mean()) < 6 / math.sqrt(n)
    assert abs(noise.var() - 1) < 6 * math.sqrt(2 / n)
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 6 / math.sqrt(n)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "12345.678", None, 10**400])
def test_bad_rewards_cost_nothing(bad: Any) -> None:
    cases: list[tuple[Relation, dict[str, Any]]] = [(BALL, {}), (SupBall(0.01), {"rewards": 1})]
    for relation, more in cases:
        ledger = Accountant(BUDGET)
        env = PrivateReward.of(
            Line([0.3, 0.6], lambda t, s, a: bad if t == 1 else 0.1), relation, BUDGET, account=ledger, **more
        )
        env.reset()
        with pytest.raises(InvalidInput, match="finite number") as caught:
            env.step(0)
        assert "12345" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert ledger.spending.spent_mu == 0
        env.step(0)
        assert ledger.spending.spent_mu == pytest.approx(BUDGET.mu)


def test_the_ledger_is_charged_once_before_the_first_draw() -> None:
    ledger = Accountant(BUDGET)
    env = PrivateReward.of(Line([0.3, 0.6]), BALL, BUDGET, account=ledger)
    env.reset()
    assert ledger.spending.spent_mu == 0
    run(env, 5)
    assert ledger.spending.spent_mu == pytest.approx(BUDGET.mu)
    second = PrivateReward.of(Line([0.3, 0.6]), BALL, BUDGET, account=ledger)
    second.reset()
    for _ in range(2):
        with pytest.raises(BudgetExhausted):
            second.step(0)


def _step_in_child(env: OwnReward, answer: Any) -> None:
    try:
        env.step(0)
    except BudgetExhausted as error:
        answer.send(str(error))
    else:
        answer.send("stepped")


@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")
def test_it_is_one_object_in_one_process() -> None:
    env = PrivateReward.of(Line([0.3, 0.6]), BALL, BUDGET)
    env.reset()
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not copied or pickled"):
            duplicate(env)
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    child = fork.Process(target=_step_in_child, args=(env, there))
    child.start()
    assert here.poll(30)
    assert "made private in another process" in here.recv()
    child.join()


def test_what_cannot_be_covered_is_refused() -> None:
    kernel = Exponential(1.0)
    line = Line([0.3])
    cases: list[tuple[Any, Relation, dict[str, Any], str]] = [
        (line, RkhsBall(1.0, kernel.norm), {}, "privatise the function"),
        (SyncVectorEnv([lambda: line]), BALL, {}, "wrap a single environment"),
        (RecordEpisodeStatistics(line), BALL, {}, "put it on top"),
        (Autoreset(line), BALL, {}, "hides where episodes begin: put it on top"),
        (line, SupBall(0.1), {}, "say with `rewards` how many"),
        (line, SupBall(0.1), {"rewards": 5, "state": 0}, "leave `state` and `box` out"),
        (line, BALL, {"rewards": 5}, "any number of them is covered"),
        (line, BALL, {"box": [(0, 1), (0, 1)]}, "one dimension"),
        (line, BALL, {"on": "reward"}, "on must be one of"),
    ]
    for env, relation, more, sentence in cases:
        with pytest.raises(InvalidInput, match=sentence):
            PrivateReward.of(env, relation, BUDGET, **more)
    with pytest.raises(InvalidInput, match="pure budget"):
        PrivateReward.of(line, BALL, Budget(1.0, 0.0))
    with pytest.warns(PrivacyWarning, match="delta"):
        PrivateReward.of(line, BALL, Budget(1.0, 0.1))


def test_agrees_with_the_function_s_release_in_noise() -> None:
    mechanism = GaussianProcessMechanism.for_relation(BALL, BUDGET)
    env = PrivateReward.of(Line([0.3]), BALL, BUDGET)
    assert env.certificate.sigma == pytest.approx(mechanism.sigma, rel=3e-6)
    assert env.certificate.relation == LipschitzBall(0.01, 0.04, people=50)


RAW: dict[str, Any] = {"finite number": "12345.678", "less exact": np.float32(12345.678)}


@pytest.mark.parametrize("wrong", ["outside", "finite number", "less exact", "more than what is left"])
def test_a_traceback_does_not_show_the_raw_reward(wrong: str) -> None:
    account = Accountant(Budget(0.1, 1e-4)) if wrong == "more than what is left" else None
    box = (0, 0.2) if wrong == "outside" else (0, 1)
    line = Line([0.1, 0.3], lambda t, s, a: RAW.get(wrong, 12345.678))
    env = PrivateReward.of(line, BALL, BUDGET, box=box, account=account)
    env.reset()
    with pytest.raises(QuietqError, match=wrong) as caught:
        env.step(0)
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "12345.6" not in shown


def test_flags_in_info_are_flags():
    from quietq.worlds.guards import scrub

    info = {"TimeLimit.truncated": 12345.678, "_final_obs": 12345.678, "_final_info": np.array([True])}
    assert set(scrub(info)) == {"_final_info"}
