"""The paper's figure 1: learning curves by noise level, and by how often the noise is drawn anew.

Both algorithms that go by its name are run: the authors' program (`code`) and the listing (`text`). Without noise it
does not matter how often none is drawn, so that curve is run once for each.
"""

import math
from collections.abc import Sequence

from quietq.paper.algorithm import Preset, Published
from reproduction.experiment import Decision, Experiment, Row, Task, statement, task, where
from reproduction.figures import curves
from reproduction.figures.curves import MARGIN, Measure, late
from reproduction.picture import plot_noise_levels

SIGMAS = (0.2, 0.4, 0.6, 0.8, 1.0)
"""The paper's noise levels, but for 0."""
EVERY = {"code": "each episode", "text": "each round"}
"""How often the noise is drawn by default, by algorithm."""

LITTLE = 0.4
"""Of noise levels below it the paper expects most."""
NEAR = 0.9
"""A run that ends with this score has converged "with limited sub-optimality"."""


def noise_of(preset: Preset, sigma: float, resets: int | None) -> str:
    """How often the noise is drawn, in words; so many paths in a run, or as many as can be."""
    if sigma == 0:
        return "none"
    return EVERY[preset] if resets is None else "one path" if resets == 1 else f"{resets} paths"


def measure(preset: Preset, sigma: float, resets: int | None, steps: int, seeds: int, seed: int = 1) -> list[Row]:
    method = (Published.code if preset == "code" else Published.text)(sigma, resets=resets)
    columns = {"preset": preset, "sigma": sigma, "noise": noise_of(preset, sigma, resets), "resets": resets}
    return curves.curve_rows(method, steps, seeds, seed, columns)


def tasks(quick: bool) -> list[Task]:
    few: list[tuple[Preset, float, int | None]] = [("code", 0.0, None), ("code", 0.4, None), ("code", 1.0, None)]
    few += [("code", 0.4, 1), ("code", 1.0, 1), ("text", 0.0, None), ("text", 1.0, None)]
    every: list[tuple[Preset, float, int | None]] = []
    for preset in ("code", "text"):
        # Paths in a run, for the curves between one a round and one for all.
        every += [(preset, 0.0, None), *((preset, s, resets) for resets in (None, 10, 1) for s in SIGMAS)]
    steps, seeds = (1000, 3) if quick else (5000, 10)
    return [
        task(
            "figure1",
            f"Figure 1: {preset}, sigma {sigma:g}, {noise_of(preset, sigma, resets)}",
            measure,
            curves.program_of(preset, resets, steps, seeds),
            preset=preset,
            sigma=sigma,
            resets=resets,
            steps=steps,
            seeds=seeds,
        )
        for preset, sigma, resets in (few if quick else every)
    ]


def levels(rows: Sequence[Row], noise: str) -> dict[float, list[Row]]:
    """The rows of each noise level above 0, with noise drawn so often."""
    drawn = where(rows, noise=noise)
    return {sigma: where(drawn, sigma=sigma) for sigma in sorted({row["sigma"] for row in drawn})}


@statement("figure 1: more noise needs more samples")
def more_samples(rows: Sequence[Row]) -> Decision:
    code, (_, best, random) = where(rows, preset="code"), curves.references()
    level, quiet = (best + random) / 2, where(code, sigma=0.0)
    runs = {0.0: quiet, **levels(code, EVERY["code"])}
    needed = {sigma: curves.samples_to(one, level) for sigma, one in runs.items()}
    first, *order = needed.values()
    found = curves.clear_verdict([more > first for more in order], [more < first for more in order])
    if found == "holds" and order != sorted(order):
        found = "in part"
    number = {sigma: f"{samples:,.0f}" if math.isfinite(samples) else "never" for sigma, samples in needed.items()}
    words = ", ".join(f"{samples} at sigma {sigma:g}" for sigma, samples in number.items())
    return found, {"level": level, "words": words, "size": curves.size_of(quiet)}


@statement("figure 1: converges if noise is reset every round")
def converges(rows: Sequence[Row]) -> Decision:
    noised = levels(where(rows, preset="code"), EVERY["code"])
    share = {sigma: float((curves.last_part(curves.scores_of(one)) >= NEAR).mean()) for sigma, one in noised.items()}
    contrary = [share[sigma] < 0.5 and Measure(NEAR).above(late(one)) for sigma, one in noised.items()]
    found, untested = curves.clear_verdict([part >= 0.5 for part in share.values()], contrary), ""
    if not any(sigma < LITTLE for sigma in noised):
        found, untested = "in part", f" No sigma below {LITTLE:g} was run, so the claim is not tested."
    words = ", ".join(f"{part:.0%} at sigma {sigma:g} (mean {late(noised[sigma])})" for sigma, part in share.items())
    return found, {"words": words, "size": curves.size_of(next(iter(noised.values()))), "untested": untested}


@statement("figure 1: resetting every round gives better utility")
def resets_help(rows: Sequence[Row]) -> Decision:
    """By the mean over all levels; numbers of paths between the two are told only: the paper does not speak of them."""
    code = where(rows, preset="code")
    every, words, clear = levels(code, EVERY["code"]), [], list[Measure]()
    for noise in sorted({row["noise"] for row in code} - {EVERY["code"], "none"}, reverse=True):
        ends = {sigma: (late(one), late(every[sigma])) for sigma, one in levels(code, noise).items() if sigma in every}
        if ends:
            less, more = (curves.mean_of(list(one)) for one in zip(*ends.values(), strict=True))
            clear += [more.minus(less)] if noise == "one path" else []
            each = (f"sigma {sigma:g}: {few.mean:.2f} against {many.mean:.2f}" for sigma, (few, many) in ends.items())
            words.append(f"{noise}: {less} against {more} ({', '.join(each)})")
    found = curves.clear_verdict([one.low > 0 for one in clear], [one.high < 0 for one in clear])
    return found, {"words": "; ".join(words), "size": curves.size_of(next(iter(every.values())))}


@statement("figure 1: Algorithm 1 as printed learns")
def as_printed_learns(rows: Sequence[Row]) -> Decision:
    """Whether the listing gains anything, at any setting, and comes to be better than random actions."""
    text, random = where(rows, preset="text"), Measure(curves.chance())
    settings = sorted({(row["noise"], row["sigma"]) for row in text})
    runs = [where(text, noise=noise, sigma=sigma) for noise, sigma in settings]
    ends, gains, quiet = [late(one) for one in runs], [curves.gain(one) for one in runs], where(text, sigma=0.0)
    learns = [more.low > 0 and end.above(random) for more, end in zip(gains, ends, strict=True)]
    stuck = [more.high <= MARGIN or random.above(end) for more, end in zip(gains, ends, strict=True)]
    low, *_, high = sorted(end.mean for end in ends)
    least, *_, most = sorted(more.mean for more in gains)
    return curves.clear_verdict(learns, stuck), {
        "low": low,
        "high": high,
        "runs": len(runs),
        "chance": random.mean,
        "least": least,
        "most": most,
        "quiet": late(quiet),
        "size": curves.size_of(quiet),
        "learns": sum(learns),
    }


STATEMENTS = (more_samples, converges, resets_help, as_printed_learns)
FIGURE1 = Experiment(
    name="figure1",
    tasks=tasks,
    claims=lambda tables: [one.claim(tables["figure1"]) for one in STATEMENTS],
    drawings={"figure1": lambda tables, path: plot_noise_levels(tables["figure1"], path)},
)
