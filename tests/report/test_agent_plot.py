"""Pictures of agents: they show what was released, and say when that is not private."""

from dataclasses import replace

import numpy as np
import pytest

from quietq import Budget, InvalidInput, PrivateFunction, people, privatise
from quietq.released import PrivateNetwork
from quietq.worlds import WALK, find_world, plan_on_grid, walk_reward

pytest.importorskip("matplotlib")

from quietq.cli.report import plot_function

FIFTY, BUDGET = people(50, 0, 0.5, 1), Budget(0.9, 1e-4)


@pytest.fixture(scope="module")
def private() -> PrivateFunction:
    return privatise(walk_reward, BUDGET, relation=FIFTY, noise="path")


@pytest.fixture(scope="module")
def agent(private) -> PrivateNetwork:
    return plan_on_grid(WALK, private, cells=64).as_function()


@pytest.fixture
def titles(monkeypatch):
    from matplotlib.figure import Figure

    seen = []
    show = Figure.suptitle
    monkeypatch.setattr(Figure, "suptitle", lambda self, text, **rest: seen.append(text) or show(self, text, **rest))
    return seen


def check_picture(path):
    from matplotlib.image import imread

    pixels = imread(path)
    height, width = pixels.shape[:2]
    assert 600 < height < 1000 < width < 1600
    assert 0.01 < (pixels[..., :3].min(axis=-1) < 0.9).mean() < 0.6  # neither empty nor a blot
    edge = np.concatenate([pixels[:, :2, :3].ravel(), pixels[:, -2:, :3].ravel()])
    assert (edge == 1).all()  # nothing runs out of the picture


def test_values(agent, tmp_path, titles):
    plot_function(agent, tmp_path / "values.png", title="What the agent released")
    check_picture(tmp_path / "values.png")
    assert titles == ["What the agent released"]
    plot_function(agent, tmp_path / "values.svg", title="Values")
    assert (tmp_path / "values.svg").read_text().lstrip().startswith("<?xml")


def test_what_is_not_certified_is_marked(tmp_path, titles):
    simulated = privatise(walk_reward, BUDGET, relation=FIFTY, noise="path", simulate=1)
    plot_function(plan_on_grid(WALK, simulated, cells=64).as_function(), tmp_path / "values.png", title="Values")
    assert titles == ["NOT PRIVATE: Values"]


def test_refusals(agent, tmp_path):
    with pytest.raises(InvalidInput, match=r"\.png or \.svg"):
        plot_function(agent, tmp_path / "values.pdf")
    assert not list(tmp_path.iterdir())


def test_values_in_two_coordinates_are_maps(agent, tmp_path):
    plane_plan = plan_on_grid(find_world("navigation"), cells=3)
    plot_function(replace(plane_plan, certificate=agent.certificate).as_function(), tmp_path / "values.png")
    assert (tmp_path / "values.png").read_bytes().startswith(b"\x89PNG")
