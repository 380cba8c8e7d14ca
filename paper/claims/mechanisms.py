"""Gaussian noise: what the quoted mechanisms, and the composition in the proof of Theorem 5, ask for."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import norm

from paper.claims.statement import TABLE, Found, Statement, verdict
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.audit import audit_mechanism
from quietq.privacy import Budget
from quietq.privacy.comparison import compare, paper_noise
from quietq.privacy.gaussian import delta_from_mu, log_delta, mu_from_budget
from quietq.privacy.roots import root

EPSILON, DELTA = 0.9, 1e-4
ROUNDS = 78
TRUE_OVER_ALLOWED = "true delta over delta"


def printed_noise(epsilon: float, delta: float) -> float:
    """Propositions 3 and 4: sigma over the sensitivity."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def quoted_noise(epsilon: float, delta: float) -> float:
    """The composition theorem that the proof quotes, per root of rounds."""
    return paper_noise(epsilon, delta) * math.sqrt(math.log(1.25 / delta))


def _vector(found: Found) -> tuple[Verdict, str]:
    worst = max(found.all(TRUE_OVER_ALLOWED))
    reach = found.one("epsilon up to which it holds")
    return verdict(worst <= 1), (
        f"the exact delta is at most {worst:.3g} of the delta allowed, over all epsilon < 1 and delta tried; at delta "
        f"{DELTA:g} the formula goes on holding up to epsilon = {reach:.3g}"
    )


def _function(found: Found) -> tuple[Verdict, str]:
    mu, estimate, error = found.one("mu, by theory"), found.one("mu, measured"), found.one("its standard error")
    lower, share = found.one("mu at least, 95 %"), found.one(TRUE_OVER_ALLOWED)
    return verdict(lower <= mu and abs(estimate - mu) < 5 * error, share <= 1), (
        f"{found.one('releases a world'):,.0f} releases a world: mu = {estimate:.3f} +- {error:.3f} (at least "
        f"{lower:.3f}) where theory says {mu:.3f}; the true delta is {share:.1g} of the one allowed"
    )


def _anisotropic(found: Found) -> tuple[Verdict, str]:
    printed, meant = found.all(TRUE_OVER_ALLOWED, "y ~ N(0, sigma^2 I)"), found.all(TRUE_OVER_ALLOWED, "y ~ N(0, I)")
    return verdict(max(printed) <= 1, max(meant) <= 1), (
        f"with y ~ N(0, sigma^2 I), as printed, sigma enters twice, and the true delta is up to {max(printed):.3g} "
        f"times the one allowed; with y ~ N(0, I) it is {max(meant):.1g} of it"
    )


def _composition(found: Found) -> tuple[Verdict, str]:
    ratios, crossing = found.all("noise over exact"), found.one("epsilon beyond which it is too little")
    return verdict(min(ratios) >= 1, not math.isfinite(crossing)), (
        f"it asks for {ratios[0]:.2f} and {ratios[1]:.2f} times the exact noise at epsilon 0.9 and 0.45, but for less "
        f"than needed beyond epsilon = {crossing:.1f} (delta {DELTA:g})"
    )


def _quoted(found: Found) -> tuple[Verdict, str]:
    ratio, crossing = found.one("noise over exact"), found.one("epsilon beyond which it is too little")
    best = found.one("noise of the best other theorem over exact")
    return verdict(ratio >= 1, best >= ratio), (
        f"sufficient at epsilon 0.9 with {ratio:.2f} times the exact noise (too little beyond epsilon = "
        f"{crossing:.0f}), and not the best known: Renyi DP, which it cites, asks for {best:.2f} times"
    )


def _tail(found: Found) -> tuple[Verdict, str]:
    tail, choice = max(found.all("exact delta over the bound")), max(found.all("exact delta at the chosen epsilon"))
    return verdict(tail <= 1, choice <= 1), (
        f"the exact delta is at most {tail:.2f} of the bound, and at most {choice:.2f} of delta at the chosen epsilon"
    )


