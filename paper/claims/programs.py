"""The linear programs behind Proposition 10: what is said of them, and the steps from them to the bound."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paper.claims.statement import TABLE, Found, Judge, Statement, verdict
from paper.claims.utility import GAMMA, SIGMA, noised, optimum
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.worlds import Tabular, random_mdp

ERROR = "largest relative error"


def _right(words: str) -> Judge:
    def judge(found: Found) -> tuple[Verdict, str]:
        worst = max(found.all(ERROR))
        return verdict(worst < 1e-6), f"{words}, to {worst:.1g} in {len(found.all(ERROR))} random worlds"

    return judge


def _inequality(found: Found) -> tuple[Verdict, str]:
    slack, above = found.one("least slack"), found.one("distance from v*")
    return verdict(slack < 0), (
        f"v* + 1 satisfies it with a slack of {slack:.2g} and is {above:.0f} away from v*: it is a constraint, "
        "of which v* is the least solution"
    )


def _dual(found: Found) -> tuple[Verdict, str]:
    few, many = found.one("lost over the bound", "2 actions"), found.one("lost over the bound", "1,000 actions")
    return verdict(max(few, many) <= 1), (  # of all worlds: one that loses more is enough
        f"20 states, 2 actions lose {few:.2f} of the bound; one state, 1,000 actions of which one is 2 sigma better, "
        f"{many:.2f} of it: lambda' picks the largest of the noise, and the mean of |z| over actions does not bound it"
    )


def _difference(found: Found) -> tuple[Verdict, str]:
    left, right = found.one("E |v' - v*|_1"), found.one("sum v* - E sum v'")
    return verdict(abs(left - right) < 0.1 * left), (
        f"for v', the optimum under noised rewards, the left side is {left:.1f} and the right side {right:.1f} (30 "
        "states, 4 actions): v' lies above v* in the mean. It is true of another v', the greedy policy's value"
    )


def _equivalent(found: Found) -> tuple[Verdict, str]:
    kept, reward = found.one("|Q + g - Q*| at the end"), found.one("|Q'* - Q*| with noised rewards")
    return verdict(abs(kept - reward) < 0.1 * reward), (
        f"with one path for all rounds (J = 1) the noised values end {kept:.1g} from Q*, whatever sigma is: nothing is "
        f"hidden. With noised rewards they end {reward:.2f} away"
    )


SHOWN, TABULAR = "tests/paper/test_claims_utility.py::", "tests/worlds/test_tabular.py::"
PROGRAMS = Statement(
    "Appendix D: the linear program and its dual", "v* minimises the sum of v; the dual has the same optimum",
    TABULAR + "test_the_programs_find_the_optimum", _right("both optima agree with policy iteration"),
)  # fmt: skip
EXISTENCE = Statement(
    "Lemma 14: dual solution", "sum_i lambda_i = (I - gamma P*')^-1 1, and lambda is 0 off the optimal policy",
    TABULAR + "test_the_programs_find_the_optimum", _right("true"),
)  # fmt: skip
MASS = Statement(
    "Claim 15: mass of the dual solution", "|sum_i lambda_i|_1 = n/(1 - gamma)",
    TABULAR + "test_the_programs_find_the_optimum", _right("true"),
)  # fmt: skip
POLICY = Statement(
    "Claim 17: value of the dual's policy", "the policy of lambda' has true values that sum up to sum_i lambda_i' r_i",
    SHOWN + "test_the_duals_policy_is_worth_what_it_says", _right("true"),
)  # fmt: skip
INEQUALITY = Statement(
    "Appendix D: Bellman's inequality", "v is optimal if and only if v >= gamma P_i v + r_i for each i",
    SHOWN + "test_bellmans_inequality_does_not_make_a_value_optimal", _inequality, "also",
)  # fmt: skip
DUAL = Statement(
    "Lemma 16: loss by noised rewards", "E sum lambda_i' r_i >= sum lambda_i* r_i - 2 sqrt(2/pi) n sigma/(1 - gamma)",
    SHOWN + "test_many_actions_lose_more_than_the_lemma_allows", _dual, "12",
)  # fmt: skip
DIFFERENCE = Statement(
    "Proposition 10, proof: last step", "E |v' - v*|_1 = sum v* - E sum v'",
    SHOWN + "test_noised_optima_lie_above_in_the_mean", _difference, "12",
)  # fmt: skip
EQUIVALENT = Statement(
    "Appendix D: noise on values and on rewards", "adding noise to the value function is adding noise to the reward",
    "tests/audit/test_successive.py::test_with_one_path_the_release_becomes_the_optimal_value_whatever_sigma_is",
    _equivalent, "6",
)  # fmt: skip
STATEMENTS = (PROGRAMS, EXISTENCE, MASS, POLICY, INEQUALITY, DUAL, DIFFERENCE, EQUIVALENT)


@dataclass(frozen=True)
class Programs(Task):
    """Random worlds, solved by linear programming and by policy iteration."""

    table: ClassVar[str] = TABLE
    worlds: int = 10
    draws: int = 2000

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: linear programs"

    def rows(self) -> list[Row]:
        """Measures."""
        rows = [row for seed in range(self.worlds) for row in _solved(random_mdp(30, 4, GAMMA, seed), seed)]
        return [*rows, *self._noised(), *_shared()]

    def _noised(self) -> list[Row]:
        world, best = random_mdp(30, 4, GAMMA, 1), optimum(random_mdp(30, 4, GAMMA, 1))
        above = best + 1
        slack = (above - world.q(above).max(axis=1)).min()
        found = np.array([optimum(noised(world, SIGMA, seed)) for seed in range(self.draws // 20)])
        small = random_mdp(20, 2, GAMMA, 2)
        others = [noised(small, SIGMA, seed) for seed in range(self.draws // 20)]
        lost = optimum(small).sum() - np.mean([small.evaluate(o.greedy(optimum(o))).sum() for o in others])
        allowed = 2 * math.sqrt(2 / math.pi) * SIGMA / (1 - GAMMA)
        return [
            INEQUALITY.row("least slack", slack, setting="v* + 1"),
            INEQUALITY.row("distance from v*", np.abs(above - best).max(), 0, setting="v* + 1"),
            DIFFERENCE.row("E |v' - v*|_1", np.abs(found - best).sum(axis=1).mean()),
            DIFFERENCE.row("sum v* - E sum v'", best.sum() - found.sum(axis=1).mean()),
            DUAL.row("lost over the bound", lost / (20 * allowed), 1, setting="2 actions"),
            DUAL.row("lost over the bound", self._one_state() / allowed, 1, setting="1,000 actions"),
        ]

    def _one_state(self) -> float:
        """What is lost with one state and 1,000 actions, of which the first is 2 sigma better than all others."""
        noise = np.random.default_rng(3).standard_normal((self.draws, 1000))
        chosen = (noise + 2.0 * (np.arange(1000) == 0)).argmax(axis=1)
        return float((chosen != 0).mean()) * 2 * SIGMA / (1 - GAMMA)


def _solved(world: Tabular, seed: int) -> list[Row]:
    solution, n = world.solve(), world.states
    chosen = world.transitions[np.arange(n), solution.policy]
    visits = np.linalg.solve(np.eye(n) - world.gamma * chosen.T, np.ones(n))
    off = solution.occupancy.sum() - solution.occupancy[np.arange(n), solution.policy].sum()
    best, other = optimum(world), noised(world, SIGMA, seed).solve()
    worth = world.evaluate(other.policy).sum()
    errors = {
        PROGRAMS: max(solution.gap, np.abs(solution.values - best).max() / best.max()),
        EXISTENCE: max(np.abs(solution.occupancy.sum(axis=1) - visits).max(), off) / visits.max(),
        MASS: abs(solution.occupancy.sum() * (1 - world.gamma) / n - 1),
        POLICY: abs((other.occupancy * world.rewards).sum() / worth - 1),
    }
    return [
        statement.row(ERROR, error, 0, setting="30 states, 4 actions", x=seed) for statement, error in errors.items()
    ]


def _shared(sigma: float = 30.0) -> list[Row]:
    """The listing's fixed point, step size 1, in a table: Q becomes r + gamma P max(Q + g) - g."""
    world = random_mdp(30, 4, GAMMA, 5)
    noise, q = sigma * np.random.default_rng(4).standard_normal(world.rewards.shape), np.zeros(world.rewards.shape)
    for _ in range(400):
        q = world.q((q + noise).max(axis=1)) - noise
    true = world.q(optimum(world))
    other = noised(world, SIGMA, 5)
    return [
        EQUIVALENT.row("|Q + g - Q*| at the end", np.abs(q + noise - true).max(), setting=f"sigma = {sigma:g}"),
        EQUIVALENT.row(
            "|Q'* - Q*| with noised rewards", np.abs(other.q(optimum(other)) - true).max(), setting="sigma = 0.3"
        ),
    ]
