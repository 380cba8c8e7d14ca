"""Pictures of private rewards: valid files of a sensible size that show no more than the release does."""

import importlib.util
import sys

import numpy as np
import pytest

from quietq import (
    Additive,
    BandLimited,
    Budget,
    Exponential,
    FeatureKernel,
    GaussianProcessMechanism,
    InvalidInput,
    MissingExtra,
    PrivateFunction,
    Product,
    people,
)
from quietq.cli.report import plot_reward
from quietq.cli.report.look import promise
from quietq.mechanisms import privatise

pytest.importorskip("matplotlib")

BUDGET = Budget(0.9, 1e-4)
RELATION = people(50, low=0, high=0.5, slope=1)


def tent(s):
    return 0.5 - np.abs(s - 0.5)


def made(kernel, f, domain=None) -> PrivateFunction:
    return GaussianProcessMechanism(kernel, 0.02, BUDGET, domain=domain, levels=6).apply(f)


REWARDS = {
    "table": lambda: made(Exponential(4.0), tent, (-3, 3)),
    "actions": lambda: privatise(
        lambda s: np.stack([s, tent(s)], axis=-1), BUDGET, noise="path", relation=people(50, 0, 0.5, 1, actions=2)
    ),
    "knots": lambda: privatise(tent, BUDGET, noise="knots", pieces=4, relation=RELATION),
    "pure": lambda: privatise(tent, BUDGET, noise="k-norm", pieces=4, relation=RELATION),
    "band-limited": lambda: made(BandLimited(2.0), tent),
    "features": lambda: made(FeatureKernel(lambda x: np.stack([np.ones_like(x), x], axis=-1), rank=2), [0.1, 0.2]),
    "sum": lambda: made(Additive((Exponential(4.0), Exponential(2.0))), [tent, tent], [(0, 1), (0, 1)]),
}


@pytest.mark.parametrize("name", REWARDS)
def test_png(tmp_path, name):
    from matplotlib.image import imread

    plot_reward(REWARDS[name](), tmp_path / "reward.png")
    data = (tmp_path / "reward.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert 10_000 < len(data) < 500_000
    pixels = imread(tmp_path / "reward.png")
    height, width = pixels.shape[:2]
    assert 600 < height < 1000 < width < 1600
    assert 0.01 < (pixels[..., :3].min(axis=-1) < 0.9).mean() < 0.6  # neither empty nor a blot
    edge = np.concatenate([pixels[:, :2, :3].ravel(), pixels[:, -2:, :3].ravel()])
    assert (edge == 1).all()  # nothing runs out of the picture


def test_svg_says_what_was_promised(tmp_path):
    private = REWARDS["pure"]()
    plot_reward(private, tmp_path / "reward.SVG", title="Ratings")
    assert (tmp_path / "reward.SVG").read_text().lstrip().startswith("<?xml")
    line = promise(private.certificate)
    assert line.startswith(str(private.certificate).splitlines()[0])
    assert line.endswith("It protects each of 50 people.")
    assert "\n" not in line


def test_a_simulation_is_marked(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    titles = []
    monkeypatch.setattr(Figure, "suptitle", lambda self, text, **_: titles.append(text))
    simulated = privatise(tent, BUDGET, relation=RELATION, simulate=1)
    plot_reward(simulated, tmp_path / "reward.png", title="Ratings")
    assert titles == ["NOT PRIVATE: Ratings"]
    assert "no privacy is promised" in promise(simulated.certificate)


def test_refusals(tmp_path):
    with pytest.raises(InvalidInput, match="png or"):
        plot_reward(REWARDS["table"](), tmp_path / "reward.gif")
    plane = made(Product((1.0, 1.0)), lambda s: s[:, 0])
    with pytest.raises(InvalidInput, match="one coordinate"):
        plot_reward(plane, tmp_path / "reward.png")
    assert not list(tmp_path.iterdir())


def test_no_matplotlib_no_plot(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"^Plots need Matplotlib: .*pip install .*\[report\]'$"):
        plot_reward(REWARDS["table"](), tmp_path / "reward.png")


def test_no_global_state(tmp_path):
    before = "matplotlib.pyplot" in sys.modules
    plot_reward(REWARDS["table"](), tmp_path / "reward.png")
    assert ("matplotlib.pyplot" in sys.modules) == before
