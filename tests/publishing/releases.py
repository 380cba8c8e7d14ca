"""Releases of every kind to test with, and ways to take their files apart."""

import json
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl

from quietq import Box, Budget, Exponential, Fourier, GaussianProcessMechanism, Ratings, Sessions, SupBall, people
from quietq.mechanisms import moments, privatise, rounds
from quietq.mechanisms.clone import CloneSettings, Cloning
from quietq.mechanisms.release import release, simulate as simulate_release
from quietq.paper.observed import observe
from quietq.privacy import Code
from quietq.released.private_function import PrivateTable
from quietq.released.private_network import HowTrained, PrivateNetwork, PrivatePolicy
from quietq.released.publishable import Publishable
from quietq.released.release_file import pack
from quietq.worlds import WALK

BUDGET = Budget(0.9, 1e-4)
SECRET = 0.123456789
PUBLIC = ("action_range", "normal")
FUNCTIONS = ("table", "outputs", "plane", "knots", "pure knots", "sum")
NETWORKS = ("mlp", "splines", "policy", "grid", "agent")
POLICIES = ("choosing policy", "moving policy")
CLONES = ("choosing clone", "moving clone")
AGENTS = (*NETWORKS, *POLICIES, *CLONES)
MODELS = ("model", "catalogue")
KINDS = (*FUNCTIONS, *MODELS, "world", "observed", *AGENTS)
TRAINING = HowTrained(
    world="walk",
    episode=50,
    steps=None,
    settings={"method": "reward", "gamma": 0.9, "widths": [4]},
)


def tent(s):
    return SECRET - np.abs(s - SECRET)


def pair(s):
    return np.stack([s, tent(s)], axis=-1)


def make(kind: str, simulate: int | None = None) -> Publishable:
    if kind in NETWORKS:
        return network(kind, make("table", simulate)).issued()  # type: ignore[arg-type]
    if kind in POLICIES:
        return policy(kind, make("table", simulate)).issued()  # type: ignore[arg-type]
    if kind in CLONES:
        return clone(kind, simulate)
    if kind in MODELS:
        return model(kind, simulate)
    if kind == "world":
        return world(simulate)
    if kind == "observed":
        return observe(WALK, SupBall(0.01), BUDGET, low=0.0, high=0.5, rewards=60, seed=1, simulate=simulate)
    if "knots" in kind:
        noise = "knots" if kind == "knots" else "k-norm"
        return privatise(tent, BUDGET, noise=noise, pieces=4, relation=people(50, 0, 0.5, 1), simulate=simulate)
    if kind == "outputs":
        mechanism = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1, actions=2), BUDGET, levels=5)
        return mechanism.apply(pair) if simulate is None else mechanism.simulate(pair, simulate)
    additive = Exponential((4.0, 2.0), summed=True)
    kernel, domain, f = {
        "table": (Exponential(4.0), (-1, 3), tent),
        "plane": (Exponential((1.0, 2.0)), [(0, 1), (2, 5)], lambda s: s[:, 0] * s[:, 1]),
        "sum": (additive, [(0, 1), (2, 5)], [tent, lambda s: s**2]),
    }[kind]
    mechanism = GaussianProcessMechanism(kernel, 0.02, BUDGET, domain=domain, levels=5)
    return mechanism.apply(f) if simulate is None else mechanism.simulate(f, simulate)


def model(kind: str, simulate: int | None) -> Publishable:
    """Of people who all gave the secret."""
    rows = {"person": range(40), "rating": [SECRET] * 40, "item": ["tea", "milk"] * 20, "x": [SECRET] * 40}
    about: dict[str, Any] = {"state": "x", "box": (-1, 3), "features": Fourier(((0.5,), (1.0,)))}
    if kind == "catalogue":
        about = {"box": ["tea", "milk"], "state": "item"}
    given = Ratings.read(pl.DataFrame(rows), low=0, high=1, people=40, **about)
    return privatise(given, BUDGET, simulate=simulate)


@cache
def world(simulate: int | None) -> Publishable:
    """Of people who are all at the secret, and stay there or go away."""
    away, here = {"after": [SECRET, 1.0] * 20, "end": [0, 1] * 20, "go": [0, 1] * 20}, ("x", "y", "below", "reward")
    frame = pl.DataFrame({"person": range(40), **away, **{name: [SECRET] * 40 for name in here}})
    read: dict[str, Any] = {"state": ["x", "y"], "next_state": ["after", "below"], "action": "go", "reward": "reward"}
    sessions = Sessions.read(frame, **read, actions=[0, 1], end="end", box=[(-1, 3), (0, 1)], people=40)
    with (
        mock.patch.object(moments, "SETTINGS", moments.MomentSettings(rounds=2)),
        mock.patch.object(rounds, "SETTINGS", rounds.RoundSettings(rounds=2)),
    ):
        return privatise(sessions, BUDGET, simulate=simulate)


