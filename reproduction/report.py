"""The report: pictures as PNG and SVG, and one page that is understood without the paper. Its numbers are computed."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from scipy.special import ndtr

import quietq
from quietq.cli.report.page import listing, paragraph, picture, table, write_page
from quietq.privacy.budget import Budget
from reproduction.experiment import Experiment, Tables
from reproduction.figures.curves import chance

PROMISE = Budget(0.9, 1e-4)


def draw(experiments: Sequence[Experiment], tables: Tables, folder: Path) -> list[Path]:
    files = []
    for stem, plot in (drawing for experiment in experiments for drawing in experiment.drawings.items()):
        for ending in ("png", "svg"):
            files.append(folder / f"{stem}.{ending}")
            plot(tables, files[-1])
    return files


def write_report(experiments: Sequence[Experiment], tables: Tables, folder: Path, *, quick: bool) -> Path:
    """Writes report.html, with the pictures that `draw` has put into the folder."""
    words = tomllib.loads((Path(__file__).parent / "words.toml").read_text())
    guess = 100 * float(ndtr(PROMISE.mu / 2))  # how often somebody is right who tells two neighbours apart
    numbers = {"epsilon": PROMISE.epsilon, "delta": PROMISE.delta, "guess": guess, "chance": chance()}
    sections = {"What this is about": [paragraph(part.format_map(numbers)) for part in words["about"]]}
    for one in experiments:
        said = words[one.name]
        pictures = [
            picture(folder / f"{stem}.png", caption, f"{said['title']}. {caption}")
            for stem, caption in said.get("captions", {}).items()
        ]
        rows = [(c.name, c.printed, c.measured, c.shown_by, c.verdict) for c in one.claims(tables)]
        headings = ("claim", "printed in the paper", "measured", "shown by", "verdict")
        claims = table(headings, rows, strong=("fails", "in part"))
        again = listing(f"python -m reproduction {one.name}{' --quick' if quick else ''} --out {folder}")
        sections[said["title"]] = [*map(paragraph, said["words"]), *pictures, *one.after(tables), claims, again]
    sections["How this was made"] = [paragraph(words["end"].format(version=quietq.__version__))]
    lead = f"{words['lead']} {words['rough']}" if quick else words["lead"]
    return write_page(folder / "report.html", words["title"], lead, sections)
