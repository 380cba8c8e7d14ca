"""Pictures of agents: they show what was released, and say when that is not private."""

from dataclasses import replace

import numpy as np
import pytest

from quietq import Budget, InvalidInput, people

pytest.importorskip("matplotlib")
pytest.importorskip("jax")

from quietq.cli.report import plot_outcome, plot_values
from quietq.paper import OutputNoise
from quietq.paper.agents import Agent
from quietq.worlds import find_world, plan_on_grid


@pytest.fixture(scope="module")
def agent() -> Agent:
    method = OutputNoise(relation=people(50, 0, 0.5, 1), budget=Budget(0.9, 1e-4))
    return Agent("walk", method, seed=0).learn(60)


@pytest.fixture
def titles(monkeypatch):
    from matplotlib.figure import Figure

    seen = []
    show = Figure.suptitle
    monkeypatch.setattr(Figure, "suptitle", lambda self, text, **rest: seen.append(text) or show(self, text, **rest))
    return seen


def test_values(agent, tmp_path, titles):
    from matplotlib.image import imread

    plot_values(agent.as_function(), tmp_path / "values.png")
    pixels = imread(tmp_path / "values.png")
    height, width = pixels.shape[:2]
    assert 600 < height < 1000 < width < 1600
    assert 0.01 < (pixels[..., :3].min(axis=-1) < 0.9).mean() < 0.6  # neither empty nor a blot
    edge = np.concatenate([pixels[:, :2, :3].ravel(), pixels[:, -2:, :3].ravel()])
    assert (edge == 1).all()  # nothing runs out of the picture
    assert titles == ["What the agent released"]
    plot_values(agent.as_function(), tmp_path / "values.svg", actions=("left", "right"), title="Values")
    assert (tmp_path / "values.svg").read_text().lstrip().startswith("<?xml")


def test_what_is_not_certified_is_marked(agent, tmp_path, titles):
    simulated = Agent("walk", agent.method, seed=0).learn(60, simulate=1)
    plot_values(simulated.as_function(), tmp_path / "values.png", title="Values")
    assert titles == ["NOT PRIVATE: Values"]


def test_outcomes_are_always_marked(tmp_path, titles):
    states = np.linspace(0, 1, 101)
    policies = {"one": (states < 0.5).astype(int), "two": (states < 0.01).astype(int)}
    plot_outcome(
        tmp_path / "outcome.png", states=states, true=np.abs, private=np.abs, policies=policies,
        actions=("left", "right"), title="how well",
    )  # fmt: skip
    assert titles == ["NOT PRIVATE: how well"]


def test_refusals(agent, tmp_path):
    with pytest.raises(InvalidInput, match=r"\.png or \.svg"):
        plot_values(agent.as_function(), tmp_path / "values.pdf")
    plane = plan_on_grid(find_world("navigation"), cells=3)
    with pytest.raises(InvalidInput, match="one coordinate"):
        plot_values(replace(plane, certificate=agent.certificate).as_function(), tmp_path / "values.png")
    assert not list(tmp_path.iterdir())
