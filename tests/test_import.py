"""What `import quietq` brings along, and which room may import which."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import quietq

ROOMS = (
    "privacy", "ledger", "noise", "feedback", "released", "mechanisms", "worlds", "online", "publishing", "audit",
    "paper", "cli",
)  # fmt: skip
RIGHTWARDS = {("released/private_world.py", "worlds")}
"""`PrivateWorld.env` is a way of calling what makes an environment of it."""
SLOW = ("gymnasium", "jax", "numpy", "quietq.paper.agents", "quietq.privacy", "scipy")
HEAVY = ("jax", "dp_accounting", "torch", "scipy.optimize", "scipy.signal", "matplotlib", "polars", "ray")


def seconds(statement: str) -> float:
    code = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    return min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )


def test_import_is_light():
    code = f"import sys, quietq, quietq.cli; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "command", ["", "--version", "--help", "paper", "paper train --help", "audit --help", "paper methods --json"]
)
def test_what_only_tells_imports_nothing_slow(command):
    code = f"""
import atexit, sys
sys.argv = ["quietq", *{command!r}.split()]
atexit.register(lambda: print([name for name in {SLOW!r} if name in sys.modules], file=sys.stderr))
from quietq.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stderr.strip(), bool(done.stdout)) == ("[]", True)


def test_gymnasium_finds_the_worlds_by_the_room_that_they_are_in():
    """Nothing is hooked into Python's imports, and `import quietq` alone registers nothing."""
    code = """
import sys, quietq, gymnasium
assert not [one for one in gymnasium.registry if one.startswith("quietq/")]
assert not [one for one in sys.meta_path if type(one).__module__.startswith("quietq")]
walk, thermostat = (gymnasium.make(f"quietq.worlds:quietq/{name}-v0") for name in ("Walk", "Thermostat"))
print(walk.unwrapped.world.name, thermostat.action_space.n)
assert len([one for one in gymnasium.registry if one.startswith("quietq/")]) == 3
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("walk 3\n", "")


def test_import_costs_little_more_than_what_it_stands_on():
    assert seconds("import quietq") < 2.5 * seconds("import numpy, scipy.special, jaxtyping")


def imports(path: Path) -> list[str]:
    """All that a file imports, wherever in it, by full names."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, path
            found += [f"{node.module}.{one.name}" for one in node.names]
    return found


def test_no_room_imports_one_to_its_right_and_nothing_but_the_command_line_the_paper():
    root = Path(quietq.__file__).parent
    files = [path for room in ROOMS for path in (root / room).rglob("*.py")]
    assert len(files) > 150
    for path in files:
        room = ROOMS.index(path.relative_to(root).parts[0])
        others = {name.split(".")[1] for name in imports(path) if name.startswith("quietq.")}
        right = others & set(ROOMS[room + 1 :])
        assert {(path.relative_to(root).as_posix(), one) for one in right} <= RIGHTWARDS, path
    assert not any("paper" in name for path in root.glob("*.py") for name in imports(path))
