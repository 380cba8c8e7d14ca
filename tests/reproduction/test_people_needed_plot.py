"""The pictures of the comparison: they are written, and say what the rows say."""

import pytest

from quietq import InvalidInput

pytest.importorskip("matplotlib")
pytest.importorskip("jax")

from reproduction.comparison.picture import plot_needed, plot_people

PAIR = "impossible under both of two opposite rewards"
METHODS = (("reward", "path", (1, 100)), ("input", None, (1, 100)), ("random", None, (None,)))


def tables(worlds):
    scores = [
        {"world": world, "method": method, "noise": noise, "people": people, "draw": draw, "score": 0.5 + 0.1 * draw}
        for world in worlds
        for method, noise, counts in METHODS
        for people in counts
        for draw in range(3)
    ]
    limits = [{"world": world, "people": n, "gaussian": 0.6, "any": 0.7} for world in worlds for n in (1, 100)]
    return {"comparison_scores": scores, "comparison_limits": limits}


@pytest.mark.parametrize("worlds", [("walk",), ("walk", "thermostat", "navigation")])
def test_scores_are_drawn_for_every_world(tmp_path, worlds):
    plot_people(tables(worlds), tmp_path / "scores.svg")
    drawn = (tmp_path / "scores.svg").read_text()
    for words in (*(world.capitalize() for world in worlds), "reward, path", "input", "random actions", PAIR):
        assert f"<!-- {words} -->" in drawn
    assert "<!-- gradient -->" not in drawn
    assert "with the same certified protection: a guesser is right in at most 55.7 of 100 cases" in drawn


def test_people_needed_are_drawn(tmp_path):
    reached = {("reward", "path"): 1.0, ("input", None): 1.0, ("gradient", None): 0.5}
    scores = [
        {"world": "walk", "method": method, "noise": noise, "people": people, "draw": draw, "score": score}
        for (method, noise), last in reached.items()
        for people, score in ((10, 0.8 if last == 1 else 0.4), (1000, last))
        for draw in range(2)
    ]
    found = {"comparison_scores": scores}
    plot_needed(found, tmp_path / "needed.svg")
    drawn = (tmp_path / "needed.svg").read_text()
    for words in ("100", "not with 1,000"):
        assert f"<!-- {words} -->" in drawn
    assert "under both of two opposite rewards" in drawn
    assert "a guesser is right in at most 55.7 of 100 cases" in drawn  # of all methods alike
    assert "<!-- at most" not in drawn
    plot_needed(found, tmp_path / "needed.png")
    assert (tmp_path / "needed.png").read_bytes().startswith(b"\x89PNG")


def test_what_the_smallest_number_tried_does_is_said_to_be_a_bound(tmp_path):
    scores = [
        {"world": "walk", "method": "input", "noise": None, "people": people, "draw": draw, "score": 0.95}
        for people in (40, 100)
        for draw in range(2)
    ]
    plot_needed({"comparison_scores": scores}, tmp_path / "needed.svg")
    assert "<!-- at most 40 -->" in (tmp_path / "needed.svg").read_text()


def test_only_pictures_are_written(tmp_path):
    with pytest.raises(InvalidInput, match="png"):
        plot_needed({}, tmp_path / "needed.txt")
