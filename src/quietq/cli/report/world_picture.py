"""A private world as a picture: how far its noise moves the dynamics, beside how people's own steps scatter.

All of it comes from the released world and its certificate, so a picture may leave with them if that is certified.
"""

import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.cli.report.look import STYLES, checked, new_figure, plain, save_released
from quietq.released.private_world import PrivateWorld
from quietq.worlds.plan_check import CheckedPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COORDINATES = 40


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
    shown = world.moved[:MOST_COORDINATES]
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
