"""The hashes of `tools/released_bits.py`: repeatable, of every kind of release, and changed by one altered number."""

import importlib.util
import inspect
import json
import os
import random
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quietq.mechanisms.candidates import MECHANISMS
from quietq.online import POLICIES
from quietq.paper.methods import METHODS

SCRIPT = Path(__file__).parents[1] / "tools" / "released_bits.py"
FEW = "exact"  # three cases of exact noise, of milliseconds


@pytest.fixture(scope="module")
def bits() -> Any:
    spec = importlib.util.spec_from_file_location("released_bits", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*options: str | Path, only: str = FEW) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--only", only, *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_two_processes_release_the_same_bits_and_an_altered_number_is_found(tmp_path: Path) -> None:
    first, again = run("--out", tmp_path / "old.json"), run("--compare", tmp_path / "old.json")
    hashes = json.loads((tmp_path / "old.json").read_text())
    assert sorted(hashes) == list(hashes) == ["noise/exact normals", "noise/exact path", "noise/exact sum"]
    assert all(len(one) == 64 for one in hashes.values())
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert "same: 3" in again.stdout
    alone = run("--compare", tmp_path / "old.json", only="exact sum")  # which then is what imports the package
    assert (alone.returncode, "same: 1" in alone.stdout) == (0, True), alone.stdout + alone.stderr
    altered = hashes | {"noise/exact sum": "0" * 64, "noise/exact removed": "1" * 64, "not asked for": "2" * 64}
    (tmp_path / "old.json").write_text(json.dumps(altered))
    other = run("--compare", tmp_path / "old.json")
    assert other.returncode == 1
    assert other.stdout.endswith("differs: 1\n  noise/exact sum\ngone: 1\n  noise/exact removed\nnew: 0\n")


@pytest.mark.parametrize(
    "other",
    [
        [np.array([0.1, np.nextafter(0.2, 1)]), 1, "a"],  # a last bit
        [np.array([[0.1, 0.2]]), 1, "a"],
        [np.array([0.1, 0.2], np.float32), 1, "a"],
        [np.array([0.1, 0.2]), 1.0, "a"],
        [np.array([0.1, 0.2]), 1, "b"],
        [np.array([0.1, 0.2]), 1],
    ],
)
def test_whatever_differs_has_another_hash(bits: Any, other: list[Any]) -> None:
    assert bits.sha([np.array([0.1, 0.2]), 1, "a"]) == bits.sha((np.array([0.1, 0.2]), 1, "a"))
    assert bits.sha(other) != bits.sha([np.array([0.1, 0.2]), 1, "a"])


def test_what_has_no_numbers_of_its_own_is_not_hashed(bits: Any) -> None:
    """An address or a name of a module would change where no number does."""
    for value in (object(), np.array([object()])):
        with pytest.raises(TypeError, match="no"):
            bits.sha(value)


def test_what_was_removed_is_gone_and_what_fails_stops_nothing(bits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        def begin(self, name: str) -> None: ...

    monkeypatch.setitem(bits.CASES, "removed", lambda: bits.find("NeverThere"))
    monkeypatch.setitem(bits.CASES, "failing", lambda: 1 / 0)
    monkeypatch.setitem(bits.WHERE, "SeededEntropy", ("quietq.nowhere", "quietq.privacy", "quietq.noise"))
    monkeypatch.setitem(bits.CASES, "moved", lambda: bits.find("SeededEntropy")(7).normals((3,)))
    found = {name: outcome for name, outcome, _ in bits.run(["removed", "failing", "moved"], Stream())}
    assert found == {
        "removed": "gone",
        "failing": "error: ZeroDivisionError",
        "moved": bits.sha(np.random.Generator(np.random.Philox(7)).standard_normal(3)),
    }
    groups = bits.compare({"removed": "x", "failing": "error: ZeroDivisionError"}, found)
    assert groups == {"same": [], "differs": ["failing"], "gone": ["removed"], "new": ["moved"]}


def test_importing_it_leaves_the_generator_alone(bits: Any) -> None:
    assert inspect.isbuiltin(os.urandom)
    assert isinstance(getattr(secrets.randbits, "__self__", None), random.SystemRandom)


def test_there_is_a_case_for_all_that_is_registered(bits: Any) -> None:
    names = "\n".join(bits.CASES)
    methods = {find_name for find_name, _ in bits.METHODS.values()} | {"Published"}
    assert methods == {kind.__name__ for kind in METHODS.values()}
    assert "evaluation/lsw" in names
    assert set(MECHANISMS) - {"moments"} <= {name.rpartition("/")[2] for name in bits.CASES}
    assert "world/linear" in names  # by moments
    assert {policy.__name__ for policy in POLICIES} <= set(bits.BANDITS)
