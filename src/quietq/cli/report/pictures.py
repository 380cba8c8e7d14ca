"""Pictures: of a private function, a map, a private world, and of what audits found.

Those of what was released come from the release and its certificate, so they may leave with them if that is certified.
The one that shows the true reward is NOT PRIVATE, whatever a certificate says, and for the operator: only their owner
can read the file.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.cli.report.look import STYLES, checked, new_figure, plain, save, save_released
from quietq.noise.box import Box
from quietq.privacy.errors import InvalidInput
from quietq.released import PrivateNetwork
from quietq.released.private_function import PrivateFunction, PrivateKnots, PrivateSum, PrivateTable
from quietq.released.private_world import PrivateWorld, spreads

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

BAND = "#9ECAE9"
POINTS = 1025
"""Points of a curve."""
SIDE = 129
"""Points along each side of a map."""
MOST_PANELS = 64
MOST_LINES = 40
"""Coordinates of a world that a picture has lines for."""


def plot_reward(
    private: PrivateFunction | PrivateNetwork,
    path: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    actions: Sequence[str] = (),
    title: str = "Private reward",
) -> None:
    """Draws a private reward, or an agent's values, to a PNG or SVG file.

    Over one coordinate it is a curve, over two a map, over more its partial dependence on each. A sum of functions of
    one coordinate has a panel for each. The band around a curve is twice the standard deviation of the noise, which is
    public; around a partial dependence it is where the reward itself lies for most values of the other coordinates.

    Args:
        private: What was released.
        path: The file, which ends in .png or .svg.
        names: What the coordinates are called.
        actions: What the values are called, where there are several.
        title: The heading.

    """
    target, dimension = checked(path), private.box.dimension
    if dimension > MOST_PANELS:
        raise InvalidInput(f"A picture has room for {MOST_PANELS} coordinates, and this reward has {dimension}.")
    if names is None:
        names = ["state"] if dimension == 1 else [f"coordinate {i + 1}" for i in range(dimension)]
    if len(names) != dimension:
        raise InvalidInput(f"names must be one for each of {dimension} coordinates, not {len(names)}.")
    chart = getattr(private, "feature_map", None)
    if getattr(chart, "items", ()):
        raise InvalidInput("A picture shows functions of numbers, and this one is of items: `quietq serve` lists them.")
    if getattr(chart, "additive", isinstance(private, PrivateSum)) and dimension > 1:
        title += " (additive: one function of each coordinate, no interactions)"
    if isinstance(private, PrivateSum) or dimension == 1:
        figure = _draw_curves(private, names, actions)
    elif dimension == 2:
        figure = _draw_map(private, names, actions)
    else:
        figure = _draw_dependence(private, names, actions)
        title += ": partial dependence on each coordinate"
    save_released(figure, target, title, private.certificate)


def _measure(private: PrivateFunction | PrivateNetwork) -> str:
    """What the numbers are: K-norm noise goes into increments, and comparisons say nothing of a constant."""
    if isinstance(private, PrivateNetwork):
        return "released value"
    if private.certificate.method.endswith("k-norm"):
        return "reward, up to a constant"
    return "reward, in log-odds" if getattr(private, "low", 0.0) is None else "reward"


def _panels(number: int) -> tuple["Figure", list["Axes"]]:
    """Makes a figure with so many panels, in rows of at most four."""
    columns = min(number, 4)
    rows = -(-number // columns)
    figure = new_figure(max(8.4, 3.1 * columns), 2.3 + 2.6 * rows if number > 1 else 5.2)
    figure.set_layout_engine("constrained", w_pad=0.1)  # so that ticks of neighbours do not touch
    panels = list(_below_heading(figure).subplots(rows, columns, sharey=True, squeeze=False).ravel())
    for unused in panels[number:]:
        unused.remove()
    return figure, panels[:number]


def _below_heading(figure: "Figure") -> "SubFigure":
    """What holds the panels and the key: the heading and the words below them are those of the figure around it."""
    return figure.add_subfigure(figure.add_gridspec(1, 1)[0])


def _action(actions: Sequence[str], i: int) -> str:
    return actions[i] if i < len(actions) else f"action {i}"


def _draw_key(panel: "Axes") -> None:
    """Names what is drawn, each thing once, above all panels and below the heading."""
    handles, labels = panel.get_legend_handles_labels()
    kept = dict(zip(labels, handles, strict=True))
    panel.figure.legend(kept.values(), kept.keys(), loc="outside upper center", ncols=3, fontsize=11, frameon=False)


def _draw_curves(private: PrivateFunction | PrivateNetwork, names: Sequence[str], actions: Sequence[str]) -> "Figure":
    """Draws a curve, or of a sum one for each coordinate."""
    parts = private.parts if isinstance(private, PrivateSum) else (private,)
    figure, panels = _panels(len(parts))
    for panel, part, name in zip(panels, parts, names, strict=True):
        _draw_curve(panel, part, actions)
        plain(panel, name)
    figure.supylabel(_measure(private) if len(parts) == 1 else "its share of the reward", fontsize=12)
    _draw_key(panels[0])
    return figure


def _draw_curve(panel: "Axes", part: PrivateFunction | PrivateNetwork, actions: Sequence[str]) -> None:
    states = part.box.from_unit(np.linspace(0, 1, POINTS))
    values = np.asarray(part(states)).reshape(POINTS, -1)
    # The certificate states the noise of the values themselves only here; elsewhere it may be that of weights.
    stated = part.certificate.sigma or part.certificate.expected_error
    sigma = stated if isinstance(part, PrivateTable | PrivateKnots) else None
    for i, column in enumerate(values.T):
        color, line = STYLES[i % len(STYLES)]
        label = "released" if values.shape[1] == 1 else f"released, {_action(actions, i)}"
        panel.plot(states, column, color=color, linestyle=line, linewidth=1.6, label=label)
        if sigma is not None:
            label = f"± 2 σ of the noise, σ = {sigma:.3g}"
            panel.fill_between(states, column - 2 * sigma, column + 2 * sigma, color=BAND, alpha=0.5, lw=0, label=label)
    if isinstance(part, PrivateKnots):
        knots = part.box.from_unit(np.linspace(0, 1, len(part.values)))
        panel.plot(knots, part.values, "o", color=STYLES[0][0], markersize=7, clip_on=False, label="knots")
    panel.set_xlim(part.box.low[0], part.box.high[0])


def _draw_map(private: PrivateFunction | PrivateNetwork, names: Sequence[str], actions: Sequence[str]) -> "Figure":
    """Draws one panel per action, all in the same colours."""
    values = np.asarray(private(private.box.from_unit(_grid()))).reshape(SIDE, SIDE, -1)
    number = values.shape[-1]
    figure = new_figure(max(8.4, 4.2 * number), 6.4 if number == 1 else 5.2)
    maps = {_action(actions, i) if number > 1 else "": values[..., i] for i in range(number)}
    _draw_maps(figure, private.box, maps, names, _measure(private))
    return figure


def _draw_maps(figure: "Figure", box: Box, maps: Mapping[str, np.ndarray], names: Sequence[str], measure: str) -> None:
    """Draws maps by their titles beside each other, in the same colours, the best place of each with a star."""
    low = min(values.min() for values in maps.values())
    high = max(values.max() for values in maps.values())
    levels = _levels(low, high)
    figure.set_layout_engine("constrained", w_pad=0.1)  # so that ticks of neighbours do not touch
    panels = figure.subplots(1, len(maps), sharey=True, squeeze=False)[0]
    sides = box.from_unit(np.stack([np.linspace(0, 1, SIDE)] * 2, axis=-1))
    for panel, (title, values) in zip(panels, maps.items(), strict=True):
        extent = (box.low[0], box.high[0], box.low[1], box.high[1])
        colours = {"cmap": "cividis", "vmin": low, "vmax": high, "interpolation": "bilinear"}
        panel.imshow(values.T, extent=extent, origin="lower", aspect="auto", **colours)
        if len(levels):
            colors = np.where(levels > levels.mean(), "black", "white").tolist()  # whichever can be seen there
            lines = panel.contour(*sides.T, values.T, levels=levels, colors=colors, linewidths=0.8, linestyles="solid")
            panel.clabel(lines, fontsize=9, fmt="%.3g")
        i, j = np.unravel_index(int(values.argmax()), values.shape)
        star = {"color": "white", "markeredgecolor": "black", "markersize": 15, "clip_on": False}
        panel.plot(sides[i, 0], sides[j, 1], "*", **star)
        panel.set_title(title, fontsize=11)
        panel.set_xlabel(names[0], fontsize=12)
        panel.tick_params(labelsize=11)
    panels[0].set_ylabel(names[1], fontsize=12)
    bar = figure.colorbar(panels[0].images[0], ax=list(panels))
    bar.set_label(measure, fontsize=12)
    bar.ax.set_title("★ best", fontsize=9)


def _grid() -> np.ndarray:
    """The points of a square, in unit coordinates."""
    ends = np.linspace(0, 1, SIDE)
    return np.stack(np.meshgrid(ends, ends, indexing="ij"), axis=-1)


def find_best(private: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Finds the point of the unit square with the largest value, on a grid."""
    points = _grid().reshape(-1, 2)
    return points[int(np.argmax(private(points)))]


