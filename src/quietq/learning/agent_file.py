"""An agent on disk: what was released, its certificate and its settings. No pickle: arrays and one line of JSON.

A file may come from anybody: nothing in it is believed before it was checked, and a file that claims more than it holds
is refused before memory or time is spent on it.
"""

import json
import math
import os
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from quietq.learning.in_loop_method import InLoopMethod, UnitNoise
from quietq.learning.method import Method, Spaces
from quietq.learning.options import options_of
from quietq.learning.reward_learner import RewardLearner
from quietq.noise.box import Box
from quietq.privacy import norms
from quietq.privacy.budget import Budget
from quietq.privacy.certificate import Certificate
from quietq.privacy.checks import count, shown
from quietq.privacy.errors import InvalidInput, PrivacyWarning
from quietq.privacy.relations import SupBall
from quietq.registry import METHODS, WORLDS
from quietq.worlds.world import World

if TYPE_CHECKING:
    from quietq.learning.agent import Agent, Place

SCHEMA = 2
MOST_BYTES = 2**30
"""Of a file, and of the noise of one run in float32."""
MOST_STEPS = 10**8
FIELDS = frozenset({"schema", "world", "spaces", "settings", "trained", "certificate"})
TRAINED = frozenset({"steps", "promised", "draws", "seeds"})