@cache
def clone(kind: str, simulate: int | None) -> Publishable:
    """Of people who are all at the secret, and are imitated by a small network."""
    acting: dict[str, Any] = {"action": "go", "actions": [0, 1]}
    if kind == "moving clone":
        acting = {"action": ["right", "up"], "actions": [(-1, 1), (-1, 1)]}
    frame = pl.DataFrame({"person": range(40), "x": [SECRET] * 40, "y": [SECRET, -SECRET] * 20, "go": [0, 1] * 20})
    frame = frame.with_columns(reward=pl.col("go") * SECRET, right=pl.col("x"), up=pl.col("y"))
    about: dict[str, Any] = {"state": ["x", "y"], "next_state": [], "reward": "reward", "box": [(-1, 3), (-1, 1)]}
    sessions = Sessions.read(frame, **about, **acting, people=40)
    settings = CloneSettings(state_rounds=1, threshold_rounds=2, steps=2, hidden=3)
    mechanism = Cloning(sessions, BUDGET, (0.0, 1.0), 0.2, settings)
    return release(mechanism, sessions) if simulate is None else simulate_release(mechanism, sessions, simulate)


def network(kind: str, covered: PrivateTable) -> PrivateNetwork:
    """Made from released numbers alone, so that what covers them covers it."""
    numbers = covered.values
    if kind in ("splines", "grid"):
        weights = np.stack([numbers[:6], numbers[6:12]]).reshape(1, 2, 6)
        return PrivateNetwork(kind, 6, (weights,), (), "values", covered.box, covered.certificate)
    weights = (numbers[:8].reshape(2, 4, 1).copy(), numbers[8:32].reshape(2, 3, 4).copy())
    biases = (numbers[:8].reshape(2, 4).copy(), numbers[3:9].reshape(2, 3).copy())
    output, training = "log-probabilities" if kind == "policy" else "values", TRAINING if kind == "agent" else None
    certificate = covered.certificate
    return PrivateNetwork("mlp", 0, weights, biases, output, covered.box, certificate, training=training)


def policy(kind: str, covered: PrivateTable) -> PrivatePolicy:
    """The same for observations in a box of their own, two of them; normalised, if it moves."""
    numbers, box = covered.values, Box((-1.0, -2.0), (1.0, 5.0))
    certificate = covered.certificate.with_assumption(Code.TRAINED())
    weights, biases = (numbers[:8].reshape(4, 2).copy(), numbers[8:20].reshape(3, 4).copy()), (numbers[:4].copy(),)
    biases = (*biases, numbers[3:6].copy())
    if kind == "choosing policy":
        return PrivatePolicy("tanh", "log-probabilities", weights, biases, box, certificate)
    ends, normal = np.array([[-1.0, 0.0, 2.0], [1.0, 3.0, 4.0]]), np.array([[0.5, 1.0], [2.0, 0.1]])
    return PrivatePolicy("relu", "squashed", weights, biases, box, certificate, ends, normal, 10.0)


def numbers(thing: Publishable) -> list[np.ndarray]:
    """What was released: all arrays but public ones."""
    return [array for name, array in thing.to_arrays()[1].items() if name not in PUBLIC]


def states(thing: Any) -> np.ndarray:
    box, unit = thing.box, np.random.default_rng(1).uniform(size=(50, thing.box.dimension))
    found = box.from_unit(unit if box.dimension > 1 else unit[:, 0])
    return found if getattr(thing, "items", None) is None else np.rint(found)


def header_of(path: Path) -> tuple[dict, bytes]:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def record_of(path: Path) -> dict:
    return json.loads(header_of(path)[0]["__metadata__"]["quietq"])


def rewrite(path: Path, header: object, data: bytes) -> None:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    header, data = header_of(path)
    header.pop("__metadata__")
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], "<f8").reshape(entry["shape"])
        for name, entry in header.items()
    }


def edit(path: Path, **changes: object) -> None:
    """Changes fields of the JSON text, and makes the hash fit: whoever forges a file can do that too."""
    path.write_bytes(pack(json.dumps(record_of(path) | changes), arrays_of(path)))
