"""Return against people for every system and method, from the stored results, and where each method's cliff is.

`make figures` writes docs/world-peers.png.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy.stats import t

from benchmarks.study import RESULTS
from quietq.cli.report.look import new_figure, save

BEHAVIOUR, OURS, TWIN = "people's own behaviour", "quietq", "no privacy"
ENOUGH = 0.9
Rows = list[dict[str, Any]]


def cliffs(rows: Rows, peers: Sequence[str]) -> list[list[str]]:
    """Of each method, among the numbers of people that were measured in three draws or more."""
    rows, names = [row for row in rows if row["draws"] >= 3], [OURS, *peers]
    lines = [["system", *names]]
    for system in dict.fromkeys(row["system"] for row in rows):
        curves = _curves(rows, system)
        low, best = _last(curves.get(BEHAVIOUR)), _last(curves.get(TWIN))
        if low is None or best is None:
            continue
        goal = low + ENOUGH * (best - low)
        lines.append([system, *(_cliff(curves.get(name), goal) for name in names)])
    return lines


def differences(rows: Rows, peers: Sequence[str]) -> list[list[str]]:
    """With 95 % intervals by Welch's t, and a star where one lies on one side of 0."""
    lines = [["system", "people", *peers]]
    found = {(row["system"], row["people"], row["method"]): row for row in rows}
    for system, people, method in found:
        if method == OURS:
            own = found[system, people, OURS]
            lines.append([system, f"{people:,}", *(_apart(own, found.get((system, people, name))) for name in peers)])
    return lines


def _apart(one: dict[str, Any], other: dict[str, Any] | None) -> str:
    """Nothing is said of fewer than three draws."""
    if other is None or min(one["draws"], other["draws"]) < 3:
        return ""
    variances = [row["numbers"]["return"]["standard error"] ** 2 for row in (one, other)]
    gap = one["numbers"]["return"]["mean"] - other["numbers"]["return"]["mean"]
    if sum(variances) == 0:
        return f"{gap:+.1f}, draws alike"
    freedom = sum(variances) ** 2 / sum(
        variance**2 / (row["draws"] - 1) for variance, row in zip(variances, (one, other), strict=True)
    )
    half = float(t.ppf(0.975, freedom)) * math.sqrt(sum(variances))
    digits = 1 if half >= 1 else 2
    return f"{gap:+.{digits}f} ± {half:.{digits}f}{' *' if abs(gap) > half else ''}"


def _curves(rows: Rows, system: str) -> dict[str, dict[int, tuple[float, float]]]:
    """By method and people: mean, and half of its 95 % interval by Student's t; of one draw there is none."""
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for row in rows:
        if row["system"] == system:
            number, draws = row["numbers"]["return"], row["draws"]
            half = float(t.ppf(0.975, draws - 1)) * number["standard error"] if draws > 1 else math.nan
            found.setdefault(row["method"], {})[row["people"]] = (number["mean"], half)
    return found


def _last(curve: dict[int, tuple[float, float]] | None) -> float | None:
    return None if not curve else curve[max(curve)][0]


def _cliff(curve: dict[int, tuple[float, float]] | None, goal: float) -> str:
    if not curve:
        return "not measured"
    enough = None
    for people in sorted(curve, reverse=True):
        if curve[people][0] < goal:
            break
        enough = people
    if enough is None:
        return f"> {max(curve):,}"
    return f"≤ {enough:,}" if enough == min(curve) else f"{enough:,}"


def draw(rows: Rows) -> Any:
    systems = list(dict.fromkeys(row["system"] for row in rows if row["method"] != BEHAVIOUR))
    across = math.ceil((len(systems) + 1) / 2)
    figure = new_figure(3.3 * across, 6.4)
    axes = list(figure.subplots(2, across, squeeze=False).ravel())
    for axis, system in zip(axes, systems, strict=False):
        _panel(axis, rows, system)
    for axis in axes[::across]:
        axis.set_ylabel("true return, mean and 95 % interval")
    handles, labels = axes[0].get_legend_handles_labels()
    for axis in axes[len(systems) :]:
        axis.axis("off")
    axes[len(systems)].legend(handles, labels, loc="center", frameon=False)
    return figure


def _panel(axis: Any, rows: Rows, system: str) -> None:
    curves = _curves(rows, system)
    for i, (name, curve) in enumerate((name, curve) for name, curve in curves.items() if name != BEHAVIOUR):
        people = sorted(curve)
        middle, half = zip(*(curve[number] for number in people), strict=True)
        style = {"linestyle": "--", "color": "black"} if name == TWIN else {"color": f"C{i}"}
        beside = [number * 1.03 ** (i - 2) for number in people]  # so that intervals do not hide each other
        axis.errorbar(beside, middle, yerr=half, marker="o", markersize=4, capsize=3, label=name, **style)
    if (low := _last(curves.get(BEHAVIOUR))) is not None:
        axis.axhline(low, color="grey", linestyle=":", label=BEHAVIOUR)
    numbers = sorted({row["people"] for row in rows if row["system"] == system and row["method"] != BEHAVIOUR})
    axis.set(title=system, xlabel="people", xscale="log", xlim=(0.8 * numbers[0], 1.25 * numbers[-1]))
    axis.set_xticks(numbers, [f"{number:,}" for number in numbers])
    axis.minorticks_off()
    means = [one[0] for curve in curves.values() for one in curve.values()]
    room = 0.25 * (max(means) - min(means))
    axis.set_ylim(min(means) - room, max(means) + room)


def write(target: Path) -> None:
    save(draw(json.loads((RESULTS / "world-peers.json").read_text())["rows"]), target)
