"""Pictures of private rewards: valid files of a sensible size that show no more than the release does."""

import importlib.util
import sys
import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from quietq import (
    Additive,
    Budget,
    Exponential,
    GaussianProcessMechanism,
    InvalidInput,
    MissingExtra,
    PrivateFunction,
    Product,
    people,
)
from quietq.cli.report import plot_reward
from quietq.cli.report.look import promise
from quietq.cli.report.pictures import dependence
from quietq.mechanisms import privatise
from quietq.noise import Box
from quietq.paper import BandLimited, FiniteRankMechanism
from quietq.privacy import Certificate
from quietq.released import PrivateTable

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
    "weights": lambda: FiniteRankMechanism(BandLimited(2.0), 0.02, BUDGET).apply(tent),
    "sum": lambda: made(Additive((Exponential(4.0), Exponential(2.0))), [tent, tent], [(0, 1), (0, 1)]),
    "map": lambda: made(Product((1.0, 1.0)), lambda s: tent(s[:, 0]) * s[:, 1], [(0, 1), (-2, 2)]),
    "two maps": lambda: PrivateTable(
        np.linspace(0, 1, 50).reshape(5, 5, 2), 2, Box((0.0, 0.0), (1.0, 1.0)), REWARDS["table"]().certificate
    ),
    "dependence": lambda: interaction(3),
    "many": lambda: interaction(8),
}


@dataclass(frozen=True)
class Interaction(PrivateFunction):
    """A product of the first two coordinates, which no mean over either shows."""

    box: Box
    certificate: Certificate
    low: float | None = 0.0

    def __call__(self, states: Any):
        return 0.5 + 2 * (states[..., 0] - 0.5) * (states[..., 1] - 0.5)


@dataclass(frozen=True)
class Catalogue(Interaction):
    """Items, which are no numbers."""

    @property
    def feature_map(self):
        return types.SimpleNamespace(items=("tea", "cake"))


def interaction(dimension: int, low: float | None = 0.0) -> Interaction:
    return Interaction(Box((0.0,) * dimension, (1.0,) * dimension), REWARDS["table"]().certificate, low)


@pytest.mark.parametrize("name", REWARDS)
def test_png(tmp_path, name):
    from matplotlib.image import imread

    plot_reward(REWARDS[name](), tmp_path / "reward.png")
    data = (tmp_path / "reward.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert 10_000 < len(data) < 500_000
    pixels = imread(tmp_path / "reward.png")
    height, width = pixels.shape[:2]
    assert 600 < height < 1200 <= width < 1900
    assert 0.01 < (pixels[..., :3].min(axis=-1) < 0.9).mean() < (0.9 if "map" in name else 0.6)  # no void, no blot
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


@pytest.fixture
def words(monkeypatch):
    """All that is written on pictures, which are not drawn."""
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    found = []

    def read(self, file, **_):
        found.extend(text.get_text() for text in self.findobj(Text))

    monkeypatch.setattr(Figure, "savefig", read)
    return found


def test_coordinates_have_names_and_shapes_are_said(tmp_path, words):
    plot_reward(REWARDS["sum"](), tmp_path / "reward.png", names=["warmth", "noise"])
    assert {"warmth", "noise", "Private reward (additive: one function of each coordinate, no interactions)"} <= {
        *words
    }
    plot_reward(interaction(3), tmp_path / "reward.png", names=["warmth", "noise", "price"])
    assert {"price", "Private reward: partial dependence on each coordinate"} <= {*words}
    assert "mean over the other coordinates, uniform in the box" in words
    plot_reward(interaction(2, None), tmp_path / "reward.png", names=["fare", "time"])
    assert {"fare", "time", "reward, in log-odds"} <= {*words}
    plot_reward(REWARDS["two maps"](), tmp_path / "reward.png", actions=["stay", "go"])
    assert {"stay", "go"} <= {*words}


def test_a_band_is_that_of_values_and_not_of_weights(tmp_path, words):
    for name, banded in (("table", True), ("knots", True), ("weights", False)):
        words.clear()
        plot_reward(REWARDS[name](), tmp_path / "reward.png")
        assert any(word.startswith("± 2 σ of the noise") for word in words) == banded


def test_partial_dependence_is_the_mean_and_the_band_shows_what_it_hides():
    states, values = dependence(interaction(3), 0)
    assert (states[0], states[-1], values.shape) == (0.0, 1.0, (33, 512, 1))
    assert np.allclose(values.mean(axis=(1, 2)), 0.5, atol=2e-3)  # flat, whatever the product does
    assert np.ptp(np.quantile(values[0], [0.1, 0.9])) > 0.4


def test_refusals(tmp_path):
    with pytest.raises(InvalidInput, match="png or"):
        plot_reward(REWARDS["table"](), tmp_path / "reward.gif")
    with pytest.raises(InvalidInput, match="one for each of 3 coordinates, not 1"):
        plot_reward(interaction(3), tmp_path / "reward.png", names=["warmth"])
    with pytest.raises(InvalidInput, match="room for 64 coordinates, and this reward has 65"):
        plot_reward(interaction(65), tmp_path / "reward.png")
    plain = interaction(1)
    with pytest.raises(InvalidInput, match="this one is of items: `quietq serve` lists them"):
        plot_reward(Catalogue(plain.box, plain.certificate), tmp_path / "reward.png")
    assert not list(tmp_path.iterdir())


def test_no_matplotlib_no_plot(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"^Plots need Matplotlib: .*pip install .*\[report\]'$"):
        plot_reward(REWARDS["table"](), tmp_path / "reward.png")


def test_no_global_state(tmp_path):
    before = "matplotlib.pyplot" in sys.modules
    plot_reward(REWARDS["table"](), tmp_path / "reward.png")
    assert ("matplotlib.pyplot" in sys.modules) == before
