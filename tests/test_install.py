"""What `make demo` shows while pip works."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "tools" / "install.py"
LINES = """\
Obtaining file:///somewhere/quietq
  Installing build dependencies: started
Collecting numpy>=2.0 (from quietq==0.1.0)
  Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (16.6 MB)
Collecting jax[cpu]>=0.10 (from quietq==0.1.0)
  Using cached jax-0.10.2-py3-none-any.whl (3.1 MB)
Requirement already satisfied: numpy>=1.0 in ./somewhere (from scipy)
Processing /somewhere/rich-15.0.0-py3-none-any.whl (from quietq==0.1.0)
Installing collected packages: rich, numpy, jax, quietq
"""


@pytest.fixture(scope="module")
def install():
    spec = importlib.util.spec_from_file_location("install", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_pip_says_is_told_with_how_far_it_is(install):
    progress = install.Progress(8)
    told = [progress.hear(line) for line in LINES.splitlines()]
    assert told == [
        "looking for quietq", None, "looking for numpy", "downloading numpy, 16.6 MB", "looking for jax",
        "using cached jax, 3.1 MB", None, "looking for rich", "writing 4 packages",
    ]  # fmt: skip
    assert progress.found == {"quietq", "numpy", "jax", "rich"}
    assert progress.status(30.0, 0) == "[0 of 4 written]"  # and no seconds, which nobody knows
    assert progress.status(45.0, 2) == "[2 of 4 written]"


def test_the_time_left_is_by_packages_found(install):
    progress = install.Progress(70)
    assert progress.status(1.0, 0).endswith("some minutes left]")
    for number in range(35):
        progress.hear(f"Collecting package{number}")
    assert progress.status(20.0, 0) == "[35 of about 70 found, about 60 seconds left]"
    for number in range(100):
        progress.hear(f"Collecting package{number}")
    assert progress.status(70.0, 0).startswith("[100 of about 100 found, about ")  # more than was thought


def test_what_pip_cannot_install_is_told_as_pip_tells_it(tmp_path):
    command = [sys.executable, SCRIPT, str(tmp_path / "nothing"), "3"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "ERROR" in done.stdout
    assert "another try is quicker" in done.stdout
