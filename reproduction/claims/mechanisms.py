"""Gaussian noise: what the quoted mechanisms and the composition in the proof of Theorem 5 ask for; and an audit.

The audit is Theorem 5 itself, measured: the authors' program trained many times under r and r + 1, and told apart.
Lower bounds at 95 %, as `quietq paper audit published` has them, by 200 runs a world.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import norm

from quietq.audit import audit_mechanism
from quietq.paper import Published
from quietq.paper.attacks import audit_training
from quietq.paper.theorem import paper_noise
from quietq.privacy import Budget
from quietq.privacy.budget import delta_from_mu, log_delta, mu_from_budget, root
from quietq.worlds import WALK
from reproduction.claims.statement import TABLE, Measurements, at_most, says
from reproduction.experiment import Decision, Row, Task, decide, task

EPSILON, DELTA = 0.9, 1e-4
STEPS = 5000
TRUE_OVER_ALLOWED = "true delta over delta"


def printed_noise(epsilon: float, delta: float) -> float:
    """Propositions 3 and 4: sigma over the sensitivity."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def quoted_noise(epsilon: float, delta: float) -> float:
    """The composition theorem that the proof quotes, per root of rounds."""
    return paper_noise(epsilon, delta) * math.sqrt(math.log(1.25 / delta))


def renyi_noise(epsilon: float, delta: float) -> float:
    """Renyi DP at its best order (Mironov 2017, propositions 1, 3 and 7), which the paper cites, per root of rounds."""
    tail = 2 * math.log(1 / delta)
    return 1 / (math.sqrt(tail + 2 * epsilon) - math.sqrt(tail))


def crossing(noise: Callable[[float, float], float]) -> float:
    """The epsilon beyond which a formula asks for too little noise, at the paper's delta."""
    return root(lambda e: math.log(noise(e, DELTA) * mu_from_budget(e, DELTA)), 0.1, 1e4, 1e-9)


VECTOR = says("Proposition 3: Gaussian mechanism")(at_most(1, TRUE_OVER_ALLOWED))


@says("Proposition 4: Gaussian process mechanism")
def FUNCTION(found: Measurements) -> Decision:
    mu, estimate, error = found.one("mu, by theory"), found.one("mu, measured"), found.one("its standard error")
    seen = found.one("mu at least, 95 %") <= mu and abs(estimate - mu) < 5 * error
    return decide(seen, found.one(TRUE_OVER_ALLOWED) <= 1)


ANISOTROPIC = says("Claim 13: anisotropic noise")(
    at_most(1, f"{TRUE_OVER_ALLOWED} @ y ~ N(0, sigma^2 I)", f"{TRUE_OVER_ALLOWED} @ y ~ N(0, I)")
)
COMPOSITION = says("Theorem 5, proof: composition")(
    lambda found: decide(
        found.least("noise over exact") >= 1, not math.isfinite(found.one("epsilon beyond which it is too little"))
    )
)
QUOTED = says("Theorem 5, proof: the quoted composition theorem")(
    lambda found: decide(
        found.one("noise over exact") >= 1,
        found.one("noise of the best other theorem over exact") >= found.one("noise over exact"),
    )
)
TAIL = says("Theorem 5, proof: tail of the privacy loss")(
    at_most(1, "exact delta over the bound", "exact delta at the chosen epsilon")
)


def _refuted(found: Measurements) -> Decision:
    """Not to have been refuted is not to hold: an audit proves nothing."""
    return "fails" if found.one("epsilon at least, 95 %") > found.one("epsilon claimed") else "in part", {}


AUDIT_32, AUDIT_74 = (says(f"Theorem 5: sigma = {sigma:g}")(_refuted) for sigma in (0.32, 0.74))
AUDITED = {0.32: AUDIT_32, 0.74: AUDIT_74}


def measure(releases: int = 100_000) -> list[Row]:
    return [*_classical(), *_process(releases), *_twice(), *_compositions(), *_tails()]


def _classical() -> list[Row]:
    rows = []
    for delta in (1e-12, 1e-6, 1e-4, 1e-2, 0.1, 0.5):
        for epsilon in (1e-3, 0.01, 0.1, 0.3, 0.45, 0.6, 0.9, 0.999):
            share = math.exp(log_delta(epsilon, 1 / printed_noise(epsilon, delta)) - math.log(delta))
            rows.append(VECTOR.row(TRUE_OVER_ALLOWED, share, 1, setting=f"delta = {delta:g}", x=epsilon))
    return [*rows, VECTOR.row("epsilon up to which it holds", crossing(printed_noise), 1, setting=f"delta = {DELTA:g}")]


