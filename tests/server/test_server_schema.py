"""Schemathesis, against a running server: no error of the server, and every answer as the OpenAPI document has it."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from browser import serving_here
from serving import TOKEN, running

pytestmark = pytest.mark.skipif(find_spec("schemathesis") is None, reason="needs Schemathesis")  # slow to import


def schemathesis(url: str, folder: Path, examples: int, *more: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--checks", "all", "--seed", "1",
        "--max-examples", str(examples), "--suppress-health-check", "all", "--no-color",
        "--header", f"Authorization: Bearer {TOKEN}", *more,
    ]  # fmt: skip
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1800)


def test_schemathesis_finds_nothing(files, tmp_path):
    with serving_here(files["agent"], files["function"], token=TOKEN) as url:
        done = schemathesis(url, tmp_path, 6)
    assert done.returncode == 0, done.stdout[-5000:]
    assert "Tested: 8" in done.stdout


@pytest.mark.slow
def test_schemathesis_finds_nothing_at_length(files, tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    options = ("--token-file", str(tmp_path / "token"))
    with running(files["agent"], files["function"], options=options, workers=2, log=tmp_path / "log") as server:
        done = schemathesis(server.url, tmp_path, 150)
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.slow
def test_schemathesis_finds_no_server_error_where_boxes_differ(files, tmp_path):
    with running(*files.values(), log=tmp_path / "log") as server:
        done = schemathesis(server.url, tmp_path, 150, "--exclude-checks", "positive_data_acceptance")
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cart", "pushed"])
def test_schemathesis_finds_nothing_in_a_world(kinds, tmp_path, name):
    with running(kinds[name], log=tmp_path / "log") as server:
        done = schemathesis(server.url, tmp_path, 100, "--exclude-checks", "positive_data_acceptance")
    assert done.returncode == 0, done.stdout[-5000:]