VECTOR = Statement(
    "Proposition 3: Gaussian mechanism",
    "sigma >= sqrt(2 ln(1.25/delta)) Delta/epsilon is (epsilon, delta)-DP for 0 < epsilon < 1",
    "tests/paper/test_claims_mechanisms.py::test_the_classical_mechanism_keeps_its_promise", _vector,
)  # fmt: skip
FUNCTION = Statement(
    "Proposition 4: Gaussian process mechanism",
    "the same sigma with Delta in the kernel's norm makes a whole function (epsilon, delta)-DP",
    "tests/noise/test_mechanism.py::test_the_optimal_test_sees_exactly_mu", _function,
)  # fmt: skip
ANISOTROPIC = Statement(
    "Claim 13: anisotropic noise",
    "f + sigma M^(1/2) y is (epsilon, delta)-DP for y ~ N(0, sigma^2 I)",
    "tests/paper/test_claims_mechanisms.py::test_sigma_must_not_enter_twice", _anisotropic, "12",
)  # fmt: skip
COMPOSITION = Statement(
    "Theorem 5, proof: composition",
    "sigma = sqrt(2 T' ln(e + epsilon/delta)) |f|/epsilon is enough for T' rounds",
    "tests/privacy/test_gaussian.py::test_the_papers_formula_costs_more_and_then_too_little", _composition, "8",
)  # fmt: skip
QUOTED = Statement(
    "Theorem 5, proof: the quoted composition theorem",
    "sigma >= sqrt(2 T' ln(1.25/delta) ln(e + epsilon/delta)) |f|/epsilon is enough, and the best known bound",
    "tests/paper/test_claims_mechanisms.py::test_the_quoted_composition_is_not_the_best_known", _quoted, "8",
)  # fmt: skip
TAIL = Statement(
    "Theorem 5, proof: tail of the privacy loss",
    "P1 - e^epsilon P0 <= exp(-x^2/2)/(1 + x/mu), x = epsilon/mu - mu/2; below delta at the chosen epsilon",
    "tests/paper/test_claims_mechanisms.py::test_the_tail_in_the_proof_is_a_bound", _tail,
)  # fmt: skip
STATEMENTS = (VECTOR, FUNCTION, ANISOTROPIC, COMPOSITION, QUOTED, TAIL)


@dataclass(frozen=True)
class Mechanisms(Task):
    """All of them."""

    table: ClassVar[str] = TABLE
    releases: int = 100_000

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: mechanisms and composition"

    def rows(self) -> list[Row]:
        """Measures."""
        return [*_classical(), *self._process(), *_twice(), *_compositions(), *_tails()]

    def _process(self) -> list[Row]:
        mu = 1 / printed_noise(EPSILON, DELTA)
        finding = audit_mechanism(mu, self.releases, delta=DELTA, seed=1)
        mistaken = finding.by_mu.false_alarms + finding.by_mu.misses
        share = mistaken / (2 * self.releases)
        estimate = -2 * float(norm.ppf(share))
        error = 2 * math.sqrt(share * (1 - share) / (2 * self.releases)) / float(norm.pdf(estimate / 2))
        return [
            FUNCTION.row("releases a world", self.releases),
            FUNCTION.row("mu, by theory", mu),
            FUNCTION.row("mu, measured", estimate),
            FUNCTION.row("its standard error", error),
            FUNCTION.row("mu at least, 95 %", finding.mu_lower),
            FUNCTION.row(TRUE_OVER_ALLOWED, delta_from_mu(mu, EPSILON) / DELTA, 1),
        ]


def _classical() -> list[Row]:
    rows = []
    for delta in (1e-12, 1e-6, 1e-4, 1e-2, 0.1, 0.5):
        for epsilon in (1e-3, 0.01, 0.1, 0.3, 0.45, 0.6, 0.9, 0.999):
            share = math.exp(log_delta(epsilon, 1 / printed_noise(epsilon, delta)) - math.log(delta))
            rows.append(VECTOR.row(TRUE_OVER_ALLOWED, share, 1, setting=f"delta = {delta:g}", x=epsilon))
    return [*rows, VECTOR.row("epsilon up to which it holds", crossing(printed_noise), 1, setting=f"delta = {DELTA:g}")]


def crossing(noise: Callable[[float, float], float]) -> float:
    """The epsilon beyond which a formula asks for too little noise, at the paper's delta."""
    return root(lambda e: math.log(noise(e, DELTA) * mu_from_budget(e, DELTA)), 0.1, 1e4, 1e-9)


def _twice() -> list[Row]:
    rows = []
    for sensitivity in (0.001, 0.01, 0.1, 1.0):
        sigma = printed_noise(EPSILON, DELTA) * sensitivity
        for words, size in (("y ~ N(0, sigma^2 I)", sigma * sigma), ("y ~ N(0, I)", sigma)):
            share = delta_from_mu(sensitivity / size, EPSILON) / DELTA
            rows.append(ANISOTROPIC.row(TRUE_OVER_ALLOWED, share, 1, setting=words, x=sensitivity))
    return rows


def _compositions() -> list[Row]:
    beyond = "epsilon beyond which it is too little"
    rows = [COMPOSITION.row("noise over exact", paper_noise(e, DELTA) * Budget(e, DELTA).mu, x=e) for e in (0.9, 0.45)]
    others = [charge for charge in compare(Budget(EPSILON, DELTA), ROUNDS) if charge.theorem == "renyi"]
    assert others[0].ratio is not None
    return [
        *rows,
        COMPOSITION.row(beyond, crossing(paper_noise)),
        QUOTED.row("noise over exact", quoted_noise(EPSILON, DELTA) * Budget(EPSILON, DELTA).mu),
        QUOTED.row(beyond, crossing(quoted_noise)),
        QUOTED.row("noise of the best other theorem over exact", others[0].ratio),
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
