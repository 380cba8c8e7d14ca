"""docs/benchmarks.md, from the stored results: what was not measured now is shown as it was.

The page shows what somebody would choose by. Beside it, in docs/benchmarks/, are all numbers of each benchmark and
study as a CSV file, and how a study was measured as a text.
"""

import csv
import io
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from benchmarks.measuring import HEADINGS, Row
from benchmarks.needs import BENCHMARKS, STUDIES, title
from benchmarks.study import RESULTS, ROOT, Results, Table, tables

SPEED = {
    "noise": ("exact release of a path, 65,537", "exact noise", "import quietq"),
    "learning": ("60 runs", "one run", "reward over"),
    "release": ("table of 65,537 values", "network, hidden layers 32"),
    "serving": ("GET, agent", "a worker is killed: errors"),
}
"""By benchmark, how the names of the rows begin that the page shows; of one that is not named here, all."""


def _all(line: Sequence[str]) -> bool:
    return True


@dataclass(frozen=True)
class Shown:
    """What the page has of a study."""

    reading: str
    """How to read its tables."""
    tables: dict[str, Callable[[Sequence[str]], bool]] = field(default_factory=dict)
    """By table, which lines are shown."""


STUDY_SECTIONS = {
    "auto": Shown(
        "Mean regret, all kinds at equal protection: `k-norm`, which is pure, has the smaller epsilon at which a "
        'guesser is right as often. "best of them" is the best kind for each reward, which nobody knows beforehand.',
        {"regret": lambda line: line[1] == "all"},
    ),
    "families": Shown(
        "Each person gives 20 rows, in d dimensions. In brackets is the target that was set beforehand.",
        {
            "correlation": lambda line: (
                list(line[1:3]) == ["uniform", "1000"] and line[3] in ("peak", "two-peaks", "ring")
            )
        },
    ),
    "peers": Shown(
        "The same people and budget for all. Each peer has the best settings that a search on other families found; "
        "quietq has none to set.",
        {"correlation": lambda line: line[1] == "8"},
    ),
    "real": Shown(
        "All numbers are for people who were held out. The models below quietq are not private, and are tuned by "
        "cross-validation; `below` marks a target that is missed.",
        {
            "accuracy in pairs, less that of the best twin (higher is better)": _all,
            "error of a constant, less its own (higher is better)": _all,
        },
    ),
    "worlds": Shown(
        "One episode per person. Policies are planned or trained in the private world and measured in the real "
        "environment. Some settings were found on CartPole, which at epsilon = 1 is in the next section.",
        {"return": lambda line: list(line[:2]) != ["CartPole-v1", "1.0"]},
    ),
    "world-peers": Shown(
        "All methods see the same people. quietq has nothing to set, but CartPole and Pendulum were in sight when its "
        "estimator was made; each peer has the best settings that a search on development systems found.",
        {"The fewest people from whom on mean returns are 0.9 of the way from behaviour to the twin": _all},
    ),
    "sessions": Shown(
        "How many people private worlds take for 0.9 of the way from people's own behaviour to what is reached without "
        "noise. PriMORL prints 77 to 103 % of non-private MOPO, with 30,000 trajectories each and epsilon = 5.1 "
        "(Pendulum), 8.2 (cartpole-balance) and 17.0 (cartpole-swingup). It has no published code; what differs is "
        "said in how it was measured. The fewest people are told from three draws on.",
        {
            "The fewest people from whom on mean shares are 0.9 or more": _all,
        },
    ),
    "go": Shown(
        "How often a private go was given to a policy that is not good, and how often a good one was refused: by the "
        "rule, by votes alone and by signs alone, of so many policies, with 95 % intervals. A policy is good from 0.9 "
        "of the non-private plan's return on; in MuJoCo, where those fail, from half-way between people and the best.",
        {"errors": lambda line: line[0] in ("development", "reported")},
    ),
    "bandits": Shown(
        "The tables are in [live traffic](bandits.md).",
    ),
    "cloning": Shown(
        "`recovered` is (clone - behaviour)/(non-private clone - behaviour), so 0 is people's mean return; `below` "
        "marks a target that is missed.",
        {"recovered": _all},
    ),
}
"""By study; one that is not named here has a link to its numbers only."""


DID_NOT_HELP = (
    "Tried on development tasks and left out. For models of rows: noise shared unequally among features, a noisy "
    "second moment of the features themselves, and a posterior of raw features instead of an orthonormal basis. "
    "For rewards: DP-SGD on a network, and one clipped model per person. For worlds: our own agents, which score "
    "far below PPO, and one-shot moments. For clones: weights by return instead of the best fifth, the best two "
    "fifths, half or twice the gradients, a linear policy, a linear part beside the hidden layer, a random first "
    "layer, whitened states, a last layer at half the pace, a factor on outputs, fixed or found by a private query; "
    "none was better on all systems. A Gaussian copula has no clusters, so for states in clusters there is something "
    "left to gain."
)


