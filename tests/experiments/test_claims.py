"""The experiment as a whole: every statement is shown by something that exists, and every erratum is covered."""

import json
import pickle
import re
from pathlib import Path

import pytest

from quietq.audit.store import Store
from quietq.experiments.claims import (
    PRINTED,
    STATEMENTS,
    TABLE,
    Claims,
    audits,
    listing,
    mechanisms,
    moments,
    networks,
    parameters,
    paths,
    programs,
    rounds,
    sampler,
    spaces,
    utility,
)
from quietq.experiments.claims.statement import Found, Statement, number, power
from quietq.experiments.task import Row

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_what_is_named_exists(statement: Statement) -> None:
    if statement.shown_by.startswith("quietq "):
        import typer

        from quietq.cli import app

        assert statement.shown_by.split()[1] in typer.main.get_command(app).commands  # type: ignore[attr-defined]
        return
    file, _, name = statement.shown_by.partition("::")
    assert re.search(rf"^def {re.escape(name)}\(", (ROOT / file).read_text(), re.MULTILINE), statement.shown_by


def test_all_errata_are_covered() -> None:
    listed = set(re.findall(r"^### (\d+)\.", (ROOT / "docs" / "errata.md").read_text(), re.MULTILINE))
    assert {str(n) for n in range(1, 13)} <= listed
    baselines = "tests/experiments/test_paper_baselines.py::test_the_mean_gradient_moves_by_2c_and_never_by_more"
    file, _, name = baselines.partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE)
    figure2 = {"11"}  # noise on gradients: a part of figure 2, shown by that test
    assert listed - figure2 | {"also", ""} == {statement.erratum for statement in STATEMENTS}


def test_smaller_errata_are_together() -> None:
    smaller = (
        parameters.COEFFICIENT, parameters.MARGIN, parameters.BETA, spaces.ALTERNATIVE, mechanisms.ANISOTROPIC,
        spaces.STEP, moments.LAST_LINE, paths.SUM, programs.DUAL, programs.DIFFERENCE,
    )  # fmt: skip
    assert {s.name for s in STATEMENTS if s.erratum == "12"} == {s.name for s in smaller}


def test_what_is_ours_is_not_counted_among_the_papers() -> None:
    assert set(STATEMENTS) - set(PRINTED) == {utility.CORRECTED}
    assert utility.CORRECTED.name.startswith("Ours: ")
    assert not [statement for statement in PRINTED if statement.name.startswith("Ours")]


def test_the_discussion_is_judged_elsewhere() -> None:
    """One sentence, one verdict: extensions have it."""
    assert not [statement.name for statement in STATEMENTS if "Discussion" in statement.name]


def test_names_are_unique() -> None:
    names = [statement.name for statement in STATEMENTS]
    assert len(set(names)) == len(names) >= 50


@pytest.mark.parametrize("quick", [True, False])
def test_tasks_are_plain_values(quick: bool) -> None:
    tasks = Claims().tasks(quick)
    assert len(set(tasks)) == len(tasks)
    for task in tasks:
        assert task.table == TABLE
        assert pickle.loads(pickle.dumps(task)) == task
        json.dumps(task.describe())
    assert {type(task) for task in tasks} == {type(task) for task in Claims().tasks(not quick)}


def audit_rows(lower: float) -> list[Row]:
    numbers = {"epsilon claimed": 0.9, "epsilon at least, 95 %": lower, "runs a world": 200.0, "steps a run": 5000.0,
               "judged runs": 300.0, "judged runs mistaken": 3.0}  # fmt: skip
    return [audits.STATED[0.32].row(words, value) for words, value in numbers.items()]


def test_an_audit_refutes_or_says_nothing() -> None:
    statement = audits.STATED[0.32]
    assert statement.claim(audit_rows(3.9)).verdict == "fails"
    assert statement.claim(audit_rows(0.5)).verdict == "in part"
    words = statement.claim(audit_rows(3.9)).measured
    assert "at least 3.90 (95 %), by 200 runs of 5,000 steps" in words
    assert "the authors' program" in words


