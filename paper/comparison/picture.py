"""The comparison at equal promises, as two pictures: scores by the number of people, and people needed for 0.9."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paper.comparison.limits import fewest_people
from paper.comparison.needed import TARGET, Curve, curves, needed
from paper.experiment import Tables
from paper.task import Row
from quietq.report.look import checked, new_figure, plain
from quietq.worlds import WALK as WALK_WORLD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
LABELS = {"reward, k-norm": "reward, k-norm (delta = 0)"}
WALK = WALK_WORLD.name


def plot_people(tables: Tables, path: str | os.PathLike[str]) -> None:
    """Draws each method's mean score by the number of people, one panel a world, to PNG or SVG."""
    target = checked(path)
    found = curves(tables["comparison_scores"])
    worlds = list(dict.fromkeys(curve.world for curve in found))
    others = [world for world in worlds if world != WALK]
    figure = new_figure(11.0, 10.8 if others else 6.8)
    if others:
        grid = figure.add_gridspec(2, len(others), height_ratios=(1.75, 1))
        panels = {WALK: figure.add_subplot(grid[0, :])}
        panels |= {world: figure.add_subplot(grid[1, place]) for place, world in enumerate(others)}
    else:
        panels = {WALK: figure.subplots()}
    for world, panel in panels.items():
        _panel(panel, world, [curve for curve in found if curve.world == world], tables)
    handles: dict[str, Any] = {}
    for panel in panels.values():
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=4, fontsize=11, frameon=False)
    figure.suptitle(
        "What each method scores when all are certified for the same promise: epsilon 0.9, delta 1e-4", fontsize=13.5
    )
    figure.savefig(target, format=target.suffix.lower()[1:])


def _panel(panel: "Axes", world: str, found: Sequence[Curve], tables: Tables) -> None:
    """One world: caps, lines for none and random, and the methods."""
    large = world == WALK
    caps = [row for row in tables["comparison_limits"] if row["world"] == world]
    people = [_number(row["people"]) for row in caps]
    gaussian, anything = ([_number(row[name]) for row in caps] for name in ("gaussian", "any"))
    panel.fill_between(
        people,
        anything,
        1.0,
        color="0.85",
        linewidth=0,
        zorder=0,
        label="impossible under both of two opposite rewards",
    )
    panel.plot(
        people,
        gaussian,
        color="0.35",
        linewidth=1.4,
        dashes=(1, 1),
        label="the same, with Gaussian noise: above this line",
    )
    for method, line, label in (("none", (0, (5, 1)), "no privacy"), ("random", (0, (1, 3)), "random actions")):
        scores = [_number(row["score"]) for row in tables["comparison_scores"]
                  if row["world"] == world and row["method"] == method]  # fmt: skip
        if scores:
            panel.axhline(float(np.mean(scores)), color="0.45", linewidth=1.1, linestyle=line, label=label)
    panel.axhline(TARGET, color="#B00020", linewidth=0.9, label=f"a score of {TARGET:g}")
    for curve in found:
        color, line, mark = STYLES[curve.name]
        panel.errorbar(
            curve.people, curve.mean, curve.error, color=color, linestyle=line, marker=mark,
            markersize=6.5 if large else 4.5, linewidth=1.8 if large else 1.3, elinewidth=0.9, capsize=0,
            label=LABELS.get(curve.name, curve.name),
        )  # fmt: skip
    panel.set_xscale("log")
    ticks = (1, 3, 10, 30, 100, 1000, 10_000) if large else (1, 10, 100, 1000, 10_000)
    panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    panel.set_xlim(0.9, 13_000)
    panel.set_ylim(0.2, 1.02)
    panel.minorticks_off()
    panel.set_title(world.capitalize(), fontsize=12.5, loc="left")
    bars = ", any one of whom may be replaced (bars: standard error)" if large else ""
    panel.set_xlabel(f"people behind the reward{bars}", fontsize=11.5)
    panel.set_ylabel("score: 0 worst, 1 best" if large else "score", fontsize=11.5)
    plain(panel)


