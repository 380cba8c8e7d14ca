"""One release of each kind: worlds, a policy, a catalogue, evaluated policies, and a reward of five coordinates."""

from pathlib import Path

import numpy as np
import polars as pl

from quietq import Budget, Ratings, Sessions, evaluate_policies, privatise
from quietq.privacy import Code
from quietq.publishing import publish
from quietq.released.private_network import PrivatePolicy
from quietq.released.private_world import PrivateWorld

BUDGET = Budget(4.0, 1e-5)
STATES = ("place", "speed", "lean & <b>turn</b>", "0")  # as columns are called; a bare number is told with its place
PUSHES = ("left", "<i>right</i>")
ITEMS = ("apple", "banana", "cherry & <b>cream</b>", *(f"item {i}" for i in range(57)))
SIDES = [(-2.0, 2.0), (-3.0, 3.0), (-1.0, 1.0), (-2.0, 2.0)]
MOVE = np.eye(4) + 0.1 * np.eye(4, k=1) - 0.05 * np.eye(4, k=-1)


def cart(people: int = 80, steps: int = 6, numbers: bool = False) -> PrivateWorld:
    """A world of four coordinates, from sessions of people who are made up and keep near the middle."""
    rng, rows = np.random.default_rng(3), []
    for person in range(people):
        state = 0.05 * rng.normal(size=4)
        for step in range(steps):
            action = rng.uniform(-1, 1) if numbers else int(rng.integers(2))
            push = action if numbers else 2 * action - 1
            after = MOVE @ state + [0, 0.02 * push, 0, -0.02 * push] + 0.005 * rng.normal(size=4)
            rows.append((person, step, *state, *after, action if numbers else PUSHES[int(action)], 0.5 + after[0], 0))
            state = after
    befores, afters = list(STATES), [f"n{i}" for i in range(4)]
    frame = pl.DataFrame(rows, schema=["who", "step", *befores, *afters, "act", "reward", "end"], orient="row")
    acting: dict = {"action": ["act"], "actions": [(-1, 1)]} if numbers else {"action": "act", "actions": PUSHES}
    sessions = Sessions.read(
        frame, person="who", step="step", state=befores, next_state=afters, reward="reward", low=0, high=1, end="end",
        box=SIDES, people=people, **acting,
    )  # fmt: skip
    return privatise(sessions, BUDGET)


def driver(world: PrivateWorld) -> PrivatePolicy:
    """A policy of four coordinates and two actions, weights out of the air, under the world's certificate."""
    certificate = world.certificate.with_assumption(Code.TRAINED())
    generator = np.random.default_rng(7)
    weights = (generator.normal(size=(8, 4)), generator.normal(size=(2, 8)))
    biases = (np.zeros(8), np.zeros(2))
    return PrivatePolicy("tanh", "log-probabilities", weights, biases, world.box, certificate).issued()


def catalogue():
    rng, people = np.random.default_rng(4), 300
    place = rng.integers(len(ITEMS), size=4 * people)
    rows = pl.DataFrame({
        "person": np.repeat(np.arange(people), 4), "state": [ITEMS[i] for i in place], "rating": place / len(ITEMS),
    })  # fmt: skip
    return privatise(Ratings.read(rows, box=ITEMS, low=0, high=1, people=people), BUDGET)


def five():
    rng, people = np.random.default_rng(5), 300
    x, names = rng.random((2 * people, 5)), [f"x{i}" for i in range(5)]
    rows = {"person": np.repeat(np.arange(people), 2), "rating": x.mean(axis=1), **dict(zip(names, x.T, strict=True))}
    return privatise(
        Ratings.read(pl.DataFrame(rows), state=names, box=[(0, 1)] * 5, low=0, high=1, people=people), BUDGET
    )


def evaluated():
    rng, people = np.random.default_rng(6), 300
    high = rng.random(people) < 0.5
    rows = pl.DataFrame({
        "who": np.arange(people), "visit": 0, "ill": rng.random(people), "dose": np.where(high, "high", "low"),
        "well": rng.random(people),
    })  # fmt: skip
    sessions = Sessions.read(
        rows, person="who", episode="visit", state="ill", box=(0, 1), next_state=[], action="dose",
        actions=["low", "high"], reward="well", low=0, high=1, people=people,
    )  # fmt: skip
    coin = lambda states: np.full((len(states), 2), 0.5)  # noqa: E731
    return evaluate_policies(
        sessions, {"always high": "high", "always low": "low"}, BUDGET, returns=(0, 1), behaviour=coin
    )


def make_kinds(folder: Path) -> dict[str, Path]:
    """One file of each."""
    world = cart()
    things = {
        "cart": world, "driver": driver(world), "pushed": cart(numbers=True), "catalogue": catalogue(),
        "evaluated": evaluated(), "five": five(),
    }  # fmt: skip
    files = {name: folder / f"{name}.qq" for name in things}
    for name, thing in things.items():
        publish(thing, files[name])
    return files
