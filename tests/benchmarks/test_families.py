"""The synthetic people of the benchmarks: fixed laws, scores that mean what they say."""

import numpy as np
import pytest

from benchmarks import families
from benchmarks.study import Case, Results, Study, run, standard_error, tables


@pytest.mark.parametrize("family", families.REPORTED)
def test_a_draw_is_fixed_by_its_numbers(family, monkeypatch):
    monkeypatch.setattr(families, "TASTES", 8)
    monkeypatch.setattr(families, "FRESH", 100)
    one, same, other = (families.ratings(family, 4, 30, draw) for draw in (0, 0, 1))
    assert one.rows.equals(same.rows)
    assert not one.rows.equals(other.rows)
    assert np.array_equal(one.truth, same.truth)
    assert one.rows["rating"].is_between(0, 1).all()
    assert len(one.rows) == 30 * families.ROWS
    assert one.truth.min() >= 0
    assert one.truth.max() <= 1
    assert one.truth.std() > 0.03
    assert one.reward(one.fresh[3]) == pytest.approx(one.truth[3])


@pytest.mark.parametrize("states", families.STATES)
def test_states_lie_in_the_box_and_fresh_ones_have_the_same_law(states):
    draw = families.ratings("peak", 3, 200, 0, states)
    x = draw.rows.select(draw.states).to_numpy()
    assert x.min() >= 0
    assert x.max() <= 1
    assert np.abs(x.mean(axis=0) - draw.fresh.mean(axis=0)).max() < 6 * np.sqrt(1 / 12 * (1 / len(x) + 1 / 2000))
    assert np.abs(np.cov(x.T) - np.cov(draw.fresh.T)).max() < 0.02


def test_comparisons_go_with_the_reward():
    draw = families.comparisons("two-peaks", 2, 500, 0)
    sides = [draw.reward(draw.rows.select(f"{side}0", f"{side}1").to_numpy()) for side in ("left", "right")]
    chosen = draw.rows["choice"].to_numpy() == "left"
    assert np.mean(chosen[sides[0] > sides[1] + 0.3]) > 0.7


def test_scores():
    truth = np.linspace(0, 1, 101)
    assert families.score(truth, truth) == pytest.approx({"correlation": 1.0, "regret": 0.0})
    assert families.score(-truth, truth)["regret"] == 2.0
    assert families.score(np.zeros(101), truth)["correlation"] == 0.0


def test_a_study_goes_on_where_it_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.study.ROOT", tmp_path)
    monkeypatch.setattr("benchmarks.study.RESULTS", tmp_path / "results")
    measured = []

    def measure(draw):
        measured.append(draw)
        return {"score": float(draw)}

    study = Study("some", "d", [Case({"family": "peak", "d": 2}, measure, (), target=0.5)])
    run(study, 2, print)
    found = run(study, 3, print)
    assert measured == [0, 1, 2]
    assert found.entries[0].numbers["score"].mean == 1.0
    assert tables(found)["score"] == [["family", "d 2", "draws"], ["peak", "1.000 ± 0.577 (≥ 0.5)", "3"]]
    assert tables(Results.load("some")) == tables(found)


def test_only_some_cases_are_measured_and_others_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.study.ROOT", tmp_path)
    monkeypatch.setattr("benchmarks.study.RESULTS", tmp_path / "results")
    cases = [Case({"family": name, "d": 2}, lambda draw: {"score": 1.0}, ()) for name in ("peak", "ring")]
    study = Study("some", "d", cases)
    assert [entry.labels["family"] for entry in run(study, 1, print, only={"family": "peak", "d": "2"}).entries] == [
        "peak"
    ]
    assert [entry.draws for entry in run(study, 2, print, only={"family": "ring"}).entries] == [1, 2]


def test_a_study_ends_in_time_and_shows_what_it_compares(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.study.ROOT", tmp_path)
    monkeypatch.setattr("benchmarks.study.RESULTS", tmp_path / "results")
    names = ("one", "other")
    cases = [Case({"model": name, "data": "some"}, lambda draw: {"score": float(draw)}, ()) for name in names]
    told = []
    nothing = run(Study("some", "data", cases), 2, told.append, minutes=0)
    assert tables(nothing) == {}
    assert told[0] == "4 of 4 were left for the next run."

    def compare(found):
        return [
            {draw: {"gap": numbers["score"] - found[0][draw]["score"]} for draw, numbers in one.items()}
            for one in found
        ]

    found = run(Study("some", "data", cases, each="splits", compare=compare), 2, told.append)
    assert tables(found)["gap"] == [["model", "some", "splits"], *([name, "0.000 ± 0.000", "2"] for name in names)]


def test_splits_that_share_people_have_larger_errors():
    assert standard_error([1.0]) is None
    assert standard_error([1.0, 2.0, 3.0]) == pytest.approx(np.sqrt(1 / 3))
    assert standard_error([1.0, 2.0, 3.0], overlap=1 / 3) == pytest.approx(np.sqrt(2 / 3))