def write(path: Path, agent: "Agent") -> None:
    """Writes the file, whole or not at all."""
    released = agent.released
    spaces, world = agent.spaces, agent.world
    record = {
        "schema": SCHEMA,
        "world": world.name if isinstance(world, World) else None,
        "spaces": {"low": spaces.box.low, "high": spaces.box.high, "actions": spaces.actions, "steps": spaces.steps},
        "settings": agent.method.settings(),
        "trained": {
            "steps": agent.steps,
            "promised": agent._promised or agent.steps,
            "draws": agent._draws,
            "seeds": agent._seeds,
        },
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
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise InvalidInput(f"{str(path)!r} is larger than an agent can be.")
        with open(path, "rb") as file, zipfile.ZipFile(file) as packed:
            members = packed.infolist()
            if sum(member.file_size for member in members) > size:  # agents are stored as they are
                raise InvalidInput(f"{str(path)!r} would unpack to more than its own size, and an agent does not.")
            record = json.loads(_array(packed, "record").tobytes())
            leaves = [_array(packed, f"leaf{i}") for i in range(len(members) - 1)]
    except InvalidInput:
        raise
    except Exception as error:  # a hostile file can make any reader fail in any way
        raise InvalidInput(f"{str(path)!r} is not an agent that was saved, or a damaged one.") from error
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise InvalidInput(f"{str(path)!r} was written by another version.")
    return record, leaves


def _array(packed: zipfile.ZipFile, name: str) -> np.ndarray:
    with packed.open(f"{name}.npy") as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def restore(kind: "type[Agent]", record: dict[str, Any], leaves: list[np.ndarray], world: "Place | None") -> "Agent":
    """The agent: it answers, and can be evaluated if its world is known."""
    try:
        spaces = Spaces(
            Box(tuple(record["spaces"]["low"]), tuple(record["spaces"]["high"])),
            count("actions", record["spaces"]["actions"]),
            count("steps", record["spaces"]["steps"]),
        )
        method, trained = method_from(record["settings"]), record["trained"]
        steps = count("The file's steps", trained["steps"], most=MOST_STEPS)
        draws, seeds = (count(f"The file's {name}", trained[name]) for name in ("draws", "seeds"))
        promised = count("The file's promised steps", trained["promised"], most=MOST_STEPS)
        certificate = Certificate.from_dict(record["certificate"])
        if set(record) != FIELDS or set(trained) != TRAINED:
            raise InvalidInput("The file's record must have the fields of an agent, and no others.")
        if certificate.standing == "certified":
            _check_promise(method, certificate, spaces, promised, draws, seeds)
        place = record["world"] if world is None else world
        if place is None:
            raise InvalidInput("This agent was trained in an environment without a name: give it as `world`.")
        if world is None and place not in WORLDS:  # a name of Gymnasium's could import any module
            raise InvalidInput(f"The file names a world that is not one of quietq's, {shown(place)}.")
        agent = kind(place, method, seed=0)
        if agent.spaces.box != spaces.box or agent.spaces.actions != spaces.actions:
            raise InvalidInput(
                "The world has other observations or actions than the one that the agent was trained in."
            )
        shapes, build = jax.tree.flatten(_like(method, spaces, max(steps, promised)))
        if isinstance(agent.world, World) and steps > promised:  # copies of an environment may go a few steps farther
            raise InvalidInput(f"The file's steps must be at most the {promised} that were promised, not {steps}.")
        arrays = [jnp.asarray(leaf) for leaf in leaves]
        expected = [((draws * seeds, *shape.shape), shape.dtype) for shape in shapes]
        if expected != [(leaf.shape, leaf.dtype) for leaf in arrays]:
            raise InvalidInput("The file's arrays do not fit its settings.")
        agent._released, agent._certificate, agent.steps = build.unflatten(arrays), certificate, steps
        agent._draws, agent._seeds, agent._promised = draws, seeds, promised
        agent._spent = method.spends
        return agent
    except InvalidInput:
        raise
    except Exception as error:  # of whatever kind: a setting that nobody thought of may fail anywhere
        raise InvalidInput("This is not an agent that was saved, or a damaged one.") from error


def _check_promise(
    method: Method, certificate: Certificate, spaces: Spaces, steps: int, draws: int, seeds: int
) -> None:
    """A method's agents have the certificates that the method gives for these settings, and no other."""
    own = isinstance(method, InLoopMethod)
    if (own and certificate.method != method.name) or not (own or isinstance(method, RewardLearner)):
        raise InvalidInput(f"A certificate of {shown(certificate.method)} does not belong to {method.name!r}.")
    box = [list(side) for side in zip(spaces.box.low, spaces.box.high, strict=True)]
    if certificate.domain is None or [list(side) for side in certificate.domain] != box:
        raise InvalidInput("The file's certificate is for another box than that of its states.")
    if draws != 1 or (own and seeds != 1):
        raise InvalidInput("The file holds more runs than its certificate, which is for one release.")
    if not own:
        return
    assert certificate.relation is not None
    relation: dict[str, Any] = dict(certificate.relation)
    ball = SupBall(norms.sup_radius(relation), people=relation.get("people"))  # all that these methods see of it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        again = replace(method, relation=ball, budget=Budget(certificate.epsilon or 0.0, certificate.delta or 0.0))
        again.check(spaces, steps)
        noise = again.draw(spaces, steps, _Nothing())
    norm = again.norm(spaces, steps, noise)
    found = (dict(certificate.norm or {}), certificate.sensitivity, certificate.mu)
    if found != (norm, norms.largest_difference(norm, relation), again.budget.mu):  # pyright: ignore[reportOptionalMemberAccess]
        raise InvalidInput("The file's certificate is not the one that its method gives for its settings and steps.")
    if certificate.sigma is None or certificate.sigma < float(noise.scale) * float(noise.normals.min()):
        raise InvalidInput("The file's certificate states less noise than its method draws for its settings and steps.")


def method_from(settings: dict[str, Any]) -> Method:
    """A method of these hyper-parameters, without budget or data: enough to answer with."""
    entry = METHODS.get(settings.get("method", ""))
    if entry is None or not entry.in_worlds:
        raise InvalidInput(f"There is no method called {shown(settings.get('method'))}.")
    kind = entry.load()
    known = {name: settings[name] for name in options_of(kind) if name in settings}
    if str(known.get("optimiser")).startswith("GradientTransformation"):  # an object; answering needs none
        known.pop("optimiser")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in known.items()})


def _like(method: Method, spaces: Spaces, steps: int) -> Any:
    """The shapes of what a run of this method releases."""
    if isinstance(method, InLoopMethod):  # any promise will do: shapes do not depend on it
        method = replace(method, relation=SupBall(1.0), budget=Budget(1.0, 1e-5))
    noise = method.draw(spaces, steps, _Nothing())
    return jax.eval_shape(lambda noise: method.finish(method.init(spaces, jax.random.key(0)), noise), noise)


class _Nothing(UnitNoise):
    """No more of it than a training could have held."""

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        """Zeros."""
        if 4 * math.prod(shape) > MOST_BYTES:
            raise InvalidInput("The file's steps and settings ask for more noise than a training can hold.")
        return super().normals(shape)
