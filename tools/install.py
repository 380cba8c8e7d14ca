"""Installs with pip, and shows what it does and about how long is left: `python tools/install.py '.[examples]' 60`.

The number is about how many packages it will be; pip itself knows only once it has found all of them. Until then, the
time left is estimated by the time so far and the packages to come. Once files are written there is no such estimate,
because packages differ a thousandfold in size: only how many are written is told. Nothing but Python itself is needed.
"""

import importlib.metadata
import importlib.util
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOUND = re.compile(r"(?:Collecting|Requirement already satisfied:|Obtaining|Processing) (\S+)")
FETCHED = re.compile(r"\s*(Downloading|Using cached) (\S+) \(([^)]+)\)")
LISTED = re.compile(r"Installing collected packages: (.*)")
FINDING = 0.5
"""Of all the time that it takes, about so much goes into finding and downloading, and the rest into writing files."""
LAST = 30
"""Lines of pip that are shown if it fails."""


def load_words():
    """How the demo words an estimate; its file needs no package."""
    spec = importlib.util.spec_from_file_location("progress", ROOT / "src" / "quietq" / "progress.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.write_seconds


words = load_words()


def name_of(what: str) -> str:
    """Of a requirement, a file of a package, or this folder."""
    if what.startswith("file:"):
        return "quietq"
    what = what.rpartition("/")[2]
    return (what.split("-")[0] if what.endswith(".whl") else re.split(r"[<>=!~;\[(]", what)[0]).lower()


class Progress:
    """What pip's lines say about how far it is."""

    def __init__(self, expected: int) -> None:
        self.found: set[str] = set()
        self.expected, self.doing = expected, "starting pip"
        self.listed: tuple[str, ...] = ()

    def hear(self, line: str) -> str | None:
        """What to show of a line of pip; None for what says nothing new."""
        if match := FOUND.match(line):
            name = name_of(match[1])
            if name in self.found:
                return None
            self.found.add(name)
            self.doing = f"looking for {name}"
        elif match := FETCHED.match(line):
            self.doing = f"{match[1].lower()} {match[2].split('-')[0]}, {match[3]}"
            if match[2].endswith(".metadata"):
                return None
        elif match := LISTED.match(line):
            self.listed = tuple(match[1].split(", "))
            self.doing = f"writing {len(self.listed)} package{'s' * (len(self.listed) > 1)}"
        else:
            return None
        return self.doing

    def status(self, seconds: float, written: int) -> str:
        if self.listed:
            return f"[{written} of {len(self.listed)} written]"
        done = f"{len(self.found)} of about {max(self.expected, len(self.found))} found"
        share = FINDING * min(0.97, len(self.found) / self.expected)
        left = f"about {words(seconds * (1 - share) / share)} left" if share > 0.05 else "some minutes left"
        return f"[{done}, {left}]"


def count_written(names: tuple[str, ...]) -> int:
    there = {str(one.metadata["Name"]).lower().replace("_", "-") for one in importlib.metadata.distributions()}
    return sum(name.lower().replace("_", "-") in there for name in names)


def install(what: str, expected: int, more: list[str]) -> int:
    """Pip's exit code."""
    terminal, began, progress, lines = sys.stdout.isatty(), time.monotonic(), Progress(expected), queue.Queue()
    command = [sys.executable, "-m", "pip", "install", "--progress-bar", "off", *more, what]
    print(f"Installing {what} with pip: about {expected} packages, a minute or two with a fast network.", flush=True)
    pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)

    def read() -> None:
        assert pip.stdout is not None
        for line in pip.stdout:
            lines.put(line.rstrip())
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    heard, line = [], ""
    while line is not None:
        try:
            line = lines.get(timeout=1 if terminal else 10)
        except queue.Empty:
            line = ""
        heard.append(line)
        shown = progress.hear(line) if line else progress.doing
        if shown is not None and line is not None:
            text = f"{progress.status(time.monotonic() - began, count_written(progress.listed))} {shown}"
            print(f"\r{text[:119]}\x1b[K" if terminal else text, end="" if terminal else "\n", flush=True)
    code, seconds = pip.wait(), time.monotonic() - began
    print("\r\x1b[K" if terminal else "", end="")
    if code != 0:
        print("\n".join([line for line in heard if line][-LAST:]))
        print(f"pip could not install {what}: see above. What it has downloaded is kept, so another try is quicker.")
    else:
        print(f"Installed in {words(seconds)}.", flush=True)
    return code


if __name__ == "__main__":
    try:
        sys.exit(install(sys.argv[1], int(sys.argv[2]), ["--editable"]))
    except KeyboardInterrupt:
        print("\nStopped. What pip has downloaded is kept in its cache: the same command goes on from there.")
        sys.exit(130)
