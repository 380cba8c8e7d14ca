"""Pictures: of a private function, a private world, an agent's values, what audits found and what a thief recovers.

Those of what was released come from the release and its certificate, so they may leave with them if that is certified.
Those that show the true reward are NOT PRIVATE, whatever a certificate says, and for the operator: only their owner can
read the files.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.audit.finding import Finding
from quietq.cli.report.look import STYLES, checked, new_figure, plain, promise, save, save_released
from quietq.noise.box import Box
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.released import PrivateNetwork
from quietq.released.private_function import PrivateFunction, PrivateKnots, PrivateSum, PrivateTable
from quietq.released.private_world import PrivateWorld
from quietq.worlds.plan_check import CheckedPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from quietq.paper.attacks.reconstruct import Reconstruction, RecoveredReward

BAND = "#9ECAE9"
POINTS = 1025
"""Points of a curve."""
SIDE = 129
"""Points along each side of a map."""
MOST_PANELS = 64
MOST_LINES = 40
"""Items of a catalogue, or coordinates of a world, that a picture has lines for."""

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
    elif isinstance(private, PrivateSum) or dimension == 1:
        figure = _draw_curves(private, names, actions)
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


def _panels(number: int, key_rows: int = 1) -> tuple["Figure", list["Axes"], "Axes"]:
    """A figure, so many panels in rows of at most four, and a place for the key above them."""
    columns = min(number, 4 if number != 3 else 3)
    rows = -(-number // columns)
    width, height = max(8.4, 3.1 * columns), 2.3 + 2.6 * rows if number > 1 else 5.2
    figure = new_figure(width, height)
    figure.set_layout_engine("constrained", w_pad=0.1)  # so that ticks of neighbours do not touch
    grid = figure.add_gridspec(rows + 1, columns, height_ratios=(0.35 * key_rows / height * 5.2, *[5.0 / rows] * rows))
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


def _explain(key: "Axes", panel: "Axes", columns: int = 3) -> None:
    handles, labels = panel.get_legend_handles_labels()
    key.legend(handles, labels, loc="center", ncols=columns, fontsize=11, frameon=False)


def _draw_curves(private: PrivateFunction, names: Names | None, actions: Names | None) -> "Figure":
    """Draws a curve, or of a sum one for each coordinate."""
    parts = private.parts if isinstance(private, PrivateSum) else (private,)
    figure, panels, key = _panels(len(parts))
    for i, (panel, part) in enumerate(zip(panels, parts, strict=True)):
        _draw(panel, part, actions)
        plain(panel, _name(names, i, only=len(parts) == 1))
    figure.supylabel(_level(private) if len(parts) == 1 else "its share of the reward", fontsize=12)
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


def _draw_items(private: PrivateFunction, items: Names, actions: Names | None) -> "Figure":
    """A line per item, the best first by the mean over actions; of many, the best and the worst."""
    values = np.asarray(private(np.array(items))).reshape(len(items), -1)
    order = np.argsort(-values.mean(axis=1), kind="stable")
    if len(order) > MOST_LINES:
        order = np.concatenate([order[: MOST_LINES // 2], order[-MOST_LINES // 2 :]])
    figure = new_figure(8.4, 2.0 + 0.22 * len(order))
    panel, places = figure.subplots(), -np.arange(len(order))
    for i, column in enumerate(values[order].T):
        color = STYLES[i % len(STYLES)][0]
        panel.plot(column, places, "osD^"[i % 4], color=color, markersize=6, label=_action(actions, i))
    panel.set_yticks(places, [str(items[i]) for i in order])
    panel.set_ylim(places[-1] - 0.7, 0.7)
    plain(panel, _level(private))
    panel.tick_params(axis="y", labelsize=9)
    if len(order) < len(items):
        half = MOST_LINES // 2
        panel.axhline(0.5 - half, color="black", linewidth=0.8, linestyle=":")
        panel.set_title(f"the {half} best and the {half} worst of {len(items):,} items", fontsize=11)
    if values.shape[1] > 1:
        panel.legend(fontsize=11, frameon=False)
    return figure


def _draw_map(private: PrivateFunction, names: Names | None, actions: Names | None) -> "Figure":
    """Draws one panel per action, all in the same colours."""
    values = np.asarray(private(private.box.from_unit(_grid(SIDE)))).reshape(SIDE, SIDE, -1)
    number = values.shape[-1]
    figure = new_figure(max(8.4, 4.2 * number), 6.4 if number == 1 else 5.2)
    maps = [(_action(actions, i) if number > 1 else "", values[..., i]) for i in range(number)]
    _draw_maps(figure, private.box, maps, (_name(names, 0), _name(names, 1)), _level(private), contours=True)
    return figure


def _draw_maps(
    figure: "Figure",
    box: Box,
    maps: Sequence[tuple[str, np.ndarray]],
    names: Names,
    label: str,
    *,
    limits: tuple[float, float] | None = None,
    contours: bool = False,
    best: bool = False,
) -> None:
    """Draws titled maps over a box of two coordinates beside each other, in the same colours.

    Colours reach over `limits`, or else over all values; the `best` place of each map is marked with a star.
    """
    low, high = limits or (min(values.min() for _, values in maps), max(values.max() for _, values in maps))
    levels = _levels(low, high) if contours else np.empty(0)
    figure.set_layout_engine("constrained", w_pad=0.1)  # so that ticks of neighbours do not touch
    panels = figure.subplots(1, len(maps), sharey=True, squeeze=False)[0]
    for panel, (title, values) in zip(panels, maps, strict=True):
        panel.imshow(
            values.T,
            extent=(box.low[0], box.high[0], box.low[1], box.high[1]),
            origin="lower",
            aspect="auto",
            cmap="cividis",
            interpolation="nearest" if limits else "bilinear",
            vmin=low,
            vmax=high,
        )
        sides = box.from_unit(np.stack([np.linspace(0, 1, len(values))] * 2, axis=-1))
        if len(levels):
            colors = np.where(levels > levels.mean(), "black", "white").tolist()  # whichever can be seen there
            lines = panel.contour(*sides.T, values.T, levels=levels, colors=colors, linewidths=0.8, linestyles="solid")
            panel.clabel(lines, fontsize=9, fmt="%.3g")
        if best:
            i, j = np.unravel_index(int(values.argmax()), values.shape)
            place = (sides[i, 0], sides[j, 1])
            panel.plot(*place, "*", color="white", markeredgecolor="black", markersize=15, clip_on=False)
        panel.set_title(title, fontsize=11)
        panel.set_xlabel(names[0], fontsize=12)
        panel.tick_params(labelsize=11)
    panels[0].set_ylabel(names[1], fontsize=12)
    bar = figure.colorbar(panels[0].images[0], ax=list(panels), extend="both" if limits else "neither")
    if len(levels):
        bar.set_ticks(levels.tolist())
    bar.set_label(label, fontsize=12)


def _grid(side: int) -> np.ndarray:
    """The points of a square, in unit coordinates."""
    ends = np.linspace(0, 1, side)
    return np.stack(np.meshgrid(ends, ends, indexing="ij"), axis=-1)


def find_best(private: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Finds the point of the unit square with the largest value, on a grid."""
    points = _grid(SIDE).reshape(-1, 2)
    return points[int(np.argmax(private(points)))]


