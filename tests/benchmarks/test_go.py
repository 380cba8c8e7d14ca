"""The table of errors counts policies, whatever number of draws and of good ones a cell has."""

import pytest

pytest.importorskip("polars")
pytest.importorskip("mujoco")
pytest.importorskip("Box2D")
from benchmarks.go import WANTED, errors, wanted_of
from benchmarks.study import Entry, Mean


def cell(system, draws, **numbers):
    labels = {"system": system, "kind": "reported", "people": 10, "policy": "plan"}
    return Entry(labels, draws, {name.replace("_", " "): Mean(mean, None) for name, mean in numbers.items()})


def test_errors_are_counted_of_policies_that_could_be_wrong():
    some = cell("one", 10, good=0.3, refused=2 / 3, false_go=0.0)
    headings, every, *each = errors([some, cell("other", 4, good=0.0, false_go=0.25), cell("priced", 3, price=1.0)])[
        "errors"
    ]
    assert headings[:4] == ["systems", "policy", "false go, rule", "refused, rule"]
    assert every[:2] == ["reported", "plan"]
    assert every[2].startswith("1 of 11 (0.00 to 0.4")
    assert every[3].startswith("2 of 3 (")
    assert [line[0] for line in each] == ["one", "other"]
    assert [line[3] for line in each] == [every[3], ""]


def test_what_is_wanted_is_said_beforehand_where_a_twin_lasts():
    assert [wanted_of(name) for name in WANTED] == list(WANTED.values())
