"""The agent: its verbs and its promise."""

import jax
import numpy as np
import pytest
from agent_cases import BUDGET, FIFTY, POINTS, SMALL, SPENDERS, STEPS, answers, private

from quietq import Accountant, Budget, BudgetExhausted, InvalidInput, SupBall, privatise
from quietq.noise import Box
from quietq.paper import InputNoise, Published, ValueNoise
from quietq.paper.agents import Agent, EnvironmentSpaces, NoNoise, RewardNoise, trainer
from quietq.worlds import WALK

MOSTLY_SLOW = [name if name == "output" else pytest.param(name, marks=pytest.mark.slow) for name in SPENDERS]


@pytest.mark.slow
def test_the_design_page_example():
    agent = Agent("quietq/Walk-v0", method=RewardNoise(private(), **SMALL))
    assert agent.learn(300, seeds=3) is agent
    assert agent.members == 3
    action, state = agent.predict([0.5])
    assert action in (0, 1)
    assert state is None
    assert agent.predict(POINTS)[0].shape == (9,)
    assert agent.q_values([0.5]).shape == (2,)
    np.testing.assert_allclose(agent.q_values(POINTS), answers(agent).mean(axis=0), rtol=1e-6)
    assert agent.certificate.standing == "certified"
    assert agent.certificate.epsilon == 0.9
    assert agent.not_private == {}  # its learning curve is of the private reward


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(lambda: NoNoise(**SMALL), marks=pytest.mark.slow, id="none"),
        pytest.param(lambda: RewardNoise(private(3), **SMALL), id="reward"),
    ],
)
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(kind):
    method = kind()
    first, again, other = (answers(Agent("walk", method, seed=seed).learn(300, seeds=2)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.isclose(first, other).any()
    assert not np.isclose(first[0], first[1]).any()


@pytest.mark.parametrize("name", SPENDERS)
def test_noise_that_protects_is_new_each_time_whatever_the_seed(name):
    first, second = (Agent("walk", SPENDERS[name](), seed=1).learn(STEPS) for _ in range(2))
    assert not np.array_equal(answers(first), answers(second))
    assert first.certificate.standing == "certified"
    assert first.certificate == second.certificate
    assert len(first.not_private["episode_returns"][0]) == 4


@pytest.mark.parametrize("name", MOSTLY_SLOW)
def test_simulated_noise_is_repeatable_and_promises_nothing(name):
    first, second = (Agent("walk", SPENDERS[name](), seed=1).learn(200, simulate=2, seeds=2) for _ in range(2))
    np.testing.assert_array_equal(answers(first), answers(second))
    assert first.members == 4
    assert first.certificate.standing == "none"
    assert first.certificate.reproducible
    with pytest.raises(InvalidInput, match="name the member"):
        first.q_values(POINTS)


@pytest.mark.parametrize("name", SPENDERS)
def test_a_second_training_would_be_a_second_release(name):
    agent = Agent("walk", SPENDERS[name](), account=(account := Accountant(BUDGET)))
    with pytest.raises(InvalidInput, match="seeds must be 1"):
        agent.learn(STEPS, seeds=2)
    assert account.spending.spent_mu == 0
    agent.learn(STEPS)
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)
    with pytest.raises(BudgetExhausted):
        agent.learn(STEPS)
    with pytest.raises(BudgetExhausted):
        Agent("walk", SPENDERS[name](), account=account).learn(STEPS)


def test_a_training_that_goes_on_piece_by_piece_has_the_same_bits():
    """As attacks do, which look on in between."""
    whole = Agent("walk", NoNoise(**SMALL), seed=1).learn(STEPS)
    training = Agent("walk", NoNoise(**SMALL), seed=1).check(STEPS)
    core, runs = training.method.core(), trainer.Runs(training.keys(), training.rewards(), None)
    carry = trainer.begin(core, WALK, runs)
    for first in range(0, STEPS, STEPS // 4):
        carry, _ = trainer.advance(core, WALK, runs, carry, first, STEPS // 4)
    for one, other in zip(*map(jax.tree.leaves, (whole.released, trainer.release(core, runs, carry))), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_any_world():
    agent = Agent("navigation", ValueNoise(relation=SupBall(0.01), budget=BUDGET, knots=4)).learn(200)
    assert agent.q_values([[0.5, 0.5]]).shape == (1, 4)
    assert len(agent.evaluate(episodes=20).returns) == 1


def test_boxes_that_differ_in_late_digits_are_shown_to_differ():
    box = Box.of((0, float(np.float32(0.1))))
    one = privatise(lambda s: s, Budget(1, 1e-5), relation=FIFTY, domain=(0, 0.1))
    with pytest.raises(InvalidInput, match=r"on \[0, 0\.1\], but states lie in \[0, 0\.100000001\d*\]"):
        RewardNoise(one).check(EnvironmentSpaces(box, 2, 10), 1000)


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda: Agent("walk", NoNoise()).learn(100), "steps must be at least 128, the start of learning"),
        (lambda: Agent("walk", RewardNoise(private(1))).learn(100), "or nothing is learned"),
        (lambda: Agent("moon", NoNoise()), "quietq has walk"),
        (lambda: Agent("walk", NoNoise()).learn(0), "steps must be"),
        (lambda: Agent("walk", NoNoise(gamma=1.5)), "gamma must lie between 0 and 1, not 1.5"),
        (lambda: Agent("walk", NoNoise(optimiser="adamm")), "optimiser must be one of adam, adamw"),
        (lambda: Agent("walk", ValueNoise()).learn(100), "needs a relation and a budget"),
        (
            lambda: Agent("walk", InputNoise(relation=FIFTY, budget=Budget(1.0, 0.0))).learn(100),
            "delta must be above 0",
        ),
        (lambda: Agent("walk", RewardNoise()).learn(200), "needs a private reward"),
        (lambda: Agent("thermostat", RewardNoise(private(1))).learn(100), "states lie in"),
        (lambda: Agent("walk", RewardNoise([private(), private()])).learn(100), "only simulated ones"),
        (lambda: Agent("walk", RewardNoise(private(1))).learn(100, simulate=2), "give 'reward' simulated rewards"),
        (lambda: Agent("navigation", Published.code()).learn(100), "one coordinate"),
    ],
)
def test_wrong_input_is_told_in_a_sentence(attempt, words):
    with pytest.raises(InvalidInput, match=words):
        attempt()


def test_an_untrained_agent_says_so():
    with pytest.raises(InvalidInput, match="call learn first"):
        Agent("walk", NoNoise()).predict([0.5])
