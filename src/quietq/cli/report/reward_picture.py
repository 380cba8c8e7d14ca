"""A private reward as a picture: a curve, a map, or what each of many coordinates does on the whole.

All of it comes from the released function and its certificate, so a picture may leave with them if that is certified.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from quietq.cli.report.look import POINTS, STYLES, checked, new_figure, plain, save_released
from quietq.privacy.errors import InvalidInput
from quietq.released.private_function import PrivateFunction, PrivateKnots, PrivateSum, PrivateTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND = "#9ECAE9"
SIDE = 129
"""Points along each side of a map."""
COARSE = 33
"""Points along each coordinate of a partial dependence, and how many states each of them is the mean over."""
OTHERS = 512
MOST_PANELS, MOST_ITEMS = 64, 40


Names = Sequence[str]


def plot_reward(
    private: PrivateFunction,
    path: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    actions: Sequence[str] | None = None,
    title: str | None = None,
) -> None:
    """Draws a private reward to a PNG or SVG file; `names` are those of the coordinates, `actions` those of its values.

    Over one coordinate it is a curve, over two a map, over more its partial dependence on each; of a catalogue it is a
    list of items. A sum of functions of
    one coordinate has a panel for each. The band around a curve is twice the standard deviation of the noise, which is
    public; around a partial dependence it is where the reward itself lies for most values of the other coordinates.
    """
    target, dimension = checked(path), private.box.dimension
    if dimension > MOST_PANELS:
        raise InvalidInput(f"A picture has room for {MOST_PANELS} coordinates, and this reward has {dimension}.")
    if names is not None and len(names) != dimension:
        raise InvalidInput(f"names must be one for each of {dimension} coordinates, not {len(names)}.")
    heading, chart = title or "Private reward", getattr(private, "feature_map", None)
    if getattr(chart, "additive", isinstance(private, PrivateSum)) and dimension > 1:
        heading += " (additive: one function of each coordinate, no interactions)"
    if items := getattr(chart, "items", ()):
        figure = _draw_items(private, items, actions)
    elif isinstance(private, PrivateSum) and dimension > 1:
        figure = _draw_sum(private, names, actions)
    elif dimension == 1:
        figure = _draw_curve(private, names, actions)
    elif dimension == 2:
        figure = _draw_map(private, names, actions)
    else:
        figure = _draw_dependence(private, names, actions)
        heading += ": partial dependence on each coordinate"
    save_released(figure, target, heading, private.certificate)


def _level(private: PrivateFunction) -> str:
    """What the numbers are: K-norm noise goes into increments, and comparisons say nothing of a constant."""
    if private.certificate.method.endswith("k-norm"):
        return "reward, up to a constant"
    return "reward, in log-odds" if getattr(private, "low", 0.0) is None else "reward"


def _panels(number: int) -> tuple[Any, list["Axes"], Any]:
    """A figure, so many panels in rows of at most four, and a place for the key above them."""
    columns = min(number, 4 if number != 3 else 3)
    rows = -(-number // columns)
    width, height = max(8.4, 3.1 * columns), 2.3 + 2.6 * rows if number > 1 else 5.2
    figure = new_figure(width, height)
    figure.get_layout_engine().set(w_pad=0.1)  # so that ticks of neighbours do not touch
    grid = figure.add_gridspec(rows + 1, columns, height_ratios=(0.35 / height * 5.2, *[5.0 / rows] * rows))
    panels: list[Axes] = []
    for i in range(number):
        panels.append(figure.add_subplot(grid[1 + i // columns, i % columns], sharey=panels[0] if panels else None))
        panels[-1].tick_params(labelleft=i % columns == 0)
    key = figure.add_subplot(grid[0, :])
    key.axis("off")
    return figure, panels, key


def _name(names: Names | None, i: int, only: bool = False) -> str:
    if names is not None:
        return names[i]
    return "state" if only else f"coordinate {i + 1}"


def _action(actions: Names | None, i: int) -> str:
    return f"action {i}" if actions is None or len(actions) <= i else actions[i]


def _explain(key: "Axes", panel: "Axes") -> None:
    handles, labels = panel.get_legend_handles_labels()
    key.legend(handles, labels, loc="center", ncols=3, fontsize=11, frameon=False)


def _draw_curve(private: PrivateFunction, names: Names | None, actions: Names | None) -> Any:
    figure, (panel,), key = _panels(1)
    _draw(panel, private, actions)
    plain(panel, _name(names, 0, only=True), _level(private))
    _explain(key, panel)
    return figure


def _draw_sum(private: PrivateSum, names: Names | None, actions: Names | None) -> Any:
    figure, panels, key = _panels(private.box.dimension)
    for i, (panel, part) in enumerate(zip(panels, private.parts, strict=True)):
        _draw(panel, part, actions)
        plain(panel, _name(names, i))
    figure.supylabel("its share of the reward", fontsize=12)
    _explain(key, panels[0])
    return figure


def _draw(panel: "Axes", part: PrivateFunction, actions: Names | None) -> None:
    states = part.box.from_unit(np.linspace(0, 1, POINTS))
    values = np.asarray(part(states)).reshape(POINTS, -1)
    # of the values that are drawn; elsewhere it may be that of weights
    sigma = part.certificate.sigma if isinstance(part, PrivateTable | PrivateKnots) else None
    for i, column in enumerate(values.T):
        color, line = STYLES[i % len(STYLES)]
        label = "released" if values.shape[1] == 1 else f"released, {_action(actions, i)}"
        panel.plot(states, column, color=color, linestyle=line, linewidth=1.6, label=label)
        if sigma is not None:
            name = f"± 2 σ of the noise, σ = {sigma:.3g}" if i == values.shape[1] - 1 else None
            panel.fill_between(states, column - 2 * sigma, column + 2 * sigma, color=BAND, alpha=0.5, lw=0, label=name)
    if isinstance(part, PrivateKnots):
        knots = part.box.from_unit(np.linspace(0, 1, len(part.values)))
        panel.plot(knots, part.values, "o", color=STYLES[0][0], markersize=7, clip_on=False, label="knots")
    panel.set_xlim(part.box.low[0], part.box.high[0])


def _draw_items(private: PrivateFunction, items: Names, actions: Names | None) -> Any:
    """A line per item, the best first by the mean over actions; of many, the best and the worst."""
    values = np.asarray(private(np.array(items))).reshape(len(items), -1)
    order = np.argsort(-values.mean(axis=1), kind="stable")
    if len(order) > MOST_ITEMS:
        order = np.concatenate([order[: MOST_ITEMS // 2], order[-MOST_ITEMS // 2 :]])
    figure = new_figure(8.4, 2.0 + 0.22 * len(order))
    panel, places = figure.subplots(), -np.arange(len(order))
    for i, column in enumerate(values[order].T):
        color = STYLES[i % len(STYLES)][0]
        panel.plot(column, places, "osD^"[i % 4], color=color, markersize=6, label=_action(actions, i))
    panel.set_yticks(places, [items[i] for i in order])
    panel.set_ylim(places[-1] - 0.7, 0.7)
    plain(panel, _level(private))
    panel.tick_params(axis="y", labelsize=9)
    if len(order) < len(items):
        half = MOST_ITEMS // 2
        panel.axhline(0.5 - half, color="black", linewidth=0.8, linestyle=":")
        panel.set_title(f"the {half} best and the {half} worst of {len(items):,} items", fontsize=11)
    if values.shape[1] > 1:
        panel.legend(fontsize=11, frameon=False)
    return figure


def _draw_map(private: PrivateFunction, names: Names | None, actions: Names | None) -> Any:
    """One panel per action, all in the same colours."""
    box, side = private.box, np.linspace(0, 1, SIDE)
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    values = np.asarray(private(box.from_unit(points))).reshape(SIDE, SIDE, -1)
    number = values.shape[-1]
    figure = new_figure(max(8.4, 4.2 * number), 6.4 if number == 1 else 5.2)
    figure.get_layout_engine().set(w_pad=0.1)
    panels = figure.subplots(1, number, sharey=True, squeeze=False)[0]
    levels = _levels(values)
    image, horizontal = None, box.from_unit(np.stack([side, side], axis=-1))
    for i, panel in enumerate(panels):
        cells = {"vmin": values.min(), "vmax": values.max(), "cmap": "cividis", "aspect": "auto", "origin": "lower"}
        extent = (box.low[0], box.high[0], box.low[1], box.high[1])
        image = panel.imshow(values[..., i].T, extent=extent, interpolation="bilinear", **cells)
        if len(levels):
            colors = np.where(levels > levels.mean(), "black", "white").tolist()  # whichever can be seen there
            lines = panel.contour(
                *horizontal.T, values[..., i].T, levels=levels, colors=colors, linewidths=0.8, linestyles="solid"
            )
            panel.clabel(lines, fontsize=9, fmt="%.3g")
        panel.tick_params(labelsize=11)
        panel.set_xlabel(_name(names, 0), fontsize=12)
        if number > 1:
            panel.set_title(_action(actions, i), fontsize=12)
    panels[0].set_ylabel(_name(names, 1), fontsize=12)
    figure.colorbar(image, ax=list(panels), ticks=levels if len(levels) else None).set_label(
        _level(private), fontsize=12
    )
    return figure


def _levels(values: np.ndarray) -> Float[np.ndarray, " levels"]:
    """Some round numbers in between."""
    from matplotlib.ticker import MaxNLocator

    if not np.ptp(values) > 0:
        return np.empty(0)
    ticks = np.asarray(MaxNLocator(8).tick_values(values.min(), values.max()))
    return ticks[(ticks > values.min()) & (ticks < values.max())]


def _draw_dependence(private: PrivateFunction, names: Names | None, actions: Names | None) -> Any:
    figure, panels, key = _panels(private.box.dimension)
    for i, panel in enumerate(panels):
        states, values = dependence(private, i)
        for action in range(values.shape[-1]):
            color, line = STYLES[action % len(STYLES)]
            which = "" if values.shape[-1] == 1 else f", {_action(actions, action)}"
            mean, label = (
                values[..., action].mean(axis=1),
                f"mean over the other coordinates, uniform in the box{which}",
            )
            panel.plot(states, mean, color=color, linestyle=line, linewidth=1.8, label=label)
            if values.shape[-1] == 1:
                low, high = np.quantile(values[..., 0], [0.1, 0.9], axis=1)
                panel.fill_between(states, low, high, color=BAND, alpha=0.5, lw=0, label="where 80 % of the values lie")
        panel.set_xlim(states[0], states[-1])
        plain(panel, _name(names, i))
    figure.supylabel(_level(private), fontsize=12)
    _explain(key, panels[0])
    return figure


def dependence(private: PrivateFunction, i: int) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, "..."]]:
    """Along coordinate i: the values at the same states for each of its points, shape (points, states, actions)."""
    box, side = private.box, np.linspace(0, 1, COARSE)
    even = np.tile((np.arange(OTHERS)[:, None] + 0.5) / OTHERS, (1, box.dimension))
    others = np.random.default_rng(0).permuted(even, axis=0)  # each coordinate is covered evenly
    found = []
    for place in side:
        others[:, i] = place
        found.append(np.asarray(private(box.from_unit(others))).reshape(OTHERS, -1))
    return box.coordinate(i).from_unit(side), np.stack(found)
