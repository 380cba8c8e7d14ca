"""Plays that are compiled, or in blocks, have the regret of the policies themselves, step by step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rich")
from benchmarks import bandit_plays
from quietq import Budget
from quietq.online import Elimination, Episodes, Linear, LocalUCB, TreeUCB

MEANS = np.array([0.9, 0.6, 0.3])
PURE = Budget(4.0, 0.0)
T = 256


def stepped(make: Callable[[int], Any], runs: int) -> np.ndarray:
    """The regret of each run, with answers learned at once."""
    generator, regret = np.random.default_rng(9), np.zeros(runs)
    for run in range(runs):
        policy = make(run)
        for _ in range(T):
            arm = policy.choose()
            reward: Any = float(generator.random() < MEANS[arm])
            policy.learn(None, arm, policy.report(reward) if isinstance(policy, LocalUCB) else reward)
            regret[run] += MEANS.max() - MEANS[arm]
    return regret


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Means within six standard errors."""
    error = np.hypot(one.std() / np.sqrt(len(one)), other.std() / np.sqrt(len(other)))
    return bool(abs(one.mean() - other.mean()) < 6 * error)


def test_episodes_in_blocks_are_those_step_by_step() -> None:
    generator = np.random.default_rng(3)
    blocks = [bandit_plays.in_blocks(Episodes(3, PURE, simulate=s), MEANS, T, generator) for s in range(150)]
    assert alike(np.array(blocks), stepped(lambda seed: Episodes(3, PURE, simulate=seed + 1000), 60))


def usual_end(name: str, epsilon: float) -> tuple[int, float]:
    """Of elimination: the epoch after which one arm is left in most of 20 runs, and the regret of those."""
    means, arrivals, generator = bandit_plays.arms_of(name), 10**8, np.random.default_rng(2)
    policies = [Elimination(len(means), Budget(epsilon, 0.0), arrivals=arrivals, simulate=s) for s in range(20)]
    regret = np.array([bandit_plays.in_blocks(policy, means, arrivals, generator) for policy in policies])
    last = np.array([policy.state.epoch - 1 for policy in policies])
    usual = int(np.median(last))
    assert all(policy.state.left.sum() == 1 for policy in policies)
    assert np.mean(last == usual) > 0.7
    return usual, float(regret[last == usual].mean())


@pytest.mark.parametrize(
    ("name", "epsilons", "ends"),
    [("two arms", (0.00125, 0.0025, 0.02), (3, 3, 4)), ("sixteen arms", (0.00015, 0.0003, 0.02), (1, 1, 2))],
)
def test_elimination_costs_as_one_over_epsilon_while_its_last_epoch_is_the_same(
    name: str, epsilons: tuple[float, ...], ends: tuple[int, ...]
) -> None:
    """With less noise it needs an epoch more: over epsilons between which that changes, the power is below 1."""
    found = [usual_end(name, epsilon) for epsilon in epsilons]
    cost = [regret * epsilon for (_, regret), epsilon in zip(found, epsilons, strict=True)]
    assert tuple(last for last, _ in found) == ends
    assert cost[0] == pytest.approx(cost[1], rel=0.01)
    assert cost[2] > 2 * cost[1]


class UCB:
    """Upper confidence bounds, step by step."""

    def __init__(self, arms: int, exploration: float = 1.1) -> None:
        self.exploration = exploration
        self.answers, self.sums = np.zeros((2, arms))

    def choose(self) -> int:
        n = np.maximum(self.answers, 1)
        level = self.exploration * np.log(max(self.answers.sum(), 1))
        bounds = self.sums / n + np.sqrt(level / (2 * n))
        return int(np.argmax(np.where(self.answers > 0, bounds, np.inf)))

    def learn(self, context: object, arm: int, reward: float) -> None:
        self.answers[arm] += 1
        self.sums[arm] += reward


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "played"),
    [
        (lambda seed: UCB(3), lambda: bandit_plays.ucb(MEANS, T, 400, 0)),
        (lambda seed: LocalUCB(3, PURE, simulate=seed), lambda: bandit_plays.local(MEANS, T, 400, 0, 4.0)),
        (
            lambda seed: TreeUCB(3, PURE, arrivals=T, simulate=seed),
            lambda: bandit_plays.tree(MEANS, T, 400, 0, 4.0, 1.0, 1.0),
        ),
    ],
    ids=["ucb", "local", "tree"],
)
def test_compiled_plays_are_those_of_the_policies(make: Callable[[int], Any], played: Callable[[], np.ndarray]) -> None:
    assert alike(played(), stepped(make, 200))


@pytest.mark.slow
def test_linear_plays_are_those_of_the_policies_in_batches() -> None:
    arms, d, batch, arrivals = bandit_plays.LINEAR_ARMS, 3, bandit_plays.BATCH, 320

    def make(seed: int) -> Any:
        return Linear(arms, Budget(20.0, 1e-5), dimension=d, arrivals=arrivals, simulate=seed, width=0.3)

    generator, regret = np.random.default_rng(4), np.zeros(60)
    for run in range(len(regret)):
        policy, theta = make(run), generator.normal(size=d)
        theta /= 2 * np.linalg.norm(theta)
        for _ in range(arrivals // batch):
            rows = generator.normal(size=(batch, arms, d))
            rows /= np.linalg.norm(rows, axis=2, keepdims=True)
            shown = [policy.choose(context) for context in rows]
            value = np.array([rows[i, arm] @ theta for i, arm in enumerate(shown)])
            regret[run] += ((rows @ theta).max(axis=1) - value).sum()
            policy.learn_batch(rows, shown, (generator.random(batch) < 0.5 + value).astype(float))
    played = bandit_plays.play_linear(make(0), arrivals, 400, 1)
    assert alike(played, regret)
