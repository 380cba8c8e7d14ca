"""The picture of the extensions: all six panels, from many rows or from few."""

import numpy as np
import pytest

from quietq import InvalidInput

pytest.importorskip("matplotlib")
pytest.importorskip("jax")

from reproduction.extensions import rows as form
from reproduction.extensions.picture import plot_extensions


def made_up(people: tuple[int, ...], gradient_scores: bool):
    """Rows of the form that the experiment has; the numbers mean nothing."""
    rng = np.random.default_rng(0)
    rows = [
        form.row(extension, setting, "score", rng.random(), people=number, draw=draw)
        for extension, setting in (
            (form.ACTOR_CRITIC, "deep Q-learning on private rewards"),
            (form.REPLAY, "on a private reward, the last 128 steps"),
            (form.EXPLORATION, "5% random actions"),
            (form.DIMENSIONS, "additive kernel, navigation, planned"),
            (form.DIMENSIONS, "additive kernel, navigation, trained"),
        )
        for number in people
        for draw in range(2)
    ]
    for every, uses, noise in ((100, 16, 22), (25, 64, 44)):
        setting = f"gradient, a step every {every}"
        rows.append(form.row(form.REPLAY, setting, "uses of a reward", uses))
        rows.append(form.row(form.REPLAY, setting, "noise multiplier", noise))
        if gradient_scores:
            rows.append(form.row(form.REPLAY, setting, "score", 0.9, people=50, draw=0))
    for at in (8, 32, 128):
        rows.append(form.row(form.DIMENSIONS, "product kernel, ReLU unit", "norm on a grid", at**0.5, at=at))
        rows.append(form.row(form.QUERIES, "additive kernel", "seconds", 1e-6 * at, at=at))
        rows.append(form.row(form.QUERIES, "kernel without structure", "seconds", 1e-6 * at**2.7, at=at))
        rows.append(form.row(form.BAND_LIMITED, "W = 5", "release", 0.2, people=people[-1], at=at / 128))
    return [*rows, form.row(form.QUERIES, "additive kernel", "power of the number of queries", 1.0)]


@pytest.mark.parametrize(("people", "gradient_scores"), [((50, 100), True), ((100,), False)])
def test_the_picture(tmp_path, people, gradient_scores):
    from matplotlib.image import imread

    rows = made_up(people, gradient_scores)
    plot_extensions(rows, tmp_path / "extensions.png")
    pixels = imread(tmp_path / "extensions.png")
    assert pixels.shape[0] > 1000
    assert 0.01 < (pixels[..., :3].min(axis=-1) < 0.9).mean() < 0.6  # neither empty nor a blot
    edge = np.concatenate([pixels[:, :2, :3].ravel(), pixels[:, -2:, :3].ravel()])
    assert (edge == 1).all()  # nothing runs out of the picture


def test_other_files_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"\.png or \.svg"):
        plot_extensions(made_up((100,), True), tmp_path / "extensions.jpg")
