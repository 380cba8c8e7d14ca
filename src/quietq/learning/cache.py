"""Compiled programs kept on disk, so that the next process need not compile them again.

Programs hold hyper-parameters only: rewards (and the arrays that a reward function of your own holds), noise and keys
are their arguments, so nothing private is in them. The folder is for its owner only all the same.
"""

import os
from pathlib import Path

import jax


def cache_folder() -> Path | None:
    """QUIETQ_CACHE, or else the user's cache folder; None if QUIETQ_CACHE is empty, which keeps nothing."""
    place = os.environ.get("QUIETQ_CACHE")
    if place == "":
        return None
    return Path(place) if place else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quietq"


def use_disk_cache() -> None:
    """Turns JAX's compilation cache on, in the cache folder, unless it is set up already.

    The setting is JAX's own and holds for the process.
    """
    folder = cache_folder()
    if folder is None or getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "jax").mkdir(mode=0o700, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(folder / "jax"))
