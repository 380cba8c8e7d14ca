"""Ctrl-C in the middle: it ends at once, in a sentence, and nothing that was done is lost."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")


def test_ctrl_c_ends_at_once_and_keeps_what_is_done(tmp_path: Path) -> None:
    environment = os.environ | {"QUIETQ_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "reproduction", "claims", "--quick", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment, cwd=Path(__file__).parents[2]
    )
    kept = tmp_path / "cache" / "paper"
    for _ in range(2400):
        if list(kept.glob("*.json")):
            break
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "what is done is kept" in told
    assert "Traceback" not in told
    assert list(kept.glob("*.json"))
    assert not list((tmp_path / "out").iterdir())
