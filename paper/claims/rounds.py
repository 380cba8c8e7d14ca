"""What many rounds give away: parameters that are never released, and noise that is kept."""

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from paper.claims.networks import network
from paper.claims.statement import TABLE, Found, Statement, verdict
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.audit.successive import Steps, rewards_from_successive
from quietq.learning import Published
from quietq.learning.trainer import spaces_of
from quietq.noise import SeededEntropy
from quietq.privacy import Budget
from quietq.privacy.gaussian import epsilon_from_mu
from quietq.worlds import WALK, random_mdp

BATCH, ROUNDS = 64, 78
BUDGET = Budget(0.9, 1e-4)


def _hidden(found: Found) -> tuple[Verdict, str]:
    claimed, true, learner = (found.one("mu", words) for words in ("claimed", "linear", "linear, with TD errors"))
    factor, formula = found.one("factor"), found.one("sqrt((N + 1)(2N + 1)/6)")
    return verdict(max(true, learner) <= claimed * 1.001), (
        f"in the linear case the difference grows round by round, and {ROUNDS} releases with fresh noise have mu = "
        f"{true:.1f}, not {claimed:.3f}: {factor:.1f} times as much (the formula says {formula:.1f}), or epsilon = "
        f"{found.one('epsilon', 'linear'):.0f}, not 0.9. With TD errors and the paper's step, mu = {learner:.1f}"
    )


def _kept(found: Found) -> tuple[Verdict, str]:
    kept, redrawn = found.one("error of the rewards", "J = 1"), found.one("error of the rewards", "J = T/B")
    return verdict(kept > redrawn), (
        f"with one path for all rounds the difference of two releases gives {found.one('rewards told'):.0f} rewards "
        f"away to {kept:.1g}, at sigma = 0.74; with noise redrawn the same attack is off by {redrawn:.2g}"
    )


def _returned(found: Found) -> tuple[Verdict, str]:
    text, code = (
        found.one("largest noise in what is returned", "text"),
        found.one("largest noise in what is returned", "code"),
    )
    return verdict(text > 0), (
        f"the noise in what line 24 returns is {text:g} everywhere (in the authors' program up to {code:.2f})"
    )


def _errors(found: Found) -> tuple[Verdict, str]:
    begin, later = (
        found.one("largest TD error", "weights as PyTorch begins"),
        found.one("largest TD error", "ten times"),
    )
    return verdict(max(begin, later) <= 2), (
        f"without noise and with rewards in [0, 0.5] it is {begin:.2g} as PyTorch begins, and {later:.3g} with weights "
        "ten times larger: nothing in the algorithm bounds it"
    )


HIDDEN = Statement(
    "Theorem 5, proof: rounds compose", "Q0 is fixed by the previous step, so T/B rounds compose",
    "tests/paper/test_claims_listing.py::test_hidden_state_does_not_compose", _hidden, "5",
)  # fmt: skip
KEPT = Statement(
    "Utility analysis: J = 1", "J = 1 is the best case for privacy",
    "tests/audit/test_successive.py::test_one_path_for_the_whole_run_gives_the_rewards_away", _kept, "6",
)  # fmt: skip
RETURNED = Statement(
    "Algorithm 1, line 24: what is returned", "the trained Q_theta that is returned is private",
    "tests/learning/test_published_method.py::test_the_text_returns_values_without_noise", _returned, "6",
)  # fmt: skip
ERRORS = Statement(
    "Theorem 5, proof: TD errors", "a TD error is at most 2, but for the noise in it",
    "tests/paper/test_claims_listing.py::test_td_errors_are_not_bounded", _errors, "2",
)  # fmt: skip
STATEMENTS = (HIDDEN, KEPT, RETURNED, ERRORS)


@dataclass(frozen=True)
class Rounds(Task):
    """Exact differences of means, and two releases."""

    table: ClassVar[str] = TABLE

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: hidden state and shared noise"

    def rows(self) -> list[Row]:
        """Measures."""
        return [*_differences(), *_successive(), *_noise_returned(), *_td_errors()]


