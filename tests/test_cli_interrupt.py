"""Ctrl-C in a command that spends says whether anything was spent: real processes, and a real SIGINT."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("polars")

ARGUMENTS = [
    *("--box", "0", "1", "--low", "0", "--high", "1", "--slope", "1"),
    *("--people", "3", "--epsilon", "1", "--delta", "1e-5", "--out", "reward.qq"),
]
WAITS = """
import sys, time
from quietq.cli import main, releasing

def wait(*_, **__):
    print("waiting", flush=True)
    time.sleep(60)

{where}
sys.argv = ["quietq", "reward", "ratings.csv", *sys.argv[1:]]
main()
"""
BEFORE = "releasing.check_outputs = wait"
AFTER = "releasing.publish = wait"


@pytest.mark.parametrize(
    ("where", "said"),
    [(BEFORE, "nothing was spent."), (AFTER, "the budget was charged already: what was drawn is lost unless")],
)
def test_ctrl_c_says_whether_anything_was_spent(tmp_path: Path, where: str, said: str) -> None:
    (tmp_path / "ratings.csv").write_text("person,state,rating\na,0.1,1\nb,0.5,0\nc,0.9,1\n")
    command = [sys.executable, "-c", WAITS.format(where=where), *ARGUMENTS]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "waiting\n"
    time.sleep(0.1)
    os.kill(child.pid, signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert f"quietq: stopped; {said}" in err
    assert "Traceback" not in err
    assert not (tmp_path / "reward.qq").exists()
