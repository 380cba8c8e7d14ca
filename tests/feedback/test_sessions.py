"""People's sessions: what of their rows becomes a transition, from any source, and that nobody changes another's."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from quietq import InvalidInput, Sessions
from quietq.feedback.transitions import Steps

read: Any = Sessions.read
DECLARED = {"person": "who", "episode": "visit", "state": ["x", "y"], "action": "dose", "actions": ["low", "high"],
            "reward": "gain", "low": -1.0, "high": 3.0, "end": "died", "cut": "left", "box": [(0, 1), (-1, 1)],
            "people": 40}  # fmt: skip
BY_STEP = DECLARED | {"step": "day"}


def logged(people: int = 30, seed: int = 0) -> pl.DataFrame:
    """Some episodes of some days each, of which the last is only a state; here and there a cell is no good."""
    rng, rows = np.random.default_rng(seed), []
    for who in range(people):
        for visit in range(rng.integers(1, 4)):
            days = int(rng.integers(1, 7))
            for day in range(days + 1):
                row = {"who": f"P{who}", "visit": f"v{visit}", "day": day + 3}
                row |= {"x": rng.uniform(-0.2, 1.2), "y": rng.uniform(-1, 1)}
                row |= {"dose": str(rng.choice(["low", "HIGH "])), "gain": rng.uniform(-2, 4)}
                row |= {"died": float(day == days - 1 and visit == 0), "left": 0.0}
                rows.append(row if day < days else row | dict.fromkeys(["dose", "gain", "died", "left"]))
    frame = pl.DataFrame(rows)
    for column in ("x", "gain", "died", "dose"):
        bad = rng.random(frame.height) < 0.05
        frame = frame.with_columns(pl.when(pl.Series(bad)).then(None).otherwise(pl.col(column)).alias(column))
    return frame.filter(pl.Series(rng.random(frame.height) > 0.05))


def expected(frame: pl.DataFrame) -> list[tuple]:
    """Written out, row by row."""
    episodes = defaultdict(list)
    for row in frame.iter_rows(named=True):
        episodes[row["who"], row["visit"]].append(row)
    found = []
    for (who, _), rows in episodes.items():
        rows.sort(key=lambda row: row["day"])
        over = False
        for i, row in enumerate(rows):
            following = rows[i + 1] if i + 1 < len(rows) and rows[i + 1]["day"] == row["day"] + 1 else None
            cells = [row["x"], row["y"], row["dose"], row["gain"], row["died"], row["left"]]
            whole = None not in cells and following is not None and following["x"] is not None
            if whole and not over:
                assert following is not None
                state, after = ([min(max(one["x"], 0), 1), (one["y"] + 1) / 2] for one in (row, following))
                dose, gain = ["low", "high"].index(row["dose"].strip().lower()), min(max(row["gain"], -1), 3)
                found.append(
                    (who, *state, *after, dose, (gain + 1) / 4, row["died"], 0, i == 0, row["day"] - rows[0]["day"])
                )
            over |= row["died"] == 1
    return sorted(found, key=lambda one: one[1:])


def transitions(sessions: Any) -> list[tuple]:
    found = []
    for starts, columns in sessions.rows.buckets:
        person = np.searchsorted(starts, np.arange(len(columns["s0"])), side="right")
        names = ["s0", "s1", "n0", "n1", "action", "reward", "end", "cut", "first", "step"]
        found += zip(person.tolist(), *(columns[name].tolist() for name in names), strict=True)
    found.sort(key=lambda one: one[1:])
    number: dict[int, int] = {}  # people have no order of their own: they are numbered as they come by
    return [(number.setdefault(person, len(number)), *told) for person, *told in found]


def same(one: list[tuple], other: list[tuple]) -> bool:
    return len(one) == len(other) and np.allclose([row[1:] for row in one], [row[1:] for row in other], atol=1e-12)


def test_rows_become_transitions_as_written_out():
    frame = logged()
    sessions = read(frame.sample(fraction=1, shuffle=True, seed=1), **BY_STEP)
    found, wanted = transitions(sessions), expected(frame)
    assert len(wanted) > 100
    assert same(found, wanted)
    people = {(one[0], other[0]) for one, other in zip(wanted, found, strict=True)}
    assert len(people) == len({name for name, _ in people}) == sessions.not_private["people_present"]
    assert sessions.not_private["transitions"] == len(wanted)
    assert sessions.not_private["ends"] == sum(one[7] for one in wanted) > 5
    assert isinstance(sessions.schema, Steps)
    assert set(sessions.columns) == set(sessions.rows.buckets[0].columns)


def test_every_source_gives_the_same(tmp_path):
    frame = logged()
    wanted = transitions(read(frame, **BY_STEP))
    frame.write_csv(tmp_path / "rows.csv")
    frame.write_parquet(tmp_path / "rows.parquet")
    flags = frame.with_columns(pl.col("died").cast(pl.Boolean), left=pl.lit("No"))
    sources = [frame.to_pandas(), tmp_path / "rows.csv", tmp_path / "rows.parquet", flags, flags.to_pandas()]
    sources += [[frame[::2].to_pandas(), frame[1::2]], frame.lazy()]
    for source in sources:
        assert transitions(read(source, **BY_STEP)) == wanted


def test_numbered_people_and_named_ones_are_paired_alike():
    frame = logged().with_columns(pl.col("who").str.slice(1).cast(pl.Int64))
    assert same(transitions(read(frame, **BY_STEP)), transitions(read(logged(), **BY_STEP)))


def test_the_order_of_rows_will_do():
    """A row that cannot be used stays as a gap, so days that were lost altogether are the only difference."""
    frame = logged()
    numbered = frame.with_columns(day=pl.int_range(pl.len()).over("who", "visit"))
    dealt = frame.with_columns(turn=pl.int_range(pl.len()).over("who", "visit")).sort("turn", maintain_order=True)
    for source in (frame, [frame[:200], frame[200:]], dealt, dealt.to_pandas()):
        assert same(transitions(read(source, **DECLARED)), expected(numbered))


def test_next_states_may_have_columns_of_their_own():
    frame = logged().with_columns(
        pl.col("x", "y").shift(-1).over("who", "visit", order_by="day").name.prefix("next_"),
        follows=pl.col("day").shift(-1).over("who", "visit", order_by="day") - pl.col("day"),
    )
    paired = read(frame, **BY_STEP)
    apart = read(frame.filter(pl.col("follows") == 1), **BY_STEP, next_state=["next_x", "next_y"])
    assert same([one[:9] for one in transitions(paired)], [one[:9] for one in transitions(apart)])
    without = read(frame, **BY_STEP, next_state=[])
    assert "n0" not in without.rows.buckets[0].columns
    assert without.not_private["transitions"] > paired.not_private["transitions"]


def test_ends_and_time_limits_are_kept_apart():
    rows = pl.DataFrame({"person": [1] * 5 + [2] * 3, "visit": [1, 1, 1, 1, 1, 1, 1, 1], "x": np.arange(8) / 8,
                         "go": [1, 1, 1, 1, None, 0, 0, None], "over": [0, 1, 0, 0, None, 0, 0, None]})  # fmt: skip
    declared = {"state": "x", "action": "go", "actions": [0, 1], "box": (0, 1), "people": 3, "end": "over"}
    (first,) = read(rows, **declared, episode="visit").rows.buckets
    order = np.argsort(first.columns["s0"])  # whoever comes first
    kept = {name: column[order].tolist() for name, column in first.columns.items()}
    assert kept["s0"] == [0, 1 / 8, 5 / 8, 6 / 8]  # after an end there is a final state, and no more
    assert (kept["end"], kept["cut"], kept["first"]) == ([0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0])
    limited = rows.with_columns(limit=pl.Series([0, 0, 0, 0, None, 1, 0, None]))
    (second,) = read(limited, **declared, episode="visit", cut="limit").rows.buckets
    assert second.columns["cut"][np.argsort(second.columns["s0"])].tolist() == [0, 0, 1]


def test_actions_may_be_continuous_and_steps_hours_apart():
    rows = pl.DataFrame({"person": ["a"] * 5, "hour": [0.0, 4.0, 8.0, 16.0, 20.0], "x": [0.5] * 5,
                         "dose": [0.0, 5.0, 20.0, math.inf, 1.0], "rate": [1, 2, 3, 4, 5]})  # fmt: skip
    declared = {"state": "x", "action": ["dose", "rate"], "actions": [(0, 10), (1, 5)], "box": (0, 1), "people": 1}
    sessions = read(rows, **declared, step=("hour", 4))
    (people,) = sessions.rows.buckets
    assert people.columns["a0"].tolist() == [0, 0.5]
    assert people.columns["a1"].tolist() == [0, 0.25]
    assert (sessions.spaces.actions, str(sessions.spaces.action_box)) == (None, "[0, 10] x [1, 5]")
    (people,) = read(rows, **declared, step=("hour", None)).rows.buckets
    assert people.columns["step"].tolist() == [0, 1, 2]


def test_a_row_without_a_step_is_as_if_it_were_not_there():
    """The gap shows in the numbers of the others, unless any later one is the next."""
    rows = pl.DataFrame({"person": ["a"] * 4, "day": [0.0, None, 2.0, 3.0], "x": [0.0, 0.2, 0.4, 0.6], "go": [1] * 4})
    declared = {"state": "x", "action": "go", "actions": [0, 1], "box": (0, 1), "people": 1}
    for every, paired in ((1.0, [(0.4, 0.6)]), (None, [(0.0, 0.4), (0.4, 0.6)])):
        (people,) = read(rows, **declared, step=("day", every)).rows.buckets
        assert list(zip(people.columns["s0"].tolist(), people.columns["n0"].tolist(), strict=True)) == paired


CELL = st.none() | st.floats() | st.sampled_from([0.0, 0.5, 1.0, 1e300])
ROW = st.tuples(st.sampled_from(["v0", "v1", "", None]), CELL, CELL, CELL, CELL,
                st.sampled_from(["low", "high", "both", None]), CELL, CELL)  # fmt: skip
OTHERS = read(logged(), **BY_STEP)


@settings(max_examples=15)
@given(st.lists(ROW, max_size=8), st.sampled_from(["new", "P999"]))
def test_nobody_changes_how_others_are_read(rows, name):
    names = ["visit", "day", "x", "y", "gain", "dose", "died", "left"]
    numbers = {"day", "x", "y", "gain", "died", "left"}
    cells = {column: pl.Series([row[i] for row in rows], dtype=pl.Float64 if column in numbers else pl.String)
             for i, column in enumerate(names)}  # fmt: skip
    frame = logged().with_columns(pl.col("day").cast(pl.Float64))
    one = pl.DataFrame({"who": pl.Series([name] * len(rows), dtype=pl.String), **cells}).select(frame.columns)
    sessions = read([one[::2], frame, one[1::2]], **BY_STEP)
    before, after = transitions(OTHERS), transitions(sessions)
    assert {row[1:] for row in before} <= {row[1:] for row in after}
    assert len(before) <= len(after) <= len(before) + len(rows)
    for starts, columns in sessions.rows.buckets:
        assert all(np.isfinite(column).all() for column in columns.values())
        assert all(columns[each].min() >= 0 and columns[each].max() <= 1 for each in ("s0", "n1", "reward", "end"))
        assert len(np.unique(starts)) == len(starts)


@pytest.mark.parametrize("ordered", [True, False])
def test_somebody_with_very_many_rows_is_held_to_whole_episodes(monkeypatch: pytest.MonkeyPatch, ordered: bool) -> None:
    """Alone and in company, however rows are read; the last one is cut where the limit is reached."""
    monkeypatch.setattr("quietq.feedback.buckets.MOST_ROWS", 25)
    episode, day = np.divmod(np.arange(120), 6)
    long = pl.DataFrame({"who": "A", "visit": episode, "day": day, "x": (day + episode / 100) / 6, "go": "yes"})
    declared = {"person": "who", "state": "x", "action": "go", "actions": ["yes"], "box": (0, 1), "episode": "visit"}
    declared |= {"step": "day"} if ordered else {}
    (alone,) = read(long, people=1, **declared).rows.buckets
    assert np.bincount(alone.columns["episode"]).tolist() == [5] * 4  # of six rows, the last of which says no more
    assert set(np.floor(100 * (6 * alone.columns["s0"] % 1)).astype(int)) != set(range(4))
    assert alone.columns["n0"] - alone.columns["s0"] == pytest.approx(1 / 6)
    other = long.with_columns(who=pl.lit("B"), x=pl.col("x") / 2)
    parts = [pl.concat([other[::-1][i::3], long[i::3]]) for i in range(3)] if ordered else [other, long[:50], long[50:]]
    (both,) = read(parts, people=2, **declared).rows.buckets
    halves = np.split(both.columns["s0"], both.starts[1:])
    assert any(np.array_equal(one, alone.columns["s0"]) for one in halves)
    one = read(long.with_columns(visit=pl.lit(0), day=pl.int_range(120)), people=1, **declared).rows.buckets[0]
    assert len(one.columns["s0"]) == 24  # a single episode is cut


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_a_minari_data_set(tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    gymnasium = pytest.importorskip("gymnasium")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    rng, buffers = np.random.default_rng(0), []
    for i in range(6):
        ends = [[False, False, i % 2 == parity] for parity in (0, 1)]
        buffer = minari.data_collector.EpisodeBuffer(
            id=i, observations=list(rng.random((4, 2))), actions=rng.integers(0, 2, 3).tolist(), rewards=[0.5] * 3,
            terminations=ends[0], truncations=ends[1], infos={"patient": [i // 2] * 4},
        )  # fmt: skip
        buffers.append(buffer)
    box = gymnasium.spaces.Box(0, 1, (2,), np.float64)
    data = minari.create_dataset_from_buffers(
        "quietq/test-v0", buffers, action_space=gymnasium.spaces.Discrete(2), observation_space=box, data_format="arrow"
    )
    declared = {"actions": [0, 1], "box": [(0, 1), (0, 1)], "people": 3}
    sessions = read(data, person="patient", **declared)
    told = {"people_present": 3, "transitions": 18, "starts": 6, "ends": 3, "cuts": 3}
    assert told.items() <= sessions.not_private.items()
    columns = sessions.rows.buckets[0].columns
    assert sorted(columns["action"].tolist()) == sorted(a for one in buffers for a in one.actions)
    data.storage.update_episode_metadata([{"ward": f"w{i}"} for i in range(6)])
    assert read(data, person="ward", **declared | {"people": 6}).not_private["people_present"] == 6


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"box": [(0, 1)] * 3}, "box has 3 dimensions, but state has 2 columns: give a pair .* or one for all of them"),
        ({"state": "x", "box": (0, 1), "next_state": ["x", "y"]}, "state has 1, but next_state has 2 columns"),
        ({"next_state": ["x"]}, "state has 2, but next_state has 1 columns"),
        ({"low": 3.0}, "high must be above low, but high is 3.0"),
        ({"action": ["dose", "day"]}, "action must be the one column"),
        ({"actions": []}, "actions must be a whole number of at least 1"),
        ({"actions": ["low", "LOW"]}, "must differ by more than their spelling"),
        ({"state": None}, "state must name its columns"),
        ({"step": ("day", 0)}, "every must be"),
        ({"people": 3}, "more people in the data than the 3"),
        ({"end": "who"}, "must be different columns"),
        ({"end": "nothing"}, "There is no column 'nothing'; .*: end= .--end of a command. says which one is meant"),
        ({"action": "x"}, "must be different columns"),
    ],
)
def test_refusals(change, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        read(logged(), **BY_STEP | change)


def test_types_that_cannot_be_what_they_should_be():
    frame = logged().with_columns(when=pl.datetime(2020, 1, 1))
    for change, sentence in (
        ({"end": "when"}, "such as '0' and '1'"),
        ({"action": "when"}, "must hold categories"),
    ):
        for source in (frame, frame.to_pandas()):
            with pytest.raises(InvalidInput, match=sentence if source is frame else "must hold text or numbers"):
                read(source, **BY_STEP | change)


def test_nobody_to_read_is_a_warning_and_no_refusal():
    with pytest.warns(UserWarning, match="No row of the sessions can be used"):
        sessions = read(logged().with_columns(x=pl.lit(None, pl.Float64)), **BY_STEP)
    assert (sessions.rows.buckets[0].starts.size, sessions.not_private["people_present"]) == (0, 0)
    assert "secret" not in repr(sessions)