def _levels(low: float, high: float) -> Float[np.ndarray, " levels"]:
    """Some round numbers in between."""
    from matplotlib.ticker import MaxNLocator

    if not high > low:
        return np.empty(0)
    ticks = np.asarray(MaxNLocator(8).tick_values(low, high))
    return ticks[(ticks > low) & (ticks < high)]


def _draw_dependence(private: PrivateFunction, names: Names | None, actions: Names | None) -> "Figure":
    figure, panels, key = _panels(private.box.dimension)
    for i, panel in enumerate(panels):
        states, values = dependence(private, i)
        for action in range(values.shape[-1]):
            color, line = STYLES[action % len(STYLES)]
            which = "" if values.shape[-1] == 1 else f", {_action(actions, action)}"
            mean = values[..., action].mean(axis=1)
            label = f"mean over the other coordinates, uniform in the box{which}"
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
    box, side = private.box, np.linspace(0, 1, 33)
    others = 512  # states of which each point is the mean
    even = np.tile((np.arange(others)[:, None] + 0.5) / others, (1, box.dimension))
    states = np.random.default_rng(0).permuted(even, axis=0)  # each coordinate is covered evenly
    found = []
    for place in side:
        states[:, i] = place
        found.append(np.asarray(private(box.from_unit(states))).reshape(others, -1))
    return box.coordinate(i).from_unit(side), np.stack(found)


