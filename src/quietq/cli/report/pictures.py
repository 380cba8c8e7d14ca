"""Pictures of what was released: a function of one coordinate, a map of two, a private world.

They come from the release and its certificate, so they can be published with them if that is certified. What they have
in common, colours, letters and how a picture is written, serves other pictures too.
"""

import importlib.util
import io
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput, MissingExtra
from quietq.released import PrivateNetwork
from quietq.released.private_function import PrivateFunction, PrivateKnots, PrivateTable
from quietq.released.private_world import PrivateWorld, spreads
from quietq.released.release_file import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, dark first, and a line style each: told apart by colour-blind readers and in grey.
STYLES = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."), ("#000000", ":"))
FAMILY = "DejaVu Sans"
"""The letters of all pictures, which come with Matplotlib, and of the reports (page.css)."""
BAND = "#9ECAE9"
POINTS = 1025
"""Points of a curve."""
SIDE = 129
"""Points along each side of a map."""
MOST_COORDINATES = 2
MOST_LINES = 40
"""Coordinates of a world that a picture has lines for."""


def require() -> None:
    """Raises MissingExtra unless Matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra.of("report", "Plots need Matplotlib")


def checked(path: str | os.PathLike[str]) -> Path:
    """Refuses a file that is no picture, before anything is drawn."""
    require()
    target = Path(path)
    if target.suffix.lower() not in (".png", ".svg"):
        raise InvalidInput(f"path must end in .png or .svg, not {target.name!r}.")
    return target


def new_figure(width: float = 8.4, height: float = 5.2) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def plain(panel: "Axes", horizontal: str = "", vertical: str = "") -> None:
    """A light grid, and no frame but the axes."""
    panel.tick_params(labelsize=11)
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)
    if horizontal:
        panel.set_xlabel(horizontal, fontsize=12)
    if vertical:
        panel.set_ylabel(vertical, fontsize=12)


def save(figure: "Figure", target: Path, heading: str = "", below: str = "") -> None:
    """Adds the words above and below, and writes the picture, whole or not at all."""
    from matplotlib import rc_context
    from matplotlib.text import Text

    width = figure.get_size_inches()[0]
    if heading:
        figure.suptitle(textwrap.fill(heading, 76), fontsize=14)
    if below:
        figure.supxlabel(textwrap.fill(below, int(14.5 * width)), fontsize=9)
    # Whatever the reader's own Matplotlib is set to: words that are there, and those that drawing adds.
    for words in figure.findobj(Text):
        words.set_fontfamily(FAMILY)
    picture = io.BytesIO()
    with rc_context({"font.family": [FAMILY]}):
        figure.savefig(picture, format=target.suffix.lower()[1:])
    try:
        write_whole(target, picture.getvalue())
    except OSError as error:
        raise InvalidInput(f"path must be a file that can be written to, not {str(target)!r}.") from error


def save_released(figure: "Figure", target: Path, heading: str, certificate: Certificate) -> None:
    """Saves a picture with the promise below it; marked if there is none."""
    marked = certificate.standing != "certified"
    save(figure, target, f"NOT PRIVATE: {heading}" if marked else heading, promise(certificate))


def promise(certificate: Certificate) -> str:
    """Returns what the certificate promises, and to whom, in one line."""
    line = str(certificate).splitlines()[0]
    number = None if certificate.relation is None else certificate.relation.people
    if certificate.standing != "none" and number is not None:
        line += f" It protects each of {number} people."
    return line


def plot_function(
    private: PrivateFunction | PrivateNetwork, path: str | os.PathLike[str], title: str = "Private reward"
) -> None:
    """Draws a private reward, or an agent's values, to a PNG or SVG file.

    Over one coordinate it is a curve, over two a map. The band around a curve is twice the standard deviation of the
    noise, which is public. Coordinates and actions have the names that were declared.

    Args:
        private: What was released.
        path: The file, which ends in .png or .svg.
        title: The heading.

    """
    target, dimension = checked(path), private.box.dimension
    if dimension > MOST_COORDINATES:
        raise InvalidInput(f"A picture shows a function of one or two coordinates, and this one is of {dimension}.")
    chart = getattr(private, "feature_map", None)
    if getattr(chart, "items", ()):
        raise InvalidInput("A picture shows functions of numbers, and this one is of items: `quietq serve` lists them.")
    draw = _draw_curve if dimension == 1 else _draw_map
    save_released(draw(private), target, title, private.certificate)


def _measure(private: PrivateFunction | PrivateNetwork) -> str:
    """Returns what the numbers are: K-norm noise goes into increments, and comparisons say nothing of a constant."""
    if isinstance(private, PrivateNetwork):
        return "released value"
    if private.certificate.method.endswith("k-norm"):
        return "reward, up to a constant"
    return "reward, in log-odds" if getattr(private, "low", 0.0) is None else "reward"


def _panel(figure: "Figure") -> "Axes":
    """Adds a panel with its key above it, below the heading, which is that of the figure around them."""
    return figure.add_subfigure(figure.add_gridspec(1, 1)[0]).subplots()


def _action(private: PrivateFunction | PrivateNetwork, i: int) -> str:
    return private.labels.actions[i] if i < len(private.labels.actions) else f"action {i}"


def _draw_key(panel: "Axes") -> None:
    """Names what is drawn, each thing once, above all panels and below the heading."""
    handles, labels = panel.get_legend_handles_labels()
    kept = dict(zip(labels, handles, strict=True))
    panel.figure.legend(kept.values(), kept.keys(), loc="outside upper center", ncols=3, fontsize=11, frameon=False)


def _draw_curve(private: PrivateFunction | PrivateNetwork) -> "Figure":
    figure = new_figure()
    panel = _panel(figure)
    states = private.box.from_unit(np.linspace(0, 1, POINTS))
    values = np.asarray(private(states)).reshape(POINTS, -1)
    # The certificate states the noise of the values themselves only here; elsewhere it may be that of weights.
    stated = private.certificate.sigma or private.certificate.expected_error
    sigma = stated if isinstance(private, PrivateTable | PrivateKnots) else None
    for i, column in enumerate(values.T):
        color, line = STYLES[i % len(STYLES)]
        label = "released" if values.shape[1] == 1 else f"released, {_action(private, i)}"
        panel.plot(states, column, color=color, linestyle=line, linewidth=1.6, label=label)
        if sigma is not None:
            label = f"± 2 σ of the noise, σ = {sigma:.3g}"
            panel.fill_between(states, column - 2 * sigma, column + 2 * sigma, color=BAND, alpha=0.5, lw=0, label=label)
    if isinstance(private, PrivateKnots):
        knots = private.box.from_unit(np.linspace(0, 1, len(private.values)))
        panel.plot(knots, private.values, "o", color=STYLES[0][0], markersize=7, clip_on=False, label="knots")
    panel.set_xlim(private.box.low[0], private.box.high[0])
    (name,) = private.labels.states or ("state",)
    plain(panel, name, _measure(private))
    _draw_key(panel)
    return figure


def _draw_map(private: PrivateFunction | PrivateNetwork) -> "Figure":
    """Draws one panel per action, all in the same colours, the best place of each with a star."""
    box, ends = private.box, np.linspace(0, 1, SIDE)
    across, up = private.labels.states or ("coordinate 0", "coordinate 1")
    square = box.from_unit(np.stack(np.meshgrid(ends, ends, indexing="ij"), axis=-1))
    values = np.moveaxis(np.asarray(private(square)).reshape(SIDE, SIDE, -1), -1, 0)
    low, high = values.min(), values.max()
    figure = new_figure(max(8.4, 4.2 * len(values)), 6.4 if len(values) == 1 else 5.2)
    figure.set_layout_engine("constrained", w_pad=0.1)  # so that ticks of neighbours do not touch
    panels = figure.subplots(1, len(values), sharey=True, squeeze=False)[0]
    sides = box.from_unit(np.stack([ends] * 2, axis=-1))
    for number, (panel, one) in enumerate(zip(panels, values, strict=True)):
        extent = (box.low[0], box.high[0], box.low[1], box.high[1])
        colours = {"cmap": "cividis", "vmin": low, "vmax": high, "interpolation": "bilinear"}
        panel.imshow(one.T, extent=extent, origin="lower", aspect="auto", **colours)
        i, j = np.unravel_index(int(one.argmax()), one.shape)
        star = {"color": "white", "markeredgecolor": "black", "markersize": 15, "clip_on": False}
        panel.plot(sides[i, 0], sides[j, 1], "*", **star)
        panel.set_title(_action(private, number) if len(values) > 1 else "", fontsize=11)
        panel.set_xlabel(across, fontsize=12)
        panel.tick_params(labelsize=11)
    panels[0].set_ylabel(up, fontsize=12)
    bar = figure.colorbar(panels[0].images[0], ax=list(panels))
    bar.set_label(_measure(private), fontsize=12)
    bar.ax.set_title("★ best", fontsize=9)
    return figure


# A plan, and a world


Expected = tuple[str, int, float, float]
"""One way, a number of people, what is expected with them, and its spread between releases."""


def plot_expected(found: Sequence[Expected], wanted: float | None, measure: str, path: str | os.PathLike[str]) -> None:
    """Draws what to expect of a release to a PNG or SVG file, by the number of people, beside what is wanted."""
    figure = new_figure()
    panel = _panel(figure)
    for i, way in enumerate(dict.fromkeys(one[0] for one in found)):
        people, scores, spreads = zip(*sorted(one[1:] for one in found if one[0] == way), strict=True)
        color, line = STYLES[i % len(STYLES)]
        panel.errorbar(people, scores, spreads, color=color, linestyle=line, marker="o", capsize=4, label=way)
    if wanted is not None:
        panel.axhline(wanted, color="grey", linewidth=1, label="wanted")
    panel.set_xscale("log")
    plain(panel, "people", f"expected {measure}, and its spread")
    _draw_key(panel)
    save(figure, checked(path), "What to expect of a private release", "People were simulated; nothing was spent.")


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
    panel = _panel(figure)
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