def _levels(low: float, high: float) -> Float[np.ndarray, " levels"]:
    """Some round numbers in between."""
    from matplotlib.ticker import MaxNLocator

    ticks = np.asarray(MaxNLocator(8).tick_values(low, high))
    return ticks[(ticks > low) & (ticks < high)]


def _draw_dependence(
    private: PrivateFunction | PrivateNetwork, names: Sequence[str], actions: Sequence[str]
) -> "Figure":
    figure, panels = _panels(private.box.dimension)
    for i, panel in enumerate(panels):
        states, values = dependence(private, i)
        several = values.shape[-1] > 1
        for action in range(values.shape[-1]):
            color, line = STYLES[action % len(STYLES)]
            which = f", {_action(actions, action)}" if several else ""
            label = f"mean over the other coordinates, uniform in the box{which}"
            mean = values[..., action].mean(axis=1)
            panel.plot(states, mean, color=color, linestyle=line, linewidth=1.8, label=label)
        if not several:
            low, high = np.quantile(values[..., 0], [0.1, 0.9], axis=1)
            panel.fill_between(states, low, high, color=BAND, alpha=0.5, lw=0, label="where 80 % of the values lie")
        panel.set_xlim(states[0], states[-1])
        plain(panel, names[i])
    figure.supylabel(_measure(private), fontsize=12)
    _draw_key(panels[0])
    return figure


