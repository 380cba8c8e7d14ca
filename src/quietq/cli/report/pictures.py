"""Pictures of an agent's values, and of the true reward beside what was made of it.

Those of what was released come from the release and its certificate, so they may leave with them if that is certified.
Those that show the true reward are NOT PRIVATE, whatever a certificate says, and for the operator: only their owner can
read the files.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from quietq.cli.report.look import (
    POINTS,
    STYLES,
    checked,
    draw_regions,
    new_figure,
    plain,
    promise,
    save,
    save_released,
)
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.released import PrivateNetwork

if TYPE_CHECKING:
    from quietq.paper.attacks.reconstruct import Reconstruction, RecoveredReward

SAID = {
    "bellman": "Bellman equation, from the values",
    "inverse-rl": "inverse RL, from the policy",
    "apprenticeship": "apprenticeship, from the policy",
    "read": "the private reward, read",
}
"""Attacks in words."""


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
    draw_regions(bottom, states, {"best action": values.argmax(axis=1)}, names)
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
    draw_regions(bottom, states, policies, actions)
    save(figure, target, f"NOT PRIVATE: {title}", owner_only=True)


def plot_reconstruction(
    found: "Reconstruction", path: str | os.PathLike[str], *, certificate: Certificate | None = None,
    title: str | None = None,
) -> None:  # fmt: skip
    """Draws the true reward and what each attack recovers, to a PNG or SVG file; over two coordinates, as maps.

    What an attack is blind to is fitted to the truth, as the legend says.
    """
    target = checked(path)
    if found.truth is None:
        raise InvalidInput("A plot shows what was recovered beside the truth: give reconstruct a truth.")
    figure = new_figure()
    (_lines if found.grid.world.box.dimension == 1 else _maps)(figure, found, found.truth)
    heading = title or f"what a thief learns of the {found.grid.world.name}'s reward"
    below = "" if certificate is None else f"The release that was attacked: {promise(certificate)}"
    save(figure, target, f"NOT PRIVATE: {heading}", below, owner_only=True)


def _lines(figure: Any, found: "Reconstruction", truth: np.ndarray) -> None:
    rows = (1 + len(found.recovered), 16)  # the legend has a row of its own
    key, panel = figure.subplots(2, 1, height_ratios=rows)
    states = found.grid.states[:, 0]
    panel.plot(states, truth, color="black", linewidth=2.6, label="true reward (NOT PRIVATE)")
    for attack, (color, line) in zip(found.recovered, STYLES, strict=False):
        label = ", ".join(_words(attack))
        panel.plot(states, _shown(attack), color=color, linestyle=line, linewidth=1.8, label=label)
    panel.set(xlim=(states[0], states[-1]))
    plain(panel, "state", "reward")
    key.axis("off")
    key.legend(*panel.get_legend_handles_labels(), loc="center", fontsize=11, frameon=False)


def _maps(figure: Any, found: "Reconstruction", truth: np.ndarray) -> None:
    box, side = found.grid.world.box, found.grid.points
    panels = figure.subplots(1, 1 + len(found.recovered), sharey=True, squeeze=False)[0]
    look = {"origin": "lower", "aspect": "auto", "cmap": "cividis", "interpolation": "nearest"}
    place = {"extent": (box.low[0], box.high[0], box.low[1], box.high[1]), "vmin": truth.min(), "vmax": truth.max()}
    named = [("\n".join(_words(attack)), _shown(attack)) for attack in found.recovered]
    image = None
    for panel, (name, rewards) in zip(panels, [("true reward\n(NOT PRIVATE)", truth), *named], strict=True):
        image = panel.imshow(rewards.reshape(side, side).T, **look, **place)
        panel.set_title(name.replace(", ", ",\n"), fontsize=10)
        panel.set_xlabel("x", fontsize=12)
        panel.tick_params(labelsize=11)
    panels[0].set_ylabel("y", fontsize=12)
    figure.colorbar(image, ax=list(panels), label="reward", extend="both")


def _shown(attack: "RecoveredReward") -> np.ndarray:
    return attack.rewards if attack.not_private is None else attack.not_private.aligned


def _words(attack: "RecoveredReward") -> list[str]:
    fitted = [f"{' and '.join(attack.blind_to)} fitted"] if attack.blind_to else []
    measured = [] if attack.not_private is None else [f"correlation {attack.not_private.correlation:.2f}"]
    return [SAID.get(attack.name, attack.name), *fitted, *measured]
