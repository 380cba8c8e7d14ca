"""The folder of a run: what its files are called, and where it may be."""

import os
from datetime import datetime
from pathlib import Path

import quietq as qq

AGENT = "agent.qq"
REWARD = "reward.qq"


def choose(out: Path | None, name: str) -> Path:
    """The folder for a new run: free, and where something can be written."""
    if out is None:
        out = Path("runs") / f"{name.replace('/', '-')}-{datetime.now():%Y%m%d-%H%M%S-%f}"
    if out.exists() and not out.is_dir():
        raise qq.InvalidInput(f"--out must name a folder, and {str(out)!r} is a file.")
    if out.is_dir() and any(out.iterdir()):
        raise qq.InvalidInput(f"--out {str(out)!r} holds files already: choose another folder.")
    there = next(one for one in (out, *out.absolute().parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise qq.InvalidInput(f"--out must lie in a folder that can be written to, not {str(out)!r}.")
    return out
