"""The extensions as one picture: what is free, what costs noise, and which kernels carry how far."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from paper.extensions.band_limited import EXPONENTIAL
from paper.extensions.row import (
    ACTOR_CRITIC,
    BAND_LIMITED,
    DIMENSIONS,
    EXPLORATION,
    QUERIES,
    REPLAY,
    mean,
    settings,
    values,
)
from paper.task import Row
from quietq.report.look import STYLES, checked, new_figure, plain
from quietq.worlds import walk_reward

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def plot_extensions(rows: Sequence[Row], path: str | os.PathLike[str]) -> None:
    """Draws six panels of the table `extensions`, to PNG or SVG."""
    target = checked(path)
    figure = new_figure(15.6, 9.6)
    draw: tuple[Callable[[Axes, Sequence[Row]], None], ...] = (
        _learners, _replay, _norms, _worlds, _band_limited, _queries,
    )  # fmt: skip
    for panel, one in zip(figure.subplots(2, 3).flat, draw, strict=True):
        one(panel, rows)
        plain(panel)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12, wspace=0.05, hspace=0.05)
    figure.savefig(target, format=target.suffix.lower()[1:])


def _learners(panel: "Axes", rows: Sequence[Row]) -> None:
    """Scores of learners on private rewards; the line goes from the worst draw to the best."""
    names = [(e, s) for e in (ACTOR_CRITIC, REPLAY, EXPLORATION) for s in settings(rows, e, "score")]
    names = [(e, s) for e, s in names if not s.startswith("gradient") and not s.endswith("10,000 steps")]
    people = _people(rows, ACTOR_CRITIC)
    for k, number in enumerate(people):
        for i, (extension, setting) in enumerate(names):
            found = values(rows, extension, setting, "score", number)
            height = len(names) - 1 - i + 0.18 * (k - (len(people) - 1) / 2) * -2
            label = f"{number} people" if i == 0 else None
            panel.plot([min(found), max(found)], [height] * 2, color=LINES[k][0], linestyle=LINES[k][1], linewidth=1.4)
            panel.plot(
                mean(rows, extension, setting, "score", number), height, marker=MARKERS[k], color=LINES[k][0],
                markersize=8, linestyle="none", label=label, markerfacecolor=LINES[k][0] if k else "white",
            )  # fmt: skip
    panel.set_yticks(range(len(names)), [_SHORT.get(s, s) for _, s in names][::-1])
    panel.set_xlim(0, 1.03)
    panel.set_xlabel("score on the walk (random actions: 0.52)", fontsize=11)
    panel.set_title("On a private reward no learner costs privacy:\nmean score, worst and best draw", fontsize=12)
    panel.legend(fontsize=10, loc="lower left")


def _replay(panel: "Axes", rows: Sequence[Row]) -> None:
    """The noise of `gradient` by how often a reward is used."""
    names = settings(rows, REPLAY, "noise multiplier")
    points = sorted(
        (mean(rows, REPLAY, s, "uses of a reward"), mean(rows, REPLAY, s, "noise multiplier"), s) for s in names
    )
    panel.loglog([x for x, _, _ in points], [y for _, y, _ in points], color=LINES[1][0], linestyle="--", marker="s")
    for x, y, setting in points:
        if values(rows, REPLAY, setting, "score"):
            words = f"score {mean(rows, REPLAY, setting, 'score'):.2f}"
            panel.annotate(words, (x, y), (8, -14), textcoords="offset points", fontsize=10)
    panel.set_xlim(points[0][0] / 1.6, points[-1][0] * 5)
    panel.set_ylim(points[0][1] / 1.5, points[-1][1] * 1.3)
    _plain_numbers(panel)
    panel.set_xlabel("times that each reward is used", fontsize=11)
    panel.set_ylabel("noise multiplier", fontsize=11)
    panel.set_title("On true rewards replay is not free:\n`gradient`, one budget, 50 people", fontsize=12)


def _norms(panel: "Axes", rows: Sequence[Row]) -> None:
    """Norms in the product kernel on finer and finer grids."""
    for k, setting in enumerate(settings(rows, DIMENSIONS, "norm on a grid")):
        found = sorted(_along(rows, DIMENSIONS, setting, "norm on a grid"))
        _line(panel, k, found, setting.split(", ")[-1])
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    _plain_numbers(panel)
    panel.set_xlabel("cells of the grid, a side", fontsize=11)
    panel.set_ylabel("norm in the product kernel", fontsize=11)
    panel.set_title("Two dimensions: in the paper's kernel\na ReLU unit has no norm to set the noise by", fontsize=12)
    panel.legend(fontsize=10)


def _worlds(panel: "Axes", rows: Sequence[Row]) -> None:
    """Plans in worlds of two and three dimensions, by people; a cross where an agent was trained."""
    names = [s for s in settings(rows, DIMENSIONS, "score") if s.endswith("planned")]
    for k, setting in enumerate(names):
        numbers = sorted({int(n) for one in rows if one["setting"] == setting and (n := one["people"]) is not None})
        found = [(float(n), mean(rows, DIMENSIONS, setting, "score", n)) for n in numbers]
        kernel, world, noise, _ = setting.split(", ")
        _line(panel, k, found, f"{world} ({kernel.removesuffix(' kernel')}), {noise.removesuffix(' noise')}")
        trained = setting.replace("planned", "trained")
        if values(rows, DIMENSIONS, trained, "score", 100):
            panel.plot(100, mean(rows, DIMENSIONS, trained, "score", 100), marker="x", color=LINES[k][0], markersize=11)
    panel.set_xscale("log")
    panel.set_xticks(numbers := _people(rows, DIMENSIONS), [str(n) for n in numbers], minor=False)
    panel.minorticks_off()
    low = min(y for line in panel.get_lines() for y in np.asarray(line.get_ydata()))
    panel.set_ylim(low - 0.5 * (1.03 - low), 1.03)  # room for the names
    panel.set_xlabel("people (a cross: trained, not planned)", fontsize=11)
    panel.set_ylabel("score: 0 random, 1 best known", fontsize=11)
    panel.set_title("Two and three dimensions: sums and features work", fontsize=12)
    panel.legend(fontsize=10, loc="lower right")


def _band_limited(panel: "Axes", rows: Sequence[Row]) -> None:
    """One release of each kernel, and the reward."""
    names = settings(rows, BAND_LIMITED, "release")
    for k, setting in enumerate(names):
        found = _along(rows, BAND_LIMITED, setting, "release")
        _line(panel, k, found, setting if setting == EXPONENTIAL else f"band-limited, {setting}", marker=False)
    places = [x for x, _ in _along(rows, BAND_LIMITED, names[0], "release")]
    panel.plot(places, walk_reward(np.array(places)), color="0.6", linewidth=3, zorder=0, label="the reward")
    number = next(int(one["people"] or 0) for one in rows if one["quantity"] == "release")
    panel.set_xlabel("state", fontsize=11)
    panel.set_ylabel("reward", fontsize=11)
    panel.set_title(f"One release each, {number} people:\nband-limited noise is smooth, and larger", fontsize=12)
    panel.legend(fontsize=10, loc="lower center")


def _queries(panel: "Axes", rows: Sequence[Row]) -> None:
    """Seconds by the number of queries."""
    for k, setting in enumerate(settings(rows, QUERIES, "seconds")):
        power = mean(rows, QUERIES, setting, "power of the number of queries")
        _line(
            panel, k, _along(rows, QUERIES, setting, "seconds"), f"{setting.removesuffix(' kernel')}: power {power:.2f}"
        )
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(top=3_000 * max(values(rows, QUERIES, None, "seconds")))  # room for the names
    panel.set_xlabel("queries", fontsize=11)
    panel.set_ylabel("seconds", fontsize=11)
    panel.set_title(
        "Releases of other kernels, too, answer N queries\nin a time like N, if the kernel has structure", fontsize=12
    )
    panel.legend(fontsize=10, loc="upper left")


def _plain_numbers(panel: "Axes") -> None:
    """A logarithmic axis without powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    panel.yaxis.set_minor_formatter(NullFormatter())
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))


def _line(panel: "Axes", k: int, points: Sequence[tuple[float, float]], label: str, marker: bool = True) -> None:
    color, style = LINES[k % len(LINES)]
    panel.plot(
        [x for x, _ in points], [y for _, y in points], color=color, linestyle=style, label=label,
        marker=MARKERS[k % len(MARKERS)] if marker else None,
    )  # fmt: skip


def _along(rows: Sequence[Row], extension: str, setting: str, quantity: str) -> list[tuple[float, float]]:
    wanted = (extension, setting, quantity)
    return [
        (float(one["at"] or 0.0), float(one["value"] or 0.0))
        for one in rows
        if (one["extension"], one["setting"], one["quantity"]) == wanted
    ]


def _people(rows: Sequence[Row], extension: str) -> list[int]:
    """The numbers of people that scores were measured with."""
    found = (one["people"] for one in rows if (one["extension"], one["quantity"]) == (extension, "score"))
    return sorted({int(number) for number in found if number is not None})
