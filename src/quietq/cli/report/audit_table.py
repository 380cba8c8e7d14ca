"""What audits found, as a picture of promises and measurements."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from quietq.audit.finding import Finding
from quietq.cli.report.look import checked, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLAIMED, CERTIFIED, MEASURED = "#D55E00", "#0072B2", "#000000"
REFUTED = "REFUTED"


class Line(NamedTuple):
    """What is drawn of a finding."""

    standing: str
    promised: float
    measured: float
    verdict: str


def plot_findings(findings: Mapping[str, Finding], path: str | os.PathLike[str]) -> None:
    """Draws what was promised, and what was measured of it, to PNG or SVG."""
    lines = {
        name: Line(one.promise.standing, one.promise.epsilon, one.epsilon_lower, one.verdict)
        for name, one in findings.items()
    }
    plot_lines(lines, path, next(iter(findings.values())).confidence)


def plot_lines(lines: Mapping[str, Line], path: str | os.PathLike[str], confidence: float) -> None:
    """A line per method: its promise as a bar's end, and the measured lower bound as a mark."""
    target = checked(path)
    figure = new_figure(9.6, 1.9 + 0.42 * len(lines))
    axes = figure.subplots()
    for row, line in enumerate(lines.values()):
        _line(axes, len(lines) - 1 - row, line)
    axes.set_yticks(range(len(lines)), list(lines)[::-1], fontsize=11)
    axes.set_ylim(-0.7, len(lines) - 0.3)
    axes.set_xlim(0, 1.2 * max(max(line.promised, line.measured) for line in lines.values()))
    axes.set_xlabel("epsilon", fontsize=12)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    kept = dict(zip(labels, handles, strict=True))
    order = [label for label in ("claimed", "certified", "measured: at least this") if label in kept]
    shown = [kept[label] for label in order]
    figure.legend(shown, order, loc="outside upper center", ncols=3, fontsize=11, frameon=False)
    bounds = (
        f"Measured: lower bounds, each at confidence {confidence:.3g}. They rise with the number of runs, and cannot"
    )
    save(figure, target, "", f"{bounds} prove a promise, only break it.")


def _line(axes: "Axes", height: int, found: Line) -> None:
    standing, promise, measured, verdict = found
    color, line = (CLAIMED, "--") if standing == "claimed" else (CERTIFIED, "-")
    axes.barh(height, promise, height=0.34, color=color, alpha=0.28)
    ends = [height - 0.3, height + 0.3]
    axes.plot([promise] * 2, ends, color=color, linewidth=3, linestyle=line, label=standing)
    mark = {"color": MEASURED, "marker": ">", "markersize": 9, "linestyle": "none", "clip_on": False}
    axes.plot(measured, height, label="measured: at least this", **mark)
    if measured > promise:
        axes.plot([promise, measured], [height] * 2, color=color, linewidth=1, linestyle=":")
    if verdict == "refuted":
        words = {"textcoords": "offset points", "va": "center", "fontsize": 10, "fontweight": "bold"}
        axes.annotate(REFUTED, (max(measured, promise), height), (10, 0), **words)
