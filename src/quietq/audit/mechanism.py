"""The audit of the Gaussian process mechanism itself: as many releases as it takes for a tight bound on mu.

The outputs of one release have independent noise, so each is a release of its own when neighbours differ in that output
alone. A function of many outputs, told apart output by output, is therefore as many audits of one function: the same
code draws them, without a call for each.
"""

import math
import time

import numpy as np

from quietq.audit.distinguisher import Expected, Scores
from quietq.audit.finding import Attack, Finding, Promise, judge
from quietq.audit.projection import distance, optimal_weights
from quietq.noise.kernels import Exponential
from quietq.noise.mechanism import GaussianProcessMechanism
from quietq.privacy.budget import Budget
from quietq.privacy.checks import count, positive
from quietq.privacy.gaussian import epsilon_from_mu
from quietq.privacy.relations import RkhsBall

TOGETHER = 2000
"""Outputs of one release."""


def audit_mechanism(
    mu: float, runs: int, *, beta: float = 4.0, levels: int = 6, delta: float = 1e-4, seed: int = 0,
    confidence: float = 0.95, kind: type[GaussianProcessMechanism] = GaussianProcessMechanism,
) -> Finding:  # fmt: skip
    """Tells `runs` releases of 0 from as many of a function as far away as the promise covers.

    >>> finding = audit_mechanism(mu=1.0, runs=4000)
    >>> finding.verdict, bool(finding.mu_lower > 0.8)
    ('consistent', True)
    """
    began, runs = time.monotonic(), count("runs", runs, 20)
    kernel, budget = Exponential(beta), Budget(epsilon_from_mu(positive("mu", mu), delta), delta)
    relation = RkhsBall(1 / math.sqrt(TOGETHER), kernel, actions=TOGETHER)
    mechanism = kind(kernel, 1.0, budget, relation=relation, levels=levels)
    grid = np.linspace(0, 1, 2**levels + 1)
    bump = np.maximum(0, 1 - 4 * np.abs(grid - 0.5))
    move = bump / distance(kernel, bump)
    weights = optimal_weights(kernel, move)

    def scores(side: int) -> np.ndarray:
        f = side * np.repeat(move[:, None], TOGETHER, axis=1)
        drawn = [
            np.asarray(mechanism.simulate(lambda states: f, (seed << 64) + 2 * turn + side).values)  # pyright: ignore[reportAttributeAccessIssue]
            for turn in range(-(-runs // TOGETHER))
        ]
        return np.concatenate([weights @ values for values in drawn])[:runs]

    expected = Expected(0.0, 1 / mechanism.mu, float(weights @ move), 1 / mechanism.mu)
    promise = Promise("certified", budget.epsilon, delta, budget.mu)
    attack = Attack(
        "gaussian-process", "none", str(relation), "bump", f"the released function, {len(grid)} numbers",
        "likelihood ratio",
    )  # fmt: skip
    return judge(
        Scores(scores(0), scores(1)), expected.thresholds(runs, delta, confidence), attack, promise, confidence, 0,
        time.monotonic() - began,
    )  # fmt: skip
