"""What was released as a picture: a private reward with its noise, an agent's values, and what was promised.

All of it comes from the release and its certificate, so the pictures may leave with them if that is certified. The true
reward is not in them.
"""

import os
from typing import TYPE_CHECKING

import numpy as np

from quietq.cli.report.look import STYLES, checked, draw_regions, new_figure, plain, save_released
from quietq.mechanisms.private_function import PrivateFunction, PrivateKnots, PrivateSum, PrivateWeights
from quietq.privacy.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from quietq.learning.agent import Agent

POINTS = 1025
BAND = "#9ECAE9"


def plot_reward(private: PrivateFunction, path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Draws a private reward of one coordinate, or a sum of such with a panel for each, to a PNG or SVG file.

    The band is the released value plus and minus twice the standard deviation of the noise, which is public.
    """
    target = checked(path)
    parts = private.parts if isinstance(private, PrivateSum) else (private,)
    if any(part.box.dimension != 1 for part in parts):
        raise InvalidInput("A plot shows a reward of one coordinate, or a sum of such; this one has several.")
    figure = new_figure(max(8.4, 4.2 * len(parts)))
    grid = figure.add_gridspec(2, len(parts), height_ratios=(1, 16))  # the legend has a row of its own
    panels = [figure.add_subplot(grid[1, i]) for i in range(len(parts))]
    for i, (panel, part) in enumerate(zip(panels, parts, strict=True)):
        _draw(panel, part)
        plain(panel, "state" if len(parts) == 1 else f"coordinate {i + 1} of the state")
    # K-norm noise goes into increments: where the released reward starts means nothing.
    level = "reward, up to a constant" if private.certificate.method.endswith("k-norm") else "reward"
    panels[0].set_ylabel(level if len(parts) == 1 else "its share of the reward", fontsize=12)
    key = figure.add_subplot(grid[0, :])
    key.axis("off")
    key.legend(*panels[0].get_legend_handles_labels(), loc="center", ncols=3, fontsize=11, frameon=False)
    save_released(figure, target, title or "Private reward", private.certificate)


def plot_values(
    agent: "Agent", path: str | os.PathLike[str], *, member: int | None = None, title: str | None = None
) -> None:
    """Draws the released values of all actions over a state of one coordinate, to a PNG or SVG file.

    Below them is the action that is best there. Of several seeds it is the mean, or the run that `member` names.
    """
    target = checked(path)
    box = agent.spaces.box
    if box.dimension != 1:
        raise InvalidInput(f"A plot shows values over one coordinate; this world has {box.dimension}.")
    states = np.linspace(box.low[0], box.high[0], POINTS)
    values = agent.q_values(states[:, None], member)
    names = getattr(agent.world, "action_names", [f"action {i}" for i in range(values.shape[1])])
    figure = new_figure()
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(9, 1))
    for i, name in enumerate(names):
        color, line = STYLES[i % len(STYLES)]
        top.plot(states, values[:, i], color=color, linestyle=line, linewidth=1.8, label=name)
    plain(top, vertical="released value")
    top.legend(fontsize=11, frameon=False, title="value of going" if set(names) <= {"left", "right"} else "value of")
    draw_regions(bottom, states, {"best action": values.argmax(axis=1)}, names)
    save_released(figure, target, title or "What the agent released", agent.certificate)


def _draw(panel: "Axes", part: PrivateFunction) -> None:
    states = part.box.from_unit(np.linspace(0, 1, POINTS))
    values = np.asarray(part(states)).reshape(POINTS, -1)
    sigma, features = part.certificate.sigma, np.ones(POINTS)
    if isinstance(part, PrivateWeights):  # noise in the weights is as large at a state as its features are
        features = np.linalg.norm(part.kernel.features(part.box.to_unit(states)), axis=-1)
    for i, column in enumerate(values.T):
        color, line = STYLES[i % len(STYLES)]
        label = "released" if values.shape[1] == 1 else f"released, action {i}"
        panel.plot(states, column, color=color, linestyle=line, linewidth=1.6, label=label)
        if sigma is not None:
            where = " in the weights" if isinstance(part, PrivateWeights) else ""
            name = f"± 2 σ of the noise, σ = {sigma:.3g}{where}" if i == values.shape[1] - 1 else None
            noise = 2 * sigma * features
            panel.fill_between(states, column - noise, column + noise, color=BAND, alpha=0.5, lw=0, label=name)
    if isinstance(part, PrivateKnots):
        knots = part.box.from_unit(np.linspace(0, 1, len(part.values)))
        panel.plot(knots, part.values, "o", color=STYLES[0][0], markersize=7, clip_on=False, label="knots")
    panel.set_xlim(part.box.low[0], part.box.high[0])
