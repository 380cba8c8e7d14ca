"""Figures 1 and 2: which tasks there are, and verdicts that follow the rows."""

import math
import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

from paper_tables import compared, figure1, figure2, level, opposite

from quietq.paper.baselines.balle import CELLS
from quietq.privacy.budget import Budget
from quietq.privacy.limits import cap_any_dp
from quietq.worlds.planning import best_return, worst_return
from reproduction.engine import carry_out
from reproduction.experiment import Experiment, tables_of, where
from reproduction.figures import figure2 as comparison
from reproduction.figures.curves import late, references
from reproduction.figures.figure1 import FIGURE1, SIGMAS, noise_of
from reproduction.figures.figure2 import FIGURE2, LARGEST_RETURN, TARGETS, cap_of_returns, opposite as opposite_reward
from reproduction.results import Cache


def verdicts(experiment: Experiment, **tables: list) -> dict[str, str]:
    return {claim.name.split(": ")[1]: claim.verdict for claim in experiment.claims(tables)}


@pytest.mark.parametrize("experiment", [FIGURE1, FIGURE2])
@pytest.mark.parametrize("quick", [False, True])
def test_tasks_can_be_told_apart_and_sent_elsewhere(experiment: Experiment, quick: bool) -> None:
    tasks = experiment.tasks(quick)
    assert len(set(tasks)) == len(tasks) == len({task.title for task in tasks})
    assert pickle.loads(pickle.dumps(tasks)) == tasks
    programs = {task.program for task in tasks}
    assert len(programs) <= (4 if quick else 6)
    assert len(experiment.tasks(True)) <= len(experiment.tasks(False))


def test_figure_1_has_every_level_with_every_number_of_draws_and_none_once() -> None:
    tasks = [dict(task.settings) for task in FIGURE1.tasks(False)]
    for preset in ("code", "text"):
        mine = [task for task in tasks if task["preset"] == preset]
        assert [task["sigma"] for task in mine].count(0.0) == 1
        assert {(task["sigma"], task["resets"]) for task in mine if task["sigma"] > 0} == {
            (sigma, resets) for sigma in SIGMAS for resets in (None, 10, 1)
        }
        assert len({noise_of(preset, task["sigma"], task["resets"]) for task in mine}) == 4  # type: ignore[arg-type]
    assert {(task["steps"], task["seeds"]) for task in tasks} == {(5000, 10)}


def test_figure_2_shares_the_program_of_figure_1() -> None:
    for quick in (False, True):
        first, second = ({task.program for task in experiment.tasks(quick)} for experiment in (FIGURE1, FIGURE2))
        assert len(first & second) == 1


def test_verdicts_of_figure_1_follow_the_rows() -> None:
    claims = "more noise needs more samples", "converges if noise is reset every round"
    claims += "resetting every round gives better utility", "Algorithm 1 as printed learns"
    found = verdicts(FIGURE1, figure1=figure1())
    assert tuple(found) == claims
    assert tuple(found.values()) == ("holds", "fails", "holds", "fails")
    assert verdicts(FIGURE1, figure1=figure1(fewer=0.6))[claims[2]] == "in part"  # no difference at all
    assert verdicts(FIGURE1, figure1=figure1(noised=1.1))[claims[1]] == "holds"
    assert verdicts(FIGURE1, figure1=figure1(noised=0.3, fewer=0.6))[claims[2]] == "fails"
    assert verdicts(FIGURE1, figure1=figure1(printed=0.9))[claims[3]] == "holds"
    assert verdicts(FIGURE1, figure1=figure1(noised=1.2))[claims[0]] == "fails"  # noise that learns faster


def test_in_part_says_that_some_of_it_holds() -> None:
    rows = [row for row in figure1() if not (row["preset"] == "code" and row["noise"] == "each episode")]
    rows += level("code", 0.2, "each episode", 0.5, 1.0) + level("code", 0.4, "each episode", 0.5, 0.6)
    found = verdicts(FIGURE1, figure1=rows)
    assert found["converges if noise is reset every round"] == "in part"


def test_what_was_not_run_is_not_judged() -> None:
    few = [row for row in figure1() if not (row["preset"] == "code" and row["sigma"] == 0.2)]
    claim = FIGURE1.claims({"figure1": few})[1]
    assert (claim.verdict, "not tested" in claim.measured) == ("in part", True)
    assert "not tested" not in FIGURE1.claims({"figure1": figure1()})[1].measured
    some = [row for row in figure1() if row["noise"] != "one path"]
    assert verdicts(FIGURE1, figure1=some)["resetting every round gives better utility"] == "in part"


def test_resets_are_judged_by_one_path_alone() -> None:
    kept = [row for row in figure1() if not (row["preset"] == "code" and row["noise"] == "10 paths")]
    between = [row for sigma in (0.2, 0.4) for row in level("code", sigma, "10 paths", 0.5, 0.9)]
    claim = FIGURE1.claims({"figure1": kept + between})[2]
    assert claim.verdict == "holds"  # 10 paths are better, which is told and of which nothing is printed
    assert "10 paths" in claim.measured


