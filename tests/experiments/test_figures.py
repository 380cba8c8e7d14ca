"""Figures 1 and 2: which tasks there are, how curves are measured, and verdicts that follow the rows."""

import math
import pickle

import numpy as np
import pytest

pytest.importorskip("jax")

from paper_tables import compared, curve, figure1, figure2, level, opposite

from quietq.experiments import Experiment, Shelf, carry_out, tables_of
from quietq.experiments.figures.curves import (
    Measure,
    gained,
    late,
    references,
    returns_of,
    samples_to,
    scores_of,
    where,
)
from quietq.experiments.figures.figure1 import SIGMAS, Figure1, NoiseLevel
from quietq.experiments.figures.figure2 import TARGETS, Comparison, Figure2, Opposite
from quietq.experiments.figures.figure2 import opposite as opposite_reward
from quietq.privacy.budget import Budget
from quietq.privacy.limits import cap_any_dp
from quietq.worlds.walk_returns import best_return, worst_return


def verdicts(experiment: Experiment, **tables: list) -> dict[str, str]:
    return {claim.name.split(": ")[1]: claim.verdict for claim in experiment.claims(tables)}


@pytest.mark.parametrize("experiment", [Figure1(), Figure2()])
@pytest.mark.parametrize("quick", [False, True])
def test_tasks_can_be_told_apart_and_sent_elsewhere(experiment: Experiment, quick: bool) -> None:
    tasks = experiment.tasks(quick)
    assert len(set(tasks)) == len(tasks) == len({task.title for task in tasks})
    assert pickle.loads(pickle.dumps(tasks)) == tasks
    programs = {task.program for task in tasks}
    assert len(programs) <= (4 if quick else 6)
    assert len(experiment.tasks(True)) <= len(experiment.tasks(False))


def test_figure_1_has_every_level_with_every_number_of_draws_and_none_once() -> None:
    tasks = [task for task in Figure1().tasks(quick=False) if isinstance(task, NoiseLevel)]
    for preset in ("code", "text"):
        mine = [task for task in tasks if task.preset == preset]
        assert [task.sigma for task in mine].count(0.0) == 1
        assert {(task.sigma, task.resets) for task in mine if task.sigma > 0} == {
            (sigma, resets) for sigma in SIGMAS for resets in (None, 10, 1)
        }
        assert len({task.noise for task in mine}) == 4
    assert {(task.steps, task.seeds) for task in tasks} == {(5000, 10)}


def test_figure_2_shares_the_program_of_figure_1() -> None:
    for quick in (False, True):
        first, second = ({task.program for task in kind().tasks(quick)} for kind in (Figure1, Figure2))
        assert len(first & second) == 1


def test_curves_are_measured_as_they_are_said_to_be() -> None:
    rows = curve(0.2, 0.8, {"sigma": 0.0})
    assert returns_of(rows).shape == (4, 20)
    assert where(rows, seed=2, episode=20)[0]["samples"] == 1000
    scores = scores_of(rows)
    assert scores.mean(axis=0)[[0, -1]] == pytest.approx([0.2, 0.8])
    line = np.linspace(0.2, 0.8, 20)
    assert late(rows).mean == pytest.approx(line[-4:].mean())
    assert late(rows).error == pytest.approx(0.01 * np.arange(4).std(ddof=1) / 2)
    assert gained(rows).mean == pytest.approx(line[-4:].mean() - line[:4].mean())
    assert gained(rows).error == pytest.approx(0, abs=1e-12)  # seeds differ by a constant


def test_samples_are_counted_until_five_episodes_in_a_row_reach_the_level() -> None:
    worst, best, _ = references()
    rows = curve(0.0, 1.0, {})
    line = worst + (best - worst) * np.linspace(0, 1, 20)
    level_ = line[7:12].mean() - 1e-9
    assert samples_to(rows, level_) == 12 * 50
    assert samples_to(rows, best) == math.inf


def test_clearly_means_two_standard_errors_of_the_difference() -> None:
    assert Measure(1.0, 0.3).above(Measure(0.0, 0.3))
    assert not Measure(1.0, 0.4).above(Measure(0.0, 0.4))
    assert not Measure(0.0, 0.0).above(Measure(0.0, 0.0))


