"""Proposition 10, the utility in finite worlds: the bound as printed, as its proof has it, and as it can be proved."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paper.claims.statement import TABLE, Found, Statement, power, verdict
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.worlds import Tabular, printed_value_error_bound, random_mdp, value_error_bound

SIGMA, GAMMA = 0.3, 0.9
MEAN, LARGEST, LOST = "mean |v' - v*|", "E max |v' - v*|", "lost by the greedy policy"


def optimum(world: Tabular) -> np.ndarray:
    """v* to 1e-10: by policy iteration in small worlds, by value iteration in large ones.

    There without BLAS, whose threads would stand in each other's way and in that of other tasks.
    """
    values, change, least = np.zeros(world.states), math.inf, 1e-10 * (1 - world.gamma)
    while change > least:
        if world.states <= 50:
            new = world.evaluate(world.greedy(values))
        else:
            new = (world.rewards + world.gamma * np.einsum("sat,t->sa", world.transitions, values)).max(axis=1)
        values, change = new, float(np.abs(new - values).max())
    return values


def noised(world: Tabular, sigma: float, seed: int) -> Tabular:
    """With independent noise on every reward."""
    noise = sigma * np.random.default_rng((11, seed)).standard_normal(world.rewards.shape)
    return world.with_rewards(world.rewards + noise)


def _printed(found: Found) -> tuple[Verdict, str]:
    measured, printed = dict(found.at(MEAN)), dict(found.at(MEAN, "printed"))
    errors = dict(found.at("its standard error"))
    beyond = [n for n in measured if measured[n] - 3 * errors[n] > printed[n]]
    within = [n for n in measured if measured[n] <= printed[n]]
    single, bound = found.one("E |v' - v*|, one state, 20 actions"), printed_value_error_bound(1, SIGMA, GAMMA)
    return verdict(not beyond and single <= bound), (  # of all worlds: one that is beyond is enough
        f"100 states: {measured[100]:.2f} +- {errors[100]:.2f} where the bound is {printed[100]:.3f} (sigma 0.3, gamma "
        f"0.9, 2 actions); it is broken for n = {', '.join(f'{n:g}' for n in beyond) or 'none'} and kept for "
        f"{', '.join(f'{n:g}' for n in within) or 'none'} of those tried. Without the root of n too: one state, 20 "
        f"actions have {single:.2f}, the bound is {bound:.2f}"
    )


def _limit(found: Found) -> tuple[Verdict, str]:
    pairs = found.at(MEAN)
    slope = power(pairs)
    values = ", ".join(f"{value:.2f}" for _, value in pairs)
    return verdict(slope < -0.25), (
        f"the mean error is {values} for n = {', '.join(f'{n:g}' for n, _ in pairs)}: it goes like n^{slope:.2f}, not "
        "like n^-0.5"
    )


def _corrected(found: Found) -> tuple[Verdict, str]:
    largest, lost = max(found.all(f"{LARGEST}, over its bound")), max(found.all(f"{LOST}, over its bound"))
    return verdict(largest <= 1, lost <= 1), (
        f"our correction, E max |v' - v*| <= sigma sqrt(2 ln(2nm))/(1 - gamma): at most {largest:.2f} of it over all n "
        f"and m tried; the greedy policy loses at most {lost:.2f} of twice that"
    )


SHOWN, TABULAR = "tests/paper/test_claims_utility.py::", "tests/worlds/test_tabular.py::"
PRINTED = Statement(
    "Proposition 10: utility", "E (1/n)|v' - v*|_1 <= 2 sqrt(2) sigma/(sqrt(n pi)(1 - gamma)) for J = 1",
    TABULAR + "test_the_printed_bound_fails", _printed, "also",
)  # fmt: skip
LIMIT = Statement(
    "Proposition 10: many states", "the utility loss has a limit of zero as the number of states approaches infinity",
    SHOWN + "test_the_loss_does_not_vanish_with_many_states", _limit, "also",
)  # fmt: skip
CORRECTED = Statement(
    "Ours: Proposition 10, put right",
    "(not printed) E max|v' - v*| <= sigma sqrt(2 ln(2nm))/(1 - gamma), greedy twice that",
    TABULAR + "test_the_bound_holds", _corrected, "also", ours=True,
)  # fmt: skip
STATEMENTS = (PRINTED, LIMIT, CORRECTED)


@dataclass(frozen=True)
class Utility(Task):
    """Random worlds with noised rewards, solved exactly."""

    table: ClassVar[str] = TABLE
    worlds: int = 60
    """Of up to 100 states; of more, a fifth as many."""
    sizes: tuple[int, ...] = (10, 30, 100, 300)

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: utility in finite worlds"

    def rows(self) -> list[Row]:
        """Measures."""
        rows = []
        for n in self.sizes:
            rows += self._random(n, 2)
        for n, m in ((3, 10), (20, 5), (1, 50)):
            rows += self._bounds(n, m, [self._errors(n, m, seed) for seed in range(self.worlds)])
        one = Tabular(np.ones((1, 20, 1)), np.zeros((1, 20)), GAMMA)
        errors = [abs(optimum(noised(one, SIGMA, seed))[0]) for seed in range(20 * self.worlds)]
        bound = printed_value_error_bound(1, SIGMA, GAMMA)
        return [*rows, PRINTED.row("E |v' - v*|, one state, 20 actions", np.mean(errors), bound)]

    def _random(self, n: int, m: int) -> list[Row]:
        """The walk through n: one noise draw in each of as many worlds."""
        worlds = self.worlds if n <= 100 else max(self.worlds // 5, 2)
        found = [self._errors(n, m, seed) for seed in range(worlds)]
        means, printed = [mean for mean, _, _ in found], printed_value_error_bound(n, SIGMA, GAMMA)
        error = float(np.std(means)) / math.sqrt(len(means))
        words = f"{m} actions, {worlds} worlds"
        rows = [statement.row(MEAN, np.mean(means), printed, setting=words, x=n) for statement in (PRINTED, LIMIT)]
        return [*rows, PRINTED.row("its standard error", error, setting=words, x=n), *self._bounds(n, m, found)]

    def _bounds(self, n: int, m: int, found: list[tuple[float, float, float]]) -> list[Row]:
        rows, words = [], f"{m} actions, {len(found)} worlds"
        for i, name, greedy in ((1, LARGEST, False), (2, LOST, True)):
            mean = float(np.mean([each[i] for each in found]))
            bound = value_error_bound(n, m, SIGMA, GAMMA, greedy)
            rows.append(CORRECTED.row(name, mean, bound, setting=words, x=n))
            rows.append(CORRECTED.row(f"{name}, over its bound", mean / bound, 1, setting=words, x=n))
        return rows

    def _errors(self, n: int, m: int, seed: int) -> tuple[float, float, float]:
        """The mean and the largest of |v' - v*|, and the most that the greedy policy for v' loses."""
        world = random_mdp(n, m, GAMMA, seed)
        other = noised(world, SIGMA, seed)
        best, found = optimum(world), optimum(other)
        lost = best - world.evaluate(other.greedy(found))
        return float(np.abs(found - best).mean()), float(np.abs(found - best).max()), float(lost.max())
