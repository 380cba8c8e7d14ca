"""The extensions as one picture: what is free, what costs noise, and which kernels carry how far."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quietq.cli.report.look import STYLES, checked, new_figure, plain, save
from quietq.worlds import walk_reward
from reproduction.experiment import Row, where
from reproduction.extensions import rows as read
from reproduction.extensions.kernels import EXPONENTIAL
from reproduction.extensions.rows import ACTOR_CRITIC, BAND_LIMITED, DIMENSIONS, EXPLORATION, QUERIES, REPLAY

MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = (*STYLES, ("#CC79A7", (0, (5, 1, 1, 1, 1, 1))), ("#7F7F7F", (0, (8, 2))))
_SHORT = {
    "deep Q-learning on private rewards": "deep Q-learning",
    "actor-critic on private rewards": "actor-critic",
    "values released by input": "values of `input`",
    "actor-critic on these values": "actor-critic on them",
    "on a private reward, the last 10,000 steps": "replay of all steps",
    "on a private reward, the last 128 steps": "replay of the last 128",
}


def plot_extensions(rows: Sequence[Row], path: Path) -> None:
    target = checked(path)
    figure = new_figure(15.6, 9.6)
    draws = (_learners, _replay, _norms, _worlds, _band_limited, _queries)
    for panel, draw in zip(figure.subplots(2, 3).flat, draws, strict=True):
        draw(panel, rows)
        plain(panel)
    layout: Any = figure.get_layout_engine()
    layout.set(w_pad=0.12, h_pad=0.12, wspace=0.05, hspace=0.05)
    save(figure, target)


def _label(panel: Any, title: str, x: str, y: str | None, legend: str | None = "best") -> None:
    panel.set_title(title, fontsize=12)
    panel.set_xlabel(x, fontsize=11)
    if y is not None:
        panel.set_ylabel(y, fontsize=11)
    if legend is not None:
        panel.legend(fontsize=10, loc=legend)


def _learners(panel: Any, rows: Sequence[Row]) -> None:
    """Scores of learners on private rewards; the line goes from the worst draw to the best."""
    names = [(e, s) for e in (ACTOR_CRITIC, REPLAY, EXPLORATION) for s in read.settings(rows, e, "score")]
    names = [(e, s) for e, s in names if not s.startswith("gradient") and not s.endswith("10,000 steps")]
    people = _people(rows, ACTOR_CRITIC)
    for k, number in enumerate(people):
        color, line = LINES[k]
        for i, (extension, setting) in enumerate(names):
            found = read.values(rows, extension, setting, "score", number)
            height = len(names) - 1 - i + 0.18 * (k - (len(people) - 1) / 2) * -2
            panel.plot([min(found), max(found)], [height] * 2, color=color, linestyle=line, linewidth=1.4)
            panel.plot(
                np.mean(found),
                height,
                marker=MARKERS[k],
                color=color,
                markersize=8,
                linestyle="none",
                label=f"{number} people" if i == 0 else None,
                markerfacecolor=color if k else "white",
            )
    panel.set_yticks(range(len(names)), [_SHORT.get(s, s) for _, s in names][::-1])
    panel.set_xlim(0, 1.03)
    title = "On a private reward no learner costs privacy:\nmean score, worst and best draw"
    _label(panel, title, "score on the walk (random actions: 0.52)", None, "lower left")


def _replay(panel: Any, rows: Sequence[Row]) -> None:
    uses, noise = (read.by_setting(rows, REPLAY, one) for one in ("uses of a reward", "noise multiplier"))
    points = sorted((uses[setting], multiplier, setting) for setting, multiplier in noise.items())
    panel.loglog([x for x, _, _ in points], [y for _, y, _ in points], color=LINES[1][0], linestyle="--", marker="s")
    for x, y, setting in points:
        if read.values(rows, REPLAY, setting, "score"):
            words = f"score {read.mean(rows, REPLAY, setting, 'score'):.2f}"
            panel.annotate(words, (x, y), (8, -14), textcoords="offset points", fontsize=10)
    panel.set_xlim(points[0][0] / 1.6, points[-1][0] * 5)
    panel.set_ylim(points[0][1] / 1.5, points[-1][1] * 1.3)
    _plain_numbers(panel)
    title = "On true rewards replay is not free:\n`gradient` with one budget, 1,000 people"
    _label(panel, title, "times that each reward is used", "noise multiplier", None)


def _norms(panel: Any, rows: Sequence[Row]) -> None:
    for k, setting in enumerate(read.settings(rows, DIMENSIONS, "norm on a grid")):
        _line(panel, k, sorted(_along(rows, DIMENSIONS, setting, "norm on a grid")), setting.split(", ")[-1])
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    _plain_numbers(panel)
    title = "Two dimensions: in the paper's kernel\na ReLU unit has no norm to set the noise by"
    _label(panel, title, "cells of the grid, a side", "norm in the product kernel")


def _worlds(panel: Any, rows: Sequence[Row]) -> None:
    """Plans in a world of two dimensions, by people; a cross where an agent was trained."""
    numbers = _people(rows, DIMENSIONS)
    names = [s for s in read.settings(rows, DIMENSIONS, "score") if s.endswith("planned")]
    for k, setting in enumerate(names):
        mine = sorted({one["people"] for one in where(rows, setting=setting)} - {None})
        kernel, world, _ = setting.split(", ")
        label = f"{world} ({kernel})"
        _line(panel, k, [(float(n), read.mean(rows, DIMENSIONS, setting, "score", n)) for n in mine], label)
        trained = read.values(rows, DIMENSIONS, setting.replace("planned", "trained"), "score", 100)
        if trained:
            panel.plot(100, np.mean(trained), marker="x", color=LINES[k][0], markersize=11)
    panel.set_xscale("log")
    panel.set_xticks(numbers, [str(n) for n in numbers], minor=False)
    panel.minorticks_off()
    low = min(y for line in panel.get_lines() for y in np.asarray(line.get_ydata()))
    panel.set_ylim(low - 0.5 * (1.03 - low), 1.03)  # room for the names
    title, x = "Two dimensions: sums and features work", "people (a cross: trained, not planned)"
    _label(panel, title, x, "score: 0 random, 1 best known", "lower right")


def _band_limited(panel: Any, rows: Sequence[Row]) -> None:
    names = read.settings(rows, BAND_LIMITED, "release")
    for k, setting in enumerate(names):
        found = _along(rows, BAND_LIMITED, setting, "release")
        _line(panel, k, found, setting if setting == EXPONENTIAL else f"band-limited, {setting}", marker=False)
    places = [x for x, _ in _along(rows, BAND_LIMITED, names[0], "release")]
    panel.plot(places, walk_reward(np.array(places)), color="0.6", linewidth=3, zorder=0, label="the reward")
    number = where(rows, quantity="release")[0]["people"]
    title = f"One release each, {number} people:\nband-limited noise is smooth, and larger"
    _label(panel, title, "state", "reward", "lower center")


def _queries(panel: Any, rows: Sequence[Row]) -> None:
    for k, setting in enumerate(read.settings(rows, QUERIES, "seconds")):
        power = read.mean(rows, QUERIES, setting, "power of the number of queries")
        label = f"{setting.removesuffix(' kernel')}: power {power:.2f}"
        _line(panel, k, _along(rows, QUERIES, setting, "seconds"), label)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(top=3_000 * max(read.values(rows, QUERIES, None, "seconds")))  # room for the names
    title = "Releases of other kernels, too, answer N queries\nin a time like N, if the kernel has structure"
    _label(panel, title, "queries", "seconds", "upper left")


def _plain_numbers(panel: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    panel.yaxis.set_minor_formatter(NullFormatter())
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))


def _line(panel: Any, k: int, points: Sequence[tuple[float, float]], label: str, marker: bool = True) -> None:
    color, style = LINES[k % len(LINES)]
    mark = MARKERS[k % len(MARKERS)] if marker else None
    panel.plot(*zip(*points, strict=True), color=color, linestyle=style, label=label, marker=mark)


def _along(rows: Sequence[Row], extension: str, setting: str, quantity: str) -> list[tuple[float, float]]:
    mine = where(rows, extension=extension, setting=setting, quantity=quantity)
    return [(one["at"], one["value"]) for one in mine]


def _people(rows: Sequence[Row], extension: str) -> list[int]:
    return sorted({one["people"] for one in where(rows, extension=extension, quantity="score")} - {None})
