"""The comparison at equal protection, as two pictures: scores by the number of people, and people needed for 0.9."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quietq.cli.report.look import checked, new_figure, plain, save
from quietq.privacy.limits import guess_right, of_hundred
from quietq.worlds import WALK as WALK_WORLD
from reproduction.comparison.needed import TARGET, Curve, curves, needed
from reproduction.comparison.scores import DELTA, EPSILON, budget, fewest_people
from reproduction.experiment import Row, Tables, where

STYLES: dict[str, tuple[str, str, str]] = {
    "reward, k-norm": ("#0072B2", "-", "o"),
    "reward, knots": ("#0072B2", "--", "s"),
    "reward, path": ("#000000", "-", "^"),
    "reward, observed": ("#56B4E9", "-.", "v"),
    "input": ("#D55E00", "-", "D"),
    "value": ("#009E73", "--", "P"),
    "gradient": ("#CC79A7", "-.", "X"),
    "output": ("#E69F00", ":", "*"),
    "value-network": ("#666666", ":", "h"),
}
"""A colour, a line and a mark for each method: two of them are enough to tell it by, in grey too."""
LABELS = {"reward, k-norm": "reward, k-norm (pure)"}
PROTECTION = f"a guesser is right in at most {of_hundred(guess_right(EPSILON, DELTA, budget().mu))} of 100 cases"
WALK = WALK_WORLD.name


def plot_people(tables: Tables, path: Path) -> None:
    target, found = checked(path), curves(tables["comparison_scores"])
    others = [world for world in dict.fromkeys(curve.world for curve in found) if world != WALK]
    figure = new_figure(11.0, 10.8 if others else 6.8)
    grid = figure.add_gridspec(2, len(others), height_ratios=(1.75, 1)) if others else figure.add_gridspec(1, 1)
    panels = {WALK: figure.add_subplot(grid[0, :])}
    panels |= {world: figure.add_subplot(grid[1, place]) for place, world in enumerate(others)}
    handles: dict[str, Any] = {}
    for world, panel in panels.items():
        _panel(panel, world, [curve for curve in found if curve.world == world], tables)
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=4, fontsize=11, frameon=False)
    title = f"What each method scores with the same certified protection: {PROTECTION}"
    figure.suptitle(title, fontsize=13.5)
    save(figure, target)


def _panel(panel: Any, world: str, found: Sequence[Curve], tables: Tables) -> None:
    large, caps = world == WALK, where(tables["comparison_limits"], world=world)
    people, gaussian, anything = ([row[name] for row in caps] for name in ("people", "gaussian", "any"))
    words = "impossible under both of two opposite rewards", "the same, with Gaussian noise: above this line"
    panel.fill_between(people, anything, 1.0, color="0.85", linewidth=0, zorder=0, label=words[0])
    panel.plot(people, gaussian, color="0.35", linewidth=1.4, dashes=(1, 1), label=words[1])
    for method, line, label in (("none", (0, (5, 1)), "no privacy"), ("random", (0, (1, 3)), "random actions")):
        scores = [row["score"] for row in where(tables["comparison_scores"], world=world, method=method)]
        if scores:
            panel.axhline(float(np.mean(scores)), color="0.45", linewidth=1.1, linestyle=line, label=label)
    panel.axhline(TARGET, color="#B00020", linewidth=0.9, label=f"a score of {TARGET:g}")
    for curve in found:
        color, line, mark = STYLES[curve.name]
        error = np.nanstd(curve.scores, axis=1, ddof=1) / np.sqrt(curve.draws)  # of the mean
        panel.errorbar(
            curve.people,
            curve.mean,
            error,
            color=color,
            linestyle=line,
            marker=mark,
            markersize=6.5 if large else 4.5,
            linewidth=1.8 if large else 1.3,
            elinewidth=0.9,
            capsize=0,
            label=LABELS.get(curve.name, curve.name),
        )
    panel.set_xscale("log")
    ticks = (1, 3, 10, 30, 100, 1000, 10_000) if large else (1, 10, 100, 1000, 10_000)
    panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    panel.set_xlim(0.9, 13_000)
    panel.set_ylim(0.1, 1.02)
    panel.minorticks_off()
    panel.set_title(world.capitalize(), fontsize=12.5, loc="left")
    bars = ", any one of whom may be replaced (bars: standard error)" if large else ""
    panel.set_xlabel(f"people behind the reward{bars}", fontsize=11.5)
    panel.set_ylabel("score: 0 worst, 1 best" if large else "score", fontsize=11.5)
    plain(panel)


def plot_needed(tables: Tables, path: Path) -> None:
    """Draws people needed for 0.9 on the walk, fewest on top, with what is impossible."""
    target = checked(path)
    shown = sorted(where(needed(tables), world=WALK), key=lambda row: row["people"] or np.inf)
    figure = new_figure(11.0, 1.9 + 0.52 * len(shown))
    panel = figure.subplots()
    end = 1.6 * max(row["high"] or row["below"] or 1 for row in shown)
    for height, row in zip(range(len(shown) - 1, -1, -1), shown, strict=True):
        _dot(panel, height, row, end)
    spans = ((True, "0.92", "too few\nwith Gaussian\nnoise"), (False, "0.8", "too few for\nany method"))
    for gaussian, grey, words in spans:
        possible = fewest_people(TARGET, gaussian)
        panel.axvspan(1, possible, color=grey, linewidth=0, zorder=0)
        panel.text(possible * 0.95, -0.6, words, ha="right", va="bottom", fontsize=10)
    panel.set_xscale("log")
    ticks = [tick for tick in (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000) if tick < end]
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.set_xlim(1, end)
    panel.set_ylim(-0.7, len(shown) - 0.3)
    panel.set_yticks(range(len(shown)), [LABELS.get(row["name"]) or row["name"] for row in shown][::-1], fontsize=11)
    words = f"too few: {TARGET:g} under both of two opposite rewards is impossible"
    panel.set_xlabel(
        f"people needed for a score of {TARGET:g} on the walk (line: 80 % interval);\n{words}", fontsize=12
    )
    ends = [f"{_people(row)} people with '{row['name']}'" for row in shown if row["people"] is not None]
    sentence = f"The same protection takes {ends[0]}, and {ends[-1]}" if len(ends) > 1 else "Ratings needed"
    panel.set_title(f"{sentence}\n({PROTECTION})", fontsize=13, loc="left")
    plain(panel)
    panel.tick_params(axis="y", length=0)
    save(figure, target)


def _dot(panel: Any, height: int, row: Row, end: float) -> None:
    color, _, mark = STYLES[row["name"]]
    people = row["people"]
    if people is None:
        panel.text(end * 0.95, height, f"not with {row['below']:,.0f}", ha="right", va="center", fontsize=10)
        return
    panel.plot([row["low"] or people, row["high"] or end], [height] * 2, color=color, linewidth=2.5)
    panel.plot(people, height, color=color, marker=mark, markersize=9, linestyle="none")
    panel.annotate(_people(row), (people, height), (0, 9), textcoords="offset points", ha="center", fontsize=10)


def _people(row: Row) -> str:
    return f"{'at most ' if row['below'] is None else ''}{row['people']:.0f}"
