"""The commands of docs/serving.md work as they are written."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser import serving_here

from quietq.publishing.server.run import read_token

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")


def block(language: str, word: str) -> str:
    """The one block in a language that holds a word."""
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if word in text]
    return found


@pytest.fixture(scope="module")
def url(files):
    with serving_here(*files.values(), hosts=["127.0.0.1"]) as address:
        yield address


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_asking_by_curl(url):
    commands = block("sh", "/healthz").replace("http://127.0.0.1:8080", url).replace("curl -s", "curl -sSf")
    done = subprocess.run(["sh", "-ec", commands], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for word in (
        '"releases":[',
        '"values":[[',
        '"actions":[',
        '"plain":[',
        '"status":"ok"',
        "quietq_requests_total",
    ):
        assert word in done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_asking_with_the_token(files, tmp_path):
    def run(commands: str) -> str:
        return subprocess.run(["sh", "-ec", commands], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    before, after = block("sh", "umask").split("quietq serve agent.qq --token-file token\n")
    run(before)
    assert {(tmp_path / name).stat().st_mode & 0o77 for name in ("token", "header")} == {0}
    with serving_here(files["agent"], token=read_token(tmp_path / "token")) as guarded:
        assert '"releases":[' in run(after.replace("http://127.0.0.1:8080", guarded))


def test_asking_by_python(url):
    code = block("python", "urlopen").replace("http://127.0.0.1:8080", url)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "certified (10000, 3)\n", done.stderr


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_an_episode_by_curl(stages, stage):
    with serving_here(stages["cart"], hosts=["127.0.0.1"]) as address:
        command = block("sh", "/rollout").replace("http://127.0.0.1:8080", address).replace("curl -s", "curl -sSf")
        command = f"WORLD={stage.entries['cart'].record.id}; {command}"
        done = subprocess.run(["sh", "-ec", command], capture_output=True, text=True)
    assert '"states":[[' in done.stdout, done.stderr
    assert '"reason":"' in done.stdout
