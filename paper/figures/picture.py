"""The paper's figures 1 and 2: learning curves, with the best return and that of random actions beside them.

Rows are those of `paper`, tables `figure1` and `figure2`. A line is the mean over seeds, unsmoothed, and
its band one standard deviation.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paper.figures.curves import references, returns_of, where
from paper.task import Row
from quietq.report.look import checked, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = {
    0.0: ("#000000", "-", None), 0.2: ("#0072B2", "-", "o"), 0.4: ("#009E73", "--", "s"), 0.6: ("#B37400", "-.", "^"),
    0.8: ("#D55E00", ":", "D"), 1.0: ("#A0527F", (0, (3, 1, 1, 1)), "v"),
}  # fmt: skip
"""Colour, line and mark of each noise level."""
METHODS = {
    "no noise": ("No noise", "#777777", "-", None),
    "published": ("The paper's algorithm", "#D55E00", "-", "o"),
    "input": ("Noise on rewards", "#0072B2", "--", "s"),
    "gradient": ("Noise on gradients", "#000000", "-.", "^"),
}
"""Name, colour, line and mark of each method of figure 2, but for policy evaluation."""
EVALUATION = "#009E73"
"""The colour of policy evaluation; a line for each number of cells, marked by that number."""
DRAWN = (("each episode", "each round"), ("10 paths",), ("one path",))
"""The columns of figure 1, by how often noise is drawn."""
PRESETS = {"code": "The authors' program", "text": "Algorithm 1 as printed"}
Style = tuple[Any, ...]


def plot_noise_levels(rows: Sequence[Row], path: str | os.PathLike[str]) -> None:
    """Figure 1: a row an algorithm, a column by how often noise is drawn; a line a noise level. To PNG or SVG."""
    target = checked(path)
    columns = [noise for noise in DRAWN if any(row["noise"] in noise for row in rows)]
    figure = new_figure(4.5 * len(columns) + 0.8, 8.6)
    panels = figure.subplots(len(PRESETS), len(columns), sharex=True, sharey=True, squeeze=False)
    sigmas = sorted({float(row["sigma"] or 0.0) for row in rows})
    for line, (preset, name) in zip(panels, PRESETS.items(), strict=True):
        for panel, noise in zip(line, columns, strict=True):
            curves = [row for row in rows if row["preset"] == preset and row["noise"] in (*noise, "none")]
            _references(panel)
            for sigma in sigmas:
                if curve := where(curves, sigma=sigma):
                    _curve(panel, curve, LEVELS[sigma], "no noise" if sigma == 0 else f"sigma {sigma:g}")
            drawn = next((str(row["noise"]) for row in curves if row["noise"] != "none"), None)
            panel.set_title(f"{name},\n{_in_words(drawn)}", fontsize=12)
            plain(panel)
    figure.suptitle(
        "What is learned at each noise level:\nby the authors' program (above), and by Algorithm 1 as printed (below)",
        fontsize=14,
    )
    _name_axes(figure, panels[-1], rows)
    entries = [panel.get_legend_handles_labels() for panel in panels.flat]
    handles = {label: handle for entry in entries for handle, label in zip(*entry, strict=True)}
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=11, frameon=False,
        handlelength=3.2,
    )  # fmt: skip
    figure.savefig(target, format=target.suffix.lower()[1:])


def plot_comparison(rows: Sequence[Row], path: str | os.PathLike[str]) -> None:
    """Figure 2: a panel a target; each line says what its method promises. To PNG or SVG."""
    target = checked(path)
    figure = new_figure(13.0, 7.8)
    epsilons = sorted({float(row["target_epsilon"]) for row in rows if row["target_epsilon"] is not None}, reverse=True)
    panels = figure.subplots(1, len(epsilons), sharex=True, sharey=True, squeeze=False)
    for panel, epsilon in zip(panels[0], epsilons, strict=True):
        _references(panel)
        for method, (name, *style) in METHODS.items():
            if curve := where(rows, method=method, target_epsilon=None if method == "no noise" else epsilon):
                _curve(panel, curve, tuple(style), f"{name}: {_standing(curve[0])}")
        _evaluation(panel, where(rows, method="evaluation", target_epsilon=epsilon))
        panel.set_title(f"Target: epsilon {epsilon:g}, delta {_delta(rows):g}", fontsize=13)
        plain(panel)
        panel.legend(loc="upper left", bbox_to_anchor=(0.0, -0.1), fontsize=11, frameon=False, handlelength=3.2)
    figure.suptitle("The same target, but not the same promise: what each curve is really worth", fontsize=14)
    _name_axes(figure, panels[-1], rows)
    figure.savefig(target, format=target.suffix.lower()[1:])


def _curve(panel: "Axes", rows: Sequence[Row], style: Style, label: str) -> None:
    """The mean over seeds, and a band of one standard deviation, light because bands overlap."""
    colour, line, mark = style
    returns = returns_of(rows)
    samples = sorted({int(row["samples"] or 0) for row in rows})
    mean, spread = returns.mean(axis=0), returns.std(axis=0)
    panel.fill_between(samples, mean - spread, mean + spread, color=colour, alpha=0.06, linewidth=0)
    panel.plot(
        samples, mean, color=colour, linestyle=line, linewidth=1.7, marker=mark, markersize=5,
        markevery=max(len(samples) // 8, 1), label=label,
    )  # fmt: skip


def _evaluation(panel: "Axes", rows: Sequence[Row]) -> None:
    """A thin line without a band for each reading, the number of its cells on it, and one entry for all."""
    readings = sorted({int(row["cells"] or 0) for row in rows})
    for place, cells in enumerate(readings):
        curve = where(rows, cells=cells)
        samples = sorted({int(row["samples"] or 0) for row in curve})
        every = max(len(samples) // 8, 1)  # marked in the second half: in the first all walk alike, at random
        label = f"Policy evaluation, {_one_of(readings)} cells: {_standing(curve[0])}" if cells == readings[-1] else ""
        panel.plot(
            samples, returns_of(curve).mean(axis=0), color=EVALUATION, linestyle=":", linewidth=1.1,
            marker=f"${cells}$", markersize=7, markevery=(len(samples) // 2 + place * every // 3, every),
            label=label or f"_{cells} cells",
        )  # fmt: skip


def _one_of(numbers: Sequence[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} or {last}" if first else last


def _references(panel: "Axes") -> None:
    _, best, random = references()
    panel.axhline(best, color="0.35", linewidth=0.9, label=f"best policy, {best:.1f}")
    panel.axhline(random, color="0.35", linewidth=0.9, linestyle=(0, (1, 3)), label=f"random actions, {random:.1f}")
    panel.set_ylim(0, 24)


def _in_words(drawn: str | None) -> str:
    if drawn is None:
        return "other noise not run"
    return f"noise drawn {drawn}" if drawn.startswith("each") else f"{drawn} of noise in the whole run"


def _standing(row: Row) -> str:
    """What a method promises, for the legend."""
    if row["standing"] == "theorem":
        return f"theorem, worth epsilon {float(row['worth_epsilon'] or 0.0):.2f}"
    words = {"claimed": "claimed only", "other relation": "protects one step's reward only"}
    return words.get(str(row["standing"]), "protects nobody")


def _delta(rows: Sequence[Row]) -> float:
    return next(float(row["delta"]) for row in rows if row["delta"] is not None)


def _name_axes(figure: Any, lowest: "Iterable[Axes]", rows: Sequence[Row]) -> None:
    seeds = 1 + max(int(row["seed"] or 0) for row in rows)
    figure.supylabel(f"return of the episode: mean of {seeds} seeds ± one standard deviation", fontsize=12)
    for panel in lowest:
        panel.set_xlabel("samples", fontsize=12)
