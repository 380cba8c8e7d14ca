"""The audit of the Gaussian process mechanism itself: as many releases as it takes for a tight bound on mu.

The outputs of one release have independent noise, so each is a release of its own when neighbours differ in that output
alone. A function of many outputs, told apart output by output, is therefore as many audits of one function: the same
code draws them, without a call for each.
"""

import math
import time
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import chdtr

from quietq.audit.distinguisher import Expected, Scores
from quietq.audit.finding import Attack, Finding, Promise, judge
from quietq.audit.movement import Unprotected
from quietq.audit.projection import distance, optimal_weights
from quietq.mechanisms.gaussian_process import GaussianProcessMechanism
from quietq.noise.kernels import Exponential
from quietq.privacy.budget import Budget
from quietq.privacy.checks import count, positive
from quietq.privacy.gaussian import epsilon_from_mu
from quietq.privacy.relations import RkhsBall

TOGETHER = 2000
"""Outputs of one release."""


def audit_mechanism(
    mu: float, runs: int, *, beta: float = 4.0, levels: int = 6, delta: float = 1e-4, seed: int | None = 0,
    confidence: float = 0.95, kind: type[GaussianProcessMechanism] = GaussianProcessMechanism,
) -> Finding:  # fmt: skip
    """Tells `runs` releases of 0 from as many of a function as far away as the promise covers.

    Without a `seed` they are real releases, with noise from the operating system, of a function that is nobody's.

    >>> finding = audit_mechanism(mu=1.0, runs=4000)
    >>> finding.verdict, bool(finding.mu_lower > 0.8)
    ('consistent', True)
    """
    began, runs = time.monotonic(), count("runs", runs, 20)
    kernel, budget = Exponential(beta), Budget(epsilon_from_mu(positive("mu", mu), delta), delta)
    relation = RkhsBall(1 / math.sqrt(TOGETHER), kernel, actions=TOGETHER)
    grid = np.linspace(0, 1, 2**levels + 1)
    bump = np.maximum(0, 1 - 4 * np.abs(grid - 0.5))
    move = bump / distance(kernel, bump)
    weights = optimal_weights(kernel, move)

    def released(side: int, turn: int) -> Float[np.ndarray, "points outputs"]:
        f = side * np.repeat(move[:, None], TOGETHER, axis=1)
        mechanism = kind(kernel, 1.0, budget, relation=relation, levels=levels)
        if seed is None:
            private: Any = mechanism.apply(lambda states: f)
        else:
            private = mechanism.simulate(lambda states: f, (seed << 64) + 2 * turn + side)
        return private.values

    def scores(side: int) -> Float[np.ndarray, " runs"]:
        found = [weights @ released(side, turn) for turn in range(-(-runs // TOGETHER))]
        for row in found:
            _check_independent(row * budget.mu)
        return np.concatenate(found)[:runs]

    expected = Expected(0.0, 1 / budget.mu, float(weights @ move), 1 / budget.mu)
    promise = Promise.certified(budget)
    noise = "simulated noise" if seed is not None else "the operating system's noise"
    attack = Attack(
        "gaussian-process", "none", str(RkhsBall(1.0, kernel)), "bump",
        f"the released function, {len(grid)} numbers, with {noise}", "likelihood ratio",
    )  # fmt: skip
    return judge(
        Scores(scores(0), scores(1)), expected.thresholds(runs, delta, confidence), attack, promise, confidence, 0,
        time.monotonic() - began,
    )  # fmt: skip


def _check_independent(scores: Float[np.ndarray, " outputs"]) -> None:
    """Scores of one release, in units of their deviation: if outputs shared noise, they would lie closer together."""
    spread = float(((scores - scores.mean()) ** 2).sum())
    if chdtr(len(scores) - 1, spread) < 1e-12:
        raise Unprotected("The outputs of one release share their noise, so each gives the others away.")
