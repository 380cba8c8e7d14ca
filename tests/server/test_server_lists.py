"""Releases that are lists: every item with its values, and policies with their intervals."""

from typing import Any

import numpy as np
from stages import ITEMS, PUSHES, STATES
from test_server_refusals import refused

from quietq.publishing import load


def test_all_items_with_their_values(stage, stages):
    answer = stage.get(stage.url("catalogue", "items"))
    found = answer.json()
    assert found["items"] == list(ITEMS)
    assert np.array(found["values"])[:, 0].tolist() == load(stages["catalogue"])(list(ITEMS)).tolist()
    assert (found["low"], found["high"], found["privacy"]) == (None, None, "certified")
    assert answer.headers["X-Quietq-Privacy"] == "certified"


def test_policies_with_their_intervals(stage, stages):
    released: Any = load(stages["evaluated"])
    found = stage.get(stage.url("evaluated", "items")).json()
    rows = zip(found["items"], (one for (one,) in found["values"]), found["low"], found["high"], strict=True)
    assert {name: tuple(row) for name, *row in rows} == {name: tuple(row) for name, row in released.values.items()}
    (listed,) = [one for one in stage.get("/v1/releases").json()["releases"] if one["name"] == "evaluated.qq"]
    assert (listed["what"], listed["names"]) == ("policy values", ["always high", "always low"])


def test_what_is_no_list_says_so(stage, monkeypatch):
    refused(stage.get(stage.url("five", "items")), 409, "no list")
    refused(stage.get("/v1/releases/0000000000000000/items"), 404)
    monkeypatch.setattr("quietq.publishing.server.lists.MOST_VALUES", 8)
    refused(stage.get(stage.url("catalogue", "items")), 413, "more than 8 values")


def test_outputs_are_named(stage):
    listed = {each["name"]: each for each in stage.get("/v1/releases").json()["releases"]}
    named = {name: (one["names"], one["measure"]) for name, one in listed.items()}
    assert named["driver.qq"] == (["action 0", "action 1"], "log-probability")
    assert named["five.qq"] == (["value"], "released value")
    assert named["pushed.qq"][0][0] == "next place after the middle action"
    assert len(named["cart.qq"][0]) == 8
    assert named["cart.qq"][0][-1] == "next coordinate 3 (0) after <i>right</i>"
    assert listed["cart.qq"]["stage"]["state_names"] == [*STATES[:3], "coordinate 3 (0)"]
    assert listed["cart.qq"]["stage"]["action_names"] == list(PUSHES)
    assert listed["pushed.qq"]["stage"]["action_names"] == ["act"]
