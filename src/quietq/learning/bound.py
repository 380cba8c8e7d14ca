"""What a checkpoint is bound to: everything that shapes the program that uses its noise.

Two programs that went on from copies of one checkpoint would use the same normals twice, and the difference of what
they release would have no noise at all. So a method that noises as it goes keeps a checkpoint only of a training whose
every part can be told from any other: a method, a world and a reward of this package, whose code is hashed and whose
numbers are written out. Code of the caller's own (an Optax object, a reward function, a world or a method of another
class) cannot be, for it may hold anything: without a checkpoint it is as good as any.
"""

import dataclasses
import hashlib
import json
import os
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from quietq.learning.options import options_of
from quietq.privacy.errors import InvalidInput
from quietq.registry import METHODS, WORLDS, holds
from quietq.version import __version__, hash_of_code
from quietq.worlds.jax_rewards import JaxKnots, JaxSum, JaxTable, WorldReward, as_jax

if TYPE_CHECKING:
    from quietq.learning.training import Training

CODE = ("learning", "noise", "worlds")
STANDS_ON = ("jax", "jaxlib", "equinox", "optax", "jax-privacy", "numpy")
_SETTINGS = ("jax_threefry_partitionable", "jax_default_prng_impl", "jax_random_seed_offset", "jax_enable_x64",
             "jax_numpy_dtype_promotion", "jax_disable_jit")  # fmt: skip


def check(training: "Training") -> None:
    """Refuses a checkpoint of noise that protects where a part of the training is not known by its numbers."""
    method, world = training.method, training.world
    if training.directory is None or not training.releases:
        return
    if not holds(METHODS, type(method)):
        raise _refusal("method", f"one of quietq's own, not {type(method).__name__}")
    for name in options_of(type(method)):
        value = getattr(method, name)
        if not _is_plain(value):
            right = "the name of one of Optax's" if name == "optimiser" else "a plain number or text"
            raise _refusal(name, f"{right}, not {type(value).__name__}")
    if not _is_known(world):
        raise _refusal("world", f"one of quietq's own, not {type(world).__name__}")
    reward = None if training.reward is None else as_jax(training.reward)
    known = type(reward) in (JaxKnots, JaxSum, JaxTable) or (
        type(reward) is WorldReward and _is_known(getattr(reward, "world"))  # noqa: B009
    )
    if reward is not None and not known:
        raise _refusal("reward", f"the world's own, not {type(training.reward).__name__}")


def fingerprint(training: "Training", rewards: Any, probe: np.ndarray) -> str:
    """A hash of what a training is, so that a checkpoint is only taken up by the training that it belongs to."""
    method, keys = training.method, training.keys()
    parts: dict[str, object] = {
        "world": [type(training.world).__name__, repr(training.world)], "seed": training.seed,
        "steps": training.steps, "seeds": training.seeds, "simulate": training.simulate, "every": training.every,
        "settings": method.settings(), "version": __version__, "code": hash_of_code(CODE),
        "stands on": {package: version(package) for package in STANDS_ON},
        "machine": [platform.machine(), jax.default_backend(), os.environ.get("XLA_FLAGS", "")],
        "jax": {name: str(getattr(jax.config, name, None)) for name in _SETTINGS}, "keys": str(keys.dtype),
        "reward": str(jax.tree.structure(rewards)) if training.releases else None,
    }  # fmt: skip
    for name in ("relation", "budget"):
        parts[name] = repr(getattr(method, name, None))
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    for leaf in (jax.random.key_data(keys), *jax.tree.leaves(rewards), probe):
        array = np.asarray(leaf)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def _is_known(world: Any) -> bool:
    """Whether its text says all of it."""
    return holds(WORLDS, type(world)) and all(
        _is_plain(getattr(world, field.name)) for field in dataclasses.fields(world)
    )


def _is_plain(value: object) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def _refusal(name: str, right: str) -> InvalidInput:
    return InvalidInput(
        f"{name} must be {right}, where a checkpoint of noise is kept: another one could go on with the same noise. "
        "Train without a directory; nothing was drawn or spent."
    )
