"""What figure 1's curves say about the paper's words."""

import math
from collections.abc import Sequence

from paper.experiment import Claim
from paper.figures.curves import (
    Measure,
    gained,
    late,
    late_scores,
    mean_of,
    references,
    samples_to,
    size_of,
    where,
)
from paper.figures.judging import CLEARLY, MARGIN, judged
from paper.task import Row

EVERY = {"code": "each episode", "text": "each round"}
"""How often the noise is drawn by default, by algorithm."""
ONE = "one path"
"""What the paper compares with, J = 1: the same noise for the whole run."""
LITTLE = 0.4
"""Of noise levels below it the paper expects most."""
NEAR = 0.9
"""A run that ends with this score has converged "with limited sub-optimality"."""
SHOWN_BY = "python -m paper figure1"


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
    verdict = judged([more > order[0] for more in order[1:]], [more < order[0] for more in order[1:]])
    if verdict == "holds" and order != sorted(order):
        verdict = "in part"
    words = ", ".join(f"{_samples(samples)} at sigma {sigma:g}" for sigma, samples in needed.items())
    return Claim(
        name="figure 1: more noise needs more samples",
        printed="With the increase of the noise level, the algorithm requires more samples to achieve the same return "
        "than the non-private version.",
        measured=f"The authors' program, noise redrawn each episode, samples until the mean return of five episodes "
        f"reaches {level:.1f} (midway between random actions and the best): {words} ({size_of(quiet)}).",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def converges(code: Sequence[Row]) -> Claim:
    """Whether runs end near the best, with little noise and with more."""
    noised = levels(code, EVERY["code"])
    share = {sigma: float((late_scores(rows) >= NEAR).mean()) for sigma, rows in noised.items()}
    likely = {sigma: part >= 0.5 for sigma, part in share.items()}
    contrary = [not likely[sigma] and Measure(NEAR).above(late(rows)) for sigma, rows in noised.items()]
    verdict, untested = judged(list(likely.values()), contrary), ""
    if not any(sigma < LITTLE for sigma in noised):
        verdict, untested = "in part", f" No sigma below {LITTLE:g} was run, so the claim is not tested."
    words = ", ".join(f"{part:.0%} at sigma {sigma:g} (mean {late(noised[sigma])})" for sigma, part in share.items())
    return Claim(
        name="figure 1: converges if noise is reset every round",
        printed="With the noise being reset every round, the algorithm is likely to converge with limited "
        "sub-optimality, especially when sigma < 0.4.",
        measured=f"Share of the authors' program's runs that end with a score of {NEAR} or more: {words} "
        f"({size_of(next(iter(noised.values())))}).{untested}",
        verdict=verdict,
        shown_by=SHOWN_BY,
    )


def resets_help(code: Sequence[Row]) -> Claim:
    """Whether redrawing the noise every episode ends better than one path for the whole run, over all levels.

    Numbers of paths between the two are told and not judged, because the paper does not speak of them.
    """
    every, words, difference = levels(code, EVERY["code"]), [], {}
    for noise in sorted({str(row["noise"]) for row in code} - {EVERY["code"], "none"}, reverse=True):
        fewer = levels(code, noise)
        shared = [sigma for sigma in every if sigma in fewer]
        if not shared:
            continue
        more, less = (mean_of([late(runs[sigma]) for sigma in shared]) for runs in (every, fewer))
        difference[noise] = more.minus(less)
        words.append(f"{noise}: {less} against {more} (" + _each(every, fewer, shared) + ")")
    judge = [difference[ONE]] if ONE in difference else []
    return Claim(
        name="figure 1: resetting every round gives better utility",
        printed="'We suggest using J = T/B in practice to achieve a better utility': noise reset every round, against "
        "one path, J = 1.",
        measured=f"Score that the authors' program ends with, mean over the noise levels, with fewer draws against a "
        f"draw each episode: {'; '.join(words)} ({size_of(next(iter(every.values())))}). Judged by {ONE}. {CLEARLY} "
        "What noise that is shared gives away is another matter (docs/errata.md, 6).",
        verdict=judged([one.low > 0 for one in judge], [one.high < 0 for one in judge]),
        shown_by=SHOWN_BY,
    )


def as_printed_learns(text: Sequence[Row]) -> Claim:
    """Whether the listing gains anything, at any setting, and comes to be better than random actions."""
    worst, best, random = references()
    chance = (random - worst) / (best - worst)
    settings = sorted({(str(row["noise"]), float(row["sigma"] or 0.0)) for row in text})
    runs = {setting: where(text, noise=setting[0], sigma=setting[1]) for setting in settings}
    learns = [gained(rows).low > 0 and late(rows).above(Measure(chance)) for rows in runs.values()]
    stuck = [gained(rows).high <= MARGIN or Measure(chance).above(late(rows)) for rows in runs.values()]
    quiet = where(text, sigma=0.0)
    ends = [late(rows).mean for rows in runs.values()]
    gains = [gained(rows).mean for rows in runs.values()]
    return Claim(
        name="figure 1: Algorithm 1 as printed learns",
        printed="'Empirical results of Algorithm 1 on different noise levels' (the caption of figure 1).",
        measured=f"As listed, with what it garbles (a sign, an index, the target's noise) read as it must be meant, it "
        f"ends with scores of {min(ends):.2f} to {max(ends):.2f} over all {len(runs)} settings, "
        f"where random actions have {chance:.2f}; from the first fifth to the last it gains {min(gains):.2f} to "
        f"{max(gains):.2f}. Even without noise it ends with {late(quiet)} ({size_of(quiet)}). {sum(learns)} of "
        f"{len(runs)} settings clearly learn. {CLEARLY} The authors ran another program.",
        verdict=judged(learns, stuck),
        shown_by=SHOWN_BY,
    )


def _samples(samples: float) -> str:
    return f"{samples:,.0f}" if math.isfinite(samples) else "never"


def _each(every: dict[float, list[Row]], fewer: dict[float, list[Row]], shared: Sequence[float]) -> str:
    pairs = ((sigma, late(fewer[sigma]).mean, late(every[sigma]).mean) for sigma in shared)
    return ", ".join(f"sigma {sigma:g}: {less:.2f} against {more:.2f}" for sigma, less, more in pairs)
