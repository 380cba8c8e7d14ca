"""What figure 1's curves say about the paper's words."""

import math
from collections.abc import Sequence

from quietq.experiments.experiment import Claim, Verdict
from quietq.experiments.figures.curves import (
    CLEAR,
    Measure,
    gained,
    late,
    late_scores,
    references,
    samples_to,
    size_of,
    where,
)
from quietq.experiments.task import Row

EVERY = {"code": "each episode", "text": "each round"}
"""How often the noise is drawn by default, by algorithm."""
NEAR = 0.9
"""A run that ends with this score has converged "with limited sub-optimality"."""
SHOWN_BY = "quietq reproduce figure1"


def levels(rows: Sequence[Row], noise: str) -> dict[float, list[Row]]:
    """The rows of each noise level above 0, with noise drawn so often."""
    drawn = where(rows, noise=noise)
    return {sigma: where(drawn, sigma=sigma) for sigma in sorted({float(row["sigma"] or 0.0) for row in drawn})}


def more_samples(code: Sequence[Row]) -> Claim:
    """Whether the samples needed rise with the noise."""
    _, best, random = references()
    level = (best + random) / 2
    quiet, noised = where(code, sigma=0.0), levels(code, EVERY["code"])
    needed = {0.0: samples_to(quiet, level)} | {sigma: samples_to(rows, level) for sigma, rows in noised.items()}
    order = list(needed.values())
    verdict: Verdict = "fails"
    if math.isfinite(order[0]) and min(order[1:]) > order[0]:
        verdict = "holds" if order == sorted(order) else "in part"
    words = ", ".join(f"{_samples(samples)} at sigma {sigma:g}" for sigma, samples in needed.items())
    return Claim(
        name="figure 1: more noise needs more samples",
        printed="With the increase of the noise level, the algorithm requires more samples to achieve the same return.",
        measured=f"The authors' program, noise redrawn each episode, samples until the mean return of five episodes "
        f"reaches {level:.1f} (midway between random actions and the best): {words} ({size_of(quiet)}).",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def converges(code: Sequence[Row]) -> Claim:
    """Whether runs end near the best, with little noise and with more."""
    noised = levels(code, EVERY["code"])
    share = {sigma: float((late_scores(rows) >= NEAR).mean()) for sigma, rows in noised.items()}
    little = [likely >= 0.5 for sigma, likely in share.items() if sigma < 0.4]
    more = [likely >= 0.5 for sigma, likely in share.items() if sigma >= 0.4]
    verdict: Verdict = "fails"
    if all(little + more):
        verdict = "holds"
    elif little and all(little):
        verdict = "in part"
    words = ", ".join(
        f"{likely:.0%} at sigma {sigma:g} (mean {late(noised[sigma])})" for sigma, likely in share.items()
    )
    return Claim(
        name="figure 1: converges if noise is reset every round",
        printed="With the noise being reset every round, the algorithm is likely to converge with limited "
        "sub-optimality, especially when sigma < 0.4.",
        measured=f"Share of the authors' program's runs that end with a score of {NEAR} or more: {words} "
        f"({size_of(next(iter(noised.values())))}).",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def resets_help(code: Sequence[Row]) -> Claim:
    """Whether redrawing the noise every episode ends better than redrawing it less often, over all levels."""
    every = levels(code, EVERY["code"])
    words, better, worse = [], [], []
    for noise in sorted({str(row["noise"]) for row in code} - {EVERY["code"], "none"}, reverse=True):
        fewer = levels(code, noise)
        shared = [sigma for sigma in every if sigma in fewer]
        more = _mean([late(every[sigma]) for sigma in shared])
        less = _mean([late(fewer[sigma]) for sigma in shared])
        better.append(more.above(less))
        worse.append(less.above(more))
        words.append(f"{noise}: {less} against {more} (" + _each(every, fewer, shared) + ")")
    verdict: Verdict = "in part" if any(better) else "fails"
    if better and all(better):
        verdict = "holds"
    clearly = " Fewer draws are clearly better." if any(worse) else ""
    return Claim(
        name="figure 1: resetting every round gives better utility",
        printed="We suggest using J = T/B in practice (noise reset every round) to achieve a better utility.",
        measured=f"Score that the authors' program ends with, mean over the noise levels, with fewer draws against a "
        f"draw each episode: {'; '.join(words)} ({size_of(next(iter(every.values())))}).{clearly} Clearly is by "
        f"{CLEAR:g} standard errors. What noise that is shared gives away is another matter (docs/errata.md, 6).",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def as_printed_learns(text: Sequence[Row]) -> Claim:
    """Whether the listing gains anything, at any setting, and comes to be better than random actions."""
    worst, best, random = references()
    chance = (random - worst) / (best - worst)
    settings = sorted({(str(row["noise"]), float(row["sigma"] or 0.0)) for row in text})
    runs = {setting: where(text, noise=setting[0], sigma=setting[1]) for setting in settings}
    learns = [
        gained(rows).above(Measure(0.0, 0.0)) and late(rows).above(Measure(chance, 0.0)) for rows in runs.values()
    ]
    verdict: Verdict = "holds" if all(learns) else "in part" if any(learns) else "fails"
    quiet = where(text, sigma=0.0)
    ends = [late(rows).mean for rows in runs.values()]
    gains = [gained(rows).mean for rows in runs.values()]
    return Claim(
        name="figure 1: Algorithm 1 as printed learns",
        printed="The learning curves are empirical results of Algorithm 1, with the parameters of the appendix.",
        measured=f"As listed it ends with scores of {min(ends):.2f} to {max(ends):.2f} over all {len(runs)} settings, "
        f"where random actions have {chance:.2f}; from the first fifth to the last it gains {min(gains):.2f} to "
        f"{max(gains):.2f}. Even without noise it ends with {late(quiet)} ({size_of(quiet)}). {sum(learns)} of "
        f"{len(runs)} settings learn. The authors ran another program.",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def _samples(samples: float) -> str:
    return f"{samples:,.0f}" if math.isfinite(samples) else "never"


def _mean(measures: Sequence[Measure]) -> Measure:
    """The mean over settings that were run apart."""
    count = max(len(measures), 1)
    return Measure(sum(one.mean for one in measures) / count, math.sqrt(sum(one.error**2 for one in measures)) / count)


def _each(every: dict[float, list[Row]], fewer: dict[float, list[Row]], shared: Sequence[float]) -> str:
    pairs = ((sigma, late(fewer[sigma]).mean, late(every[sigma]).mean) for sigma in shared)
    return ", ".join(f"sigma {sigma:g}: {less:.2f} against {more:.2f}" for sigma, less, more in pairs)
