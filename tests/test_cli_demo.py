"""`quietq demo` as a newcomer runs it."""

import base64
import importlib.util
import json

import pytest

for package in ("statsmodels", "polars", "matplotlib"):
    pytest.importorskip(package)

import quietq as qq  # noqa: E402
from quietq import worlds  # noqa: E402

RELEASED = {"reward.qq", "reward.png", "agent.qq", "values.png", "report.html"}
KEPT = {"PRIVATE-ratings.csv"}


@pytest.mark.slow  # the README's own block runs it in every test run
def test_from_ratings_to_a_private_agent(quietq, tmp_path, monkeypatch):
    code, out, err = quietq("demo --quick --out here --json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert set(result) == {"certificate", "out", "seconds", "not_private"}
    assert (result["certificate"]["standing"], result["certificate"]["budget"]["epsilon"]) == ("certified", 0.5)
    assert result["certificate"]["method"] == "reward/path"
    told = result["not_private"]
    assert told["worst"] < told["random"] < told["return"] <= told["best"]
    folder = tmp_path / "here"
    assert {path.name for path in folder.iterdir()} == RELEASED | KEPT
    assert qq.load(folder / "reward.qq").certificate == qq.load(folder / "agent.qq").certificate
    for path in folder.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    published = (folder / "report.html").read_text()
    for name in ("reward.png", "values.png"):
        assert base64.b64encode((folder / name).read_bytes()).decode() in published
    assert "epsilon = 0.5 and delta = 1e-05" in published
    assert f"{told['return']:.3g}</td>" not in published
    assert "What the audit found" in published
    for path in folder.glob("*PRIVATE*"):
        assert path.stat().st_mode & 0o077 == 0
    code, out, err = quietq("demo --quick --out here")  # over the first
    assert code == 0
    assert [line[:4] for line in err.splitlines() if line[:1].isdigit()] == [f"{step}/5 " for step in range(1, 6)]
    assert "NOT PRIVATE, for you only" in out
    assert out.index("may be published") < out.index("Read here/report.html")


def test_nothing_of_somebody_else_is_replaced(quietq, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "thesis.tex").write_text("precious")
    code, out, err = quietq("demo --out here")
    assert (code, out) == (2, "")
    assert "holds files already" in err
    assert len(list((tmp_path / "here").iterdir())) == 1


def test_a_ledger_without_room_for_it_is_charged_for_nothing(quietq, tmp_path):
    pytest.importorskip("sqlalchemy")
    ledger = qq.Ledger.create(str(tmp_path / "ledger.db"))
    ledger.open("voters", qq.Budget(0.4, 1e-5))
    code, out, err = quietq("demo --out here --ledger ledger.db")
    assert (code, out) == (2, "")
    assert "nothing was booked" in err
    assert ledger.account("voters").spending.spent_mu == 0
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"PRIVATE-ratings.csv"}


def test_ended_half_way_it_says_that_the_budget_is_spent_and_keeps_what_is_done(quietq, tmp_path, monkeypatch):
    def end(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(worlds, "plan_on_grid", end)
    code, out, err = quietq("demo --quick --out here --json")
    assert (code, out) == (130, "")
    assert "quietq: stopped; the budget was charged already" in err
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"reward.qq", "PRIVATE-ratings.csv"}


@pytest.mark.parametrize("package", ["statsmodels", "polars", "matplotlib"])
def test_a_missing_extra_is_one_sentence(quietq, tmp_path, monkeypatch, package):
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == package else there(name, *rest)
    )
    code, out, err = quietq("demo --out here")
    assert (code, out) == (2, "")
    assert "pip install " in err
    assert not (tmp_path / "here").exists()
