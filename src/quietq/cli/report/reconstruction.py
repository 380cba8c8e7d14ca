"""What a thief recovers of a reward, as a picture beside the truth: NOT PRIVATE, for the operator."""

import os
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from quietq.cli.report.look import STYLES, checked, new_figure, plain
from quietq.cli.report.reward import promise
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput

if TYPE_CHECKING:
    from quietq.audit.reconstruct import Reconstruction, RecoveredReward

SAID = {
    "bellman": "Bellman equation, from the values",
    "inverse-rl": "inverse RL, from the policy",
    "apprenticeship": "apprenticeship, from the policy",
    "read": "the private reward, read",
}
"""Attacks in words."""


def plot_reconstruction(
    found: "Reconstruction", path: str | os.PathLike[str], *, certificate: Certificate | None = None,
    title: str | None = None,
) -> None:  # fmt: skip
    """Draws the true reward and what each attack recovers, to a PNG or SVG file; over two coordinates, as maps.

    What an attack is blind to is fitted to the truth, as the legend says. Only its owner can read the file.
    """
    target = checked(path)
    truth = found.truth
    if truth is None:
        raise InvalidInput("A plot shows what was recovered beside the truth: give reconstruct a truth.")
    figure = new_figure()
    (_lines if found.grid.world.box.dimension == 1 else _maps)(figure, found, truth)
    heading = f"what a thief learns of the {found.grid.world.name}'s reward" if title is None else title
    figure.suptitle(textwrap.fill(f"NOT PRIVATE: {heading}", 76), fontsize=14)
    if certificate is not None:
        figure.supxlabel(textwrap.fill(f"The release that was attacked: {promise(certificate)}", 120), fontsize=9)
    temporary = target.with_name(f".{target.name}.part")
    try:
        temporary.unlink(missing_ok=True)
        with open(temporary, "wb", opener=_owner_only) as file:
            figure.savefig(file, format=target.suffix.lower()[1:])
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InvalidInput(f"path must be a file that can be written to, not {str(target)!r}.") from error


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL | os.O_NOFOLLOW, 0o600)


def _lines(figure: Any, found: "Reconstruction", truth: np.ndarray) -> None:
    rows = (1 + len(found.recovered), 16)  # the legend has a row of its own
    key, panel = figure.subplots(2, 1, height_ratios=rows)
    states = found.grid.states[:, 0]
    panel.plot(states, truth, color="black", linewidth=2.6, label="true reward (NOT PRIVATE)")
    for attack, (color, line) in zip(found.recovered, STYLES, strict=False):
        label = ", ".join([SAID.get(attack.name, attack.name), *_details(attack)])
        panel.plot(states, _shown(attack), color=color, linestyle=line, linewidth=1.8, label=label)
    panel.set(xlim=(states[0], states[-1]))
    panel.set_xlabel("state", fontsize=12)
    panel.set_ylabel("reward", fontsize=12)
    plain(panel)
    key.axis("off")
    key.legend(*panel.get_legend_handles_labels(), loc="center", fontsize=11, frameon=False)


def _maps(figure: Any, found: "Reconstruction", truth: np.ndarray) -> None:
    """One map each, all in the true reward's colours."""
    box, side = found.grid.world.box, found.grid.points
    panels = figure.subplots(1, 1 + len(found.recovered), sharey=True, squeeze=False)[0]
    named = [("\n".join([SAID.get(one.name, one.name), *_details(one)]), _shown(one)) for one in found.recovered]
    for panel, (name, rewards) in zip(panels, [("true reward\n(NOT PRIVATE)", truth), *named], strict=True):
        image = panel.imshow(
            rewards.reshape(side, side).T, origin="lower", extent=(box.low[0], box.high[0], box.low[1], box.high[1]),
            aspect="auto", cmap="cividis", vmin=truth.min(), vmax=truth.max(), interpolation="nearest",
        )  # fmt: skip
        panel.set_title(name.replace(", ", ",\n"), fontsize=10)
        panel.set_xlabel("x", fontsize=12)
        panel.tick_params(labelsize=11)
    panels[0].set_ylabel("y", fontsize=12)
    figure.colorbar(image, ax=list(panels), label="reward", extend="both")  # pyright: ignore[reportPossiblyUnboundVariable]


def _shown(attack: "RecoveredReward") -> np.ndarray:
    return attack.rewards if attack.not_private is None else attack.not_private.aligned


def _details(attack: "RecoveredReward") -> list[str]:
    """What had to be fitted, and how well it did."""
    fitted = [f"{' and '.join(attack.blind_to)} fitted"] if attack.blind_to else []
    return fitted + ([] if attack.not_private is None else [f"correlation {attack.not_private.correlation:.2f}"])
