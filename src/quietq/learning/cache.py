"""Compiled programs kept on disk, so that the next process need not compile them again.

Only programs of this package are kept, and of these only what holds nothing but public numbers: a world, a method and a
reward of this package's own kinds, whose private numbers are the program's arguments. A reward function of the
caller's own may hold anything, and every scalar that it looks at becomes a part of the program: such a program is kept
in memory only, also where the caller has set up a cache for JAX. The folder is for its owner only all the same.
"""

import dataclasses
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quietq.registry import WORLDS, holds
from quietq.worlds import World
from quietq.worlds.jax_rewards import JaxFunction, LiftedReward

try:  # A setting by thread, so that what others compile at the same time is not kept; there is no public name for it.
    from jax._src.config import persistent_cache_min_compile_time_secs as _kept_from
except ImportError:
    _kept_from = None

_NEVER = 1e9
_usual: float | None = None
"""How many seconds a program must take to compile, to be kept: as it was set before this module set anything."""


def cache_folder() -> Path | None:
    """QUIETQ_CACHE, or else the user's cache folder, made if need be.

    None keeps nothing: QUIETQ_CACHE is empty, or the folder cannot be written to. That ends nothing, because a budget
    may have been spent before.
    """
    place = os.environ.get("QUIETQ_CACHE")
    if place == "":
        return None
    try:
        usual = os.environ.get("XDG_CACHE_HOME")
        folder = Path(place) if place else (Path(usual) if usual else Path.home() / ".cache") / "quietq"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # Path.home raises the second for a user whom the system does not know
        pass
    if place:
        warnings.warn(
            f"QUIETQ_CACHE must name a folder that can be written to, or be empty, not {place!r}: nothing is kept.",
            stacklevel=2,
        )
    return None


def is_public(part: Any) -> bool:
    """Whether this part of a program holds public numbers only, apart from arrays, which are the program's arguments.

    A world's constants may be private: only those that this package sets are not. All else is looked through, and what
    is not of this package is taken for private.

    >>> from quietq.worlds import WALK, ThermostatWorld, WalkWorld
    >>> from quietq.worlds.jax_rewards import as_jax
    >>> is_public(as_jax(WALK)), is_public(WalkWorld(steps=7)), is_public(ThermostatWorld(liked=21.3))
    (True, True, False)
    >>> is_public(as_jax(lambda states: states))
    False
    """
    if isinstance(part, World):
        return holds(WORLDS, type(part)) and dataclasses.replace(type(part)(), steps=part.steps) == part  # pyright: ignore[reportArgumentType]
    if part is None or isinstance(part, bool | int | float | str | np.ndarray | jax.Array):
        return True
    if isinstance(part, tuple):
        return all(map(is_public, part))
    if isinstance(part, JaxFunction | LiftedReward) or not type(part).__module__.startswith("quietq."):
        return False
    return dataclasses.is_dataclass(part) and all(
        is_public(getattr(part, field.name)) for field in dataclasses.fields(part)
    )


@contextmanager
def disk_cache(public: bool) -> Iterator[None]:
    """What this thread compiles in here is kept on disk if it is `public`, and else nowhere but in memory."""
    if _kept_from is None:  # nothing was set up, and nothing can be told from the rest
        yield
        return
    usual = _set_up()
    with _kept_from(usual if public else _NEVER):
        yield


def _set_up() -> float:
    """Turns JAX's compilation cache on, in the cache folder, unless it is set up already; how slow the kept are.

    The setting is JAX's own and holds for the process, where nothing is to be kept but in `disk_cache`.
    """
    global _usual
    if _usual is None:
        _usual = float(getattr(jax.config, "jax_persistent_cache_min_compile_time_secs"))  # noqa: B009
    folder = cache_folder()
    if folder is not None and getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        (folder / "jax").mkdir(mode=0o700, exist_ok=True)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _NEVER)
        jax.config.update("jax_compilation_cache_dir", str(folder / "jax"))
    return _usual
