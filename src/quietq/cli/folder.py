"""The folder of a run: which files there are, which of them can be published, and how they are written."""

import json
import os
from datetime import datetime
from pathlib import Path

import quietq as qq

AGENT = "agent.qq"
REWARD = "reward.qq"
CERTIFICATE = "certificate.json"
SCORES = "NOT-PRIVATE-scores.json"
README = "README.txt"
CONFIG = "config.json"
RELEASED = {
    AGENT: "the agent: released values, certificate and settings; Agent.load, quietq.load and quietq serve read it",
    CERTIFICATE: "what is promised, to whom and under which assumptions",
    REWARD: "the private reward that the agent was trained on",
}
"""What can be published when the certificate says `certified`."""


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


def write(path: Path, data: str | bytes) -> None:
    """Writes a file, whole or not at all; what is private, by its name, is readable by its owner only."""
    from quietq.released.release_file import write_whole

    mode = 0o600 if path.name.startswith(("NOT-PRIVATE", "PRIVATE")) else 0o666
    write_whole(path, data.encode() if isinstance(data, str) else data, mode)


def write_json(path: Path, record: object) -> None:
    write(path, json.dumps(record, indent=2, allow_nan=False) + "\n")


def write_note(out: Path, standing: str | None) -> None:
    """README.txt: which files are private, and which can be published. `standing` is None while training goes on."""
    first_lines = {
        None: "Training has not ended: publish nothing of it but reward.qq, if it is there, a release of its own.",
        "certified": "What may be published, under the promise in certificate.json:",
        "claimed": "Not private: the certificate repeats a claim whose proof does not hold. Publish nothing of it:",
        "none": "Not private: no promise is made (see certificate.json). Publish nothing of it:",
    }
    released = [f"  {name}: {what}" for name, what in RELEASED.items() if (out / name).exists()]
    text = [
        first_lines[standing],
        *released,
        "",
        "For you: it names files of this machine.",
        f"  {CONFIG}: everything needed to repeat the training",
        "",
        "NOT PRIVATE, for you only, whatever the certificate says: they depend on the true reward.",
        f"  {SCORES}: how well the released policies do",
    ]
    write(out / README, "\n".join(text) + "\n")
