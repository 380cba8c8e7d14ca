"""`quietq clone`, in this process: sessions in, a private policy out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skilled_people import logged

import quietq as qq
from quietq.released.private_network import PrivatePolicy

SESSIONS = "rows.parquet --people 60 --person who --episode visit --step step --state x --box -1 1"
LISTED = f"{SESSIONS} --action push --actions left --actions right --low 0 --high 1"
PROMISE = "--epsilon 60 --delta 1e-5"
pytestmark = pytest.mark.filterwarnings("ignore:.*a clone is good by luck alone.*:UserWarning")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    logged(60).write_parquet(tmp_path / "rows.parquet")
    return tmp_path


def test_a_private_policy_in_a_file(quietq: Any, rows: Path) -> None:
    code, out, err = quietq(f"clone {LISTED} --returns 0 12 {PROMISE} --out policy.qq --json")
    assert code == 0, err
    found = json.loads(out)
    policy = qq.load(rows / "policy.qq")
    assert isinstance(policy, PrivatePolicy)
    assert found["certificate"] == policy.certificate.to_dict()
    assert (found["threshold"], found["out"]) == (policy.threshold, "policy.qq")
    assert found["not_private"]["people_present"] == 60
    assert policy.labels.actions == ("left", "right")
    assert policy.predict(np.array([[0.2], [0.9]]))[0].shape == (2,)


def test_words_for_people_and_actions_that_are_numbers(quietq: Any, rows: Path) -> None:
    acting = f"{SESSIONS} --action force --action-box -2 2 --low 0 --high 1"
    code, out, err = quietq(f"clone {acting} --best 1 {PROMISE} --out policy.qq")
    assert code == 0, err
    for words in (
        "This policy imitates people: states x [-1, 1]; actions force [-2, 2].",
        "policy/clone: is certified to be (60, 1e-05)-differentially private",
        "- enforced: The distribution of states and a policy that imitates people are released with noise, and no row.",
        "May be published: policy.qq",
        "Not private, for you only: used rows",
    ):
        assert words in out


def test_a_look_at_the_rows_spends_nothing(quietq: Any, rows: Path) -> None:
    code, out, _ = quietq(f"clone {LISTED} --check")
    assert (code, "Nothing was spent" in out, (rows / "policy.qq").exists()) == (0, True, False)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (f"clone {LISTED} --returns 0 12", "A private policy needs --epsilon, --delta and --out."),
        (f"clone {LISTED} {PROMISE} --out policy.qq", "returns must be a range, low below high, not None"),
        (f"clone {LISTED} --returns 3 1 {PROMISE} --out policy.qq", "returns must be a range, low below high"),
        (f"clone {LISTED} --returns 0 12 --best 2 {PROMISE} --out policy.qq", "best must be a share of the people"),
        (f"clone {LISTED} --returns 0 12 --epsilon 1 --delta 0 --out policy.qq", "delta must be above 0"),
        (f"clone {LISTED} --returns 0 12 {PROMISE} --out rows.parquet", "must be different files"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(quietq: Any, rows: Path, words: str, sentence: str) -> None:
    code, _, err = quietq(words)
    assert (code, sentence in err) == (2, True), err
    assert not (rows / "policy.qq").exists()
