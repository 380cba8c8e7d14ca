"""Pictures of private rewards: valid files of a sensible size that show no more than the release does."""

import importlib.util
import sys
import types
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from quietq import Budget, Exponential, GaussianProcessMechanism, InvalidInput, MissingExtra, PrivateFunction, people
from quietq.cli.report import plot_function
from quietq.cli.report.pictures import promise
from quietq.mechanisms import privatise
from quietq.noise import Box
from quietq.paper import BandLimited, FiniteRankMechanism
from quietq.privacy import Certificate
from quietq.released import PrivateTable
from quietq.released.publishable import Labels

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
    "map": lambda: made(Exponential((1.0, 1.0)), lambda s: tent(s[:, 0]) * s[:, 1], [(0, 1), (-2, 2)]),
    "two maps": lambda: PrivateTable(
        np.linspace(0, 1, 50).reshape(5, 5, 2), 2, Box((0.0, 0.0), (1.0, 1.0)), REWARDS["table"]().certificate
    ),
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

    plot_function(REWARDS[name](), tmp_path / "reward.png")
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
    plot_function(private, tmp_path / "reward.SVG", title="Ratings")
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
    plot_function(simulated, tmp_path / "reward.png", title="Ratings")
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
    plot_function(replace(interaction(2, None), labels=Labels(("fare", "time"))), tmp_path / "reward.png")
    assert {"fare", "time", "reward, in log-odds"} <= {*words}
    plot_function(replace(REWARDS["two maps"](), labels=Labels(actions=("stay", "go"))), tmp_path / "reward.png")
    assert {"stay", "go"} <= {*words}


def test_a_band_is_that_of_values_and_not_of_weights(tmp_path, words):
    for name, banded in (("table", True), ("knots", True), ("weights", False)):
        words.clear()
        plot_function(REWARDS[name](), tmp_path / "reward.png")
        assert any(word.startswith("± 2 σ of the noise") for word in words) == banded


def test_refusals(tmp_path):
    with pytest.raises(InvalidInput, match="png or"):
        plot_function(REWARDS["table"](), tmp_path / "reward.gif")
    with pytest.raises(InvalidInput, match="one or two coordinates, and this one is of 3"):
        plot_function(interaction(3), tmp_path / "reward.png")
    plain = interaction(1)
    with pytest.raises(InvalidInput, match="this one is of items: `quietq serve` lists them"):
        plot_function(Catalogue(plain.box, plain.certificate), tmp_path / "reward.png")
    assert not list(tmp_path.iterdir())


def test_no_matplotlib_no_plot(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"^Plots need Matplotlib: .*pip install .*\[report\]'$"):
        plot_function(REWARDS["table"](), tmp_path / "reward.png")


def test_no_global_state(tmp_path):
    before = "matplotlib.pyplot" in sys.modules
    plot_function(REWARDS["table"](), tmp_path / "reward.png")
    assert ("matplotlib.pyplot" in sys.modules) == before
