"""Four of the paper's statements as a picture: what is printed, and what was measured."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quietq.cli.report.look import STYLES, checked, new_figure, plain, save
from reproduction.claims import mechanisms, paths, sampler, utility
from reproduction.claims.statement import TABLE, Measurements, power
from reproduction.experiment import Row, Tables

PRINTED, MEASURED, OURS = (color for color, _ in (STYLES[1], STYLES[3], STYLES[0]))
_TEXT = 11


def plot_claims(tables: Tables, path: Path) -> None:
    """Draws the maximum of a path, the time of queries, the utility and the audits, each with its verdict."""
    target, rows = checked(path), tables[TABLE]
    figure = new_figure(11.5, 8.6)
    panels = figure.subplots(2, 2).flat
    audits = {one.claim(rows).verdict for one in mechanisms.AUDITED.values()}  # one for each sigma
    titles = (
        f"Lemma 8, the maximum of a path: {paths.MAXIMUM.claim(rows).verdict}",
        f"Proposition 9, O(N ln N) time: {sampler.SPEED.claim(rows).verdict}",
        f"Proposition 10, utility with n states: {utility.UTILITY.claim(rows).verdict}",
        f"Theorem 5, privacy: {'its promise is broken' if 'fails' in audits else 'not refuted by these runs'}",
    )
    for panel, title, draw in zip(panels, titles, (_maximum, _speed, _utility, _audits), strict=True):
        panel.set_title(title, fontsize=12, loc="left")
        draw(panel, rows)
        plain(panel)
    save(figure, target)


def _lines(panel: Any, x: str, y: str, lines: Sequence[tuple[list[tuple[float, float]], str, str, str]]) -> None:
    for pairs, look, color, label in lines:
        panel.plot(*zip(*sorted(pairs), strict=True), look, color=color, linewidth=2, markersize=7, label=label)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel(x, fontsize=_TEXT)
    panel.set_ylabel(y, fontsize=_TEXT)


def _legend(panel: Any, room: float) -> None:
    panel.set_ylim(top=panel.get_ylim()[1] * room)
    panel.legend(fontsize=_TEXT, frameon=False, loc="upper left")


def _maximum(panel: Any, rows: Sequence[Row]) -> None:
    found = paths.MAXIMUM.about(rows)
    _lines(
        panel,
        "β of the noise",
        "expected maximum of a path / σ",
        (
            (found.at(paths.MEAN, "printed"), "--s", PRINTED, "printed bound, 8.68 √β"),
            (found.at(paths.MEAN), "-o", MEASURED, "measured"),
        ),
    )
    _legend(panel, 1)


def _speed(panel: Any, rows: Sequence[Row]) -> None:
    found = sampler.SPEED.about(rows)
    listed, dense = found.at(sampler.LISTED), found.at(sampler.DENSE)
    _lines(
        panel,
        "queries N",
        "seconds for all of them",
        (
            (listed, "-o", OURS, f"the paper's sorted list: N$^{{{power(listed):.2f}}}$"),
            (dense, "--s", PRINTED, f"dense sampler: N$^{{{power(dense):.2f}}}$"),
        ),
    )
    _legend(panel, 30)


def _utility(panel: Any, rows: Sequence[Row]) -> None:
    found = utility.UTILITY.about(rows)
    sizes = {n for n, _ in found.at(utility.MEAN)}
    ours = Measurements(
        [
            row
            for row in utility.CORRECTED.about(rows).rows
            if row["setting"].startswith("2 actions") and row["x"] in sizes
        ]
    )
    _lines(
        panel,
        "states n",
        "error of the value function",
        (
            (ours.at(utility.LARGEST, "printed"), "-D", OURS, "our bound of the largest error"),
            (ours.at(utility.LARGEST), ":D", OURS, "largest error, measured"),
            (found.at(utility.MEAN), "-o", MEASURED, "mean error, measured"),
            (found.at(utility.MEAN, "printed"), "--s", PRINTED, "printed bound of the mean error"),
        ),
    )
    _legend(panel, 12)


def _audits(panel: Any, rows: Sequence[Row]) -> None:
    words = []
    for place, (sigma, statement) in enumerate(mechanisms.AUDITED.items()):
        found = statement.about(rows)
        claimed, lower = found.one("epsilon claimed"), found.one("epsilon at least, 95 %")
        words.append(f"σ = {sigma:g}\n{found.one('runs a world'):.0f} runs of {found.one('steps a run'):,.0f} steps")
        panel.bar(place - 0.18, claimed, 0.32, color=PRINTED, hatch="//", edgecolor="white", label="claimed ε")
        panel.bar(place + 0.18, lower, 0.32, color=MEASURED, label="measured: ε is at least")
        for shift, value in ((-0.18, claimed), (0.18, lower)):
            panel.text(place + shift, value, f"{value:.2f}", ha="center", va="bottom", fontsize=_TEXT)
    panel.set_xticks(range(len(words)), words, fontsize=_TEXT)
    panel.set_axisbelow(True)
    panel.set_ylabel("ε at δ = 1e-4", fontsize=_TEXT)
    panel.set_ylim(0, 1.35 * panel.get_ylim()[1])
    handles, labels = panel.get_legend_handles_labels()
    panel.legend(handles[:2], labels[:2], fontsize=_TEXT, frameon=False, loc="upper center", ncols=2)
