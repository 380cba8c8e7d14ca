"""What is released carries the names of its columns and actions, as they were declared, into its file and back."""

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from releases import edit, make, record_of

import quietq as qq
from quietq import InvalidInput
from quietq.publishing import publish
from quietq.released import InvalidRelease, load
from quietq.released.publishable import UNNAMED, Labels, Publishable
from quietq.released.release_file import KINDS

BUDGET = qq.Budget(1, 1e-5)
ROOMS = {"warmth": [18.0, 22.0] * 20, "light": [0.2, 0.7] * 20}
PAIRS = {f"{side} {name}": values for side in ("left", "right") for name, values in ROOMS.items()}
ROWS = pl.DataFrame(
    {"person": range(40), "rating": [1, 5] * 20, "window": ["open", "shut"] * 20, "drink": ["tea", "milk"] * 20}
    | ROOMS
    | PAIRS
    | {"choice": ["left", "right"] * 20}
)
BOX = [(15, 25), (0, 1)]


def ratings(**how: Any) -> qq.Ratings:
    return qq.Ratings.read(ROWS, low=1, high=5, people=40, **how)


def comparisons() -> qq.Comparisons:
    left, right = list(PAIRS)[:2], list(PAIRS)[2:]
    return qq.Comparisons.read(ROWS, left=left, right=right, box=BOX, people=40)


def sessions() -> qq.Sessions:
    steps = ROWS.with_columns(after=pl.col("warmth") + 1)
    return qq.Sessions.read(
        steps,
        state=["warmth"],
        next_state=["after"],
        action="window",
        actions=["open", "shut"],
        reward="rating",
        low=1,
        high=5,
        box=[(15, 25)],
        people=40,
    )


@cache
def world() -> qq.PrivateWorld:
    return qq.privatise(sessions(), BUDGET, simulate=1)


def values_of_policies() -> Publishable:
    even = lambda states: np.full((len(states), 2), 0.5)  # noqa: E731
    return qq.evaluate_policies(sessions(), {"open": "open"}, BUDGET, returns=(0, 5), behaviour=even, simulate=1)


WARM, BOTH = ("warmth",), ("warmth", "light")
RELEASED = {
    "table": (lambda: qq.privatise(ratings(state="warmth", box=(15, 25), slope=4), BUDGET, noise="path"), WARM, ()),
    "knots": (lambda: qq.privatise(ratings(state="warmth", box=(15, 25), slope=4), BUDGET, noise="knots"), WARM, ()),
    "model": (lambda: qq.privatise(ratings(state=BOTH, box=BOX), BUDGET), BOTH, ()),
    "model of actions": (
        lambda: qq.privatise(ratings(state=BOTH, box=BOX, action="window", actions=["open", "shut"]), BUDGET),
        BOTH,
        ("open", "shut"),
    ),
    "catalogue": (lambda: qq.privatise(ratings(state="drink", box=["tea", "milk"]), BUDGET), ("drink",), ()),
    "comparisons": (lambda: qq.privatise(comparisons(), BUDGET), ("left warmth", "left light"), ()),
    "world": (world, WARM, ("open", "shut")),
    "policy values": (values_of_policies, WARM, ("open", "shut")),
}


@pytest.mark.parametrize("kind", RELEASED)
def test_names_are_released_as_they_were_declared(tmp_path, kind):
    make_it, states, actions = RELEASED[kind]
    released = make_it()
    assert released.labels == Labels(states, actions)
    publish(released, tmp_path / "release.qq", not_private=True)
    assert record_of(tmp_path / "release.qq")["labels"] == {"states": list(states), "actions": list(actions)}
    back = load(tmp_path / "release.qq")
    assert back.labels == released.labels
    if kind != "world":
        assert f"Coordinates of a state: {', '.join(states)}." in back.in_words()


def test_a_plan_has_the_names_of_its_world(tmp_path):
    plan = qq.plan_linear(world(), seed=0)
    publish(plan, tmp_path / "plan.qq", not_private=True)
    assert load(tmp_path / "plan.qq").labels == world().labels


def test_a_function_of_ones_own_has_no_names(tmp_path):
    publish(make("table"), tmp_path / "reward.qq")
    assert load(tmp_path / "reward.qq").labels == UNNAMED


def test_columns_that_a_prefix_found_are_not_named():
    """Nobody declared them: a table's header may be made of what people gave."""
    given = qq.Ratings.read(
        ROWS.rename({"warmth": "e_Anna", "light": "e_Bert"}),
        features=qq.Columns(prefix="e_"),
        box=[(15, 25), (0, 1)],
        low=1,
        high=5,
        people=40,
    )
    assert qq.privatise(given, BUDGET, simulate=1).labels == UNNAMED


@pytest.mark.parametrize("column", ["w" * 81, "w\u202e", "a\u0301\u0301\u0301"])
def test_a_name_that_cannot_travel_is_refused_before_anything_is_spent(column):
    account = qq.Accountant(BUDGET)
    read = {"state": [column, "light"], "box": BOX, "low": 1, "high": 5, "people": 40}
    with pytest.raises(InvalidInput, match="The name of each state must"):
        qq.privatise(qq.Ratings.read(ROWS.rename({"warmth": column}), **read), BUDGET, account=account)
    assert account.spending.spent_mu == 0


@pytest.mark.parametrize("kind", ["table", "plane", "catalogue", "agent", "choosing policy", "moving policy"])
def test_there_is_a_name_for_each_or_none(tmp_path, kind):
    path = tmp_path / "release.qq"
    publish(make(kind), path)
    whole, sides, outputs = path.read_bytes(), make(kind).box.dimension, make(kind).outputs
    names = [f"name {i}" for i in range(5)]
    for labels, right in (
        ({"states": names[:sides], "actions": names[:outputs]}, True),
        ({"states": [], "actions": names[:outputs]}, True),
        ({"states": names[: sides + 1], "actions": []}, False),
        ({"states": [], "actions": names[: outputs + 1]}, False),
    ):
        path.write_bytes(whole)
        edit(path, labels=labels)
        if right:
            assert load(path).labels == Labels(**{name: tuple(given) for name, given in labels.items()})
        else:
            with pytest.raises(InvalidRelease, match=r"a name for each coordinate and each action|different names of"):
                load(path)


def test_every_kind_of_file_has_labels():
    for kind in KINDS.values():
        assert "labels" in kind.__dataclass_fields__
