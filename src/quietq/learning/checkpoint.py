"""Where a training stands, on disk: to go on exactly there.

A checkpoint is PRIVATE. It holds the noise that is still to be used and, for some methods, true rewards: with it the
promise can be undone. It is readable by its owner only, and its name says so. No pickle: arrays and one line of JSON.
"""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quietq.privacy.errors import InvalidInput

NAME = "PRIVATE-checkpoint.npz"
_PART = f".{NAME}.part"


def prepare(directory: Path) -> None:
    """Makes the folder and writes in it on trial, before anything is drawn or spent."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        temporary = directory / _PART
        temporary.unlink(missing_ok=True)
        with open(temporary, "wb", opener=_owner_only) as file:
            file.write(b"on trial")
        temporary.unlink()
    except OSError as error:
        raise InvalidInput(
            f"directory must be a folder in which {NAME} can be written by way of {_PART}, not {str(directory)!r} "
            f"({type(error).__name__}); nothing was drawn or spent."
        ) from error


def write(directory: Path, tree: Any, mark: str, step: int, finished: bool, booked: str | bool = False) -> None:
    """Writes a checkpoint over the last one, whole or not at all; `booked` is the charge's id, or if there was one."""
    leaves: dict[str, Any] = {f"leaf{i}": _numpy(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}
    header = {"fingerprint": mark, "step": step, "finished": finished, "booked": booked}
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    temporary = directory / _PART
    temporary.unlink(missing_ok=True)
    with open(temporary, "wb", opener=_owner_only) as file:
        np.savez(file, header=text, **leaves)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, directory / NAME)


def read(directory: Path, like: Any, expected: str) -> tuple[Any, dict[str, Any]]:
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
    if not isinstance(header, dict) or header.get("fingerprint") != expected:
        raise InvalidInput(
            f"The checkpoint in {str(directory)!r} is of another training: world, method, reward, budget, steps, "
            "seeds and the code that trains must be the same."
        )
    shapes, build = jax.tree.flatten(like)
    if len(shapes) != len(leaves):
        raise InvalidInput(f"{str(path)!r} does not fit this training.")
    return build.unflatten([_like(leaf, shape) for leaf, shape in zip(leaves, shapes, strict=True)]), header


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL | os.O_NOFOLLOW, 0o600)


def _numpy(leaf: Any) -> np.ndarray:
    if jnp.issubdtype(getattr(leaf, "dtype", np.float32), jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf)


def _like(leaf: np.ndarray, shape: Any) -> Any:
    if jnp.issubdtype(shape.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(leaf))
    if leaf.shape != shape.shape or leaf.dtype != shape.dtype:
        raise InvalidInput("The checkpoint's arrays do not fit this training.")
    return jnp.asarray(leaf)
