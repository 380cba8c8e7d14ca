"""What is in the wheel and in the sdist: all that is needed, and nothing else."""

import subprocess
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from environments import ROOT, build

import quietq

pytest.importorskip("hatchling")
SOURCE = ROOT / "src" / "quietq"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ABOUT = f"quietq-{quietq.__version__}.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build(tmp_path_factory.mktemp("wheel")))


def listed(*options: str) -> set[str]:
    """The files that git knows."""
    done = subprocess.run(["git", "ls-files", *options], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a checkout")
    return {name for name in done.stdout.splitlines() if (ROOT / name).exists()}


def test_the_wheel_is_the_package_and_its_licence(wheel):
    files = {path.relative_to(SOURCE.parent).as_posix() for path in SOURCE.rglob("*") if path.is_file()}
    package = {name for name in files if "__pycache__" not in name}
    assert {"quietq/py.typed", "quietq/publishing/server/page/index.html", "quietq/cli/report/page.css"} <= package
    about = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert set(wheel.namelist()) == package | {f"{ABOUT}/{name}" for name in about}


def test_what_the_wheel_says_of_itself(wheel):
    said = message_from_bytes(wheel.read(f"{ABOUT}/METADATA"))
    assert (said["Name"], said["Version"], said["License-Expression"]) == ("quietq", quietq.__version__, "Apache-2.0")
    assert said["Requires-Python"] == ">=3.11"
    assert set(said.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    bare = [line for line in said.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert len(bare) == len(PROJECT["dependencies"])
    assert "quietq = quietq.cli:main" in wheel.read(f"{ABOUT}/entry_points.txt").decode()
    assert wheel.read(f"{ABOUT}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


def test_the_sdist_is_all_of_the_project(tmp_path):
    project, new = listed(), listed("--others", "--exclude-standard")
    with tarfile.open(build(tmp_path, "sdist")) as archive:
        names = {Path(*Path(one.name).parts[1:]).as_posix() for one in archive if one.isfile()}
    assert project - names == set()
    assert names - project - new == {"PKG-INFO"}


def test_classifiers_are_true_and_known():
    known = pytest.importorskip("trove_classifiers").classifiers  # comes with hatchling
    assert set(PROJECT["classifiers"]) <= known
    versions = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if " :: 3." in line}
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert all(f'"{version}"' in workflow for version in versions)
    assert not [line for line in PROJECT["classifiers"] if line.startswith("License")]  # the expression says it


def test_every_dependency_says_its_oldest_version():
    from oldest import pins

    assert len(pins(list(PROJECT["optional-dependencies"]), torch=True)) > 40
