"""The kernel's space: the inner product of Lemma 6, its norm bound, and the sensitivities that are read off it."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paper.claims.statement import TABLE, Found, Statement, verdict
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.noise import Differentiable, Exponential, piecewise_linear

BETAS = (0.1, 1.0, 10.0, 300.0)
RATIO = "norm squared over the bound"
TURNS = 4000


def below(radius: float, slope: float, turns: int = TURNS) -> Differentiable:
    """A zigzag just below `radius`, everywhere as steep as `slope`: it comes close to every term of the bound."""
    height = slope / turns
    values = radius - height * (np.arange(turns + 1) % 2)
    return piecewise_linear(np.linspace(0, 1, turns + 1), values)


def constant(value: float) -> Differentiable:
    """A function without slope."""
    return piecewise_linear([0.0, 1.0], [value, value])


def _reproduces(found: Found) -> tuple[Verdict, str]:
    worst = max(found.all("largest error"))
    return verdict(worst < 1e-11), f"<K_x, K_y> = K(x, y) and <f, K_y> = f(y) to {worst:.1g}, for beta 0.1 to 300"


def _step(found: Found) -> tuple[Verdict, str]:
    ratio = found.one("f(0)^2 over 2 beta <f, f>")
    return verdict(ratio <= 1), (
        f"f = 1 at beta = 0.1 has f^2 = {ratio:.2f} times 2 beta <f, f>: the step forgets f(0); f(x)^2 <= <f, f> is "
        "true and would do"
    )


def _bound(found: Found) -> tuple[Verdict, str]:
    zigzag, random = found.all(RATIO, "zigzag"), found.all(RATIO, "random")
    return verdict(max(zigzag + random) <= 1 + 1e-12), (
        f"never exceeded by {found.one('random functions tried'):.0f} random functions (at most {max(random):.2f} of "
        f"it), and nearly reached by a zigzag (at least {min(zigzag):.4f} of it)"
    )


def _root(found: Found) -> tuple[Verdict, str]:
    ratio, squared = found.one("norm over C"), found.one("norm squared over C")
    return verdict(ratio <= 1), (
        f"C bounds the squared norm ({squared:.4f} of it is reached); as a norm it is exceeded {ratio:.1f}-fold at v = "
        f"0.01, L = 4, and {found.one('sqrt(C) over C'):.1f}-fold at the appendix's v and L"
    )


def _slopes(found: Found) -> tuple[Verdict, str]:
    ratio = found.one(RATIO)
    return verdict(ratio <= 1), (
        f"two L-Lipschitz functions whose difference is at most vL and 2L-Lipschitz: {ratio:.2f} times the bound"
    )


def _alternative(found: Found) -> tuple[Verdict, str]:
    flat, steep = found.one(RATIO, "Q = -Q' = r0/(1 - gamma)"), found.one(RATIO, "slopes L and -L")
    return verdict(flat <= 1, steep <= 1), (
        f"rewards r0 = 0.5 and -r0, neighbours, have Q = r0/(1 - gamma) and -Q: {flat:.2f} times the bound; slopes L "
        f"against -L: {steep:.2f} times. The factors should be 4 and 2, not 2 and 1"
    )


KERNELS = "tests/noise/test_kernels.py::"
SHOWN = "tests/paper/test_claims_spaces.py::"
LEMMA = Statement(
    "Lemma 6: inner product and kernel",
    "H^1 with <f, g> = (f(0)g(0) + f(1)g(1))/2 + (1/2 beta) int f'g' + beta^2 fg has the kernel exp(-beta|x - y|)",
    KERNELS + "test_exponential_kernel_reproduces", _reproduces,
)  # fmt: skip
STEP = Statement(
    "Lemma 6, proof: evaluation is bounded", "f(x)^2 <= 2 beta <f, f>",
    SHOWN + "test_evaluation_is_not_bounded_as_printed", _step, "12",
)  # fmt: skip
BOUND = Statement(
    "Theorem 5, proof: norm bound",
    "|f| <= rho with slope at most L has |f|^2 <= (1 + beta/2) rho^2 + L^2/(2 beta)",
    KERNELS + "test_no_function_of_the_ball_exceeds_its_radius", _bound,
)  # fmt: skip
ROOT = Statement(
    "Theorem 5: C as a norm", "C = (v^2 + v) L^2 bounds the norm of Q - Q'",
    SHOWN + "test_c_is_a_squared_norm", _root, "2",
)  # fmt: skip
SLOPES = Statement(
    "Theorem 5, proof: slope of Q - Q'", "Q - Q' is L-Lipschitz, so |Q - Q'|^2 <= (v^2 + v) L^2 at beta = 1/v",
    SHOWN + "test_a_difference_has_twice_the_slope", _slopes, "2",
)  # fmt: skip
ALTERNATIVE = Statement(
    "After Corollary 7: alternative sensitivity", "|Q - Q'|^2 <= 2 r0^2 (1 + beta/2)/(1 - gamma)^2 + L^2/beta",
    SHOWN + "test_the_alternative_bound_is_too_small", _alternative, "12",
)  # fmt: skip
STATEMENTS = (LEMMA, STEP, BOUND, ROOT, SLOPES, ALTERNATIVE)


@dataclass(frozen=True)
class Spaces(Task):
    """Norms, by exact integration of piecewise polynomials."""

    table: ClassVar[str] = TABLE
    tries: int = 200

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: the kernel's space"

    def rows(self) -> list[Row]:
        """Measures."""
        step = 1 / (2 * 0.1 * Exponential(0.1).norm(constant(1.0)) ** 2)
        rows = [STEP.row("f(0)^2 over 2 beta <f, f>", step, 1, setting="f = 1, beta = 0.1")]
        return [*_reproduced(), *rows, *self._balls(), *_sensitivities(), *_alternatives()]

    def _balls(self) -> list[Row]:
        """Random broken lines that keep to |f| <= 1 and a slope of at most 5, and zigzags."""
        rng, slope, rows = np.random.default_rng(0), 5.0, []
        for beta in BETAS:
            kernel = Exponential(beta)
            bound = 1 + beta / 2 + slope**2 / (2 * beta)
            rows.append(BOUND.row(RATIO, kernel.norm(below(1.0, slope)) ** 2 / bound, 1, setting="zigzag", x=beta))
            shares = []
            for _ in range(self.tries // len(BETAS)):
                knots = np.linspace(0, 1, int(rng.integers(2, 40)))
                values = rng.uniform(-1, 1, len(knots))
                values *= min(1.0, slope / np.abs(np.diff(values) / np.diff(knots)).max())
                shares.append(kernel.norm(piecewise_linear(knots, values)) ** 2 / bound)
            rows.append(BOUND.row(RATIO, max(shares), 1, setting="random", x=beta))
        return [*rows, BOUND.row("random functions tried", self.tries // len(BETAS) * len(BETAS))]


def _reproduced() -> list[Row]:
    smooth = Differentiable(lambda x: np.sin(3 * x) + x**2, lambda x: 3 * np.cos(3 * x) + 2 * x)
    points, rows = np.array([0.0, 0.2, 0.21, 0.9, 1.0]), []
    for beta in BETAS:
        kernel = Exponential(beta)
        gram = [[kernel.inner(kernel.section(x), kernel.section(y)) for y in points] for x in points]
        values = [kernel.inner(smooth, kernel.section(y)) for y in points]
        error = max(
            np.abs(np.array(gram) - kernel.covariance(points, points)).max(),
            np.abs(np.array(values) - smooth.value(points)).max(),
        )
        rows.append(LEMMA.row("largest error", error, 0, x=beta))
    return rows


def _sensitivities(v: float = 0.01, slope: float = 4.0) -> list[Row]:
    kernel, c = Exponential(1 / v), (v * v + v) * slope**2
    norm = kernel.norm(below(v * slope, slope))
    stated = (6.1875e-5**2 + 6.1875e-5) * 16  # v and L^2 of appendix E.3
    one = below(v * slope / 2, slope)  # and its mirror image: both L-Lipschitz, never further apart than vL
    difference = kernel.norm(one - (constant(0.0) - one)) ** 2
    return [
        ROOT.row("norm over C", norm / c, 1, setting="v = 0.01, L = 4"),
        ROOT.row("norm squared over C", norm**2 / c, 1, setting="v = 0.01, L = 4"),
        ROOT.row("sqrt(C) over C", 1 / math.sqrt(stated), 1, setting="v = 6.19e-5, L = 4"),
        SLOPES.row(RATIO, difference / c, 1, setting="v = 0.01, L = 4"),
    ]


def _alternatives(beta: float = 2.0, reward: float = 0.5, gamma: float = 0.5) -> list[Row]:
    """Rewards of r0 = 0.5 and of -r0 everywhere are 1 apart, so they are neighbours."""
    most, steep = reward / (1 - gamma), 1e3

    def bound(slope: float) -> float:
        return 2 * reward**2 * (1 + beta / 2) / (1 - gamma) ** 2 + slope**2 / beta

    kernel = Exponential(beta)
    flat = kernel.norm(constant(most) - constant(-most)) ** 2 / bound(0.0)
    opposite = below(0.0, -steep)  # at most 0.25 in size: its slope is nearly all of its norm
    against = below(0.0, steep)
    return [
        ALTERNATIVE.row(RATIO, flat, 1, setting="Q = -Q' = r0/(1 - gamma)"),
        ALTERNATIVE.row(RATIO, kernel.norm(against - opposite) ** 2 / bound(steep), 1, setting="slopes L and -L"),
    ]
