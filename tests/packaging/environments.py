"""A wheel and an sdist, built as for an upload, and environments to install them into that are empty before."""

import importlib
import os
import subprocess
import sys
import venv
from contextlib import chdir
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(folder: Path, what: str = "wheel") -> Path:
    """`what` is wheel or sdist; by the backend that pyproject.toml names, without a network."""
    backend = importlib.import_module("hatchling.build")
    with chdir(ROOT):
        return folder / getattr(backend, f"build_{what}")(str(folder))


def create(folder: Path, *packages: str) -> Path:
    """A new environment with pip and these packages alone: its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    if packages:
        run(python, "-m", "pip", "install", "--quiet", *packages)
    return python


def run(python: Path, *arguments: str, folder: Path | None = None, fails: bool = False) -> str:
    """What a command writes; nothing of this checkout or of the environment of the tests is found by it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    surroundings = kept | {"MPLBACKEND": "agg", "NO_MKDOCS_2_WARNING": "1", "OMP_NUM_THREADS": "1"}
    command = [str(python), *arguments]
    done = subprocess.run(
        command, cwd=folder or python.parent, env=surroundings, capture_output=True, text=True, timeout=1800
    )
    assert (done.returncode != 0) == fails, f"{arguments}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def can_install_torch() -> bool:
    """Whether the environment of the tests has it; a version for graphics cards would be gigabytes."""
    from importlib.util import find_spec

    return find_spec("torch") is not None and sys.version_info[:2] == (3, 11)
