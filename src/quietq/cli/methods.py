"""`quietq methods`."""

import json
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from quietq.cli.app import AsJson, app


class About(NamedTuple):
    """A method in a line; here and not in the methods' own files, because those need JAX, which is slow to load."""

    standing: str
    noise: str
    """Where the noise enters."""
    summary: str


ABOUT = {
    "none": About("none", "nowhere", "Deep Q-learning on the true reward, to compare with."),
    "published": About("claimed", "values, as they act and learn", "The paper's algorithm; its proof does not hold."),
    "reward": About("certified", "the reward function, once, before training", "Deep Q-learning on a private reward."),
    "actor-critic": About(
        "certified", "the reward function, once, before training", "A policy and a critic on a private reward."
    ),
    "value": About("certified", "mean rewards by knot, every round", "The paper's idea repaired, on a grid of knots."),
    "value-network": About(
        "certified", "the reward part of each gradient, every round", "The paper's idea repaired, for any network."
    ),
    "gradient": About("certified", "clipped gradients, every step", "Deep Q-learning with noised gradients (DP-SGD)."),
    "input": About("certified", "each observed reward", "Values from averages of noised rewards."),
    "output": About("certified", "the solved values, once, at the end", "Values without noise, noised as a whole."),
    "evaluation": About(
        "certified", "the value function of a policy, once", "From people's trajectories; from Python only."
    ),
}


@app.command()
def methods(as_json: AsJson = False) -> None:
    """The methods that can be trained with, what they promise and where their noise enters."""
    if as_json:
        print(json.dumps({"methods": [{"name": name, **about._asdict()} for name, about in ABOUT.items()]}))
        return
    table = Table(title="Methods")
    for heading in ("name", "standing", "where the noise enters"):
        table.add_column(heading, no_wrap=True)
    for name, about in ABOUT.items():
        table.add_row(name, about.standing, about.noise)
    Console().print(table)
    print("certified: a theorem covers what is released. claimed: the paper's theorem, which does not hold.")
    for name, about in ABOUT.items():
        print(f"{name}: {about.summary}")
