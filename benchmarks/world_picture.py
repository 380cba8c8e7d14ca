"""Return against people for every system and method, from the stored results, and where each method's cliff is.

`python -m benchmarks.world_picture` writes docs/world-peers.png and prints the cliffs.
"""

import json
from typing import Any

from scipy.stats import t

from benchmarks.study import RESULTS, ROOT
from benchmarks.world_grids import METHODS, TWIN

BEHAVIOUR = "people's own behaviour"
ENOUGH = 0.9
Rows = list[dict[str, Any]]


def cliffs(rows: Rows) -> list[list[str]]:
    """The fewest people from which on a method reaches 0.9 of the way from behaviour to the largest twin, by means."""
    lines = [["system", *(name for name in METHODS if name != TWIN)]]
    for system in dict.fromkeys(row["system"] for row in rows):
        curves = _curves(rows, system)
        low, best = _last(curves.get(BEHAVIOUR)), _last(curves.get(TWIN))
        if low is None or best is None:
            continue
        goal = low + ENOUGH * (best - low)
        lines.append([system, *(_cliff(curves.get(name), goal) for name in METHODS if name != TWIN)])
    return lines


def _curves(rows: Rows, system: str) -> dict[str, dict[int, tuple[float, float]]]:
    """By method and people: mean, and half of its 95 % interval by Student's t; 0 of one draw, which has none."""
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for row in rows:
        if row["system"] == system:
            number, draws = row["numbers"]["return"], row["draws"]
            half = float(t.ppf(0.975, draws - 1)) * number["standard error"] if draws > 1 else 0.0
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
    from matplotlib.figure import Figure

    systems = list(dict.fromkeys(row["system"] for row in rows if row["method"] != BEHAVIOUR))
    figure = Figure(figsize=(3.3 * len(systems), 3.6), layout="constrained")
    axes = figure.subplots(1, len(systems), squeeze=False)[0]
    for axis, system in zip(axes, systems, strict=True):
        curves = _curves(rows, system)
        for i, name in enumerate(METHODS):
            curve = curves.get(name)
            if not curve:
                continue
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
    axes[0].set_ylabel("true return (95 % intervals)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


if __name__ == "__main__":
    stored = json.loads((RESULTS / "world-peers.json").read_text())["rows"]
    draw(stored).savefig(ROOT / "docs" / "world-peers.png", dpi=130)
    for line in cliffs(stored):
        print(" | ".join(line))
