"""A private reward as a picture: the released function, how much noise is in it, and what was promised.

All of it comes from the release and its certificate, so the picture may leave with them. The true reward is not in it.
"""

import os
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from quietq.cli.report.look import STYLES, checked, new_figure, plain
from quietq.mechanisms.private_function import PrivateFunction, PrivateKnots, PrivateSum, PrivateWeights
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 1025
BAND = "#9ECAE9"


def plot_reward(private: PrivateFunction, path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Draws a private reward of one coordinate, or a sum of such, one panel a coordinate, to a PNG or SVG file.

    The band is the released value plus and minus twice the standard deviation of the noise, which is public.
    """
    target = checked(path)
    parts = private.parts if isinstance(private, PrivateSum) else (private,)
    if any(part.box.dimension != 1 for part in parts):
        raise InvalidInput("A plot shows a reward of one coordinate, or a sum of such; this one has several.")

    width = max(8.4, 4.2 * len(parts))
    figure = new_figure(width)
    grid = figure.add_gridspec(2, len(parts), height_ratios=(1, 16))  # the legend has a row of its own
    panels = [figure.add_subplot(grid[1, i]) for i in range(len(parts))]
    for i, (panel, part) in enumerate(zip(panels, parts, strict=True)):
        _draw(panel, part)
        panel.set_xlabel("state" if len(parts) == 1 else f"coordinate {i + 1} of the state", fontsize=12)
    # K-norm noise goes into increments: where the released reward starts means nothing.
    level = "reward, up to a constant" if private.certificate.method.endswith("k-norm") else "reward"
    panels[0].set_ylabel(level if len(parts) == 1 else "its share of the reward", fontsize=12)
    handles, labels = panels[0].get_legend_handles_labels()
    key = figure.add_subplot(grid[0, :])
    key.axis("off")
    key.legend(handles, labels, loc="center", ncols=3, fontsize=11, frameon=False)
    marked = private.certificate.standing != "certified"
    heading = "Private reward" if title is None else title
    figure.suptitle(f"NOT PRIVATE: {heading}" if marked else heading, fontsize=14)
    figure.supxlabel(textwrap.fill(promise(private.certificate), int(14.5 * width)), fontsize=9)
    figure.savefig(target, format=target.suffix.lower()[1:])


def promise(certificate: Certificate) -> str:
    """What the certificate promises, and to whom, in one line."""
    line = str(certificate).splitlines()[0]
    number = (certificate.relation or {}).get("people")
    if certificate.standing != "none" and number is not None:
        line += f" It protects each of {number} people."
    return line


def _draw(panel: "Axes", part: PrivateFunction) -> None:
    """One function of one coordinate, with its noise."""
    low, high = part.box.low[0], part.box.high[0]
    states = part.box.from_unit(np.linspace(0, 1, POINTS))
    values = np.asarray(part(states)).reshape(POINTS, -1)
    noise = _noise(part, states)
    for i, column in enumerate(values.T):
        color, line = STYLES[i % len(STYLES)]
        label = "released" if values.shape[1] == 1 else f"released, action {i}"
        panel.plot(states, column, color=color, linestyle=line, linewidth=1.6, label=label)
        if noise is not None:
            name = _band_name(part) if i == values.shape[1] - 1 else None
            panel.fill_between(states, column - 2 * noise, column + 2 * noise, color=BAND, alpha=0.5, lw=0, label=name)
    if isinstance(part, PrivateKnots):
        knots = part.box.from_unit(np.linspace(0, 1, len(part.values)))
        panel.plot(knots, part.values, "o", color=STYLES[0][0], markersize=7, clip_on=False, label="knots")
    panel.set_xlim(low, high)
    plain(panel)


def _noise(part: PrivateFunction, states: np.ndarray) -> np.ndarray | None:
    """The standard deviation of the noise at each state; None if the certificate does not say."""
    sigma = part.certificate.sigma
    if sigma is None:
        return None
    if isinstance(part, PrivateWeights):  # noise in the weights is as large at a state as its features are
        return sigma * np.linalg.norm(part.kernel.features(part.box.to_unit(states)), axis=-1)
    return np.full(len(states), sigma)


def _band_name(part: PrivateFunction) -> str:
    where = " in the weights" if isinstance(part, PrivateWeights) else ""
    return f"± 2 σ of the noise, σ = {part.certificate.sigma:.3g}{where}"
