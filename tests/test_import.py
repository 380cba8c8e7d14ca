"""What `import quietq` brings along."""

import subprocess
import sys

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


def test_import_costs_little_more_than_what_it_stands_on():
    assert seconds("import quietq") < 2.5 * seconds("import numpy, scipy.special, jaxtyping")
