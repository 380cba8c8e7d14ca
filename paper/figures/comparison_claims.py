"""What figure 2's curves say about the paper's words."""

import math
from collections.abc import Sequence

import numpy as np

from paper.experiment import Claim
from paper.figures.curves import LATE, Measure, gained, late, measure, references, size_of, where
from paper.figures.judging import CLEARLY, MARGIN, different, judged, similar
from paper.task import Row
from quietq.privacy.budget import Budget

SHOWN_BY = "python -m paper figure2"
BASELINES = ("input", "gradient")
LARGEST_RETURN = 25.0
"""Of an episode: 50 rewards of 0.5. Under the opposite reward, 0.5 - r, it is this less the return."""
OUR_READING = (
    "How much noise is our reading: the appendix names a theorem for each and not all that goes into it "
    "(figures/baselines.py)."
)


def targets(rows: Sequence[Row]) -> list[float]:
    """The targets, largest first."""
    return sorted({float(row["target_epsilon"]) for row in rows if row["target_epsilon"] is not None}, reverse=True)


def ended(rows: Sequence[Row], method: str, epsilon: float) -> Measure:
    """The score that a method's runs end with."""
    return late(where(rows, method=method, target_epsilon=epsilon))


def outperforms(rows: Sequence[Row]) -> Claim:
    """Whether the paper's curve is above those of both baselines, at both targets, and they keep theirs."""
    gaps, words = [], []
    for epsilon in targets(rows):
        ours = ended(rows, "published", epsilon)
        others = {method: ended(rows, method, epsilon) for method in BASELINES}
        gaps += [ours.minus(other) for other in others.values()]
        named = ", ".join(
            f"{method} {other} (worth epsilon {worth(rows, method, epsilon):.2f})" for method, other in others.items()
        )
        words.append(f"target {epsilon:g}: the paper's {ours} (a claim), {named}")
    keeps = {method: all(worth(rows, method, e) <= e for e in targets(rows)) for method in BASELINES}
    verdict = judged([gap.low > 0 for gap in gaps], [gap.high < 0 for gap in gaps])
    if verdict == "holds" and not all(keeps.values()):
        verdict = "in part"
    spent = ", ".join(f"{method} {'keeps' if kept else 'misses'} its target" for method, kept in keeps.items())
    return Claim(
        name="figure 2: outperforms the baselines",
        printed="Both the approaches are differentially private under our setting, while our algorithm significantly "
        "outperforms them.",
        measured=f"Scores that runs end with: {'; '.join(words)} ({size_of(_one(rows))}). {CLEARLY} The "
        f"curves are not at the same privacy: {spent}. (Noise on gradients is meant for a mean that moves "
        f"by C, and it moves by up to 2C.) {OUR_READING}",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def cap_of_returns(budget: Budget) -> float:
    """What the scores of training under the walk's reward and its opposite, neighbours, cannot both pass.

    A score is scaled by the best and worst *policies*, and an episode can be luckier than either: its score S is
    between `low` and `high`, a little below 0 and above 1, and 1 - S under the opposite. So (S - low)/(high - low) is
    in [0, 1], and p - low <= e^epsilon (1 - q - low) + delta (high - low) for the expected scores p and q.

    >>> round(cap_of_returns(Budget(0.9, 1e-4)), 3), round(cap_of_returns(Budget(0.45, 1e-4)), 3)
    (0.716, 0.614)
    """
    worst, best, _ = references()
    low, high = -worst / (best - worst), (LARGEST_RETURN - worst) / (best - worst)
    more = math.exp(budget.epsilon)
    return min((more * (1 - low) + low + budget.delta * (high - low)) / (1 + more), high)


def keeps_its_target(rows: Sequence[Row], opposite: Sequence[Row]) -> Claim:
    """Whether the paper's scores under the reward and its opposite are such as its promise allows at all.

    It is never more than `in part`, because scores can break a promise and cannot show that it is kept.
    """
    broken, words = [], []
    for epsilon in targets(rows):
        budget = Budget(epsilon, float(where(opposite, target_epsilon=epsilon)[0]["delta"] or 0.0))
        here, there = ended(rows, "published", epsilon), _score(where(opposite, target_epsilon=epsilon))
        cap = Measure(cap_of_returns(budget))
        broken.append(here.above(cap) and there.above(cap))
        words.append(
            f"at {epsilon:g} it ends with {here} here and {there} there, where no ({epsilon:g}, {budget.delta:g})-DP "
            f"algorithm has more than {cap.mean:.3f} in both"
        )
    return Claim(
        name="figure 2: the paper's curve is at its target",
        printed="The methods of figure 2 'target the same (epsilon, delta) privacy guarantee', the paper's own too.",
        measured=f"The authors' program under the walk's reward and under its opposite, which are neighbours: "
        f"{'; '.join(words)} ({size_of(_one(rows))}). More than a cap in both, clearly, is a promise broken, as it is "
        f"at {sum(broken)} of {len(broken)} targets; less proves nothing. {CLEARLY}",
        verdict=judged([], broken),
        shown_by=SHOWN_BY,
    )


def baselines_stand_still(rows: Sequence[Row]) -> Claim:
    """Whether the baselines gain nothing at the smaller target."""
    epsilon = targets(rows)[-1]
    gains = {method: gained(where(rows, method=method, target_epsilon=epsilon)) for method in BASELINES}
    verdict = judged([gain.high <= MARGIN for gain in gains.values()], [gain.low > MARGIN for gain in gains.values()])
    worst, best, random = references()
    words = ", ".join(f"{method} {gain}, to {ended(rows, method, epsilon)}" for method, gain in gains.items())
    ours = gained(where(rows, method="published", target_epsilon=epsilon))
    return Claim(
        name="figure 2: baselines do not improve at epsilon 0.45",
        printed="On the higher privacy regime, epsilon = 0.45, both the baseline methods do not improve over the "
        "training.",
        measured=f"Gain of score from the first fifth of the episodes to the last, at {epsilon:g}: {words}; random "
        f"actions have {(random - worst) / (best - worst):.2f}. The paper's own, at its sigma for this target, gains "
        f"{ours}, to {ended(rows, 'published', epsilon)} ({size_of(_one(rows))}). No gain: clearly at most "
        f"{MARGIN:g}. {CLEARLY} {OUR_READING}",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def evaluation_is_similar(rows: Sequence[Row]) -> Claim:
    """Whether policy evaluation ends where the paper's algorithm does, by every reading of what its cells are.

    Readings disagree if one ends clearly higher and another clearly lower, too: the truth may lie between.
    """
    verdicts, words, sides = [], [], set[bool]()
    for cells in sorted({int(row["cells"]) for row in rows if row["cells"] is not None}):
        gaps, scores = [], []
        for epsilon in targets(rows):
            theirs = late(where(rows, method="evaluation", target_epsilon=epsilon, cells=cells))
            gaps.append(theirs.minus(ended(rows, "published", epsilon)))
            scores.append(f"{theirs} at {epsilon:g}")
        verdicts.append(judged([similar(gap) for gap in gaps], [different(gap) for gap in gaps]))
        sides |= {gap.mean > 0 for gap in gaps if different(gap)}
        words.append(f"{', '.join(scores)} with {cells} cells ({verdicts[-1]})")
    ours = ", ".join(f"{ended(rows, 'published', epsilon)} at {epsilon:g}" for epsilon in targets(rows))
    return Claim(
        name="figure 2: policy evaluation performs similarly",
        printed="'Their approach shares similar performance with ours' (policy evaluation by Balle et al.).",
        measured=f"Scores that policy evaluation ends with: {'; '.join(words)}; the paper's own: {ours} "
        f"({size_of(_one(rows))}; similar: clearly within {MARGIN:g}). {CLEARLY} The paper does not say how it made "
        "policy evaluation act, nor how many cells its linear fit has, so these are our readings (2 cells put their "
        "border on the peak, which flatters it); and it protects one step's reward, not the function.",
        verdict=verdicts[0] if len(set(verdicts)) == 1 and len(sides) < 2 else "in part",
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