def dependence(
    private: PrivateFunction | PrivateNetwork, i: int
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, "..."]]:
    """Gives points along coordinate i and, at each of them, the values at the same states of the other coordinates.

    The values have the shape (points, states, actions).
    """
    box, side = private.box, np.linspace(0, 1, 33)
    others = 512  # states of which each point is the mean
    even = np.tile((np.arange(others)[:, None] + 0.5) / others, (1, box.dimension))
    states = np.random.default_rng(0).permuted(even, axis=0)  # each coordinate is covered evenly
    found = []
    for place in side:
        states[:, i] = place
        found.append(np.asarray(private(box.from_unit(states))).reshape(others, -1))
    return box.coordinate(i).from_unit(side), np.stack(found)


def plot_beside_truth(
    path: str | os.PathLike[str],
    true: Callable[[np.ndarray], np.ndarray],
    private: PrivateFunction,
    *,
    names: Sequence[str],
    title: str,
) -> None:
    """Draws the true function of one or two coordinates beside the private one, for the operator alone."""
    target = checked(path)
    of_truth, of_release = "true mean (NOT PRIVATE)", "private"
    if private.box.dimension == 1:
        figure, (panel,) = _panels(1)
        states = private.box.from_unit(np.linspace(0, 1, POINTS))
        panel.plot(states, true(states), color="black", linewidth=2.2, label=of_truth)
        panel.plot(states, private(states), color=STYLES[1][0], linewidth=1.2, label=of_release)
        plain(panel, names[0], "reward")
        _draw_key(panel)
    else:
        figure = new_figure(9.6, 4.9)
        points = private.box.from_unit(_grid())
        _draw_maps(figure, private.box, {of_truth: true(points), of_release: private(points)}, names, "mean rating")
    save(figure, target, f"NOT PRIVATE: {title}", owner_only=True)