# An agent


def plot_values(
    agent: PrivateNetwork, path: str | os.PathLike[str], *, actions: Sequence[str] = (), title: str | None = None
) -> None:
    """Draws the released values of all actions over a state of one coordinate, to a PNG or SVG file.

    Below them is the action that is best there; `actions` are their names.
    """
    target = checked(path)
    box = agent.box
    if box.dimension != 1:
        raise InvalidInput(f"A plot shows values over one coordinate; this world has {box.dimension}.")
    states = np.linspace(box.low[0], box.high[0], POINTS)
    values = agent.q_values(states[:, None])
    names = actions or [f"action {i}" for i in range(values.shape[1])]
    figure = new_figure()
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(9, 1))
    for i, name in enumerate(names):
        color, line = STYLES[i % len(STYLES)]
        top.plot(states, values[:, i], color=color, linestyle=line, linewidth=1.8, label=name)
    plain(top, vertical="released value")
    top.legend(fontsize=11, frameon=False, title="value of going" if set(names) <= {"left", "right"} else "value of")
    _draw_regions(bottom, states, {"best action": values.argmax(axis=1)}, names)
    save_released(figure, target, title or "What the agent released", agent.certificate)


def plot_outcome(
    path: str | os.PathLike[str],
    *,
    states: np.ndarray,
    true: Callable[[np.ndarray], np.ndarray],
    private: Callable[[np.ndarray], np.ndarray],
    policies: Mapping[str, np.ndarray],
    actions: Sequence[str],
    title: str,
) -> None:
    """Draws the true reward beside the private one, and policies' actions below."""
    target = checked(path)
    figure = new_figure()
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(4, len(policies)))
    top.plot(states, true(states), color="black", linewidth=2.2, label="true mean reward (NOT PRIVATE)")
    top.plot(states, private(states), color=STYLES[1][0], linewidth=1.2, label="private reward, which the agent saw")
    plain(top, vertical="reward")
    top.legend(fontsize=11, frameon=False)
    _draw_regions(bottom, states, policies, actions)
    save(figure, target, f"NOT PRIVATE: {title}", owner_only=True)


def _draw_regions(
    panel: "Axes", states: np.ndarray, policies: Mapping[str, np.ndarray], actions: Sequence[str]
) -> None:
    """Draws one row per policy: where each action is chosen, shaded, and named where there is room."""
    width = states[-1] - states[0]
    for row, chosen in enumerate(policies.values()):
        ends = np.flatnonzero(np.diff(chosen)) + 1
        for first, last in zip([0, *ends], [*ends, len(chosen)], strict=True):
            action = int(chosen[first])
            left, right = states[first], states[min(last, len(states) - 1)]
            color, _ = STYLES[action % len(STYLES)]
            hatch = ("", "////", "....", "xxxx")[action % 4]  # told apart in grey
            shade = {"facecolor": color, "alpha": 0.3, "hatch": hatch, "edgecolor": "white", "lw": 0}
            panel.fill_between([left, right], -row - 0.42, -row + 0.42, **shade)
            if right - left > 0.012 * width * (len(actions[action]) + 2):
                box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85}
                middle = (left + right) / 2
                panel.text(middle, -row, actions[action], ha="center", va="center", fontsize=11, bbox=box)
    panel.set_yticks([-row for row in range(len(policies))], list(policies))
    panel.set(xlim=(states[0], states[-1]), ylim=(-len(policies) + 0.5, 0.5))
    panel.tick_params(labelsize=11, left=False)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.set_xlabel("state", fontsize=12)


def plot_true_map(
    path: str | os.PathLike[str],
    true: Callable[[np.ndarray], np.ndarray],
    private: PrivateFunction,
    *,
    names: Names,
    title: str,
) -> None:
    """Draws the true map of two coordinates beside the private one, the best place of each with a star."""
    target = checked(path)
    points = _grid(SIDE)
    figure = new_figure(9.6, 4.9)
    maps = [("true mean (NOT PRIVATE)", true(points)), ("private", private(points))]
    _draw_maps(figure, private.box, maps, names, "mean rating; the star is the best", best=True)
    save(figure, target, f"NOT PRIVATE: {title}", owner_only=True)


