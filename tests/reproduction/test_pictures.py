"""Pictures: every line, its promise, the reference lines and the limits are there."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jax")

from quietq import InvalidInput
from reproduction.comparison import draw
from reproduction.experiment import Row
from reproduction.figures.curves import rows_of
from reproduction.picture import plot_comparison, plot_noise_levels

PAIR = "impossible under both of two opposite rewards"


def curve(height: float, columns: Row) -> list[Row]:
    """Four seeds of twenty episodes, at some height and rough."""
    rng = np.random.default_rng(0)
    return rows_of((height + rng.normal(size=(4, 20))).tolist(), columns)


def figure1() -> list[Row]:
    rows: list[Row] = []
    for preset, every in (("code", "each episode"), ("text", "each round")):
        rows += curve(19.0, {"preset": preset, "sigma": 0.0, "noise": "none"})
        for noise in (every, "10 paths", "one path"):
            for sigma in (0.2, 0.4):
                rows += curve(9.0 + sigma, {"preset": preset, "sigma": sigma, "noise": noise})
    return rows


def figure2() -> list[Row]:
    columns = ("method", "target_epsilon", "delta", "standing", "worth_epsilon", "cells")
    rows = curve(20.0, dict(zip(columns, ("no noise", None, None, "none", None, None), strict=True)))
    for epsilon in (0.9, 0.45):
        for height, *values in (
            (17.0, "published", epsilon, 1e-4, "claimed", None, None),
            (3.0, "input", epsilon, 1e-4, "theorem", epsilon / 5, None),
            (5.0, "gradient", epsilon, 1e-4, "theorem", 1.5 * epsilon, None),
            (18.0, "evaluation", epsilon, 1e-4, "other relation", None, 2),
            (15.0, "evaluation", epsilon, 1e-4, "other relation", None, 3),
            (12.0, "evaluation", epsilon, 1e-4, "other relation", None, 4),
        ):
            rows += curve(height, dict(zip(columns, values, strict=True)))
    return rows


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved."""
    from matplotlib.figure import Figure

    seen, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **rest: seen.append(self) or save(self, *args, **rest))
    return seen


def looks_right(path: Path) -> None:
    from matplotlib.image import imread

    pixels = imread(path)
    assert 0.01 < (pixels[..., :3].min(axis=-1) < 0.9).mean() < 0.6  # neither empty nor a blot
    edge = np.concatenate([pixels[:, :2, :3].ravel(), pixels[:, -2:, :3].ravel()])
    assert (edge == 1).all()  # nothing runs out of the picture


def test_figure_1_has_a_panel_for_each_algorithm_and_number_of_draws(tmp_path, drawn):
    plot_noise_levels(figure1(), tmp_path / "one.png")
    looks_right(tmp_path / "one.png")
    (figure,) = drawn
    assert len(figure.axes) == 6
    for panel in figure.axes:
        assert len(panel.lines) == 3 + 2  # noise levels with none, and the best and random returns
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {
        "no noise",
        "sigma 0.2",
        "sigma 0.4",
        "best policy, 20.7",
        "random actions, 10.9",
    }
    styles = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in figure.axes[0].lines[2:]}
    assert len({style[1:] for style in styles}) == 3  # told apart without colour


def test_what_was_not_run_is_said(tmp_path, drawn):
    rows = [row for row in figure1() if row["noise"] != "10 paths"]
    rows = [row for row in rows if not (row["preset"] == "text" and row["noise"] == "one path")]
    plot_noise_levels(rows, tmp_path / "one.png")
    looks_right(tmp_path / "one.png")
    assert len(drawn[0].axes) == 4
    assert "not run" in drawn[0].axes[3].get_title()


def test_lines_are_means_and_not_smoothed(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    rows, drawn = figure1(), []
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **rest: drawn.append(self))
    plot_noise_levels(rows, tmp_path / "one.png")
    chosen = [r for r in rows if r["preset"] == "code" and r["sigma"] == 0.2 and r["noise"] == "one path"]
    line = next(line for line in drawn[0].axes[2].lines if line.get_label() == "sigma 0.2")
    for samples, value in zip(line.get_xdata(), line.get_ydata(), strict=True):
        assert value == pytest.approx(np.mean([float(r["return"] or 0) for r in chosen if r["samples"] == samples]))


def test_figure_2_says_what_each_curve_promises(tmp_path, drawn):
    plot_comparison(figure2(), tmp_path / "two.png")
    looks_right(tmp_path / "two.png")
    (figure,) = drawn
    assert [panel.get_title() for panel in figure.axes] == [
        "Target: epsilon 0.9, delta 0.0001",
        "Target: epsilon 0.45, delta 0.0001",
    ]
    for panel, epsilon in zip(figure.axes, (0.9, 0.45), strict=True):
        words = " ".join(text.get_text() for text in panel.get_legend().get_texts())
        for part in ("claimed", f"worth epsilon {epsilon / 5:.2f}", f"worth epsilon {1.5 * epsilon:.2f}", "one step"):
            assert part in words
        assert words.count("Policy evaluation, 2, 3 or 4 cells") == words.count("theorem, worth") / 2 == 1
        assert "certified" not in words  # they are simulations
        assert "refuted" not in words  # which no row here says
        assert [line.get_marker() for line in panel.lines][-3:] == ["$2$", "$3$", "$4$"]
        assert len(panel.lines) == 7 + 2


def test_other_files_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"\.png or \.svg"):
        plot_comparison(figure2(), tmp_path / "two.pdf")


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
    draw(tables(worlds), tmp_path / "scores.svg")
    drawn = (tmp_path / "scores.svg").read_text()
    for words in (*(world.capitalize() for world in worlds), "reward, path", "input", "random actions", PAIR):
        assert f"<!-- {words} -->" in drawn
    assert "<!-- gradient -->" not in drawn
    assert "with the same certified protection: a guesser is right in at most 55.7 of 100 cases" in drawn