def plot_needed(tables: Tables, path: str | os.PathLike[str]) -> None:
    """Draws people needed for 0.9 on the walk, fewest on top, with what is impossible and what was audited."""
    target = checked(path)
    shown = sorted(
        (row for row in needed(tables) if row["world"] == WALK), key=lambda row: _number(row["people"], np.inf)
    )
    figure = new_figure(11.0, 1.9 + 0.52 * len(shown))
    panel = figure.subplots()
    possible = {pure: fewest_people(WALK_WORLD, TARGET, gaussian=not pure) for pure in (False, True)}
    end = 1.6 * max([_number(row["high"], _number(row["below"], 1)) for row in shown])
    for height, row in zip(range(len(shown) - 1, -1, -1), shown, strict=True):
        _dot(panel, height, row, end)
    for pure, (grey, words) in {
        False: ("0.92", "too few\nwith Gaussian\nnoise"),
        True: ("0.8", "too few for\nany method"),
    }.items():
        panel.axvspan(1, possible[pure], color=grey, linewidth=0, zorder=0)
        panel.text(possible[pure] * 0.95, -0.6, words, ha="right", va="bottom", fontsize=10)
    panel.set_xscale("log")
    ticks = [tick for tick in (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000) if tick < end]
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.set_xlim(1, end)
    panel.set_ylim(-0.7, len(shown) - 0.3)
    names = [LABELS.get(str(row["name"]), str(row["name"])) for row in shown]
    panel.set_yticks(range(len(shown)), names[::-1], fontsize=11)
    panel.set_xlabel(
        f"people needed for a score of {TARGET:g} on the walk (line: 80 % interval);\n"
        f"too few: {TARGET:g} under both of two opposite rewards is impossible",
        fontsize=12,
    )
    panel.set_title(_sentence(shown), fontsize=13, loc="left")
    plain(panel)
    panel.tick_params(axis="y", length=0)
    figure.savefig(target, format=target.suffix.lower()[1:])


def _sentence(shown: Sequence[Row]) -> str:
    """What to see: the two ends of the list."""
    reached = [row for row in shown if row["people"] is not None]
    if len(reached) < 2:
        return "People needed at the same promise"
    ends = [f"{_people(row)} people with '{row['name']}'" for row in (reached[0], reached[-1])]
    return f"The same promise takes {ends[0]}, and {ends[1]}"


def _dot(panel: "Axes", height: int, row: Row, end: float) -> None:
    """One method: where it crosses, its interval, and its audit in words beside the panel."""
    color, _, mark = STYLES[str(row["name"])]
    panel.text(1.02, height, _audit(row), transform=panel.get_yaxis_transform(), va="center", fontsize=10)
    if row["people"] is None:
        panel.text(end * 0.95, height, f"not with {_number(row['below']):,.0f}", ha="right", va="center", fontsize=10)
        return
    people = _number(row["people"])
    panel.plot([_number(row["low"], people), _number(row["high"], end)], [height] * 2, color=color, linewidth=2.5)
    panel.plot(people, height, color=color, marker=mark, markersize=9, linestyle="none")
    panel.annotate(_people(row), (people, height), (0, 9), textcoords="offset points", ha="center", fontsize=10)


def _people(row: Row) -> str:
    """How many; `at most` where even the smallest number tried is enough."""
    return f"{'at most ' if row['below'] is None else ''}{_number(row['people']):.0f}"


def _audit(row: Row) -> str:
    if row["epsilon_at_least"] is None:
        return "not audited here"
    text = f"audit: epsilon at least {_number(row['epsilon_at_least']):.2g} of {_number(row['epsilon']):g}"
    return text + (f", mu {_number(row['mu_at_least']):.2g} of {_number(row['mu']):.2g}" if row["mu"] else "")


def _number(value: object, missing: float = 0.0) -> float:
    return float(value) if isinstance(value, int | float) else missing
