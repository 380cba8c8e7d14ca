"""An agent as a picture: the values that it released, and which action is best where.

`plot_values` shows what was released and no more, so the picture may leave with the agent if that is certified.
`plot_outcome` shows the true reward: it is NOT PRIVATE, whatever the certificate says.
"""

import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from quietq.cli.report.look import STYLES, checked, new_figure, plain
from quietq.cli.report.reward import POINTS, promise
from quietq.privacy.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from quietq.learning.agent import Agent

HATCHES = ("", "////", "....", "xxxx")
"""Of the regions of actions: told apart in grey."""


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
    top.set_ylabel("released value", fontsize=12)
    plain(top)
    top.legend(fontsize=11, frameon=False, title="value of going" if set(names) <= {"left", "right"} else "value of")
    _regions(bottom, states, {"best action": values.argmax(axis=1)}, names)
    bottom.set_xlabel("state", fontsize=12)
    heading = "What the agent released" if title is None else title
    marked = agent.certificate.standing != "certified"
    figure.suptitle(f"NOT PRIVATE: {heading}" if marked else heading, fontsize=14)
    figure.supxlabel(textwrap.fill(promise(agent.certificate), 120), fontsize=9)
    figure.savefig(target, format=target.suffix.lower()[1:])


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
    """Draws the true reward beside the private one, and policies' actions below: NOT PRIVATE, for the operator."""
    target = checked(path)
    figure = new_figure()
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(4, len(policies)))
    top.plot(states, true(states), color="black", linewidth=2.2, label="true mean reward (NOT PRIVATE)")
    top.plot(states, private(states), color=STYLES[1][0], linewidth=1.2, label="private reward, which the agent saw")
    top.set_ylabel("reward", fontsize=12)
    plain(top)
    top.legend(fontsize=11, frameon=False)
    _regions(bottom, states, policies, actions)
    bottom.set_xlabel("state", fontsize=12)
    figure.suptitle(textwrap.fill(f"NOT PRIVATE: {title}", 76), fontsize=14)
    figure.savefig(target, format=target.suffix.lower()[1:])


def _regions(panel: "Axes", states: np.ndarray, policies: Mapping[str, np.ndarray], actions: Sequence[str]) -> None:
    """One row a policy: where each action is chosen, shaded, and named where there is room."""
    width = states[-1] - states[0]
    for row, chosen in enumerate(policies.values()):
        ends = np.flatnonzero(np.diff(chosen)) + 1
        for first, last in zip([0, *ends], [*ends, len(chosen)], strict=True):
            action = int(chosen[first])
            left, right = states[first], states[min(last, len(states) - 1)]
            color, hatch = STYLES[action % len(STYLES)][0], HATCHES[action % len(HATCHES)]
            panel.fill_between(
                [left, right],
                -row - 0.42,
                -row + 0.42,
                facecolor=color,
                alpha=0.3,
                hatch=hatch,
                edgecolor="white",
                lw=0,
            )
            if right - left > 0.012 * width * (len(actions[action]) + 2):
                panel.text(
                    (left + right) / 2, -row, actions[action], ha="center", va="center", fontsize=11,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85},
                )  # fmt: skip
    panel.set_yticks([-row for row in range(len(policies))], list(policies))
    panel.set(xlim=(states[0], states[-1]), ylim=(-len(policies) + 0.5, 0.5))
    panel.tick_params(labelsize=11, left=False)
    panel.spines[["top", "right", "left"]].set_visible(False)
