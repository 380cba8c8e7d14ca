"""The parameters that appendix E.3 prints, against the theorem that they are to meet and the arithmetic on the way."""

import math
from dataclasses import replace

from quietq.paper.theorem import PublishedTheorem
from quietq.privacy import Budget
from reproduction.claims.statement import Measurements, at_most, says
from reproduction.experiment import Decision, Row, decide

HALF = 5e-5  # delta and delta_g each: together the 1e-4 that is promised
THEOREM = PublishedTheorem(Budget(0.9, HALF))
SETS = ((2.3, 0.32, 0.9), (23.0, 0.313, 0.9), (2.3, 0.74, 0.45))
"""k, sigma and epsilon."""
LEFT = "2k"


def _conditions(found: Measurements) -> Decision:
    """The theorem needs both: one alone is no part of a promise."""
    enough = found.one("sigma") >= found.one("sigma required") * (1 - 1e-3)
    return decide(found.one(LEFT) > found.one("8.68 sqrt(beta) sigma") and enough)


def _close(found: Measurements) -> Decision:
    (row,) = found.rows
    return decide(_near(row["measured"], row["printed"]), row=row)


def _near(value: float, printed: float, within: float = 0.01) -> bool:
    return abs(value / printed - 1) < within


SMALL_K, LARGE_K, LARGE_SIGMA = (
    says(f"Appendix E.3: k = {k:g}, sigma = {sigma:g}")(_conditions) for k, sigma, _ in SETS
)
SMALLEST = says("Appendix E.3: k = 23")(lambda found: decide(*(k <= 23 for k in found.all("smallest k"))))
COEFFICIENT = says("Appendix E.3: 8.6 sqrt(k + 1)")(_close)
MARGIN = says("Appendix E.3: the margin")(_close)
V = says("Appendix E.3: v")(lambda found: decide(_near(found.one("v", "k = 23"), 6.19e-5)))
SIGMA = says("Appendix E.3: sigma = 0.313")(lambda found: decide(*(_near(s, 0.313) for s in found.all("sigma"))))
BETA = says("Theorem 5: the kernel's beta")(
    lambda found: decide(_near(found.one("beta", "theorem"), found.one("beta", "proof"), 1e-6))
)
SMALL = says("Experiments: J = T/B costs little")(at_most(1e-3, "J exp(...), or 1 where the condition fails"))


def measure() -> list[Row]:
    rows = []
    for statement, (k, sigma, epsilon) in zip((SMALL_K, LARGE_K, LARGE_SIGMA), SETS, strict=True):
        check = replace(THEOREM, budget=Budget(epsilon, HALF), bound=k).check(sigma)
        sides = {
            LEFT: check.left,
            "8.68 sqrt(beta) sigma": check.right,
            "sigma": check.sigma,
            "sigma required": check.sigma_required,
        }
        name = statement.name.removeprefix("Appendix E.3: ")
        rows += [statement.row(quantity, value, setting=name) for quantity, value in sides.items()]
    for words, rooted in (("as printed", False), ("with the root", True)):
        least = replace(THEOREM, with_square_root=rooted).smallest()
        rows.append(SMALLEST.row("smallest k", least.bound, 23, setting=words))
        rows.append(SMALLEST.row("its sigma", least.sigma, setting=words))
    v, squared = THEOREM.v, THEOREM.lipschitz_squared
    betas = []
    for words, beta in (("theorem", THEOREM.beta), ("proof", v * math.sqrt(squared))):
        ratio = ((1 + beta / 2) * v * v + 1 / (2 * beta)) * squared / ((v * v + v) * squared)
        betas.append(BETA.row("beta", beta, THEOREM.beta, setting=words))
        betas.append(BETA.row("bound of the squared norm over (v^2 + v)L^2", ratio, 1, setting=words))
    return [*rows, *_derivation(), *betas]


def _derivation() -> list[Row]:
    small, large = THEOREM, replace(THEOREM, bound=23.0)
    rounds = 2 * THEOREM.steps / THEOREM.batch
    size = math.sqrt(rounds * math.log(0.9 / HALF)) * THEOREM.lipschitz_squared / 0.9  # sigma/v
    coefficient = 8.68 * size * math.sqrt(large.v / (large.bound + 1))
    # exp(-margin^2/2) = 1 - (1 - delta_g)^(1/J), which the appendix writes without the square, the half and the sign
    margin = math.sqrt(-2 * math.log(-math.expm1(math.log1p(-HALF) / THEOREM.resets)))
    left = small.check(0.32).delta_path
    return [
        COEFFICIENT.row("8.68 sqrt(beta) sigma/sqrt(k + 1)", coefficient, 8.6),
        MARGIN.row("the least margin", margin, 3.5),
        V.row("v", large.v, 6.19e-5, setting="k = 23"),
        V.row("v", small.v, 6.19e-5, setting="k = 2.3"),
        SIGMA.row("sigma", size * large.v, 0.313, setting="v of k = 23"),
        SIGMA.row("sigma", size * small.v, 0.313, setting="v = 6.19e-5"),
        SMALL.row("J exp(...), or 1 where the condition fails", left, setting="k = 2.3, sigma = 0.32"),
    ]
