"""The folder of a run: which files there are, which of them may leave, and how they are written."""

import json
import os
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path

import quietq as qq

AGENT = "agent.qq"
REWARD = "reward.qq"
CERTIFICATE = "certificate.json"
SCORES = "NOT-PRIVATE-scores.json"
README = "README.txt"
METRICS = "NOT-PRIVATE-metrics.csv"
CONFIG = "config.json"


class DemoFile(StrEnum):
    """The files that `quietq demo` writes besides those that a training writes too."""

    RATINGS = "PRIVATE-ratings.csv"
    RATED_CANDIDATES = "PRIVATE-candidates.csv"
    REWARD_PLOT = "reward.png"
    VALUES_PLOT = "values.png"
    CANDIDATES = "candidates.qq"
    CANDIDATES_MAP = "candidates.png"
    REPORT = "report.html"
    OUTCOME_PLOT = "NOT-PRIVATE-outcome.png"
    TRUE_MAP = "NOT-PRIVATE-candidates.png"
    OUTCOME_REPORT = "NOT-PRIVATE-report.html"


RELEASED = {
    AGENT: "the agent: released values, certificate and settings; Agent.load, quietq.load and quietq serve read it",
    CERTIFICATE: "what is promised, to whom and under which assumptions",
    REWARD: "the private reward that the agent was trained on",
}
"""What may leave when the certificate says `certified`."""


def choose(out: Path | None, name: str) -> Path:
    """The folder for a new run: free, and where something can be written."""
    if out is None:
        name = f"{name.replace('/', '-')}-{datetime.now():%Y%m%d-%H%M%S}"
        tries = (Path("runs") / (name if i == 0 else f"{name}-{i + 1}") for i in range(1000))
        out = next(one for one in tries if not one.exists())
    if out.exists() and not out.is_dir():
        raise qq.InvalidInput(f"--out must name a folder, and {str(out)!r} is a file.")
    if out.is_dir() and any(out.iterdir()):
        raise qq.InvalidInput(f"--out {str(out)!r} holds files already: choose another folder.")
    there = next(one for one in (out, *out.absolute().parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise qq.InvalidInput(f"--out must lie in a folder that can be written to, not {str(out)!r}.")
    return out


def write(path: Path, data: str | bytes, owner_only: bool | None = None) -> None:
    """Writes a file, whole or not at all; by its name, what is not private is readable by its owner only."""
    from quietq.released.release_file import write_whole

    if owner_only is None:
        owner_only = path.name.startswith(("NOT-PRIVATE", "PRIVATE"))
    write_whole(path, data.encode() if isinstance(data, str) else data, 0o600 if owner_only else 0o666)


def write_json(path: Path, record: object) -> None:
    write(path, json.dumps(record, indent=2, allow_nan=False) + "\n")


def write_returns(out: Path, returns: Sequence[Sequence[float]]) -> None:
    rows = [f"{run},{i},{value!r}" for run, values in enumerate(returns) for i, value in enumerate(values)]
    write(out / METRICS, "\n".join(["run,episode,return", *rows]) + "\n")


def write_note(out: Path, standing: str | None, sees_truth: bool) -> None:
    """README.txt: which files are private, and which may leave. `standing` is None while training goes on."""
    first_lines = {
        None: "Training has not ended: nothing here may leave but reward.qq, if it is there, a release of its own.",
        "certified": "What may be published, under the promise in certificate.json:",
        "claimed": "Not private: the certificate repeats a claim whose proof does not hold. Publish nothing of it:",
        "none": "Not private: no promise is made (see certificate.json). Publish nothing of it:",
    }
    released = [f"  {name}: {text}" for name, text in RELEASED.items() if (out / name).exists()]
    lines = [
        first_lines[standing],
        *released,
        "",
        "For you: it names files of this machine.",
        f"  {CONFIG}: everything needed to repeat the training",
        "",
        "NOT PRIVATE, for you only, whatever the certificate says: they look at the true reward.",
        f"  {SCORES}: how well the released policies do",
    ]
    if sees_truth:
        lines.append(f"  {METRICS}: returns of the episodes of training")
    write(out / README, "\n".join(lines) + "\n")