def _process(releases: int) -> list[Row]:
    mu = 1 / printed_noise(EPSILON, DELTA)
    finding = audit_mechanism(mu, releases, delta=DELTA, seed=1)
    share = (finding.by_mu.false_alarms + finding.by_mu.misses) / (2 * releases)
    estimate = -2 * float(norm.ppf(share))
    error = 2 * math.sqrt(share * (1 - share) / (2 * releases)) / float(norm.pdf(estimate / 2))
    numbers = {"releases a world": releases, "mu, by theory": mu, "mu, measured": estimate, "its standard error": error}
    rows = [FUNCTION.row(words, value) for words, value in (numbers | {"mu at least, 95 %": finding.mu_lower}).items()]
    return [*rows, FUNCTION.row(TRUE_OVER_ALLOWED, delta_from_mu(mu, EPSILON) / DELTA, 1)]


def _twice() -> list[Row]:
    rows = []
    for sensitivity in (0.001, 0.01, 0.1, 1.0):
        sigma = printed_noise(EPSILON, DELTA) * sensitivity
        for words, size in (("y ~ N(0, sigma^2 I)", sigma * sigma), ("y ~ N(0, I)", sigma)):
            share = delta_from_mu(sensitivity / size, EPSILON) / DELTA
            rows.append(ANISOTROPIC.row(TRUE_OVER_ALLOWED, share, 1, setting=words, x=sensitivity))
    return rows


def _compositions() -> list[Row]:
    mu = Budget(EPSILON, DELTA).mu
    return [
        *(COMPOSITION.row("noise over exact", paper_noise(e, DELTA) * Budget(e, DELTA).mu, x=e) for e in (0.9, 0.45)),
        COMPOSITION.row("epsilon beyond which it is too little", crossing(paper_noise)),
        QUOTED.row("noise over exact", quoted_noise(EPSILON, DELTA) * mu),
        QUOTED.row("epsilon beyond which it is too little", crossing(quoted_noise)),
        QUOTED.row("noise of the best other theorem over exact", renyi_noise(EPSILON, DELTA) * mu),
    ]


def _tails() -> list[Row]:
    rows = []
    for mu in (0.01, 0.1, 0.286, 1.0, 3.0, 10.0):
        shares = []
        for x in np.linspace(0.01, 12, 60):
            bound = -x * x / 2 - math.log1p(x / mu)
            shares.append(math.exp(log_delta(mu * (x + mu / 2), mu) - bound))
        rows.append(TAIL.row("exact delta over the bound", max(shares), 1, x=mu))
        for delta in (1e-10, 1e-4, 1e-2):
            epsilon = mu * mu / 2 + mu * math.sqrt(2 * math.log(math.e + mu / delta))
            rows.append(TAIL.row("exact delta at the chosen epsilon", delta_from_mu(mu, epsilon) / delta, 1, x=mu))
    return rows


def measure_audit(sigma: float, runs: int, steps: int = STEPS) -> list[Row]:
    finding = audit_training(Published.code(sigma), WALK, runs, steps=steps)
    errors = finding.by_epsilon
    numbers = {
        "epsilon claimed": finding.promise.epsilon,
        "epsilon at least, 95 %": finding.epsilon_lower,
        "mu at least, 95 %": finding.mu_lower,
        "runs a world": runs,
        "steps a run": steps,
        "judged runs": errors.runs_without + errors.runs_with,
        "judged runs mistaken": errors.false_alarms + errors.misses,
    }
    return [AUDITED[sigma].row(words, value, x=sigma) for words, value in numbers.items()]


def audit_task(sigma: float, quick: bool) -> Task:
    """At a glance so few and short runs that they refute the claims, and show far from all that is there to see."""
    runs, steps = (64, 500) if quick else (200, STEPS)
    title = f"claims: audit of the authors' program, sigma {sigma:g}"
    return task(TABLE, title, measure_audit, f"audit of {steps} steps", sigma=sigma, runs=runs, steps=steps)
