"""The walk: its contract with Gymnasium, and its exact returns against closed forms and Monte Carlo."""

import math

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from quietq import Budget, GaussianProcessMechanism, InvalidInput, PrivateReward, people
from quietq.worlds import (
    WALK,
    WorldEnv,
    best_return,
    plan,
    policy_return,
    random_return,
    score,
    walk_reward,
    worst_return,
)

BEST = 497 / 24
"""|s - 1/2| of the best policy tends to a triangular law of mean 1/12, and the way there costs 1/8: 50 * 5/12 - 1/8."""


def uphill(states):
    return (states < 0.5).astype(int)


def at_random(states):
    return np.full((len(states), 2), 0.5)


def steep(states):
    return np.full((len(states), 2), [0.2, 0.8])


def episode(env, act, **reset):
    observation, _ = env.reset(**reset)
    observations, rewards, truncated = [observation], [], False
    while not truncated:
        observation, reward, terminated, truncated, info = env.step(act(observation))
        assert not terminated
        assert info == {}
        observations.append(observation)
        rewards.append(reward)
    return np.concatenate(observations), np.array(rewards)


def test_gymnasium_accepts_it():
    env = gymnasium.make("quietq.worlds:quietq/Walk-v0")
    check_env(env.unwrapped, skip_render_check=True)
    assert env.observation_space == gymnasium.spaces.Box(0, 1, (1,), np.float32)
    assert env.action_space == gymnasium.spaces.Discrete(2)


@pytest.mark.parametrize(
    "env", [WorldEnv("walk"), gymnasium.make("quietq.worlds:quietq/Walk-v0")], ids=["bare", "made"]
)
def test_an_episode_has_exactly_fifty_steps(env):
    for seed in (1, None):
        _, rewards = episode(env, lambda _: 0, seed=seed)
        assert len(rewards) == WALK.steps == 50
    with pytest.raises(ResetNeeded, match="over after 50 steps"):
        env.step(0)


def test_a_seed_decides_everything():
    env, other = WorldEnv("walk"), WorldEnv("walk")
    runs = [episode(e, lambda o: int(o[0] < 0.5), seed=seed)[0] for e, seed in ((env, 3), (other, 3), (env, 4))]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).any()
    following = [episode(e, lambda _: 1)[0] for e in (env, env)]
    assert (following[0] != following[1]).any()


def test_the_reward_is_a_function_of_the_observation_returned():
    private = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), Budget(0.9, 1e-4)).simulate(walk_reward, 1)
    plain = gymnasium.make("quietq.worlds:quietq/Walk-v0")
    for reward, env in ((walk_reward, plain), (private, PrivateReward(plain, private))):
        observations, rewards = episode(env, lambda o: int(o[0] < 0.5), seed=5)
        assert observations.dtype == np.float32
        assert (rewards == reward(observations[1:].astype(float))).all()


def test_moves_are_uniform_to_the_side_and_clipped_at_the_ends():
    env = WorldEnv("walk")
    env.reset(seed=1)
    for action, sign in ((0, -1), (1, 1)):
        moves = []
        for _ in range(400):
            env.reset()
            env._state = np.array([0.5])
            (after,), *_ = env.step(action)
            moves.append(sign * (float(after) - 0.5))
        assert 0 <= min(moves) < 0.02
        assert 0.23 < max(moves) <= 0.25 + 1e-7
        assert np.mean(moves) == pytest.approx(0.125, abs=6 * 0.25 / math.sqrt(12 * 400))
        env.reset()
        env._state = np.array([0.0 if action == 0 else 1.0])
        (end,), reward, *_ = env.step(action)
        assert end == (0.0 if action == 0 else 1.0)
        assert reward == 0.0


def test_the_internal_state_is_not_rounded():
    env = WorldEnv("walk")
    (seen,), _ = env.reset(seed=1)
    assert seen == np.float32(env._state[0])
    assert seen != env._state[0]


def test_exact_returns():
    assert best_return() == pytest.approx(BEST, abs=1e-4)
    assert worst_return() == pytest.approx(0.26342, abs=1e-5)
    assert random_return() == pytest.approx(10.86059, abs=1e-5)
    assert score(at_random) == pytest.approx(0.51833, abs=1e-5)
    assert score(uphill) == pytest.approx(1, abs=1e-9)
    assert score(lambda s: 1 - uphill(s)) == pytest.approx(0, abs=1e-9)


