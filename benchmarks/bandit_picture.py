"""Regret of bandits against epsilon, from the stored results.

`make figures` writes docs/bandits.png.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.bandit_plays import ARMS
from benchmarks.bandit_study import NAME
from benchmarks.study import RESULTS
from quietq.cli.report.look import new_figure, save

STYLES: dict[str, dict[str, Any]] = {
    "episodes": {"color": "#0072B2", "marker": "o"},
    "episodes, Gaussian": {"color": "#56B4E9", "marker": "s", "linestyle": "--"},
    "elimination": {"color": "#D55E00", "marker": "o"},
    "local flips": {"color": "#CC79A7", "marker": "^", "linestyle": ":"},
}
ARRIVALS = 10**6


def draw(rows: list[dict[str, Any]]) -> Any:
    figure = new_figure(11, 4.2)
    axes = figure.subplots(1, len(ARMS))
    for axis, (arms, means) in zip(axes, ARMS.items(), strict=True):
        here = [row for row in rows if row["arms"] == arms and row["arrivals"] == ARRIVALS]
        for policy, style in STYLES.items():
            found = sorted((row["epsilon"], _regret(row)) for row in here if row["policy"] == policy)
            if found:
                axis.plot(*zip(*found, strict=True), label=policy, **style)
        for row in here:
            if row["policy"] == "UCB":
                axis.axhline(_regret(row), color="black", linewidth=1, linestyle="--", label="UCB, not private")
        chance = ARRIVALS * (max(means) - sum(means) / len(means))
        axis.axhline(chance, color="grey", linewidth=1, linestyle=":", label="arms at random")
        kinds = f"{means[0]:g} and {len(means) - 1} of {means[1]:g}" if len(means) > 5 else ", ".join(map(str, means))
        axis.set(xscale="log", yscale="log", xlabel="epsilon", title=f"{arms}: {kinds}")
        axis.set_xticks([0.005, 0.02, 0.1, 0.25, 1.0], ["0.005", "0.02", "0.1", "0.25", "1"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("regret after a million arrivals, in answers")
    handles = {label: one for axis in axes for one, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=7, frameon=False)
    return figure


def _regret(row: dict[str, Any]) -> float:
    return row["numbers"]["regret"]["mean"]


def write(target: Path) -> None:
    save(draw(json.loads((RESULTS / f"{NAME}.json").read_text())["rows"]), target)
