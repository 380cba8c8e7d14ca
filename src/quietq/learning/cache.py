"""Compiled programs kept on disk, so that the next process need not compile them again.

Programs hold hyper-parameters only: rewards (and the arrays that a reward function of your own holds), noise and keys
are their arguments, so nothing private is in them. The folder is for its owner only all the same.
"""

import os
import warnings
from pathlib import Path

import jax


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


def use_disk_cache() -> None:
    """Turns JAX's compilation cache on, in the cache folder, unless it is set up already.

    The setting is JAX's own and holds for the process.
    """
    folder = cache_folder()
    if folder is None or getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    (folder / "jax").mkdir(mode=0o700, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(folder / "jax"))
