"""Where a training stands, on disk: to go on exactly there, and nowhere else.

A checkpoint is PRIVATE. It holds the noise that is still to be used and, for some methods, true rewards: with it the
promise can be undone. It is readable by its owner only, and its name says so. No pickle: arrays and one line of JSON.

It is bound to everything that shapes the program that uses its noise. Two programs that went on from copies of one
checkpoint would use the same normals twice, and the difference of what they release would have no noise at all. So a
method that noises as it goes keeps a checkpoint only of a training whose every part can be told from any other: a
method, a world and a reward of this package, whose code is hashed and whose numbers are written out. Code of the
caller's own (an Optax object, a reward function, a world or a method of another class) cannot be, for it may hold
anything: without a checkpoint it is as good as any.
"""

import dataclasses
import hashlib
import json
import os
import platform
import zipfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import jax
import jax.numpy as jnp
import numpy as np

from quietq.learning.method import Method
from quietq.learning.options import options_of
from quietq.privacy import InvalidInput
from quietq.registry import METHODS, WORLDS, holds
from quietq.version import __version__, hash_of_code
from quietq.worlds.jax_rewards import ReleasedReward, WorldReward, as_jax

NAME = "PRIVATE-checkpoint.npz"
_PART = f".{NAME}.part"
CODE = ("learning", "noise", "worlds")
STANDS_ON = ("jax", "jaxlib", "equinox", "optax", "jax-privacy", "numpy")
_SETTINGS = ("jax_threefry_partitionable", "jax_default_prng_impl", "jax_random_seed_offset", "jax_enable_x64",
             "jax_numpy_dtype_promotion", "jax_disable_jit")  # fmt: skip


def prepare(directory: Path) -> None:
    """Makes the folder and writes in it on trial, before anything is drawn or spent."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _open_part(directory) as file:
            file.write(b"on trial")
        (directory / _PART).unlink()
    except OSError as error:
        raise InvalidInput(
            f"directory must be a folder in which {NAME} can be written by way of {_PART}, not {str(directory)!r} "
            f"({type(error).__name__}); nothing was drawn or spent."
        ) from error


def write(directory: Path, tree: Any, header: Mapping[str, object]) -> None:
    """Writes a checkpoint over the last one, whole or not at all."""
    leaves: dict[str, Any] = {f"leaf{i}": _numpy(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with _open_part(directory) as file:
        np.savez(file, header=text, **leaves)
        file.flush()
        os.fsync(file.fileno())
    os.replace(directory / _PART, directory / NAME)


def read(directory: Path, like: Any, fingerprint: str) -> tuple[Any, dict[str, Any]]:
    """The tree of the last checkpoint, shaped as `like`, and its header; refused if it is of another training."""
    path = directory / NAME
    if not path.is_file():
        raise InvalidInput(f"There is no checkpoint in {str(directory)!r} to go on from.")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            leaves = [stored[f"leaf{i}"] for i in range(len(stored.files) - 1)]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{str(path)!r} is not a checkpoint, or a damaged one.") from error
    if not isinstance(header, dict) or header.get("fingerprint") != fingerprint:
        raise InvalidInput(
            f"The checkpoint in {str(directory)!r} is of another training: world, method, reward, budget, steps, "
            "seeds and the code that trains must be the same."
        )
    shapes, build = jax.tree.flatten(like)
    if len(shapes) != len(leaves):
        raise InvalidInput(f"{str(path)!r} does not fit this training.")
    return build.unflatten([_like(leaf, shape) for leaf, shape in zip(leaves, shapes, strict=True)]), header


def check_known(method: Method, world: Any, reward: object) -> None:
    """Refuses a checkpoint of noise that protects where a part of the training is not known by its numbers."""
    if not holds(METHODS, type(method)):
        raise _refusal("method", f"one of quietq's own, not {type(method).__name__}")
    for name in options_of(type(method)):
        value = getattr(method, name)
        if not _is_plain(value):
            right = "the name of one of Optax's" if name == "optimiser" else "a plain number or text"
            raise _refusal(name, f"{right}, not {type(value).__name__}")
    if not is_known(world):
        raise _refusal("world", f"one of quietq's own, not {type(world).__name__}")
    own = as_jax(world if reward is None else reward)
    known = type(own) is WorldReward and is_known(getattr(own, "world"))  # noqa: B009
    if not known and not (type(own) is ReleasedReward and own.phi is None):
        raise _refusal("reward", f"the world's own, not {type(reward).__name__}")


def fingerprint(method: Method, settings: Mapping[str, object], arrays: Any) -> str:
    """A hash of what a training is, so that a checkpoint is only taken up by the training that it belongs to.

    `settings` and `arrays` are those of the training; method, code and machine are added here.
    """
    parts: dict[str, object] = {
        "settings": method.settings(), "version": __version__, "code": hash_of_code(CODE),
        "stands on": {package: version(package) for package in STANDS_ON},
        "machine": [platform.machine(), jax.default_backend(), os.environ.get("XLA_FLAGS", "")],
        "jax": {name: str(getattr(jax.config, name, None)) for name in _SETTINGS},
        "promise": [repr(getattr(method, name, None)) for name in ("relation", "budget")], "training": settings,
    }  # fmt: skip
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    for leaf in jax.tree.leaves(arrays):
        array = _numpy(leaf)
        digest.update(f"{leaf.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def is_known(world: Any) -> bool:
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


def _open_part(directory: Path) -> IO[bytes]:
    """A new file, for its owner only."""
    (directory / _PART).unlink(missing_ok=True)
    opener = lambda path, flags: os.open(path, flags | os.O_EXCL | os.O_NOFOLLOW, 0o600)  # noqa: E731
    return open(directory / _PART, "wb", opener=opener)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(getattr(leaf, "dtype", np.float32), jax.dtypes.prng_key)


def _numpy(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(leaf: np.ndarray, shape: Any) -> Any:
    if _is_key(shape):
        return jax.random.wrap_key_data(jnp.asarray(leaf))
    if leaf.shape != shape.shape or leaf.dtype != shape.dtype:
        raise InvalidInput("The checkpoint's arrays do not fit this training.")
    return jnp.asarray(leaf)
