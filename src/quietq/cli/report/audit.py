"""An audit as a picture: what each method claims or certifies, and what was measured of it, on one axis of epsilon."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quietq.audit.finding import Finding
from quietq.cli.report.look import checked, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLAIMED, CERTIFIED, MEASURED = "#D55E00", "#0072B2", "#000000"
REFUTED = "REFUTED"


def plot_findings(findings: Mapping[str, Finding], path: str | os.PathLike[str]) -> None:
    """Draws one line a method: its promise as a bar's end, and the measured lower bound as a mark, to PNG or SVG."""
    target = checked(path)
    figure = new_figure(9.6, 1.9 + 0.42 * len(findings))
    axes = figure.subplots()
    for row, finding in enumerate(findings.values()):
        _line(axes, len(findings) - 1 - row, finding)
    axes.set_yticks(range(len(findings)), list(findings)[::-1], fontsize=11)
    axes.set_ylim(-0.7, len(findings) - 0.3)
    axes.set_xlim(0, 1.2 * max(max(f.promise.epsilon, f.epsilon_lower) for f in findings.values()))
    axes.set_xlabel("epsilon", fontsize=12)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    kept = dict(zip(labels, handles, strict=True))
    order = [label for label in ("claimed", "certified", "measured: at least this") if label in kept]
    figure.legend(
        [kept[label] for label in order], order, loc="outside upper center", ncols=3, fontsize=11, frameon=False
    )
    one = next(iter(findings.values()))
    figure.supxlabel(
        f"Measured: lower bounds, each at confidence {one.confidence:.3g}. They rise with the number of runs, and "
        "cannot prove a promise, only break it.",
        fontsize=9,
    )
    figure.savefig(target, format=target.suffix.lower()[1:])


def _line(axes: "Axes", height: int, finding: Finding) -> None:
    """One method: a thin bar up to its promise, the promise's end, and the measured bound."""
    promise, claimed = finding.promise.epsilon, finding.promise.standing == "claimed"
    color = CLAIMED if claimed else CERTIFIED
    axes.barh(height, promise, height=0.34, color=color, alpha=0.28)
    axes.plot(
        [promise] * 2, [height - 0.3, height + 0.3], color=color, linewidth=3, linestyle="--" if claimed else "-",
        label=finding.promise.standing,
    )  # fmt: skip
    axes.plot(
        finding.epsilon_lower, height, color=MEASURED, marker=">", markersize=9, linestyle="none", clip_on=False,
        label="measured: at least this",
    )  # fmt: skip
    if finding.epsilon_lower > promise:
        axes.plot([promise, finding.epsilon_lower], [height] * 2, color=color, linewidth=1, linestyle=":")
    if finding.verdict == "refuted":
        place = max(finding.epsilon_lower, promise)
        axes.annotate(
            REFUTED, (place, height), (10, 0), textcoords="offset points", va="center", fontsize=10, fontweight="bold"
        )