# A world


def plot_world(world: PrivateWorld, path: str | os.PathLike[str]) -> None:
    """Draws a private world to a PNG or SVG file.

    For each coordinate that is learned: what noise alone is expected to do to a step, how people's steps scatter by
    themselves, and how much of them is explained, in widths of the box.
    """
    target = checked(path)
    shown = world.moved[:MOST_LINES]
    places = -np.arange(len(shown))
    width = np.array(world.box.width)[list(world.moved)]
    figure = new_figure(8.4, 2.6 + 0.34 * len(shown))
    panel = _below_heading(figure).subplots()
    labels = ("noise, as expected", "people's own scatter, as released", "explained by state and action")
    for i, (column, label) in enumerate(zip(spreads(world, world.box, world.moved), labels, strict=True)):
        share = np.maximum(column / width, 1e-9)[: len(shown)]
        panel.plot(share, places, "osD"[i], color=STYLES[i][0], markersize=7, linestyle="none", label=label)
    panel.set_xscale("log")
    panel.set_yticks(places, [world.spaces.state_names[i].replace("$", r"\$") for i in shown])
    panel.set_ylim(places[-1] - 0.7, 0.7)
    plain(panel, "deviation of a step, in widths of the box")
    if len(shown) < len(world.moved):
        panel.set_title(f"the first {len(shown)} of {len(world.moved)} coordinates that are learned", fontsize=11)
    _draw_key(panel)
    save_released(figure, target, "A private world: its steps", world.certificate)


# Audits


class Line(NamedTuple):
    """What is drawn of a finding."""

    standing: str
    promised: float
    measured: float
    verdict: str


def plot_lines(lines: Mapping[str, Line], path: str | os.PathLike[str], confidence: float) -> None:
    """Draws a line per method to PNG or SVG: its promise as a bar's end, and the measured lower bound as a mark."""
    target = checked(path)
    figure = new_figure(9.6, 1.9 + 0.42 * len(lines))
    panel = figure.subplots()
    for height, line in enumerate(list(lines.values())[::-1]):
        color, dashes = STYLES[1] if line.standing == "claimed" else STYLES[0]
        panel.barh(height, line.promised, height=0.34, color=color, alpha=0.28)
        ends = [height - 0.3, height + 0.3]
        panel.plot([line.promised] * 2, ends, color=color, linewidth=3, linestyle=dashes, label=line.standing)
        mark = {"color": "black", "marker": ">", "markersize": 9, "linestyle": "none", "clip_on": False}
        panel.plot(line.measured, height, label="measured: at least this", **mark)
        if line.verdict == "refuted":
            words = {"textcoords": "offset points", "va": "center", "fontsize": 10, "fontweight": "bold"}
            panel.annotate("REFUTED", (max(line.measured, line.promised), height), (10, 0), **words)
    panel.set_yticks(range(len(lines)), list(lines)[::-1])
    panel.set_ylim(-0.7, len(lines) - 0.3)
    panel.set_xlim(0, 1.2 * max(max(line.promised, line.measured) for line in lines.values()))
    plain(panel, "epsilon")
    panel.grid(visible=False, axis="y")
    _draw_key(panel)
    below = (
        f"Measured: lower bounds, each at confidence {confidence:.3g}. They rise with the number of runs, and cannot "
        "prove a promise, only break it."
    )
    save(figure, target, below=below)