def test_returns_of_any_reward():
    assert best_return(lambda s: 0 * s + 2) == pytest.approx(100)
    assert worst_return(lambda s: -walk_reward(s)) == pytest.approx(-best_return())
    assert best_return(lambda s: 3 * walk_reward(s) + 1) == pytest.approx(3 * best_return() + 50)
    assert random_return(lambda s: s) == pytest.approx(25)  # by symmetry
    assert score(uphill, lambda s: 0.5 - walk_reward(s)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("returned", [best_return, worst_return, random_return, lambda **k: policy_return(steep, **k)])
def test_second_order_convergence(returned):
    coarse, middle, fine = (returned(cells=cells) for cells in (64, 256, 1024))
    assert (coarse - middle) / (middle - fine) == pytest.approx(16, rel=0.1)


def test_the_best_return_is_the_closed_form_in_the_limit():
    assert (4 * best_return(cells=1024) - best_return(cells=512)) / 3 == pytest.approx(BEST, abs=1e-9)


def test_a_jump_off_the_grid_converges_too():
    exact = policy_return(lambda s: s < 0.37, cells=2**15)
    assert policy_return(lambda s: s < 0.37) == pytest.approx(exact, abs=0.02)
    assert policy_return(lambda s: s < 0.37, cells=2**13) == pytest.approx(exact, abs=0.005)


@pytest.mark.parametrize(
    ("policy", "act"),
    [
        (uphill, lambda s, rng: int(s < 0.5)),
        (lambda s: s < 0.37, lambda s, rng: int(s < 0.37)),
        (at_random, lambda s, rng: int(rng.random() < 0.5)),
        (steep, lambda s, rng: int(rng.random() < 0.8)),
    ],
    ids=["uphill", "threshold", "random", "steep"],
)
def test_monte_carlo_agrees(policy, act):
    rng, env = np.random.default_rng(0), WorldEnv("walk")
    env.reset(seed=11)
    returns = [episode(env, lambda o: act(float(o[0]), rng))[1].sum() for _ in range(150)]
    assert np.mean(returns) == pytest.approx(policy_return(policy), abs=5.5 * float(np.std(returns)) / math.sqrt(150))


def test_plans():
    crooked, best = plan(lambda s: np.sin(7 * s)), best_return(lambda s: np.sin(7 * s))
    assert crooked.shape == (50, 2049)
    assert policy_return(crooked, lambda s: np.sin(7 * s)) == pytest.approx(best)
    assert policy_return(crooked[0], lambda s: np.sin(7 * s)) <= best  # what is best at first, at every step
    # the last step is myopic: worth it or not, it goes where the next reward is larger
    last = crooked[-1]
    states = np.linspace(0, 1, 2049)
    assert last[states < 0.05].all()
    assert not last[(states > 0.3) & (states < 0.5)].any()
    assert plan(walk_reward)[0][[205, 1843]].tolist() == [1, 0]
    assert score(plan(walk_reward, cells=64), cells=64) == pytest.approx(1, abs=1e-3)


def test_a_private_reward_is_planned_on_and_scored_under_the_true_one():
    mechanism = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), Budget(0.9, 1e-4), levels=11)
    scores = [score(plan(mechanism.simulate(walk_reward, seed))) for seed in range(20)]
    assert 0.96 < np.mean(scores) < 1  # 0.987 in the mean


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: best_return(lambda s: 1.0), "reward must be a function of many states"),  # type: ignore[arg-type]
        (lambda: best_return(lambda s: s * math.nan), "one finite number for each"),
        (lambda: stepped(2), r"action must be 0 \(left\) or 1 \(right\), not 2"),
        (lambda: stepped(0.5), "action must be 0"),
        (lambda: best_return(cells=6), "cells must be a multiple of 4"),
        (lambda: best_return(cells=0), "cells must be a whole number of at least 4"),
        (lambda: score(uphill, lambda s: 0 * s + 1), "all policies are alike"),
        (lambda: policy_return(np.zeros(7)), "policy must give an action, 0 to 1, or a row"),
        (lambda: policy_return(lambda s: 2 + 0 * s), "policy must give an action, 0 to 1, or a row"),
        (lambda: policy_return(np.zeros((49, 2049))), "policy must give an action, 0 to 1, or a row"),
        (lambda: policy_return(lambda s: np.ones((len(s), 2))), "1 in sum for each state"),
        (lambda: policy_return(lambda s: np.full((len(s), 2), [-1, 2])), "1 in sum for each state"),
        (lambda: policy_return(lambda s: np.full((len(s), 2), math.nan)), "1 in sum for each state"),
    ],
)
def test_wrong_arguments_get_one_clear_sentence(wrong, sentence):
    with pytest.raises(InvalidInput, match=sentence) as caught:
        wrong()
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def stepped(action):
    env = WorldEnv("walk")
    env.reset(seed=0)
    return env.step(action)


def test_reset_comes_first():
    with pytest.raises(ResetNeeded, match="has not begun"):
        WorldEnv("walk").step(0)
