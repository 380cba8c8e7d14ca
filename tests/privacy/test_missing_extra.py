"""Whoever lacks an optional dependency is told a command that installs it from where quietq came."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import quietq
from quietq import MissingExtra

SOURCE = Path(quietq.__file__).parent
ROOT = SOURCE.parents[1]
PACKAGES = {
    "minari": "minari",
    "examples": "statsmodels", "ledger": "sqlalchemy psycopg",
    "people": "polars", "ray": "ray", "report": "matplotlib", "serve": "fastapi prometheus-client uvicorn",
    "sign": "cryptography", "paper": "jax equinox optax",
}  # fmt: skip
ASK = """
import importlib, json, sys, traceback
import numpy as np
import quietq as qq

def block(*names):
    for name in names:
        sys.modules[name] = None

def ask(call, *arguments):
    try:
        call(*arguments)
    except qq.MissingExtra as error:
        print(json.dumps([traceback.extract_tb(error.__traceback__)[-1].filename, str(error)]))

def command(line):
    from quietq.cli.app import app
    import quietq.cli
    app(line.split(), standalone_mode=False)
"""
NOTHING_THERE = """
block("jax", "equinox", "optax", "polars", "ray", "sqlalchemy", "fastapi", "cryptography", "minari")
for name in ("paper.agents", "paper.attacks", "ledger", "feedback.schema", "feedback.ray_engine"):
    ask(importlib.import_module, "quietq." + name)
present = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ("matplotlib", "statsmodels") else present(name, *rest)
command_lines = ["serve nothing.qq", "demo --out nothing"]
for line in command_lines:
    ask(command, line)
from quietq.cli import report
ask(report.require)
from quietq.released import signature
ask(signature.read_public_key, "nothing")
ask(qq.to_minari, None, None, "nothing-v0")
"""
SOME_THERE = """
from pathlib import Path
block("psycopg", "pyarrow")
from quietq.ledger import Ledger
ask(Ledger.create, "postgresql://nobody@localhost/nothing")
from quietq.online import Episodes
block("polars")
ask(lambda: Episodes(2, qq.Budget(1, 0), named=True))
"""


def told(code: str, folder: Path) -> list[tuple[str, str]]:
    """Where each sentence came from, and the sentence."""
    done = subprocess.run([sys.executable, "-c", ASK + code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == []
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def sites() -> list[str]:
    """The file of every place that makes a MissingExtra."""
    return sorted(
        str(file)
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise) and "MissingExtra" in ast.unparse(node)
    )


def requirements(extra: str) -> set[str]:
    """The packages that an extra brings, those of the extras that it names too."""
    named = set()
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ][extra]:
        found = re.match(r"([\w.-]+)(?:\[(.*?)\])?", line)
        assert found is not None
        inner = [requirements(other) for other in (found[2] or "").split(",")] if found[1] == "quietq" else []
        named |= {found[1]}.union(*inner)
    return named


def check(sentence: str) -> None:
    """That its command would install an extra of this checkout, into this Python."""
    before, _, command = sentence.partition(": ")
    assert re.search(r"^[A-Z].* needs? ", before)
    *pip, install, editable, what = shlex.split(command)
    assert (install, editable) == ("install", "-e")
    assert pip == ["pip"] or pip == [sys.executable, "-m", "pip"]
    found = re.fullmatch(r"(.*)\[(\w+)\]", what)
    assert found is not None
    assert Path(found[1]) == ROOT
    assert set(PACKAGES[found[2]].split()) <= requirements(found[2])


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="not a checkout")
def test_every_sentence_says_what_works(tmp_path):
    pytest.importorskip("jax")
    pytest.importorskip("sqlalchemy")
    given = told(NOTHING_THERE, tmp_path) + told(SOME_THERE, tmp_path)
    assert sorted(file for file, _ in given) == sites()  # each is asked for, and none twice
    for _, sentence in given:
        check(sentence)


def test_in_the_folder_of_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert str(MissingExtra.of("people", "This needs it")).endswith(" install -e '.[people]'")


def test_the_pip_of_another_python_is_not_meant(monkeypatch, tmp_path):
    (tmp_path / "pip").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert f": {shlex.quote(sys.executable)} -m pip install " in str(MissingExtra.of("people", "This needs it"))


@pytest.mark.parametrize(
    ("origin", "what"),
    [
        (None, ["quietq[people]"]),
        ({"url": SOURCE.as_uri(), "dir_info": {}}, [f"quietq[people] @ {SOURCE.as_uri()}"]),
        ({"url": "file:///gone/quietq.whl", "archive_info": {}}, ["-e", ".[people]"]),
        ({"url": "https://there/q", "vcs_info": {"vcs": "git"}}, ["quietq[people] @ git+https://there/q"]),
        (
            {"url": "https://there/q", "vcs_info": {"vcs": "git", "requested_revision": "v1"}, "subdirectory": "sub"},
            ["quietq[people] @ git+https://there/q@v1#subdirectory=sub"],
        ),
    ],
)
def test_outside_a_checkout(tmp_path, origin, what):
    place = tmp_path / "lib" / "site-packages"
    shutil.copytree(SOURCE / "privacy", place / "quietq" / "privacy")
    for name in ("__init__.py", "version.py"):
        shutil.copy(SOURCE / name, place / "quietq")
    (tmp_path / "lib" / "pyproject.toml").write_text('[project]\nname = "somebody-elses"\n')
    about = place / "quietq-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: quietq\nVersion: 0.1.0\n")
    if origin is not None:
        (about / "direct_url.json").write_text(json.dumps(origin))
    code = "from quietq import MissingExtra; print(MissingExtra.of('people', 'This needs it'))"
    environment = os.environ | {"PYTHONPATH": str(place)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    command = shlex.split(done.stdout, comments=True)
    assert command[command.index("install") + 1 :] == what


def test_an_environment_without_pip(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    sentence = str(MissingExtra.of("people", "This needs it"))
    assert f": uv pip install --python {shlex.quote(sys.executable)} " in sentence