def write_page() -> None:
    shutil.rmtree(csv_folder(), ignore_errors=True)
    csv_folder().mkdir(parents=True)
    for path, text in pages().items():
        path.write_text(text)


def csv_folder() -> Path:
    return ROOT / "docs" / "benchmarks"


def pages() -> dict[Path, str]:
    """Returns the text of the page and of each file beside it."""
    measured = {
        name: json.loads((RESULTS / f"{name}.json").read_text())
        for name in BENCHMARKS
        if (RESULTS / f"{name}.json").exists()
    }
    machine = next(iter(measured.values()))
    lines = [
        "# Benchmarks",
        "",
        "Generated by `make bench` (`python -m benchmarks`); do not edit. Each section was measured in a run of its "
        f"own, the first with Python {machine['python']}, NumPy {machine['numpy']} and JAX {machine['jax']} on "
        f"{machine['cpus']} cores.",
        "",
        "## Speed",
        "",
        "Ratios are medians over runs that alternate with the reference. Smaller is better; exceeding a limit fails "
        "the run.",
    ]
    found: dict[Path, str] = {}
    for name, record in measured.items():
        rows = [Row(**{field.name: row[field.name] for field in fields(Row)}) for row in record["rows"]]
        link = _add(found, name, _csv([HEADINGS, *(row.cells() for row in rows)]))
        judged = (row for row in rows if row.verdict or "OpenDP" in row.name)
        shown = [row.cells()[:3] for row in judged if row.name.startswith(SPEED.get(name, ""))]
        lines += ["", f"### {title(name)}", "", *grid([HEADINGS[:3], *shown]), "", f"[All rows]({link})."]
    lines += ["", "Studies come next, each run by its own command. Numbers are means ± standard errors."]
    for name in STUDIES:
        if (RESULTS / f"{name}.json").exists():
            lines += _study_section(name, Results.load(name), found)
    lines += ["", "## What did not help", "", DID_NOT_HELP]
    return {ROOT / "docs" / "benchmarks.md": "\n".join(lines) + "\n", **found}


def _study_section(name: str, results: Results, found: dict[Path, str]) -> list[str]:
    """The lines of the page; what is beside the page is added to `found`."""
    shown = STUDY_SECTIONS.get(name, Shown(""))
    lines = ["", f"## {title(name)}", "", *([shown.reading] if shown.reading else [])]
    for number, (headings, *others) in tables(results).items():
        if number in shown.tables:
            alike, table = without_what_is_alike([headings, *filter(shown.tables[number], others)])
            heading = f"**{number[0].upper()}{number[1:]}**" + (f" (in all lines: {alike})" if alike else "")
            lines += ["", heading, "", *grid(table)]
    numbers = _add(found, name, _csv(_numbers(results)))
    links = [f"[all numbers]({numbers})"]
    links += [f"[{number}]({_add(found, f'{name} {number}', _csv(table))})" for number, table in results.more.items()]
    measured = f"By `python -m benchmarks {name}`.\n\n" + "\n".join(results.remarks) + "\n"
    links.append(f"[how it was measured]({_add(found, name, measured, 'txt')})")
    return [*lines, "", f"By `python -m benchmarks {name}`: {', '.join(links)}."]


def _numbers(results: Results) -> Table:
    """All numbers of a study, one a line."""
    labels = list(results.entries[0].labels) if results.entries else []
    table = [[*labels, "number", "mean", "standard error", "target", results.each]]
    for entry in results.entries:
        target = "" if entry.target is None else f"{entry.target:g}"
        for place, (number, found) in enumerate(entry.numbers.items()):
            error = "" if found.error is None else f"{found.error:.3f}"
            line = [number, f"{found.mean:.3f}", error, "" if place else target, str(entry.draws)]
            table.append([*(str(entry.labels[label]) for label in labels), *line])
    return table


def _add(found: dict[Path, str], words: str, text: str, kind: str = "csv") -> str:
    """Adds a file beside the page, and returns the page's link to it."""
    name = re.sub(r"[^a-z0-9]+", "-", words.lower())[:40].strip("-")
    found[csv_folder() / f"{name}.{kind}"] = text
    return f"benchmarks/{name}.{kind}"


def without_what_is_alike(table: Sequence[Sequence[str]]) -> tuple[str, Table]:
    """Takes columns that are the same in all lines, or empty, out of a table, and says what they were."""
    headings, *lines = table
    columns = [[line[i] for line in lines] for i in range(len(headings))]
    alike = [len(lines) > 1 and len(set(column)) == 1 for column in columns]
    said = ", ".join(
        f"{heading} {column[0]}"
        for heading, column, same in zip(headings, columns, alike, strict=True)
        if same and column[0]
    )
    kept = [[cell for cell, same in zip(line, alike, strict=True) if not same] for line in (headings, *lines)]
    return said, kept


def _csv(table: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    return text.getvalue()


def grid(lines: Sequence[Sequence[str]]) -> list[str]:
    """A table of Markdown, headings first."""
    first, *others = lines
    return ["| " + " | ".join(cells) + " |" for cells in (first, ["---"] * len(first), *others)]
