"""`python -m reproduction`: tables, pictures, verdicts and a page, kept and found again."""

import csv
import dataclasses
import json
import re

import numpy as np
import pytest

for package in ("jax", "matplotlib"):
    pytest.importorskip(package)

from reproduction import experiments  # noqa: E402
from reproduction.experiment import Row, task  # noqa: E402
from reproduction.figures import figure1  # noqa: E402
from reproduction.figures.curves import rows_of  # noqa: E402

TIMES = []
"""Every time that something is measured."""


def made_up(preset: str, sigma: float, resets: int | None, steps: int, seeds: int) -> list[Row]:
    """Curves as a training would give; the trainings themselves are tested elsewhere, and all together below."""
    TIMES.append((preset, sigma))
    noise = figure1.noise_of(preset, sigma, resets)  # type: ignore[arg-type]
    columns: Row = {"preset": preset, "sigma": sigma, "noise": noise, "resets": resets}
    return rows_of(np.random.default_rng(0).uniform(5, 20, (seeds, steps // 50)).tolist(), columns)


TINY = [
    task("figure1", f"{preset} {sigma}", made_up, preset=preset, sigma=sigma, resets=None, steps=250, seeds=2)
    for preset, sigma in (("code", 0.0), ("code", 0.4), ("text", 0.0), ("text", 1.0))
]


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Figure 1 with as little as shows everything, and a cache of its own."""
    small = dataclasses.replace(experiments.EXPERIMENTS["figure1"], tasks=lambda quick: TINY)
    monkeypatch.setitem(experiments.EXPERIMENTS, "figure1", small)
    TIMES.clear()
    monkeypatch.setenv("QUIETQ_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("tiny")
def test_one_figure_from_tasks_to_page_and_again_from_the_cache(command, tmp_path, monkeypatch):
    code, out, err = command("figure1 --out here --quick --json")
    assert code == 0
    assert "4 of 4 done" in err
    result = json.loads(out)
    assert {"claims", "figures", "seconds"} <= set(result)
    assert all({"name", "printed", "measured", "verdict"} <= set(claim) for claim in result["claims"])
    assert {claim["verdict"] for claim in result["claims"]} <= {"holds", "in part", "fails"}
    assert result["figures"] == ["here/figure1.png", "here/figure1.svg"]
    folder = tmp_path / "here"
    assert (folder / "figure1.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "figure1.svg").read_text()[:1000]
    with (folder / "figure1.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 4 * 2 * 5  # settings, seeds, episodes
    made_by = json.loads((folder / "figure1.json").read_text())
    assert (len(made_by["tasks"]), made_by["quick"]) == (4, True)
    assert {"jax", "numpy", "python"} <= set(made_by["stands_on"])
    page = (folder / "report.html").read_text()
    assert re.findall(r"(?:src|href)='(?!data:|#)", page) == []
    assert "This was a quick run" in page
    assert all(claim["verdict"] in page for claim in result["claims"])

    assert len(TIMES) == 4
    code, again, _ = command("figure1 --quick")
    assert code == 0
    assert "Read runs/paper/figure1/report.html" in again
    assert (tmp_path / "runs/paper/figure1/figure1.csv").read_bytes() == (folder / "figure1.csv").read_bytes()
    assert len(TIMES) == 4  # it was done before
    command("figure1 --quick --no-cache")
    assert len(TIMES) == 8


def test_wrong_input_is_one_sentence(command, tmp_path):
    for arguments, part in (
        ("figure3", "figure3"),
        ("figure1 --out file", "--out must be a folder, and 'file' is a file"),
    ):
        (tmp_path / "file").touch()
        code, out, err = command(arguments)
        assert (code, out) == (2, "")
        assert part in err
        assert len(err.splitlines()) == 1


@pytest.mark.slow
def test_all_of_it_quickly(command, tmp_path):
    code, out, _ = command("all --out here --quick --json")
    assert code == 0
    result = json.loads(out)
    assert len(result["claims"]) > 70
    names = {"figure1", "figure2", "comparison"}
    assert {file.stem for file in (tmp_path / "here").glob("*.png")} == names
    assert (tmp_path / "here" / "report.html").stat().st_size > 500_000