def test_verdicts_of_figure_2_follow_the_rows() -> None:
    tables = {"figure2_opposite": opposite(0.9, 0.9) + opposite(0.45, 0.9)}
    claims = "outperforms the baselines", "baselines do not improve at epsilon 0.45"
    claims += "policy evaluation performs similarly", "the paper's curve is at its target"
    found = verdicts(FIGURE2, figure2=figure2(), **tables)
    assert tuple(found) == claims
    assert tuple(found.values()) == ("in part", "holds", "holds", "fails")  # noise on gradients misses its target

    def verdict(number: int, **settings: Any) -> str:
        return verdicts(FIGURE2, figure2=figure2(**settings), **tables)[claims[number]]

    assert verdict(0, gradient_worth=0.9) == "holds"
    assert verdict(0, ours=0.5, gradient_worth=0.9) == "in part"  # the same as theirs: nothing is clear
    assert verdict(0, ours=0.4) == "fails"
    assert verdict(1, others=0.8) == "fails"
    assert verdict(1, others=0.3) == "holds"
    assert verdict(2, evaluation=(0.6, 0.6, 0.6)) == "fails"
    assert verdict(2, evaluation=(0.9, 0.9, 0.6)) == "in part"  # readings disagree
    assert verdict(2, ours=0.8, evaluation=(1.0, 0.6, 0.6)) == "in part"  # so they do: above, and below
    assert verdict(2, spread=0.2) == "in part"  # the same means, and nothing that could tell


def test_gains_that_differ_by_seed_or_by_baseline_are_not_clear() -> None:
    opposites = opposite(0.9, 0.9) + opposite(0.45, 0.9)
    others = [row for row in figure2() if (row["method"], row["target_epsilon"]) != ("input", 0.45)]
    gains, none = (compared("input", 0.45, last, 0.09) for last in (0.8, 0.5))
    some = [row for row in gains if row["seed"] in (0, 1)] + [row for row in none if row["seed"] in (2, 3)]
    for rows, verdict in ((none, "holds"), (gains, "in part"), (some, "in part")):
        found = verdicts(FIGURE2, figure2=others + rows, figure2_opposite=opposites)
        assert found["baselines do not improve at epsilon 0.45"] == verdict


def test_the_claim_on_policy_evaluation_gives_every_reading() -> None:
    rows = figure2(evaluation=(0.9, 0.8, 0.6))
    claim = FIGURE2.claims({"figure2": rows, "figure2_opposite": opposite(0.9, 0.9) + opposite(0.45, 0.9)})[2]
    for cells in CELLS:
        assert f"with {cells} cells" in claim.measured
        assert str(late(where(rows, method="evaluation", target_epsilon=0.9, cells=cells))) in claim.measured


def test_a_target_is_broken_only_if_both_scores_are_above_what_is_possible() -> None:
    name, low = "the paper's curve is at its target", opposite(0.9, 0.5) + opposite(0.45, 0.5)
    assert verdicts(FIGURE2, figure2=figure2(ours=1.0), figure2_opposite=low)[name] == "in part"
    above = cap_any_dp(Budget(0.9, 1e-4), 1) + 0.1
    both = {"figure2": figure2(ours=above + 0.1), "figure2_opposite": opposite(0.9, above) + low[len(low) // 2 :]}
    assert verdicts(FIGURE2, **both)[name] == "fails"


def test_the_cap_on_returns_is_attained_by_lucky_episodes_and_is_above_that_of_policies() -> None:
    worst, best, _ = references()
    low, high = ((end - worst) / (best - worst) for end in (0.0, LARGEST_RETURN))
    for budget in (Budget(epsilon, 1e-4) for epsilon in TARGETS):
        cap, more = cap_of_returns(budget), math.exp(budget.epsilon)
        assert cap > cap_any_dp(budget, 1)  # whose scores are in [0, 1]
        # Episodes that are either the worst or the best there is: the chance of the best, here and there.
        here, there = (cap - low) / (high - low), (1 - cap - low) / (high - low)
        assert 0 < there < here < 1
        assert here == pytest.approx(more * there + budget.delta)  # as much as the promise allows, and no more
        assert 1 - there <= more * (1 - here) + budget.delta


def test_the_opposite_reward_is_a_neighbour_with_opposite_scores() -> None:
    worst, best, _ = references()
    assert best_return(opposite_reward) == pytest.approx(25 - worst)
    assert worst_return(opposite_reward) == pytest.approx(25 - best)
    states = np.linspace(0, 1, 101)
    assert np.abs(opposite_reward(states) - (0.5 - opposite_reward(states))).max() <= 0.5


def test_what_was_run_says_what_it_is_worth() -> None:
    rows = comparison.measure_evaluation(0.9, cells=3, steps=200, seeds=2)
    assert len(rows) == 2 * 4
    assert {(row["standing"], row["worth_epsilon"], row["target_epsilon"], row["cells"]) for row in rows} == {
        ("other relation", None, 0.9, 3)
    }
    assert rows == comparison.measure_evaluation(0.9, cells=3, steps=200, seeds=2)
    for quick in (False, True):
        readings = [dict(one.settings) for one in FIGURE2.tasks(quick) if one.measure is comparison.measure_evaluation]
        assert {(one["epsilon"], one["cells"]) for one in readings} == {(e, cells) for e in TARGETS for cells in CELLS}
    assert {type(value) for row in rows for value in row.values()} <= {str, int, float, type(None)}
    assert compared("input", 0.9, 0.5, 0.18)[0].keys() == rows[0].keys()


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [FIGURE1, FIGURE2])
def test_a_quick_look_has_every_table_and_claim(experiment: Experiment) -> None:
    tables = tables_of(carry_out(experiment.tasks(True), Cache(None)))
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
        assert {row["standing"] for row in tables["figure2"] if row["worth_epsilon"]} == {"theorem"}
        assert "figure2_opposite" in tables
