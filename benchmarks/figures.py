"""`make figures`: every picture of docs/, drawn again from what is stored; it says which need a longer run first.

    python -m benchmarks.figures                 # all of them
    python -m benchmarks.figures bandits page    # some

Pictures of the paper are drawn from the tables that `make paper` writes to runs/paper/all, those of studies from
benchmarks/results, and the page is photographed as it is today.
"""

import argparse
import csv
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.needs import load
from benchmarks.study import ROOT
from quietq.privacy.errors import InvalidInput, QuietqError

DOCS, PAPER = ROOT / "docs", ROOT / "runs" / "paper" / "all"
STUDIES = {"bandits": "bandits", "world-peers": "world-peers", "primorl": "sessions"}
"""By picture."""
PAPERS = ("figure1", "figure2", "comparison")
PAGE = "page"
FRONT = "cartpole"
NAMES = (FRONT, *STUDIES, *PAPERS, PAGE)


def draw_paper(folder: Path, stems: Sequence[str], out: Path) -> dict[str, str]:
    """What became of each: the pictures whose tables are there, from a whole run."""
    from reproduction.experiments import EXPERIMENTS

    about = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))] if folder.is_dir() else []
    if not about:
        return dict.fromkeys(stems, "left as it is: `make paper` first, 15 to 20 minutes on two cores")
    if out == DOCS and any(one["quick"] for one in about):
        return dict.fromkeys(stems, f"left as it is: {folder.name} is a quick run, whose numbers are rough")
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    tables |= {file.stem: read_rows(file) for file in folder.glob("*.csv")}
    found = {}
    for stem, plot in (one for experiment in EXPERIMENTS.values() for one in experiment.drawings.items()):
        if stem in stems:
            plot(tables, out / f"{stem}.png")
            found[stem] = f"from the tables of {shown(folder)}"
    return found


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Rows as they were before they were written: words, numbers, truth values and None."""
    with file.open(newline="") as stream:
        return [{name: value_of(text) for name, text in row.items()} for row in csv.DictReader(stream)]


def value_of(text: str) -> Any:
    """What a cell of a table was.

    >>> [value_of(text) for text in ("", "True", "3", "0.5", "nan", "knots")]
    [None, True, 3, 0.5, nan, 'knots']
    """
    if text in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. Wrong input: one sentence on stderr, and 2."""
    parser = argparse.ArgumentParser("python -m benchmarks.figures", description="Draws the pictures of docs/ again.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(NAMES)}; all if none is given")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder for the pictures; docs if it is not given")
    parser.add_argument("--paper", type=Path, default=PAPER, help="folder with the tables of a run of the paper")
    asked = parser.parse_args(arguments)
    try:
        for name in asked.names:
            if name not in NAMES:
                raise InvalidInput(f"There is no picture {name!r}: take some of {', '.join(NAMES)}.")
        draw(asked.names or list(NAMES), asked.paper, asked.out)
    except QuietqError as error:
        print(f"figures: {error}", file=sys.stderr)
        return 2
    return 0


def draw(names: Sequence[str], paper: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    told: dict[str, str] = {}
    for name in names:
        if name in STUDIES:
            load(STUDIES[name]).write_picture(out / f"{name}.png")
            told[name] = f"from benchmarks/results/{STUDIES[name]}.json"
        elif name == FRONT:
            load("world-peers").write_front_picture(out / f"{name}.png")
            told[name] = "from benchmarks/results/world-peers.json"
        elif name == PAGE:
            from benchmarks.page_picture import photograph

            photograph(out / f"{name}.png")
            told[name] = "the page of today, in Chromium"
    if papers := [name for name in names if name in PAPERS]:
        told |= draw_paper(paper, papers, out)
    for name in names:
        print(f"{shown(out / name)}.png: {told[name]}")


if __name__ == "__main__":
    sys.exit(main())