def test_verdicts_of_figure_1_follow_the_rows() -> None:
    claims = "more noise needs more samples", "converges if noise is reset every round"
    claims += "resetting every round gives better utility", "Algorithm 1 as printed learns"
    found = verdicts(Figure1(), figure1=figure1())
    assert tuple(found) == claims
    assert tuple(found.values()) == ("holds", "fails", "holds", "fails")
    assert verdicts(Figure1(), figure1=figure1(noised=1.1))[claims[1]] == "holds"
    assert verdicts(Figure1(), figure1=figure1(noised=0.3, fewer=0.6))[claims[2]] == "fails"
    assert verdicts(Figure1(), figure1=figure1(printed=0.9))[claims[3]] == "holds"
    assert verdicts(Figure1(), figure1=figure1(noised=1.2))[claims[0]] == "fails"  # noise that learns faster


def test_in_part_says_that_some_of_it_holds() -> None:
    rows = [row for row in figure1() if not (row["preset"] == "code" and row["noise"] == "each episode")]
    rows += level("code", 0.2, "each episode", 0.5, 1.0) + level("code", 0.4, "each episode", 0.5, 0.6)
    found = verdicts(Figure1(), figure1=rows)
    assert found["converges if noise is reset every round"] == "in part"


def test_verdicts_of_figure_2_follow_the_rows() -> None:
    tables = {"figure2_opposite": opposite(0.9, 0.9) + opposite(0.45, 0.9)}
    claims = "outperforms the baselines", "baselines do not improve at epsilon 0.45"
    claims += "policy evaluation performs similarly", "the paper's curve is at its target"
    found = verdicts(Figure2(), figure2=figure2(), **tables)
    assert tuple(found) == claims
    assert tuple(found.values()) == ("holds", "holds", "holds", "fails")
    assert verdicts(Figure2(), figure2=figure2(ours=0.5), **tables)[claims[0]] == "fails"
    assert verdicts(Figure2(), figure2=figure2(others=0.8), **tables)[claims[1]] == "fails"
    assert verdicts(Figure2(), figure2=figure2(evaluation=0.6), **tables)[claims[2]] == "fails"


def test_a_target_is_broken_only_if_both_scores_are_above_what_is_possible() -> None:
    name, low = "the paper's curve is at its target", opposite(0.9, 0.5) + opposite(0.45, 0.5)
    assert verdicts(Figure2(), figure2=figure2(ours=1.0), figure2_opposite=low)[name] == "in part"
    above = cap_any_dp(Budget(0.9, 1e-4), 1) + 0.1
    both = {"figure2": figure2(ours=above + 0.1), "figure2_opposite": opposite(0.9, above) + low[len(low) // 2 :]}
    assert verdicts(Figure2(), **both)[name] == "fails"


def test_the_opposite_reward_is_a_neighbour_with_opposite_scores() -> None:
    worst, best, _ = references()
    assert best_return(opposite_reward) == pytest.approx(25 - worst)
    assert worst_return(opposite_reward) == pytest.approx(25 - best)
    states = np.linspace(0, 1, 101)
    assert np.abs(opposite_reward(states) - (0.5 - opposite_reward(states))).max() <= 0.5


def test_what_was_run_says_what_it_is_worth() -> None:
    rows = Comparison("evaluation", 0.9, steps=200, seeds=2).rows()
    assert len(rows) == 2 * 4
    assert {(row["standing"], row["worth_epsilon"], row["target_epsilon"]) for row in rows} == {
        ("other relation", None, 0.9)
    }
    assert rows == Comparison("evaluation", 0.9, steps=200, seeds=2).rows()
    assert {type(value) for row in rows for value in row.values()} <= {str, int, float, type(None)}
    assert compared("input", 0.9, 0.5, 0.18)[0].keys() == rows[0].keys()


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [Figure1(), Figure2()])
def test_a_quick_look_has_every_table_and_claim(experiment: Experiment) -> None:
    tables = tables_of(carry_out(experiment.tasks(quick=True), Shelf(None)))
    claims = experiment.claims(tables)
    assert len(claims) == 4
    assert all(
        isinstance(row["return"], float) and 0 <= row["return"] <= 25 for rows in tables.values() for row in rows
    )
    if "figure2" in tables:
        worth = {(row["method"], row["target_epsilon"]): row["worth_epsilon"] for row in tables["figure2"]}
        for epsilon in TARGETS:
            kept, missed = worth["input", epsilon], worth["gradient", epsilon]
            assert isinstance(kept, float)
            assert isinstance(missed, float)
            assert kept < epsilon < missed
        assert Opposite.table in tables