def test_kept_trainings_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QUIETQ_CACHE", str(tmp_path))
    assert audits.audit_of(0.32, quick=False) == audits.Audited(0.32, audits.USUAL)
    assert audits.audit_of(0.32, quick=True) == audits.Audited(0.32, *audits.TINY)
    monkeypatch.setattr(Store, "get", lambda self, number: number if number < 7 else None)
    assert audits.kept(0.32, 200)  # 400 runs are seven batches of 64
    assert audits.audit_of(0.32, quick=True) == audits.Audited(0.32, audits.USUAL)
    monkeypatch.setattr(Store, "get", lambda self, number: number)
    assert audits.audit_of(0.32, quick=True) == audits.Audited(0.32, audits.MOST)
    assert audits.folder() == tmp_path / "audit"
    monkeypatch.setenv("QUIETQ_CACHE", "")
    assert not audits.kept(0.32, 200)
    assert audits.audit_of(0.32, quick=False) == audits.Audited(0.32, audits.USUAL)


@pytest.mark.parametrize("place", ["here", ""])
def test_trainings_are_taken_only_where_they_may_be_kept(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = []

    def audit(*parts: object, folder: Path | None, **further: object) -> None:
        given.append(folder)
        raise InterruptedError

    monkeypatch.setattr(audits, "audit_training", audit)
    monkeypatch.setenv("QUIETQ_CACHE", str(tmp_path / place) if place else "")
    with pytest.raises(InterruptedError):
        audits.Audited(0.32, 64).rows()
    assert given == [tmp_path / "here" / "audit" if place else None]


def test_rows_are_found_by_what_they_are() -> None:
    statement = Statement("a claim", "printed", "tests/x.py::y", lambda found: ("holds", ""), "3")
    rows = [statement.row("size", 2, 1.0, setting="small", x=1), statement.row("size", 8, setting="large", x=2)]
    assert all(type(value) in (str, float, type(None)) for row in rows for value in row.values())
    assert rows[0]["erratum"] == "3"
    found = Found(rows)
    assert (found.all("size"), found.one("size", "large"), found.at("size")) == ([2, 8], 8, [(1, 2), (2, 8)])
    assert power(found.at("size")) == pytest.approx(2)
    with pytest.raises(ValueError, match="values to unpack"):
        found.one("size")
    with pytest.raises(TypeError, match="no number"):
        number(rows[1], "printed")


def test_every_statement_gets_its_claim() -> None:
    """All groups as small as can be; audits and what is compiled are tested elsewhere, and made up here."""
    small = (
        listing.Listing(200), mechanisms.Mechanisms(2000), moments.Moments(2000), networks.Networks(), paths.Paths(40),
        parameters.Parameters(), programs.Programs(1, 200), sampler.Sampler(2000), sampler.Speed(1000, 100, 1),
        spaces.Spaces(8), utility.Utility(4, (10, 100)),
    )  # fmt: skip
    rows = [row for task in small for row in task.rows()] + audit_rows(3.9)
    rows += [row | {"claim": audits.STATED[0.74].name} for row in audit_rows(3.9)]
    rows += [*rounds._differences(), *rounds._successive(), *rounds._td_errors()]
    rows += [rounds.RETURNED.row("largest noise in what is returned", 0, setting=words) for words in ("text", "code")]
    claims = Claims().claims({TABLE: rows})
    assert [claim.name for claim in claims] == [statement.name for statement in STATEMENTS]
    assert {claim.verdict for claim in claims} == {"holds", "in part", "fails"}
    assert {row["claim"] for row in rows} == {statement.name for statement in STATEMENTS}
    assert not [claim for claim in claims if "nan" in claim.measured.split() or not claim.measured]
    assert all(type(value) in (str, float, type(None)) for row in rows for value in row.values())
