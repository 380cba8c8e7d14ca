"""A new kind of feedback is a file (`head_count.py`) and an entry of a table: all that the library knows of it."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from head_count import Answers, Leaning, NoisyMean
from hypothesis import given, settings, strategies as st

from quietq import Accountant, Budget, BudgetExhausted, InvalidInput, privatise
from quietq.audit.worst_rows import worst_rows
from quietq.feedback import FEEDBACK
from quietq.feedback.schema import Category
from quietq.mechanisms.candidates import MECHANISMS

BUDGET = Budget(0.9, 1e-4)
ANSWERS = pl.DataFrame(
    {
        "person": ["ann", "ann", "ANN ", "bob", "cyd", "cyd", "cyd", "dan", ""],
        "answer": ["Yes", " yes", "YES", "no", "yes", "no", "No ", "maybe", "yes"],
    }
)
MEAN = (1 - 1 - 1 / 3) / 5  # of five people, of whom dan said nothing that counts and one is not there

HONEST = Answers.read(ANSWERS, people=5)


@pytest.fixture(autouse=True)
def the_lines(monkeypatch):
    monkeypatch.setitem(FEEDBACK, "answers", Answers)
    monkeypatch.setitem(MECHANISMS, "mean", NoisyMean)


def sources(folder):
    ANSWERS.write_csv(folder / "answers.csv")
    ANSWERS.write_parquet(folder / "answers.parquet")
    yield from (ANSWERS, ANSWERS.to_pandas(), folder / "answers.csv", folder / "answers.parquet")
    yield [ANSWERS[:4], ANSWERS[4:6].cast({"answer": pl.Categorical}), ANSWERS[6:].to_pandas()]


def test_it_is_read_from_wherever_rows_lie(tmp_path):
    for source in sources(tmp_path):
        answers = Answers.read(source, people=5)
        assert answers.mean(Leaning())[0] == pytest.approx(MEAN)
        assert answers.not_private["people_present"] == 3
    counts = Answers.read(ANSWERS, people=5).not_private
    assert (counts["rows"], counts["bad_answer"], counts["without_person"], counts["used_rows"]) == (9, 1, 1, 7)


def test_categories_may_be_numbers_or_truth_values():
    codes = Category("answer", "answer", ("0", "1"))
    for cells in (pl.Series([1.0, 0.0, None, np.nan]), pl.Series(["1", " 0.0", "2", ""]), pl.Series([1, 0, 7, -1])):
        assert codes.read(cells)[0].to_list() == [1, 0, None, None]
    assert Category("answer", "answer", ("false", "true")).read(pl.Series([True, False]))[0].to_list() == [1, 0]


def test_it_is_audited_like_the_others():
    """By rows that its schema proposes: somebody who always says yes, and always no."""
    move = worst_rows(partial(Answers.read, people=5), ANSWERS, BUDGET, tries=4).movement
    assert not move.exceeds
    assert move.share == pytest.approx(1, rel=1e-5)


def test_refusals_are_in_its_own_words():
    for source, message in (
        (7, "answers must be a data frame or a file, not int"),
        ([], "no file or data frame to read answers from"),
        (ANSWERS.drop("answer"), "There is no column 'answer'"),
        (
            ANSWERS.with_columns(answer=pl.Series([b"yes"] * 9)),
            "'answer' must hold categories such as 'no' and 'yes', as text",
        ),
        (pd.DataFrame({"person": ["a"], "answer": pd.to_datetime(["2020-01-01"])}), "must hold text or numbers, not"),
        (pl.DataFrame({"person": range(6), "answer": ["yes"] * 6}), "more people in the data than the 5"),
    ):
        with pytest.raises(InvalidInput, match=message):
            Answers.read(source, people=5)
    with pytest.raises(InvalidInput, match="differ by more than their spelling"):
        Category("answer", "answer", ("no", "NO "))


@settings(max_examples=50)
@given(st.lists(st.text(max_size=3) | st.sampled_from(["yes", "no", "YES"]), min_size=1, max_size=20))
def test_one_person_moves_the_mean_by_no_more_than_stated(said):
    rest = ANSWERS.filter(pl.col("person") != "bob")
    bob = pl.DataFrame({"person": ["bob"] * len(said), "answer": said})
    one = Answers.read([rest, bob], people=5)
    assert abs(one.mean(Leaning())[0] - HONEST.mean(Leaning())[0]) <= Leaning().diameter / 5


def test_it_is_released_once_and_certified():
    read: Any = FEEDBACK["answers"].read
    answers = read(ANSWERS, people=5)
    released = privatise(answers, BUDGET)
    certificate = released.certificate
    assert (certificate.standing, certificate.method, certificate.mu) == ("certified", "reward/mean", BUDGET.mu)
    assert "All rows of one person count together as one of 5 declared people" in str(certificate)
    assert abs(released.value - MEAN) < 10 * certificate.sigma
    with pytest.raises(BudgetExhausted, match="released already"):
        privatise(answers, BUDGET)
    account = Accountant(BUDGET)
    assert privatise(Answers.read(ANSWERS, people=5), BUDGET, account=account).receipt is not None
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)


def test_mechanisms_for_other_feedback_do_not_apply():
    with pytest.raises(InvalidInput, match="noise must be 'auto' or one of 'mean', not 'path'"):
        privatise(Answers.read(ANSWERS, people=5), BUDGET, noise="path")
    with pytest.raises(InvalidInput, match="Answers bring their own relation"):
        privatise(Answers.read(ANSWERS, people=5), BUDGET, domain=(0, 1))


def test_rows_that_are_kept_can_be_asked_again_and_again():
    once, often = (Answers.read(ANSWERS, people=5, keep=keep) for keep in (False, True))
    assert np.array_equal(once.mean(Leaning()), often.mean(Leaning()))
    assert often.mean(Leaning(power=2))[0] == pytest.approx((1 + 1 + 1 / 9) / 5)
    assert once.not_private == often.not_private
    with pytest.raises(InvalidInput, match="rows were not kept"):
        once.mean(Leaning(power=2))


def test_what_is_not_finite_or_too_long_is_held_to_the_bound():
    class Wild(Leaning):
        def of_people(self, starts, columns):
            return np.array([[np.nan], [1e150], [-np.inf]])

    assert Answers.read(ANSWERS, people=5, keep=True).mean(Wild())[0] == 1 / 5
