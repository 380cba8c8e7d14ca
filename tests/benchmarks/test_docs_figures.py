"""`make figures`: pictures from what is stored, and a sentence about those that need more."""

import json

import pytest

from benchmarks import figures


def test_every_picture_of_the_docs_has_a_maker():
    assert {file.stem for file in figures.DOCS.glob("*.png")} == set(figures.NAMES)


def test_stored_results_are_drawn(tmp_path, capsys):
    names = ["bandits", "figure1"]
    assert figures.main([*names, "--out", str(tmp_path), "--paper", str(tmp_path / "nowhere")]) == 0
    assert (tmp_path / "bandits.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "figure1.png").exists()
    assert "figure1.png: left as it is: `make paper` first" in capsys.readouterr().out


def test_what_a_quick_run_found_does_not_get_into_the_docs(tmp_path, capsys):
    (tmp_path / "figure1.json").write_text(json.dumps({"quick": True}))
    before = (figures.DOCS / "figure1.png").stat().st_mtime_ns
    assert figures.main(["figure1", "--paper", str(tmp_path)]) == 0
    assert "is a quick run" in capsys.readouterr().out
    assert (figures.DOCS / "figure1.png").stat().st_mtime_ns == before


def test_unknown_pictures_are_refused(capsys):
    assert figures.main(["nothing"]) == 2
    assert "There is no picture 'nothing'" in capsys.readouterr().err


def test_rows_of_a_table_come_back(tmp_path):
    from reproduction.results import write_tables

    rows = [{"method": "knots", "people": 50, "score": 0.25, "holds": True, "noise": None}]
    write_tables({"scores": rows}, [], [], tmp_path)
    assert figures.read_rows(tmp_path / "scores.csv") == rows


@pytest.mark.slow
def test_the_page_is_photographed(tmp_path):
    pytest.importorskip("playwright")
    assert figures.main(["page", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "page.png").stat().st_size > 50_000
