"""The parameters that appendix E.3 prints, against the theorem that they are to meet and the arithmetic on the way."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from paper.claims.statement import TABLE, Found, Statement, verdict
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.privacy import Budget, PublishedTheorem
from quietq.privacy.published import PublishedCheck

HALF = 5e-5  # delta and delta_g each: together the 1e-4 that is promised
THEOREM = PublishedTheorem(Budget(0.9, HALF))
SETS = {"k = 2.3, sigma = 0.32": (2.3, 0.32, 0.9), "k = 23, sigma = 0.313": (23.0, 0.313, 0.9),
        "k = 2.3, sigma = 0.74": (2.3, 0.74, 0.45)}  # fmt: skip
LEFT, RIGHT = "2k", "8.68 sqrt(beta) sigma"
TESTS, SHOWN = "tests/privacy/test_published.py::", "tests/paper/test_claims_parameters.py::"


def _set(found: Found) -> tuple[Verdict, str]:
    left, right = found.one(LEFT), found.one(RIGHT)
    sigma, needed = found.one("sigma"), found.one("sigma required")
    return verdict(left > right, sigma >= needed * (1 - 1e-3)), (
        f"2k = {left:.3g} against 8.68 sqrt(beta) sigma = {right:.0f}; sigma = {sigma:g} against the {needed:.3g} that "
        "the theorem asks for with this k"
    )


def _stated(name: str) -> Statement:
    k, sigma, epsilon = SETS[name]
    printed = f"alpha = 3e-4, k = {k:g}, L^2 = 16, B = 64, T = 5000, sigma = {sigma:g} is ({epsilon:g}, 1e-4)-DP"
    test = (
        "test_nor_do_they_with_the_appendix_value_of_k" if k > 20 else "test_the_papers_parameters_miss_the_condition"
    )
    return Statement(f"Appendix E.3: {name}", printed, TESTS + test, _condition, "4")


def _condition(found: Found) -> tuple[Verdict, str]:
    """The theorem needs both conditions: one alone is no part of a promise."""
    outcome, words = _set(found)
    return "holds" if outcome == "holds" else "fails", words


def _smallest(found: Found) -> tuple[Verdict, str]:
    k, sigma = found.all("smallest k"), found.all("its sigma")
    return verdict(k[0] <= 23, k[1] <= 23), (
        f"the smallest k that meets the theorem as printed is {k[0]:.0f} with sigma = {sigma[0]:.2f}; with the root in "
        f"C, {k[1]:.0f} with sigma = {sigma[1]:.0f}"
    )


def _against(found: Found) -> tuple[Verdict, str]:
    row = found.rows[0]
    printed, measured = row["printed"], row["measured"]
    assert isinstance(printed, float)
    assert isinstance(measured, float)
    return verdict(abs(measured / printed - 1) < 0.01), f"{row['quantity']} is {measured:.3g}, not {printed:.3g}"


def _v(found: Found) -> tuple[Verdict, str]:
    here, there = found.one("v", "k = 23"), found.one("v", "k = 2.3")
    return verdict(abs(here / 6.19e-5 - 1) < 0.01), f"k = 23 gives v = {here:.3g}; {there:.3g} belongs to k = 2.3"


def _sigma(found: Found) -> tuple[Verdict, str]:
    here, there = found.one("sigma", "v of k = 23"), found.one("sigma", "v = 6.19e-5")
    return verdict(abs(here / 0.313 - 1) < 0.01, abs(there / 0.313 - 1) < 0.01), (
        f"with the v of k = 23 it is {here:.3f}; with the v = 6.19e-5 printed just before, {there:.3f}"
    )


def _beta(found: Found) -> tuple[Verdict, str]:
    theorem, proof = found.one("beta", "theorem"), found.one("beta", "proof")
    ratio = found.one("bound of the squared norm over (v^2 + v)L^2", "proof")
    return verdict(abs(theorem / proof - 1) < 1e-6), (
        f"the theorem has beta = 1/v = {theorem:.0f}, the proof's kernel beta = vL = {proof:.3g}, with which the norm "
        f"bound is {ratio:.2g} times as large"
    )


def _small(found: Found) -> tuple[Verdict, str]:
    delta = found.one("J exp(...), or 1 where the condition fails")
    return verdict(delta < 1e-3), f"with the stated parameters its condition fails, so nothing is left of it: {delta:g}"


STATED = {name: _stated(name) for name in SETS}
SMALLEST = Statement(
    "Appendix E.3: k = 23", "k = 23 is sufficient for delta_g <= 5e-5 at epsilon 0.9",
    TESTS + "test_smallest_k_that_would_do", _smallest, "4",
)  # fmt: skip
COEFFICIENT = Statement(
    "Appendix E.3: 8.6 sqrt(k + 1)", "8.68 sqrt(beta) sigma is about 8.6 sqrt(k + 1)",
    SHOWN + "test_the_derivation_of_the_parameters", _against, "12",
)  # fmt: skip
MARGIN = Statement(
    "Appendix E.3: the margin", "2k - 8.6 sqrt(k + 1) = ln(1 - exp(ln(1 - delta_g)/J)) is about 3.5",
    SHOWN + "test_the_derivation_of_the_parameters", _against, "12",
)  # fmt: skip
V = Statement("Appendix E.3: v", "k = 23 gives v = 6.19e-5", TESTS + "test_constants_as_printed", _v, "4")
SIGMA = Statement(
    "Appendix E.3: sigma = 0.313", "sqrt(2(T/B) ln(epsilon/delta)) v L^2/epsilon is about 0.313",
    SHOWN + "test_the_derivation_of_the_parameters", _sigma, "4",
)  # fmt: skip
BETA = Statement(
    "Theorem 5: the kernel's beta", "beta = 1/v (statement); K(x, y) = exp(-vL|x - y|) (proof)",
    SHOWN + "test_two_betas_are_printed", _beta, "12",
)  # fmt: skip
SMALL = Statement(
    "Experiments: J = T/B costs little", "J exp(-(2k - 8.68 sqrt(beta) sigma)^2/2) is exponentially small",
    TESTS + "test_the_papers_parameters_miss_the_condition", _small, "4",
)  # fmt: skip
STATEMENTS = (*STATED.values(), SMALLEST, COEFFICIENT, MARGIN, V, SIGMA, BETA, SMALL)


@dataclass(frozen=True)
class Parameters(Task):
    """Arithmetic."""

    table: ClassVar[str] = TABLE

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: the stated parameters"

    def rows(self) -> list[Row]:
        """Measures."""
        rows = []
        for name, (k, sigma, epsilon) in SETS.items():
            check = replace(THEOREM, budget=Budget(epsilon, HALF), bound=k).check(sigma)
            rows += _sides(STATED[name], name, check)
        for rooted in (False, True):
            least, words = (
                replace(THEOREM, with_square_root=rooted).smallest(),
                "with the root" if rooted else "as printed",
            )
            rows += [
                SMALLEST.row("smallest k", least.bound, 23, setting=words),
                SMALLEST.row("its sigma", least.sigma, setting=words),
            ]
        return [*rows, *_derivation(), *_betas()]


def _sides(statement: Statement, name: str, check: PublishedCheck) -> list[Row]:
    """Both conditions of the theorem."""
    return [
        statement.row(LEFT, check.left, setting=name),
        statement.row(RIGHT, check.right, setting=name),
        statement.row("sigma", check.sigma, setting=name),
        statement.row("sigma required", check.sigma_required, setting=name),
    ]


def _derivation() -> list[Row]:
    small, large = THEOREM, replace(THEOREM, bound=23.0)
    rounds = 2 * THEOREM.steps / THEOREM.batch
    size = math.sqrt(rounds * math.log(0.9 / HALF)) * THEOREM.lipschitz_squared / 0.9  # sigma/v
    coefficient = 8.68 * size * math.sqrt(large.v / (large.bound + 1))
    # exp(-margin^2/2) = 1 - (1 - delta_g)^(1/J), which the appendix writes without the square, the half and the sign
    margin = math.sqrt(-2 * math.log(-math.expm1(math.log1p(-HALF) / THEOREM.resets)))
    check = small.check(0.32)
    return [
        COEFFICIENT.row("8.68 sqrt(beta) sigma/sqrt(k + 1)", coefficient, 8.6),
        MARGIN.row("the least margin", margin, 3.5),
        V.row("v", large.v, 6.19e-5, setting="k = 23"),
        V.row("v", small.v, 6.19e-5, setting="k = 2.3"),
        SIGMA.row("sigma", size * large.v, 0.313, setting="v of k = 23"),
        SIGMA.row("sigma", size * small.v, 0.313, setting="v = 6.19e-5"),
        SMALL.row("J exp(...), or 1 where the condition fails", check.delta_path, setting="k = 2.3, sigma = 0.32"),
    ]


def _betas() -> list[Row]:
    v, squared = THEOREM.v, THEOREM.lipschitz_squared
    rows = []
    for words, beta in (("theorem", THEOREM.beta), ("proof", v * math.sqrt(squared))):
        bound = ((1 + beta / 2) * v * v + 1 / (2 * beta)) * squared
        rows.append(BETA.row("beta", beta, THEOREM.beta, setting=words))
        rows.append(
            BETA.row("bound of the squared norm over (v^2 + v)L^2", bound / ((v * v + v) * squared), 1, setting=words)
        )
    return rows
