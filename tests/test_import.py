"""What `import quietq` brings along."""

import subprocess
import sys

import pytest

SLOW = ("gymnasium", "jax", "numpy", "quietq.learning", "quietq.privacy", "scipy")
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
    "command", ["", "--version", "--help", "train", "train --help", "audit --help", "methods --json"]
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


@pytest.mark.parametrize(
    "imports",
    ["import quietq, gymnasium", "import gymnasium, quietq", "import quietq.worlds, gymnasium",
     "import quietq; from gymnasium.envs import registration; import gymnasium"],
)  # fmt: skip
def test_the_worlds_are_registered_whatever_is_imported_first(imports):
    code = f"""
{imports}
import sys
assert len([one for one in gymnasium.registry if one.startswith("quietq/")]) == 4
assert not [one for one in sys.meta_path if type(one).__module__.startswith("quietq")]
print(gymnasium.make("quietq/Walk-v0").unwrapped.world.name, gymnasium.make("quietq/Thermostat-v0").action_space.n)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("walk 3\n", "")


def test_import_costs_little_more_than_what_it_stands_on():
    assert seconds("import quietq") < 2.5 * seconds("import numpy, scipy.special, jaxtyping")
