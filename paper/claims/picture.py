"""Four of the paper's statements as a picture: what is printed, and what was measured."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paper.claims import audits, paths, sampler, utility
from paper.claims.statement import Found, Statement, power
from paper.task import Row
from quietq.report.look import STYLES, checked, new_figure, plain

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

PRINTED, MEASURED, OURS = (color for color, _ in (STYLES[1], STYLES[3], STYLES[0]))
_TEXT = 11


def plot_claims(rows: Sequence[Row], path: str | os.PathLike[str]) -> None:
    """Draws the maximum of a path, the time of queries, the utility and the audits, to PNG or SVG."""
    target = checked(path)
    figure = new_figure(11.5, 8.6)
    panels = figure.subplots(2, 2)
    _titles(panels, rows)
    _maximum(panels[0, 0], _about(rows, paths.MEAN_STATED))
    _speed(panels[0, 1], _about(rows, sampler.SPEED))
    _utility(panels[1, 0], _about(rows, utility.PRINTED), _about(rows, utility.CORRECTED))
    _audits(panels[1, 1], rows)
    for panel in panels.flat:
        plain(panel)
    figure.savefig(target, format=target.suffix.lower()[1:])


def _titles(panels: "np.ndarray", rows: Sequence[Row]) -> None:
    """Each with its verdict; Theorem 5 has one for each sigma, and holds if neither is refuted."""
    verdicts = {statement.claim(rows).verdict for statement in audits.STATEMENTS}
    broken = "its promise is broken" if "fails" in verdicts else "not refuted by these runs"
    titles = (
        f"Lemma 8, the maximum of a path: {paths.MEAN_STATED.claim(rows).verdict}",
        f"Proposition 9, O(N ln N) time: {sampler.SPEED.claim(rows).verdict}",
        f"Proposition 10, utility with n states: {utility.PRINTED.claim(rows).verdict}",
        f"Theorem 5, privacy: {broken}",
    )
    for panel, title in zip(panels.flat, titles, strict=True):
        panel.set_title(title, fontsize=12, loc="left")


def _about(rows: Sequence[Row], statement: Statement) -> Found:
    return Found([row for row in rows if row["claim"] == statement.name])


def _line(panel: "Axes", pairs: Sequence[tuple[float, float]], look: str, color: str, label: str) -> None:
    x, y = zip(*sorted(pairs), strict=True)
    panel.plot(x, y, look, color=color, linewidth=2, markersize=7, label=label)


def _logarithmic(panel: "Axes", x: str, y: str) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel(x, fontsize=_TEXT)
    panel.set_ylabel(y, fontsize=_TEXT)


def _maximum(panel: "Axes", found: Found) -> None:
    _line(panel, found.at(paths.MEAN, "printed"), "--s", PRINTED, "printed bound, 8.68 √β")
    _line(panel, found.at(paths.MEAN), "-o", MEASURED, "measured")
    _logarithmic(panel, "β of the noise", "expected maximum of a path / σ")
    panel.legend(fontsize=_TEXT, frameon=False, loc="upper left")


def _speed(panel: "Axes", found: Found) -> None:
    kinds = (
        (sampler.LISTED, "-o", OURS, "the paper's sorted list"),
        (sampler.DENSE, "--s", PRINTED, "dense sampler"),
    )
    for kind, look, color, words in kinds:
        pairs = found.at(f"{sampler.SECONDS}: {kind}")
        _line(panel, pairs, look, color, f"{words}: N$^{{{power(pairs):.2f}}}$")
    _logarithmic(panel, "queries N", "seconds for all of them")
    low, high = panel.get_ylim()
    panel.set_ylim(low, high * 30)  # room for the legend
    panel.legend(fontsize=_TEXT, frameon=False, loc="upper left")


def _utility(panel: "Axes", printed: Found, corrected: Found) -> None:
    sizes = {n for n, _ in printed.at(utility.MEAN)}

    def largest(column: str) -> list[tuple[float, float]]:
        rows = [row for row in corrected.rows if str(row["setting"]).startswith("2 actions")]
        return [(n, value) for n, value in Found(rows).at(utility.LARGEST, column) if n in sizes]

    _line(panel, largest("printed"), "-D", OURS, "our bound of the largest error")
    _line(panel, largest("measured"), ":D", OURS, "largest error, measured")
    _line(panel, printed.at(utility.MEAN), "-o", MEASURED, "mean error, measured")
    _line(panel, printed.at(utility.MEAN, "printed"), "--s", PRINTED, "printed bound of the mean error")
    _logarithmic(panel, "states n", "error of the value function")
    low, high = panel.get_ylim()
    panel.set_ylim(low, high * 12)  # room for the legend
    panel.legend(fontsize=_TEXT, frameon=False, loc="upper left", ncols=1)


def _audits(panel: "Axes", rows: Sequence[Row]) -> None:
    ticks, words = [], []
    for place, (sigma, statement) in enumerate(audits.STATED.items()):
        found = _about(rows, statement)
        claimed, lower = found.one("epsilon claimed"), found.one("epsilon at least, 95 %")
        ticks.append(place)
        words.append(f"σ = {sigma:g}\n{found.one('runs a world'):.0f} runs of {found.one('steps a run'):,.0f} steps")
        panel.bar(place - 0.18, claimed, 0.32, color=PRINTED, hatch="//", edgecolor="white", label="claimed ε")
        panel.bar(place + 0.18, lower, 0.32, color=MEASURED, label="measured: ε is at least")
        for shift, value in ((-0.18, claimed), (0.18, lower)):
            panel.text(place + shift, value, f"{value:.2f}", ha="center", va="bottom", fontsize=_TEXT)
    panel.set_xticks(ticks, words, fontsize=_TEXT)
    panel.set_axisbelow(True)
    panel.set_ylabel("ε at δ = 1e-4", fontsize=_TEXT)
    panel.set_ylim(0, 1.35 * panel.get_ylim()[1])
    handles, labels = panel.get_legend_handles_labels()
    panel.legend(handles[:2], labels[:2], fontsize=_TEXT, frameon=False, loc="upper center", ncols=2)