def _differences(rate: float = 3e-4) -> list[Row]:
    """A constant feature; rewards differ by 1 everywhere. Noise is for N single steps, as in the proof."""
    sigma = rate * math.sqrt(ROUNDS) / BUDGET.mu
    rows = [HIDDEN.row("mu", BUDGET.mu, setting="claimed")]
    for words, pull in (("linear", 0.0), ("linear, with TD errors", 1.0)):
        theta, seen = np.zeros(2), []
        for _ in range(ROUNDS):
            theta = theta + rate * (np.array([0.0, 1.0]) - pull * theta)  # never replaced by what was released
            seen.append(theta[1] - theta[0])
        mu = float(np.linalg.norm(seen)) / sigma
        rows.append(HIDDEN.row("mu", mu, BUDGET.mu, setting=words))
        rows.append(HIDDEN.row("epsilon", epsilon_from_mu(mu, BUDGET.delta), BUDGET.epsilon, setting=words))
    rows.append(HIDDEN.row("factor", float(rows[1]["measured"] or 0) / BUDGET.mu, 1))
    return [*rows, HIDDEN.row("sqrt((N + 1)(2N + 1)/6)", math.sqrt((ROUNDS + 1) * (2 * ROUNDS + 1) / 6))]


def _successive(sigma: float = 0.74, rate: float = 3e-4, gamma: float = 0.999, states: int = 20) -> list[Row]:
    """One round of the listing in a table with random moves, released before and after."""
    rng, world = np.random.default_rng(0), random_mdp(states, 2, gamma, 0)
    reward, q = rng.random(states), rng.normal(size=(states, 2))
    first, redrawn = sigma * rng.standard_normal((2, states, 2))
    state, action = rng.integers(states, size=BATCH), rng.integers(2, size=BATCH)
    after = np.array([rng.choice(states, p=world.transitions[s, a]) for s, a in zip(state, action, strict=True)])
    steps = Steps(state, action, after, np.zeros(BATCH, bool))
    before, new = q + first, q.copy()
    errors = reward[after] + gamma * before.max(axis=1)[after] - before[state, action]
    np.add.at(new, (state, action), rate / BATCH * errors)
    rows = []
    for words, noise in (("J = 1", first), ("J = T/B", redrawn)):
        told = rewards_from_successive(before, new + noise, steps, rate, gamma)
        wrong = np.abs(told.reward - reward)[told.identified].max()
        rows.append(KEPT.row("error of the rewards", wrong, setting=words))
    return [*rows, KEPT.row("rewards told", told.identified.sum())]


def _noise_returned() -> list[Row]:
    rows, spaces = [], spaces_of(WALK)
    for words, method in (("text", Published.text(levels=6)), ("code", Published.code(levels=6))):
        noise = jax.tree.map(jnp.asarray, method.draw(spaces, 200, SeededEntropy(0)))
        released = method.finish(method.init(spaces, jax.random.key(0)), noise)
        rows.append(RETURNED.row("largest noise in what is returned", np.abs(released.path).max(), setting=words))
    return rows


def _td_errors(gamma: float = 0.999) -> list[Row]:
    """Of random steps on [0, 1] under the walk's reward; two networks stand for the two actions."""
    rng, rows = np.random.default_rng(0), []
    state, after = rng.random((2, 500, 1))
    for words, scale in (("weights as PyTorch begins", 1.0), ("ten times", 10.0)):
        following = np.max([network(after, "relu", scale, seed) for seed in (0, 1)], axis=0)
        errors = 0.5 - np.abs(after[:, 0] - 0.5) + gamma * following - network(state, "relu", scale, 0)
        rows.append(ERRORS.row("largest TD error", np.abs(errors).max(), 2, setting=words))
    return rows
