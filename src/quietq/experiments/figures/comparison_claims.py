"""What figure 2's curves say about the paper's words."""

from collections.abc import Sequence

import numpy as np

from quietq.experiments.experiment import Claim, Verdict
from quietq.experiments.figures.curves import CLEAR, LATE, Measure, gained, late, measure, references, size_of, where
from quietq.experiments.task import Row
from quietq.privacy.budget import Budget
from quietq.privacy.limits import cap_any_dp, cap_gdp, steps_between

SHOWN_BY = "quietq reproduce figure2"
BASELINES = ("input", "gradient")
RADIUS, DISTANCE = 1.0, 0.5
"""The paper's relation, and how far the walk's reward is from the one with opposite preferences, 0.5 - r."""


def targets(rows: Sequence[Row]) -> list[float]:
    """The targets, largest first."""
    return sorted({float(row["target_epsilon"]) for row in rows if row["target_epsilon"] is not None}, reverse=True)


def ended(rows: Sequence[Row], method: str, epsilon: float) -> Measure:
    """The score that a method's runs end with."""
    return late(where(rows, method=method, target_epsilon=epsilon))


def outperforms(rows: Sequence[Row]) -> Claim:
    """Whether the paper's curve is above those of both baselines, at both targets."""
    better, words = [], []
    for epsilon in targets(rows):
        ours = ended(rows, "published", epsilon)
        others = {method: ended(rows, method, epsilon) for method in BASELINES}
        better += [ours.above(other) for other in others.values()]
        named = ", ".join(
            f"{method} {other} (worth epsilon {worth(rows, method, epsilon):.2f})" for method, other in others.items()
        )
        words.append(f"target {epsilon:g}: the paper's {ours} (a claim), {named}")
    verdict: Verdict = "holds" if all(better) else "in part" if any(better) else "fails"
    spent = ", ".join(
        f"{method} {'keeps' if all(worth(rows, method, e) <= e for e in targets(rows)) else 'misses'} its target"
        for method in BASELINES
    )
    return Claim(
        name="figure 2: outperforms the baselines",
        printed="Both baselines are differentially private under our setting, while our algorithm significantly "
        "outperforms them.",
        measured=f"Scores that runs end with: {'; '.join(words)} ({size_of(_one(rows))}). The "
        f"curves are not at the same privacy: {spent}. (The paper's noise on gradients is meant for a mean that moves "
        "by C, and it moves by up to 2C.)",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def keeps_its_target(rows: Sequence[Row], opposite: Sequence[Row]) -> Claim:
    """Whether the paper's scores under the reward and its opposite are such as its promise allows at all.

    It is never more than `in part`, because scores can break a promise and cannot show that it is kept.
    """
    steps = steps_between(DISTANCE, RADIUS)
    broken, words = [], []
    for epsilon in targets(rows):
        budget = Budget(epsilon, float(where(opposite, target_epsilon=epsilon)[0]["delta"] or 0.0))
        here, there = ended(rows, "published", epsilon), _score(where(opposite, target_epsilon=epsilon))
        cap = Measure(cap_any_dp(budget, steps), 0.0)
        broken.append(here.above(cap) and there.above(cap))
        words.append(
            f"at {epsilon:g} it ends with {here} here and {there} there, where no ({epsilon:g}, {budget.delta:g})-DP "
            f"algorithm has more than {cap.mean:.3f} in both, and none with Gaussian noise more than "
            f"{cap_gdp(budget.mu, steps):.3f}"
        )
    verdict: Verdict = "fails" if any(broken) else "in part"
    return Claim(
        name="figure 2: the paper's curve is at its target",
        printed="All methods of figure 2 target the same (epsilon, delta), and ours achieves it.",
        measured=f"The paper's algorithm under the walk's reward and under its opposite, which are neighbours: "
        f"{'; '.join(words)} ({size_of(_one(rows))}). More than a cap in both, clearly, is a promise broken, as it is "
        f"at {sum(broken)} of {len(broken)} targets; less proves nothing.",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def baselines_stand_still(rows: Sequence[Row]) -> Claim:
    """Whether the baselines gain nothing at the smaller target."""
    epsilon = targets(rows)[-1]
    gains = {method: gained(where(rows, method=method, target_epsilon=epsilon)) for method in BASELINES}
    still = [not gain.above(Measure(0.0, 0.0)) for gain in gains.values()]
    verdict: Verdict = "holds" if all(still) else "in part" if any(still) else "fails"
    worst, best, random = references()
    words = ", ".join(f"{method} {gain}, to {ended(rows, method, epsilon)}" for method, gain in gains.items())
    ours = gained(where(rows, method="published", target_epsilon=epsilon))
    return Claim(
        name="figure 2: baselines do not improve at epsilon 0.45",
        printed="On the higher privacy regime, epsilon = 0.45, both the baseline methods do not improve over the "
        "training.",
        measured=f"Gain of score from the first fifth of the episodes to the last, at {epsilon:g}: {words}; random "
        f"actions have {(random - worst) / (best - worst):.2f}. The paper's own, at its sigma for this target, gains "
        f"{ours}, to {ended(rows, 'published', epsilon)} ({size_of(_one(rows))}).",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def evaluation_is_similar(rows: Sequence[Row]) -> Claim:
    """Whether policy evaluation ends where the paper's algorithm does, within what the seeds can tell."""
    similar, words = [], []
    for epsilon in targets(rows):
        ours, theirs = ended(rows, "published", epsilon), ended(rows, "evaluation", epsilon)
        similar.append(not ours.above(theirs) and not theirs.above(ours))
        words.append(f"{theirs} against {ours} at {epsilon:g}")
    verdict: Verdict = "holds" if all(similar) else "in part" if any(similar) else "fails"
    return Claim(
        name="figure 2: policy evaluation performs similarly",
        printed="The policy evaluation method of Balle et al. shares similar performance with ours.",
        measured=f"Scores that runs end with, policy evaluation against the paper's: {', '.join(words)} "
        f"({size_of(_one(rows))}; similar: no difference of {CLEAR:g} standard errors). The paper does not say how it "
        "made policy evaluation act, so this is our reading; and it protects one step's reward, not the function.",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def worth(rows: Sequence[Row], method: str, epsilon: float) -> float:
    """The epsilon that a method's noise is really worth."""
    return float(where(rows, method=method, target_epsilon=epsilon)[0]["worth_epsilon"] or 0.0)


def _score(rows: Sequence[Row]) -> Measure:
    """The score that runs end with, from rows that have one."""
    last = max(int(row["episode"] or 0) for row in rows)
    late_rows = [row for row in rows if int(row["episode"] or 0) > last - max(last // LATE, 1)]
    seeds = sorted({int(row["seed"] or 0) for row in rows})
    return measure(
        np.array([np.mean([float(row["score"] or 0.0) for row in where(late_rows, seed=seed)]) for seed in seeds])
    )


def _one(rows: Sequence[Row]) -> list[Row]:
    return where(rows, method="published", target_epsilon=targets(rows)[0])