# A world


class Spreads(NamedTuple):
    """Deviations of one step, for each coordinate that is learned, in its own units."""

    noise: Float[np.ndarray, " moved"]
    """Of what is expected, by the release's known noise alone, at people's own states and actions."""
    residual: Float[np.ndarray, " moved"]
    """Of people's steps around what is expected, as released."""
    explained: Float[np.ndarray, " moved"]
    """Of what is expected, from state to state and from action to action."""


def spreads(world: PrivateWorld) -> Spreads:
    """Weights are off by about left @ E @ right with standard normals E, and the mean of features squared is gram."""
    half = np.array(world.box.width)[list(world.moved)] / 2
    mean = world.gram[0]
    explained = np.einsum("fi,fg,gi->i", world.weights, world.gram - np.outer(mean, mean), world.weights)
    off = np.sqrt(max(float(np.trace(world.left.T @ world.gram @ world.left)), 0.0))
    return Spreads(
        half * off * np.linalg.norm(world.right, axis=0),
        half * np.sqrt(np.maximum(np.diag(world.residual), 0.0)),
        half * np.sqrt(np.maximum(explained, 0.0)),
    )


def plot_world(world: PrivateWorld, path: str | os.PathLike[str], *, check: CheckedPlan | None = None) -> None:
    """Draws a private world to a PNG or SVG file.

    For each coordinate that is learned: what noise alone is expected to do to a step, how people's steps scatter by
    themselves, and how much of them is explained, in widths of the box. Below, if there is one, the check of a plan:
    for which share of the people it is worth what was wanted, with twice the deviation of the noise.
    """
    target = checked(path)
    shown = world.moved[:MOST_LINES]
    rows = 0.9 + 0.34 * len(shown)
    figure = new_figure(8.4, 1.7 + rows + (1.6 if check is not None else 0.0))
    panels = figure.subplots(1 if check is None else 2, 1, height_ratios=[rows, 1.0][: 1 if check is None else 2])
    above, *below = np.ravel(panels)
    _draw_spreads(above, world, [world.spaces.state_names[i].replace("$", r"\$") for i in shown])
    if len(shown) < len(world.moved):
        above.set_title(f"the first {len(shown)} of {len(world.moved)} coordinates that are learned", fontsize=11)
    if check is not None:
        _draw_check(below[0], check)
    heading = "A private world: its steps" + ("" if check is None else ", and the check of a plan")
    save_released(figure, target, heading, world.certificate)


