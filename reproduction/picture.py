"""The paper's figures 1 and 2, and the comparison of certified methods at equal protection.

Figures 1 and 2 are learning curves, with the best return and that of random actions beside them: a line is the mean
over seeds, unsmoothed, and its band one standard deviation. The comparison has scores by the number of people.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quietq.cli.report.pictures import checked, new_figure, plain, save
from quietq.worlds import WALK
from reproduction.experiment import Row, Tables, where
from reproduction.figures.curves import references, returns_of

if TYPE_CHECKING:
    from reproduction.comparison.needed import Curve

LEVELS = {
    0.0: ("#000000", "-", None),
    0.2: ("#0072B2", "-", "o"),
    0.4: ("#009E73", "--", "s"),
    0.6: ("#B37400", "-.", "^"),
    0.8: ("#D55E00", ":", "D"),
    1.0: ("#A0527F", (0, (3, 1, 1, 1)), "v"),
}
"""Colour, line and mark of each noise level."""
METHODS = {
    "no noise": ("No noise", "#777777", "-", None),
    "published": ("The paper's algorithm", "#D55E00", "-", "o"),
    "input": ("Noise on rewards", "#0072B2", "--", "s"),
    "gradient": ("Noise on gradients", "#000000", "-.", "^"),
}
"""Name, colour, line and mark of each method of figure 2, but for policy evaluation."""
DRAWN = (("each episode", "each round"), ("10 paths",), ("one path",))
"""The columns of figure 1, by how often noise is drawn."""
SCORED: dict[str, tuple[str, str, str]] = {
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
"""A colour, a line and a mark for each method of the comparison: two of them tell it by, in grey too."""
LABELS = {"reward, k-norm": "reward, k-norm (pure)"}
PRESETS = {"code": "The authors' program", "text": "Algorithm 1 as printed"}


def plot_noise_levels(rows: Sequence[Row], path: Path) -> None:
    """Figure 1: a row an algorithm, a column by how often noise is drawn; a line a noise level."""
    target = checked(path)
    columns = [noise for noise in DRAWN if any(row["noise"] in noise for row in rows)]
    figure = new_figure(4.5 * len(columns) + 0.8, 8.6)
    panels = figure.subplots(len(PRESETS), len(columns), sharex=True, sharey=True, squeeze=False)
    for panel, (preset, noise) in zip(panels.flat, product(PRESETS, columns), strict=True):
        curves = [row for row in rows if row["preset"] == preset and row["noise"] in (*noise, "none")]
        _references(panel)
        for sigma in sorted({row["sigma"] for row in curves}):
            _curve(panel, where(curves, sigma=sigma), LEVELS[sigma], f"sigma {sigma:g}" if sigma else "no noise")
        drawn = next((row["noise"] for row in curves if row["noise"] != "none"), None)
        words = f"noise drawn {drawn}" if drawn in DRAWN[0] else f"{drawn} of noise in the whole run"
        panel.set_title(f"{PRESETS[preset]},\n{words if drawn else 'other noise not run'}", fontsize=12)
        plain(panel)
    title = (
        "What is learned at each noise level:\nby the authors' program (above), and by Algorithm 1 as printed (below)"
    )
    figure.suptitle(title, fontsize=14)
    _name_axes(figure, panels[-1], rows)
    entries = [panel.get_legend_handles_labels() for panel in panels.flat]
    handles = {label: handle for entry in entries for handle, label in zip(*entry, strict=True)}
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=4,
        fontsize=11,
        frameon=False,
        handlelength=3.2,
    )
    save(figure, target)


def plot_comparison(rows: Sequence[Row], path: Path) -> None:
    """Figure 2: a panel a target; each line says what its method promises."""
    target = checked(path)
    figure = new_figure(13.0, 7.8)
    epsilons = sorted({row["target_epsilon"] for row in rows} - {None}, reverse=True)
    panels = figure.subplots(1, len(epsilons), sharex=True, sharey=True, squeeze=False)
    for panel, epsilon in zip(panels[0], epsilons, strict=True):
        _references(panel)
        for method, (name, *style) in METHODS.items():
            if curve := where(rows, method=method, target_epsilon=None if method == "no noise" else epsilon):
                _curve(panel, curve, style, f"{name}: {_standing(curve[0])}")
        _evaluation(panel, where(rows, method="evaluation", target_epsilon=epsilon))
        delta = next(row["delta"] for row in rows if row["target_epsilon"] == epsilon)
        panel.set_title(f"Target: epsilon {epsilon:g}, delta {delta:g}", fontsize=13)
        plain(panel)
        panel.legend(loc="upper left", bbox_to_anchor=(0.0, -0.1), fontsize=11, frameon=False, handlelength=3.2)
    figure.suptitle("The same target, but not the same promise: what each curve is really worth", fontsize=14)
    _name_axes(figure, panels[-1], rows)
    save(figure, target)


def _curve(panel: Any, rows: Sequence[Row], style: Sequence[Any], label: str) -> None:
    """The mean over seeds, and a band of one standard deviation, light because bands overlap."""
    colour, line, mark = style
    samples, returns = sorted({row["samples"] for row in rows}), returns_of(rows)
    mean, spread = returns.mean(axis=0), returns.std(axis=0)
    panel.fill_between(samples, mean - spread, mean + spread, color=colour, alpha=0.06, linewidth=0)
    panel.plot(
        samples,
        mean,
        color=colour,
        linestyle=line,
        linewidth=1.7,
        marker=mark,
        markersize=5,
        markevery=max(len(samples) // 8, 1),
        label=label,
    )


def _evaluation(panel: Any, rows: Sequence[Row]) -> None:
    """A thin line without a band for each reading, the number of its cells on it, and one entry for all."""
    readings = sorted({row["cells"] for row in rows})
    for place, cells in enumerate(readings):
        curve = where(rows, cells=cells)
        samples = sorted({row["samples"] for row in curve})
        every = max(len(samples) // 8, 1)  # marked in the second half: in the first all walk alike, at random
        *first, last = map(str, readings)
        words = f"Policy evaluation, {', '.join(first)} or {last} cells: {_standing(curve[0])}"
        # The colour of policy evaluation; a line for each number of cells, marked by that number.
        panel.plot(
            samples,
            returns_of(curve).mean(axis=0),
            color="#009E73",
            linestyle=":",
            linewidth=1.1,
            marker=f"${cells}$",
            markersize=7,
            markevery=(len(samples) // 2 + place * every // 3, every),
            label=words if cells == readings[-1] else f"_{cells} cells",
        )


def _references(panel: Any) -> None:
    _, best, random = references()
    panel.axhline(best, color="0.35", linewidth=0.9, label=f"best policy, {best:.1f}")
    panel.axhline(random, color="0.35", linewidth=0.9, linestyle=(0, (1, 3)), label=f"random actions, {random:.1f}")
    panel.set_ylim(0, 24)


def _standing(row: Row) -> str:
    if row["standing"] == "theorem":
        return f"theorem, worth epsilon {row['worth_epsilon']:.2f}"
    words = {"claimed": "claimed only", "other relation": "protects one step's reward only"}
    return words.get(row["standing"], "protects nobody")


def _name_axes(figure: Any, lowest: Any, rows: Sequence[Row]) -> None:
    seeds = 1 + max(row["seed"] for row in rows)
    figure.supylabel(f"return of the episode: mean of {seeds} seeds ± one standard deviation", fontsize=12)
    for panel in lowest:
        panel.set_xlabel("samples", fontsize=12)


def plot_people(found: Sequence["Curve"], tables: Tables, aim: float, protection: str, path: Path) -> None:
    """The comparison: a panel a world, a line a method; what is impossible is grey, and `aim` is a score to reach."""
    target = checked(path)
    others = [world for world in dict.fromkeys(curve.world for curve in found) if world != WALK.name]
    figure = new_figure(11.0, 10.8 if others else 6.8)
    grid = figure.add_gridspec(2, len(others), height_ratios=(1.75, 1)) if others else figure.add_gridspec(1, 1)
    panels = {WALK.name: figure.add_subplot(grid[0, :])}
    panels |= {world: figure.add_subplot(grid[1, place]) for place, world in enumerate(others)}
    handles: dict[str, Any] = {}
    for world, panel in panels.items():
        _scores(panel, world, [curve for curve in found if curve.world == world], tables, aim)
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=4, fontsize=11, frameon=False)
    figure.suptitle(f"What each method scores with the same certified protection: {protection}", fontsize=13.5)
    save(figure, target)


def _scores(panel: Any, world: str, found: Sequence["Curve"], tables: Tables, aim: float) -> None:
    large, caps = world == WALK.name, where(tables["comparison_limits"], world=world)
    people, gaussian, anything = ([row[name] for row in caps] for name in ("people", "gaussian", "any"))
    words = "impossible under both of two opposite rewards", "the same, with Gaussian noise: above this line"
    panel.fill_between(people, anything, 1.0, color="0.85", linewidth=0, zorder=0, label=words[0])
    panel.plot(people, gaussian, color="0.35", linewidth=1.4, dashes=(1, 1), label=words[1])
    for method, line, label in (("none", (0, (5, 1)), "no privacy"), ("random", (0, (1, 3)), "random actions")):
        scores = [row["score"] for row in where(tables["comparison_scores"], world=world, method=method)]
        if scores:
            panel.axhline(float(np.mean(scores)), color="0.45", linewidth=1.1, linestyle=line, label=label)
    panel.axhline(aim, color="#B00020", linewidth=0.9, label=f"a score of {aim:g}")
    for curve in found:
        color, line, mark = SCORED[curve.name]
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
