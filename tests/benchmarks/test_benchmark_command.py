"""`python -m benchmarks`: what it takes is looked for first, and what was measured is kept."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command, needs, page
from benchmarks.measuring import Row
from benchmarks.study import ROOT


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Two benchmarks of a moment; the second needs what `missing` says, or fails while it measures."""
    made = {
        "noise": SimpleNamespace(rows=lambda: [Row("quick", 0.5, "s", limit=1)]),
        "people": SimpleNamespace(rows=lambda: [Row("slow", 2.0, "s", limit=1)]),
    }
    for module in (command, needs):
        monkeypatch.setattr(module, "load", made.__getitem__)
    for module in (command, needs, page):
        monkeypatch.setattr(module, "BENCHMARKS", tuple(made))
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(page, "ROOT", tmp_path)
    monkeypatch.setattr(page, "SPEED", {})  # all of their rows are shown
    return SimpleNamespace(modules=made, results=tmp_path / "results", page=tmp_path / "docs" / "benchmarks.md")


def kept(bench) -> set[str]:
    return {path.stem for path in bench.results.glob("*.json")}


def test_those_that_are_named_are_measured(bench, capsys):
    assert command.main(["noise"]) == 0
    assert kept(bench) == {"noise"}
    assert "| quick |" in bench.page.read_text()
    assert "slow" not in bench.page.read_text() + capsys.readouterr().out


def test_all_are_measured_and_a_limit_fails_the_run(bench, capsys):
    assert command.main([]) == 1
    assert kept(bench) == {"noise", "people"}
    assert capsys.readouterr().err == "Over a limit, or failed: people.\n"
    assert "| slow |" in bench.page.read_text()
    assert command.main(["noise", "noise"]) == 0


def test_a_missing_program_is_told_before_anything_is_measured(bench, capsys):
    bench.modules["people"].NEEDS = ("no-such-program",)
    assert command.main(["noise", "people"]) == 2
    assert kept(bench) == set()
    assert capsys.readouterr().err.splitlines()[1:] == ["people needs the program no-such-program: make programs"]


def test_a_missing_package_is_told_with_the_command_that_installs_it(bench, capsys, monkeypatch):
    def load(name: str):
        if name == "people":
            raise ModuleNotFoundError("No module named 'polars'", name="polars")
        return bench.modules[name]

    monkeypatch.setattr(needs, "load", load)
    assert command.main(["noise", "people"]) == 2
    assert kept(bench) == set()
    assert "people needs polars: " in capsys.readouterr().err


def test_what_fails_takes_nothing_from_the_others(bench, capsys):
    assert command.main([]) == 1
    before = bench.page.read_text()
    bench.modules["noise"].rows = lambda: 1 / 0
    bench.modules["people"].rows = lambda: [Row("slow", 0.25, "s", limit=1)]
    assert command.main([]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert json.loads((bench.results / "people.json").read_text())["rows"][0]["value"] == 0.25
    assert bench.page.read_text() == before.replace("| 2 s | 1 s |", "| 0.25 s | 1 s |")


def test_names_that_are_not_known(bench, capsys):
    assert command.main(["nosie"]) == 2
    assert capsys.readouterr().err.endswith("Did you mean 'noise'?\n")
    assert command.main(["noise", "families"]) == 2
    assert "families is a study" in capsys.readouterr().err
    assert kept(bench) == set()


def test_help_only_helps():
    """And is there at once: no benchmark is imported for it."""
    code = (
        "import sys\nfrom benchmarks.__main__ import main\ntry:\n    main(['--help'])\n"
        "finally:\n    print([one for one in ('jax', 'torch', 'polars') if one in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert all(name in done.stdout for name in (*needs.BENCHMARKS, *needs.STUDIES))


def test_every_study_goes_by_its_name():
    for name in needs.STUDIES:
        source = (ROOT / "benchmarks" / f"{name.replace('-', '_')}.py").read_text()
        assert re.findall(r'\bStudy\(\s*"([^"]+)"', source) == [name]


def test_the_committed_page_is_that_of_the_committed_results():
    assert {path: path.read_text() for path in page.pages()} == page.pages()
    assert set(page.csv_folder().iterdir()) < set(page.pages())
