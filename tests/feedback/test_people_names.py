"""One person, however spelt and wherever their rows are, counts once."""

import random
import unicodedata

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from people_data import GRID, OK, frame, refused

from quietq.feedback import Ratings, rows as ratings
from quietq.feedback.schema import in_form, in_words

SAME = {
    "text": ["Ann", " ann", "ANN ", "ann", "\tAnn\n", "\uff21nn"],
    "number": ["7", "7.0", " 7", "+7", "007", "7."],
}


@pytest.mark.parametrize("names", SAME.values(), ids=SAME.keys())
def test_spellings_of_one_name_are_one_person(names):
    data = pl.DataFrame({"person": names, "state": [0.1] * len(names), "rating": [1.0] * len(names)})
    assert Ratings.read(data, box=(0, 1), low=0, high=1, slope=1, people=1).not_private["people_present"] == 1


def test_types_of_one_name_are_one_person():
    numbers = [pl.Int64, pl.Int8, pl.UInt64, pl.Decimal(9, 2), pl.String, pl.Categorical]
    parts: list[object] = [
        pl.DataFrame({"person": pl.Series(["7"]).cast(dtype), "state": [0.1 * i], "rating": [1.0]})
        for i, dtype in enumerate(numbers)
    ]
    parts.append(pd.DataFrame({"person": pd.Series([7, 7.0], dtype=object), "state": [0.7, 0.8], "rating": 1.0}))
    parts.append(pd.DataFrame({"person": ["7", 7], "state": [0.7, 0.8], "rating": [1.0, 1.0]}))
    assert Ratings.read(parts, box=(0, 1), low=0, high=1, slope=1, people=1).not_private["people_present"] == 1


def test_numbers_too_large_for_an_integer_stay_apart():
    data = pl.DataFrame({"person": [2**64 - 1, 2**64 - 2], "state": [0.1, 0.2], "rating": [1.0, 1.0]})
    assert data.schema["person"] == pl.UInt64
    assert Ratings.read(data, box=(0, 1), low=0, high=1, slope=1, people=2).not_private["people_present"] == 2


@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_a_person_split_over_chunks_and_files_counts_once(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(ratings, "BATCH", batch)
    rng = np.random.default_rng(1)
    data = pl.DataFrame({"person": rng.integers(0, 5, 60), "state": rng.random(60), "rating": rng.random(60)})
    whole = Ratings.read(data, box=(0, 1), low=0, high=1, slope=1, people=6).functions()[0](GRID)
    files = []
    for i in range(4):
        part = data[i::4]
        path = tmp_path / (f"{i}.csv" if i % 2 else f"{i}.parquet")
        part.write_csv(path) if i % 2 else part.write_parquet(path)
        files.append(path)
    split = Ratings.read(files, box=(0, 1), low=0, high=1, slope=1, people=6)
    np.testing.assert_allclose(split.functions()[0](GRID), whole, atol=1e-12)
    assert split.not_private["people_present"] == 5


def test_more_people_than_declared_are_refused():
    refused(frame({str(i): [(0.5, 0.5)] for i in range(4)}), "more people in the data than the 3")


@pytest.mark.parametrize(
    "names",
    [
        ["1e3", "1000", "1000.0"],
        ["7.5", "7.50", "07.5"],
        ["0" * 30 + "12345678901234567890123", "12345678901234567890123"],
        ["a\u200bnn", "ann", "\ufeffann", "an\u00adn"],
    ],
)
def test_more_spellings_of_one_name(names):
    data = pl.DataFrame({"person": names, "state": [0.1] * len(names), "rating": [1.0] * len(names)})
    assert Ratings.read(data, **OK).not_private["people_present"] == 1


def forms(names):
    return in_words(pl.Series(names, dtype=pl.String)).rows()


def test_what_cannot_be_seen_makes_no_other_person():
    characters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    ignorable = pl.Series(characters).str.contains(r"\p{Default_Ignorable_Code_Point}").to_list()
    dropped = [c for c, yes in zip(characters, ignorable, strict=True) if yes or unicodedata.category(c) == "Cf"]
    known = (
        "\ufe0f\u034f\u3164\u115f\u1160\uffa0\u180b\u200d\u200b\u00ad\u2060\U000e0100"  # the property has all of these
    )
    assert set(known) <= set(dropped)
    assert len(dropped) > 4000
    assert set(forms([f"a{c}b" for c in [*dropped, "\u2800", "\x00", "\x7f"]])) == {(None, "ab")}
    assert set(forms(["e\u0301", "\u00e9", "e\u200d\u0301", "E\u034f\u0301", "\u00c9\ufe0f"])) == {(None, "\u00e9")}
    assert set(forms(["", " ", "\u200b", "\u3164 \u2800"])) == {(None, None)}


@pytest.mark.parametrize(
    "names",
    [
        ["Stra\u00dfe", "STRASSE", "stra\u1e9ee"],
        ["\u039f\u03a3", "\u03bf\u03c2", "\u03bf\u03c3"],  # final sigma
        ["I\u015f\u0131k", "i\u015fik", "I\u015eIK"],  # dotless i
        ["\ufb01n", "FIN", "fin"],
        ["Ann Lee", "ann\tlee", "ANN\u2003 LEE", "ann \u200b lee"],
        ["1e16", "10000000000000000", "1.0E+16"],
    ],
)
def test_cases_and_variants_of_one_name(names):
    assert len(set(forms(names))) == 1


def test_the_form_of_a_form_is_itself_and_unites_what_case_folding_unites():
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    # all that are assigned, and some of those that are not, or are anybody's own
    characters = pl.Series([c for c in every if unicodedata.category(c) not in ("Cn", "Co") or ord(c) % 50 == 0])
    form = in_form(characters)
    assert in_form(form).equals(form)
    folded = [unicodedata.normalize("NFKC", unicodedata.normalize("NFD", c).casefold()) for c in characters]
    assert in_form(pl.Series(folded)).equals(form)
    odd = characters.filter((characters != form) | characters.str.contains(r"[\p{M}\p{Z}\p{Cc}]")).to_list()
    chosen = random.Random(0)
    form = in_form(pl.Series(["".join(chosen.choices(odd, k=chosen.randint(1, 8))) for _ in range(20_000)]))
    assert in_form(form).equals(form)


@settings(max_examples=200)
@given(st.text(max_size=8))
def test_names_are_formed_one_by_one(text):
    alone, among = forms([text]), forms(["x", text, "\u0130", text])
    assert alone[0] == among[1] == among[3]
    number, name = alone[0]
    again = str(number) if name is None else name
    if alone[0] != (None, None):
        assert forms([again]) == alone
