"""Returns by Monte Carlo against exact ones and against Gymnasium's own loop; references and plans."""

import math

import numpy as np
import pytest
from leaving_world import LEAVE, LeavingWorld

from quietq import Budget, GaussianProcessMechanism, InvalidInput
from quietq.worlds import (
    WORLDS,
    NavigationWorld,
    ThermostatWorld,
    WalkWorld,
    WorldEnv,
    best_return,
    episode_returns,
    find_world,
    mean_return,
    normalise,
    plan_on_grid,
    policy_return,
    random_return,
    reference,
    uniform_policy,
)

EVERY = pytest.mark.parametrize("world", [find_world(name) for name in WORLDS], ids=list(WORLDS))
REFERENCES = {"walk": (10.86, 20.71), "thermostat": (18.8, 40.7), "navigation": (20.3, 34.7)}


@pytest.mark.parametrize(
    ("policy", "exact"),
    [
        (uniform_policy(WalkWorld()), random_return()),
        (lambda s: s[:, 0] < 0.5, best_return()),
        (lambda s: np.full((len(s), 2), [0.2, 0.8]), policy_return(lambda s: np.full((len(s), 2), [0.2, 0.8]))),
    ],
    ids=["random", "uphill", "steep"],
)
def test_the_walks_exact_returns(policy, exact):
    found = episode_returns(WalkWorld(), policy, episodes=4000)
    assert found.mean() == pytest.approx(exact, abs=6 * found.std() / math.sqrt(4000))


@EVERY
def test_gymnasiums_loop_agrees(world):
    env, totals = WorldEnv(world), []
    env.reset(seed=5)
    env.action_space.seed(5)
    for _ in range(36):
        env.reset()
        total, over = 0.0, False
        while not over:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            total, over = total + reward, terminated or truncated
        totals.append(total)
    error = float(np.std(totals)) / 6
    assert np.mean(totals) == pytest.approx(mean_return(world, uniform_policy(world)), abs=5.5 * error)


@EVERY
def test_the_best_known_policy_is_far_better_than_chance_and_than_any_one_action(world):
    random, best = reference(world)
    assert (random, best) == pytest.approx(REFERENCES[world.name], abs=0.35)
    single = max(mean_return(world, lambda s, a=a: np.full(len(s), a), episodes=400) for a in range(world.actions))
    assert normalise(world, single) < 0.65
    assert normalise(world, random) == 0
    assert normalise(world, best) == 1
    assert reference(world) is reference(type(world)())  # computed once


def test_grids_converge_and_agree_with_the_walks_exact_returns():
    plan = plan_on_grid(WalkWorld())
    assert plan.values[0].max(axis=0).mean() == pytest.approx(best_return(), abs=2e-3)
    world = NavigationWorld()
    coarse, fine = (mean_return(world, plan_on_grid(world, cells=cells)) for cells in (20, 60))
    assert coarse == pytest.approx(fine, abs=0.1)
    # it crosses the valley from the low peak at the start of an episode, and stays at its end
    valley, plan = np.array([[0.25, 0.35]]), plan_on_grid(world)
    assert plan.at(0, valley) == plan(valley) == 1
    assert plan.at(world.steps - 2, valley) == 0


def test_nothing_simple_beats_the_best_known():
    thermostat = ThermostatWorld()
    _, best = reference(thermostat)
    for threshold in np.linspace(20, 27, 8):
        assert mean_return(thermostat, lambda s, t=threshold: np.where(s[:, 0] < t, 2, 0)) < best + 0.02


def test_plans_on_a_private_reward_are_scored_under_the_true_one():
    budget = Budget(0.9, 1e-4)
    for world, people in ((ThermostatWorld(), 200), (NavigationWorld(), 400)):
        mechanism = GaussianProcessMechanism.for_relation(world.relation(people), budget, domain=world.box, levels=11)
        private = mechanism.simulate(world.mean_reward(), 1)
        assert 0.8 < normalise(world, mean_return(world, plan_on_grid(world, private))) <= 1


def test_a_reward_may_replace_the_worlds_own():
    world = ThermostatWorld()
    assert mean_return(world, uniform_policy(world), lambda s: 0 * s + 2, episodes=10) == 2 * world.steps
    left = mean_return(LeavingWorld(), uniform_policy(LeavingWorld()), lambda s: np.ones(len(s)))
    assert left == pytest.approx((1 - (1 - LEAVE) ** 50) / LEAVE, abs=2.5)  # the mean length of an episode


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: mean_return(WalkWorld(), lambda s: 2 + 0 * s[:, 0]), "0 to 1, or a row of 2 probabilities"),
        (lambda: mean_return(WalkWorld(), lambda s: s), "0 to 1, or a row of 2 probabilities"),
        (lambda: mean_return(WalkWorld(), lambda s: np.ones((len(s), 2))), "1 in sum for each state"),
        (lambda: mean_return(WalkWorld(), uniform_policy(WalkWorld()), episodes=0), "episodes must be"),
        (lambda: plan_on_grid(LeavingWorld()), "at most 2 dimensions"),
        (lambda: normalise(ThermostatWorld(power=1e-12), 1.0), "all policies are alike"),
    ],
)
def test_wrong_arguments_get_one_clear_sentence(wrong, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        wrong()
