"""An agent on disk: what was released, its certificate and its settings. No pickle: arrays and one line of JSON."""

import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from quietq.learning.method import Method, Spaces
from quietq.learning.options import options_of
from quietq.learning.promise import Promising
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy
from quietq.privacy.budget import Budget
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import SupBall
from quietq.worlds.world import World

if TYPE_CHECKING:
    from quietq.learning.agent import Agent, Place

SCHEMA = 1
MOST_BYTES = 2**30


def write(path: Path, agent: "Agent") -> None:
    """Writes the file, whole or not at all."""
    released = agent.released
    spaces, world = agent.spaces, agent.world
    record = {
        "schema": SCHEMA,
        "world": world.name if isinstance(world, World) else None,
        "spaces": {"low": spaces.box.low, "high": spaces.box.high, "actions": spaces.actions, "steps": spaces.steps},
        "settings": agent.method.settings(),
        "trained": {"steps": agent.steps, "draws": agent._draws, "seeds": agent._seeds},
        "certificate": agent.certificate.to_dict(),
    }
    leaves: dict[str, Any] = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(released))}
    temporary = path.with_name(f".{path.name}.part")
    try:
        with open(temporary, "wb") as file:
            np.savez(file, record=np.frombuffer(json.dumps(record).encode(), dtype=np.uint8), **leaves)
        os.replace(temporary, path)
    except OSError as error:
        raise InvalidInput(f"path must be a file that can be written to, not {str(path)!r}.") from error


def read(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The record and the arrays, as they are."""
    if not path.is_file():
        raise InvalidInput(f"There is no file {str(path)!r} to load.")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InvalidInput(f"{str(path)!r} is larger than an agent can be.")
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            record = json.loads(stored["record"].tobytes())
            leaves = [stored[f"leaf{i}"] for i in range(len(stored.files) - 1)]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, TypeError) as error:
        raise InvalidInput(f"{str(path)!r} is not an agent that was saved, or a damaged one.") from error
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise InvalidInput(f"{str(path)!r} was written by another version.")
    return record, leaves


def restore(kind: "type[Agent]", record: dict[str, Any], leaves: list[np.ndarray], world: "Place | None") -> "Agent":
    """The agent: it answers, and can be evaluated if its world is known."""
    try:
        spaces = Spaces(
            Box(tuple(record["spaces"]["low"]), tuple(record["spaces"]["high"])),
            int(record["spaces"]["actions"]),
            int(record["spaces"]["steps"]),
        )
        method, trained = method_from(record["settings"]), record["trained"]
        certificate = Certificate.from_dict(record["certificate"])
        place = record["world"] if world is None else world
        if place is None:
            raise InvalidInput("This agent was trained in an environment without a name: give it as `world`.")
        agent = kind(place, method, seed=0)
        if agent.spaces.box != spaces.box or agent.spaces.actions != spaces.actions:
            raise InvalidInput(
                "The world has other observations or actions than the one that the agent was trained in."
            )
        like = _like(method, spaces, int(trained["steps"]))
        arrays = [jnp.asarray(leaf) for leaf in leaves]
        runs = int(trained["draws"]) * int(trained["seeds"])
        shapes, build = jax.tree.flatten(like)
        if [(runs, *shape.shape) for shape in shapes] != [leaf.shape for leaf in arrays]:
            raise InvalidInput("The file's arrays do not fit its settings.")
        agent._released, agent._certificate, agent.steps = build.unflatten(arrays), certificate, int(trained["steps"])
        agent._draws, agent._seeds = int(trained["draws"]), int(trained["seeds"])
        agent._spent = method.spends
        return agent
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput("This is not an agent that was saved, or a damaged one.") from error


def method_from(settings: dict[str, Any]) -> Method:
    """A method of these hyper-parameters, without budget or data: enough to answer with."""
    from quietq.learning import METHODS

    if settings.get("method") not in METHODS:
        raise InvalidInput(f"There is no method called {settings.get('method')!r}.")
    kind = METHODS[settings["method"]]
    known = {name: settings[name] for name in options_of(kind) if name in settings}
    if str(known.get("optimiser")).startswith("GradientTransformation"):  # an object; answering needs none
        known.pop("optimiser")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in known.items()})


def _like(method: Method, spaces: Spaces, steps: int) -> Any:
    """The shapes of what a run of this method releases."""
    if isinstance(method, Promising):  # any promise will do: shapes do not depend on it
        method = replace(method, relation=SupBall(1.0), budget=Budget(1.0, 1e-5))
    noise = method.draw(spaces, steps, SeededEntropy(0))
    return jax.eval_shape(lambda noise: method.finish(method.init(spaces, jax.random.key(0)), noise), noise)
