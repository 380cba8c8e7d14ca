"""Prints, for pip, every direct dependency in the oldest version that pyproject.toml allows: `make oldest`.

What depends on PyTorch is left out unless it is asked for by `--torch`: its one version is pinned anyway.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
WITHOUT = {"torch", "stable-baselines3"}


def requirements(project: dict, extras: list[str]) -> list[str]:
    """Of the package and these extras, with those of the extras that they name."""
    found, seen = list(project["dependencies"]), set()
    waiting = list(extras)
    while waiting:
        extra = waiting.pop()
        for line in [] if extra in seen else project["optional-dependencies"][extra]:
            named = re.fullmatch(r"quietq\[(.*)\]", line)
            if named is None:
                found.append(line)
            else:
                waiting += named[1].split(",")
        seen.add(extra)
    return found


def pin(line: str) -> str:
    """A requirement at its lower bound: `polars>=2.0` is `polars==2.0`."""
    found = re.fullmatch(r"([\w.-]+(?:\[[\w,]+\])?)(?:>=|==)([\w.]+)(?:,<[\w.]+)?", line)
    if found is None:
        raise ValueError(f"{line!r} in pyproject.toml says no oldest version.")
    return f"{found[1]}=={found[2]}"


def pins(extras: list[str], torch: bool = False) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = sorted({pin(line) for line in requirements(project, extras)})
    return [line for line in lines if torch or re.split(r"[\[=]", line)[0] not in WITHOUT]


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != "--torch"]
    print("\n".join(pins(given or ["test"], "--torch" in sys.argv)))
