"""The experiment as a whole: every statement is shown by something that exists, and every erratum is covered."""

import json
import pickle
import re
import tomllib
from pathlib import Path

import pytest

from reproduction.claims import (
    CLAIMS,
    STATEMENTS,
    listing,
    mechanisms,
    parameters,
    paths,
    sampler,
    spaces,
    utility,
)
from reproduction.claims.statement import TABLE, Measurements, PaperStatement, power
from reproduction.experiment import TEXTS, Row, decide
from reproduction.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[2]


def test_what_is_named_exists() -> None:
    """Of the figures, the comparison and the extensions too."""
    for name, text in TEXTS.items():
        for place in text["shown_by"].split("; "):
            if place.startswith("python -m reproduction "):
                assert place.split()[-1] in EXPERIMENTS, name
                continue
            file, _, test = place.partition("::")
            found = (ROOT / file).read_text()
            assert not test or re.search(rf"^def {re.escape(test)}\(", found, re.MULTILINE), place


def test_every_experiment_has_its_words() -> None:
    words = tomllib.loads((ROOT / "reproduction" / "words.toml").read_text())
    for name, experiment in EXPERIMENTS.items():
        assert list(words[name].get("captions", ())) == list(experiment.drawings)
        assert words[name]["title"]
        assert words[name]["words"]


def test_all_errata_are_covered() -> None:
    listed = set(re.findall(r"^### (\d+)\.", (ROOT / "docs" / "errata.md").read_text(), re.MULTILINE))
    assert {str(n) for n in range(1, 13)} <= listed
    baselines = "tests/reproduction/test_paper_baselines.py::test_the_mean_gradient_moves_by_2c_and_never_by_more"
    file, _, name = baselines.partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE)
    figure2 = {"11"}  # noise on gradients: a part of figure 2, shown by that test
    assert listed - figure2 | {"also", ""} == {statement.erratum for statement in STATEMENTS}


def test_smaller_errata_are_together() -> None:
    smaller = (
        parameters.COEFFICIENT,
        parameters.MARGIN,
        parameters.BETA,
        spaces.ALTERNATIVE,
        mechanisms.ANISOTROPIC,
        spaces.STEP,
        paths.LAST_LINE,
        paths.SUM,
        utility.DUAL,
        utility.DIFFERENCE,
    )
    assert {s.name for s in STATEMENTS if s.erratum == "12"} == {s.name for s in smaller}


def test_what_is_ours_is_not_counted_among_the_papers() -> None:
    ours = [statement for statement in STATEMENTS if statement.ours]
    assert ours == [utility.CORRECTED]
    assert ours == [statement for statement in STATEMENTS if statement.name.startswith("Ours: ")]


def test_the_discussion_is_judged_elsewhere() -> None:
    """One sentence, one verdict: extensions have it."""
    assert not [statement.name for statement in STATEMENTS if "Discussion" in statement.name]


def test_names_are_unique() -> None:
    names = [statement.name for statement in STATEMENTS]
    assert len(set(names)) == len(names) == 58  # 57 of the paper, and ours
    others = [name for name in TEXTS if name not in names]
    assert len(others) == 18  # of the figures, the comparison and the extensions
    assert [name for name in TEXTS if name in names] == names  # written down in the order of the report


@pytest.mark.parametrize("quick", [True, False])
def test_tasks_are_plain_values(quick: bool) -> None:
    tasks = CLAIMS.tasks(quick)
    assert len(set(tasks)) == len(tasks)
    for task in tasks:
        assert task.table == TABLE
        assert pickle.loads(pickle.dumps(task)) == task
        json.dumps(task.describe())
    assert {task.measure for task in tasks} == {task.measure for task in CLAIMS.tasks(not quick)}


def audit_rows(lower: float) -> list[Row]:
    numbers = {
        "epsilon claimed": 0.9,
        "epsilon at least, 95 %": lower,
        "runs a world": 200.0,
        "steps a run": 5000.0,
        "judged runs": 300.0,
        "judged runs mistaken": 3.0,
    }
    return [mechanisms.AUDITED[0.32].row(words, value) for words, value in numbers.items()]


def test_an_audit_refutes_or_says_nothing() -> None:
    statement = mechanisms.AUDITED[0.32]
    assert statement.claim(audit_rows(3.9)).verdict == "fails"
    assert statement.claim(audit_rows(0.5)).verdict == "in part"
    words = statement.claim(audit_rows(3.9)).measured
    assert "at least 3.90 (95 %), by 200 runs of 5,000 steps" in words
    assert "the authors' program" in words


def test_rows_are_found_by_what_they_are() -> None:
    words = "{one[size @ large]:g} of {all[size][0]:g} to {most[size]:g}, {least[size]:g} {why}"
    statement = PaperStatement(
        "a claim", lambda found: decide(True, why="or so"), "printed", words, "tests/x.py::y", "3"
    )
    rows = [statement.row("size", 2, 1.0, setting="small", x=1), statement.row("size", 8, setting="large", x=2)]
    assert all(type(value) in (str, float, type(None)) for row in rows for value in row.values())
    assert rows[0]["erratum"] == "3"
    found = Measurements(rows)
    assert (found.all("size"), found.one("size", "large"), found.at("size")) == ([2, 8], 8, [(1, 2), (2, 8)])
    assert power(found.at("size")) == pytest.approx(2)
    with pytest.raises(ValueError, match="values to unpack"):
        found.one("size")
    with pytest.raises(TypeError, match="NoneType"):
        found.at("size", "printed")
    assert statement.claim(rows).measured == "8 of 2 to 8, 2 or so"
    assert statement.claim(rows).verdict == "holds"


def test_every_statement_gets_its_claim() -> None:
    """All groups as small as can be; audits and what is compiled are tested elsewhere, and made up here."""
    rows = [
        *listing.measure(200),
        *mechanisms.measure(2000),
        *paths.measure(40),
        *paths.measure_moments(2000),
        *parameters.measure(),
        *sampler.measure(2000),
        *sampler.measure_time(1000, 100, 1),
        *spaces.measure(8),
        *spaces.measure_networks(),
        *utility.measure(4, (10, 100)),
        *utility.measure_programs(1, 200),
        *audit_rows(3.9),
        *(row | {"claim": mechanisms.AUDITED[0.74].name} for row in audit_rows(3.9)),
        *listing._differences(),
        *listing._successive(),
        *listing._td_errors(),
        *(listing.RETURNED.row(listing.RETURNED_NOISE, 0, setting=words) for words in ("text", "code")),
    ]
    claims = CLAIMS.claims({TABLE: rows})
    assert [claim.name for claim in claims] == [statement.name for statement in STATEMENTS]
    assert {claim.verdict for claim in claims} == {"holds", "in part", "fails"}
    assert {row["claim"] for row in rows} == {statement.name for statement in STATEMENTS}
    assert not [claim for claim in claims if "nan" in claim.measured.split() or not claim.measured]
    assert all(type(value) in (str, float, type(None)) for row in rows for value in row.values())
