"""`quietq plan`, in this process."""

import json

import pytest

PLAN = "plan ratings --people 200 --rows 5 --dimension 2 --epsilon 1 --draws 1 --useful 0.7"


def test_as_json_and_in_words(quietq, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, err = quietq(f"{PLAN} --json --plot expected.png")
    assert (code, err.splitlines()[0][:16]) == (0, "This takes about")
    assert (tmp_path / "expected.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(out)
    assert (found["kind"], found["people"], found["rows"], found["dimension"]) == ("ratings", 200, 5, 2)
    assert (found["epsilon"], found["delta"]) == (1.0, 1e-5)
    one = next(one for one in found["estimators"] if one["noise"] == "rounds")
    assert 0.5 < one["correlation"] <= 1
    assert one["needed"] < 400
    assert one["spread"] == 0.0
    code, out, _ = quietq(PLAN)
    assert code == 0
    assert "200 people with 5 ratings each, 2 dimensions, (1, 1e-05)-DP" in out
    assert f"about {one['needed']} people" in out
    assert "nothing was" in out


def test_choices_among_items(quietq):
    code, out, err = quietq("plan comparisons --people 100 --rows 5 --items 6 --options 3 --epsilon 2 --quick --json")
    assert (code, len(err.splitlines())) == (0, 1)
    found = json.loads(out)
    assert len(found["estimators"][0]["correlations"]) == 2
    assert (found["kind"], found["items"], found["options"], found["actions"]) == ("comparisons", 6, 3, 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("--kind comparisons", "--kind"),
        ("--people 0", "people must be a whole number of at least 2, not 0"),
        ("--epsilon -1", "epsilon must be"),
        ("--delta 0", "delta must be above 0"),
        ("--draws many", "'many'"),
    ],
)
def test_mistakes_are_one_sentence(quietq, change, words):
    code, out, err = quietq(f"{PLAN} {change}")
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert words in err