def _draw_spreads(panel: "Axes", world: PrivateWorld, names: list[str]) -> None:
    found, places = spreads(world), -np.arange(len(names))
    width = np.array(world.box.width)[list(world.moved)]
    labels = ("noise, as expected", "people's own scatter, as released", "explained by state and action")
    for i, (column, label) in enumerate(zip(found, labels, strict=True)):
        share = np.maximum(column / width, 1e-9)[: len(names)]
        panel.plot(share, places, "osD"[i], color=STYLES[i][0], markersize=7, linestyle="none", label=label)
    panel.set_xscale("log")
    panel.set_yticks(places, names)
    panel.set_ylim(places[-1] - 0.7, 0.7)
    plain(panel, "deviation of a step, in widths of the box")
    panel.legend(fontsize=10, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


def _draw_check(panel: "Axes", check: CheckedPlan) -> None:
    """Go to the right of the line, no go to the left, if somebody said where it is."""
    error = 2 * check.error
    if check.threshold is not None:
        panel.axvspan(check.threshold, 1, color=STYLES[2][0], alpha=0.12, lw=0)
        panel.axvline(check.threshold, color="black", linewidth=1.0, linestyle=":")
    panel.errorbar([check.share], [0], xerr=[error], fmt="o", color=STYLES[0][0], markersize=8, capsize=4)
    panel.set_yticks([0], ["" if check.threshold is None else "go" if check.go else "no go"])
    panel.set_ylim(-1, 1)
    panel.set_xlim(min(-0.05, check.share - 1.1 * error), max(1.05, check.share + 1.1 * error))
    plain(panel, f"share of people for whom the plan is worth at least {check.wanted:.4g}; ± 2 σ of the noise")


# Audits


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
        _draw_promise(axes, len(lines) - 1 - row, line)
    axes.set_yticks(range(len(lines)), list(lines)[::-1], fontsize=11)
    axes.set_ylim(-0.7, len(lines) - 0.3)
    axes.set_xlim(0, 1.2 * max(max(line.promised, line.measured) for line in lines.values()))
    axes.set_xlabel("epsilon", fontsize=12)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    kept = dict(zip(labels, handles, strict=True))  # each once
    figure.legend(kept.values(), kept.keys(), loc="outside upper center", ncols=3, fontsize=11, frameon=False)
    below = (
        f"Measured: lower bounds, each at confidence {confidence:.3g}. They rise with the number of runs, and cannot "
        "prove a promise, only break it."
    )
    save(figure, target, below=below)


def _draw_promise(axes: "Axes", height: int, found: Line) -> None:
    promised, measured = found.promised, found.measured
    color, line = STYLES[1] if found.standing == "claimed" else STYLES[0]
    axes.barh(height, promised, height=0.34, color=color, alpha=0.28)
    ends = [height - 0.3, height + 0.3]
    axes.plot([promised] * 2, ends, color=color, linewidth=3, linestyle=line, label=found.standing)
    mark = {"color": "black", "marker": ">", "markersize": 9, "linestyle": "none", "clip_on": False}
    axes.plot(measured, height, label="measured: at least this", **mark)
    if measured > promised:
        axes.plot([promised, measured], [height] * 2, color=color, linewidth=1, linestyle=":")
    if found.verdict == "refuted":
        words = {"textcoords": "offset points", "va": "center", "fontsize": 10, "fontweight": "bold"}
        axes.annotate("REFUTED", (max(measured, promised), height), (10, 0), **words)


# Reconstruction


def plot_reconstruction(
    found: "Reconstruction",
    path: str | os.PathLike[str],
    *,
    certificate: Certificate | None = None,
    title: str | None = None,
) -> None:
    """Draws the true reward and what each attack recovers, to a PNG or SVG file; over two coordinates, as maps.

    What an attack is blind to is fitted to the truth, as the legend says.
    """
    target = checked(path)
    if found.truth is None:
        raise InvalidInput("A plot shows what was recovered beside the truth: give reconstruct a truth.")
    box = found.grid.world.box
    recovered = {", ".join(_words(attack)): _shown(attack) for attack in found.recovered}
    if box.dimension == 1:
        figure, (panel,), key = _panels(1, key_rows=1 + len(recovered))
        states = found.grid.states[:, 0]
        panel.plot(states, found.truth, color="black", linewidth=2.6, label="true reward (NOT PRIVATE)")
        for (label, rewards), (color, line) in zip(recovered.items(), STYLES, strict=False):
            panel.plot(states, rewards, color=color, linestyle=line, linewidth=1.8, label=label)
        plain(panel, "state", "reward")
        _explain(key, panel, columns=1)
    else:
        figure = new_figure()
        side = (found.grid.points, found.grid.points)
        maps = [("true reward\n(NOT PRIVATE)", found.truth.reshape(side))]
        maps += [(title.replace(", ", ",\n"), rewards.reshape(side)) for title, rewards in recovered.items()]
        limits = (float(found.truth.min()), float(found.truth.max()))
        _draw_maps(figure, box, maps, ("x", "y"), "reward", limits=limits)
    heading = title or f"what a thief learns of the {found.grid.world.name}'s reward"
    below = "" if certificate is None else f"The release that was attacked: {promise(certificate)}"
    save(figure, target, f"NOT PRIVATE: {heading}", below, owner_only=True)


def _shown(attack: "RecoveredReward") -> np.ndarray:
    return attack.rewards if attack.not_private is None else attack.not_private.aligned


def _words(attack: "RecoveredReward") -> list[str]:
    fitted = [f"{' and '.join(attack.blind_to)} fitted"] if attack.blind_to else []
    measured = [] if attack.not_private is None else [f"correlation {attack.not_private.correlation:.2f}"]
    said = {
        "bellman": "Bellman equation, from the values",
        "inverse-rl": "inverse RL, from the policy",
        "apprenticeship": "apprenticeship, from the policy",
        "read": "the private reward, read",
    }
    return [said.get(attack.name, attack.name), *fitted, *measured]
