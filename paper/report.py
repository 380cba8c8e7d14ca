"""The report of `python -m paper`: pictures as PNG and SVG, and one page that is understood without the paper."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import quietq
from paper import report_words as words
from paper.claims.picture import plot_claims
from paper.comparison.picture import plot_needed, plot_people
from paper.everything import Outcome
from paper.experiment import Tables
from paper.extensions.picture import plot_extensions
from paper.figures.picture import plot_comparison, plot_noise_levels
from quietq.report.page import Listing, Part, Picture, Section, Table, write_page


class Drawing(NamedTuple):
    """A picture that can be made once the tables of its experiment are there."""

    stem: str
    draw: Callable[[Tables, Path], None]
    caption: str


DRAWINGS: Mapping[str, Sequence[Drawing]] = {
    "figure1": [
        Drawing(
            "figure1",
            lambda tables, path: plot_noise_levels(tables["figure1"], path),
            "The paper's figure 1: mean over seeds and one standard deviation, unsmoothed. Top: the authors' program; "
            "bottom: the algorithm as printed.",
        )
    ],
    "figure2": [
        Drawing(
            "figure2",
            lambda tables, path: plot_comparison(tables["figure2"], path),
            "The paper's figure 2. Each curve says what stands behind its promise.",
        )
    ],
    "claims": [
        Drawing(
            "claims",
            lambda tables, path: plot_claims(tables["claims_measured"], path),
            "Four of the claims as numbers.",
        )
    ],
    "comparison": [
        Drawing(
            "comparison",
            plot_people,
            "Score by the number of people, everything certified at epsilon 0.9, delta 1e-4.",
        ),
        Drawing(
            "needed",
            plot_needed,
            "People needed for a score of 0.9 on the walk, and what an attack measured of each promise.",
        ),
    ],
    "extensions": [
        Drawing(
            "extensions",
            lambda tables, path: plot_extensions(tables["extensions"], path),
            "The extensions that the paper names.",
        )
    ],
}


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """All pictures of what was found, as PNG and SVG, to a folder that exists."""
    files = []
    for experiment in outcome.experiments:
        for drawing in DRAWINGS[experiment.name]:
            for ending in ("png", "svg"):
                files.append(folder / f"{drawing.stem}.{ending}")
                drawing.draw(outcome.tables, files[-1])
    return files


def write_report(outcome: Outcome, folder: Path, *, quick: bool) -> Path:
    """Writes report.html, with the pictures that `draw` has put into the folder."""
    sections = [Section("What this is about", words.about())]
    for experiment in outcome.experiments:
        pictures = [
            Picture(folder / f"{drawing.stem}.png", drawing.caption, f"{experiment.title}. {drawing.caption}")
            for drawing in DRAWINGS[experiment.name]
        ]
        parts: list[Part] = [*words.before(experiment.name), *pictures]
        parts += words.after(experiment.name, outcome.tables)
        claims = experiment.claims(outcome.tables)
        if claims:
            rows = [(claim.name, claim.printed, claim.measured, claim.shown_by, claim.verdict) for claim in claims]
            headings = ("claim", "printed in the paper", "measured", "shown by", "verdict")
            parts.append(Table(headings, rows, strong=frozenset({"fails", "in part"})))
        again = f"python -m paper {experiment.name}{' --quick' if quick else ''} --out {folder}"
        parts.append(Listing(again))
        sections.append(Section(experiment.title, parts))
    sections.append(Section("How this was made", words.made(quick, quietq.__version__)))
    rough = "This was a quick run: few seeds, short trainings, rough numbers." if quick else ""
    return write_page(folder / "report.html", words.TITLE, f"{words.LEAD} {rough}".strip(), sections)
