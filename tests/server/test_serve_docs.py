"""The commands of docs/serving.md work as they are written."""

import os
import shlex
import shutil
import subprocess
import sys
from functools import partial
from unittest import mock

import pytest
from browser import serving_here
from keys import make_keys
from pages import blocks_of, page_named, print_of, run_command

from quietq.privacy.checks import plural
from quietq.publishing.server.run import read_token

PAGE = page_named("serving")


def block(language: str, word: str) -> str:
    """The one block in a language that holds a word."""
    (found,) = [text for spoken, text, _ in blocks_of(PAGE) if spoken == language and word in text]
    return found


def test_every_block_is_run_here():
    assert [language for language, _, reason in blocks_of(PAGE) if not reason] == ["sh", "sh", "python", "sh"]


def test_starting_it(files, kinds, tmp_path):
    """Each command as it stands, up to where its workers would start; `test_serve_process.py` starts some."""
    these = {"agent": files["agent"], "reward": files["function"], "world": kinds["cart"], "policy": kinds["driver"]}
    for name, file in these.items():
        shutil.copy(file, tmp_path / f"{name}.qq")
    run = partial(print_of, tmp_path)
    make_keys(tmp_path / "release-key")
    run(lambda: run_command(["publish", "agent.qq", "--out", "signed.qq", "--sign", "release-key"]))
    for command in block("sh", "--workers 2").splitlines():
        program, *arguments = shlex.split(command, comments=True)
        assert program == "quietq"
        with mock.patch.dict(os.environ), mock.patch("quietq.publishing.server.run.Multiprocess"):
            told = run(lambda arguments=arguments: run_command([*arguments, "--port", "0"]))
        assert f"serving {plural(command.count('.qq'), 'release')} on http://127.0.0.1:" in told


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
