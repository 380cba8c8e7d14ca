"""The wheel in environments that were empty before: alone, and with each extra.

What lacks an extra says which command installs it, and that very command is run here: then it works. Takes minutes, and
packages from an index.
"""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from environments import ROOT, build, can_install_torch, create, run

pytest.importorskip("hatchling")
pytestmark = pytest.mark.slow
START = """
import json, subprocess, sys, urllib.request
from pathlib import Path
import quietq as qq

def release():
    relation = qq.people(50, low=0, high=0.5, slope=1)
    mechanism = qq.GaussianProcessMechanism.for_relation(relation, qq.Budget(0.9, 1e-4), levels=6)
    return mechanism.apply(lambda state: 0.5 - abs(state - 0.5))

def quietq(line):
    done = subprocess.run([sys.executable, "-m", "quietq.cli", *line.split()], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.removeprefix("quietq: "), end="")
        sys.exit(done.returncode)
    return done.stdout

def ratings():
    rows = [f"{person},{(person * 7 % 40) / 40},{person % 5 / 4}" for person in range(40)]
    Path("ratings.csv").write_text("person,state,rating\\n" + "\\n".join(rows) + "\\n")
    return "reward ratings.csv --people 40 --box 0 1 --low 0 --high 1 --slope 1 --epsilon 1 --delta 1e-3 --json"
"""
BARE = """
import importlib.util
qq.publish(release(), "reward.qq")
assert abs(qq.load("reward.qq")([0.5])[0]) < 10
assert quietq("--version").strip() == qq.__version__
assert "evaluate-policies" in quietq("--help")
assert json.loads(quietq("verify reward.qq --json"))["privacy"] == "certified"
quietq("calibrate --epsilon 0.9 --delta 1e-4 --people 50 --low 0 --high 0.5 --slope 1")
quietq("paper methods"), quietq("paper train --help"), quietq("ledger --help")
assert not [name for name in ("jax", "polars", "matplotlib", "fastapi") if importlib.util.find_spec(name)]
"""
WORKS = {
    "examples": "quietq('demo --quick --out demo'); assert Path('demo/report.html').exists()",
    "ledger": "quietq('ledger create books --source people --epsilon 1 --delta 1e-5'); quietq('ledger show books')",
    "people": "assert json.loads(quietq(ratings() + ' --out reward.qq'))['certificate']['standing'] == 'certified'",
    "ray": "assert json.loads(quietq(ratings() + ' --out reward.qq --engine ray'))['not_private']['rows'] == 40",
    "report": "from quietq.cli.report import plot_function; plot_function(release(), Path('reward.png'))",
    "serve": """
qq.publish(release(), "reward.qq")
command = [sys.executable, "-m", "quietq.cli", "serve", "reward.qq", "--port", "0", "--json"]
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
    line = server.stdout.readline()
    if not line:
        print(server.communicate()[1].removeprefix("quietq: "), end="")
        sys.exit(server.returncode)
    record = json.loads(line)
    name = record["releases"][0]["id"]
    try:
        url = f"{record['url']}/v1/releases/{name}/values?state=0.3"
        assert len(json.load(urllib.request.urlopen(url))["values"]) == 1
        assert b"<html" in urllib.request.urlopen(record["url"]).read()
    finally:
        server.terminate()
""",
    "sign": """
qq.publish(release(), "reward.qq")
try:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    key, pem, public = Ed25519PrivateKey.generate(), serialization.Encoding.PEM, serialization.PublicFormat
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    Path("key").write_bytes(secret)
    Path("key.pub").write_bytes(key.public_key().public_bytes(pem, public.SubjectPublicKeyInfo))
except ImportError:  # publishing says what is missing
    pass
quietq("publish reward.qq --out signed.qq --sign key")
assert json.loads(quietq("verify signed.qq --key key.pub --json"))["signer_checked"]
""",
    "paper": "assert json.loads(quietq('paper train none walk --steps 300 --out run --json'))['not_private']['score']",
}
"""What an extra is for, that says what is missing where it is not there."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """An environment with the wheel alone."""
    wheel = build(tmp_path_factory.mktemp("wheel"))
    folder = tmp_path_factory.mktemp("bare") / "environment"
    create(folder, str(wheel))
    return folder


def copy(bare: Path, folder: Path) -> Path:
    """The Python of another one like it; nothing that pip installs there is seen from the first."""
    shutil.copytree(bare, folder / "environment", symlinks=True)
    return folder / "environment" / "bin" / "python"


def install(bare: Path, folder: Path, extra: str) -> Path:
    python, wheel = copy(bare, folder), next((bare.parents[1]).glob("wheel*/*.whl"))
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[{extra}]")
    return python


def test_alone(bare, tmp_path):
    run(bare / "bin" / "python", "-c", START + BARE, folder=tmp_path)
    assert run(bare / "bin" / "quietq", "--version", folder=tmp_path).count(".") == 2


@pytest.mark.parametrize("extra", WORKS)
def test_what_an_extra_is_for_and_the_command_that_installs_it(extra, bare, tmp_path):
    python, folder = copy(bare, tmp_path), tmp_path / "work"
    folder.mkdir()
    code = (
        f"{START}\ntry:\n" + "\n".join(f"    {line}" for line in WORKS[extra].strip().splitlines())
        + "\nexcept qq.MissingExtra as error:\n    print(error)\n    sys.exit(2)\n"
    )  # fmt: skip
    told = run(python, "-c", code, folder=folder, fails=True)
    assert install_what_it_says(python, told, folder) == extra
    run(python, "-c", code, folder=folder)


def install_what_it_says(python: Path, sentence: str, folder: Path) -> str:
    """Runs the command in a sentence: the extra that it installed."""
    found = re.fullmatch(r"[A-Z][^:]* needs? [^:]*: (\S.* install \S.*\[(\w+)\].*)\n", sentence)
    assert found is not None, sentence
    command = shlex.split(found[1])
    assert Path(command[0]).parent == python.parent
    subprocess.run([*command, "--quiet"], check=True, cwd=folder, timeout=1800)
    return found[2]


def test_all(bare, tmp_path):
    python = install(bare, tmp_path, "all")
    folder = tmp_path / "work"
    folder.mkdir()
    for extra in WORKS.keys() - {"examples"}:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        run(python, "-c", START + WORKS[extra], folder=folder)


def test_docs(bare, tmp_path):
    run(install(bare, tmp_path, "docs"), "-m", "mkdocs", "build", "--quiet", "-f", str(ROOT / "mkdocs.yml"), "-d",
        str(tmp_path / "site"))  # fmt: skip
    assert (tmp_path / "site" / "index.html").exists()


@pytest.mark.skipif(not can_install_torch(), reason="PyTorch would be gigabytes here")
def test_notebooks(bare, tmp_path):
    """Everything that they import is there; one is run."""
    python = install(bare, tmp_path, "notebooks")
    code = f"""
import importlib, re, sys, nbclient, nbformat
from pathlib import Path
folder = Path({str(ROOT / "examples")!r})
sys.path.append({str(ROOT)!r})  # as notebooks do
for path in folder.glob("*.ipynb"):
    cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    for name in re.findall(r"^(?:import|from) ([\\w.]+)", "\\n".join(cells), re.M):
        importlib.import_module(name)
notebook = nbformat.read(folder / "dosing.ipynb", 4)
[cell] = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
cell.source += "\\nPEOPLE, NEW_PATIENTS, FOLDER = 60, 20, 'out'"
nbclient.NotebookClient(notebook, timeout=600, resources={{"metadata": {{"path": {str(tmp_path)!r}}}}}).execute()
"""
    run(python, "-c", code, folder=tmp_path)
    assert (tmp_path / "out" / "world.qq").exists()


@pytest.mark.skipif(not can_install_torch(), reason="PyTorch would be gigabytes here")
def test_bench(bare, tmp_path):
    """Nothing that pip installs is missing for any benchmark."""
    python = install(bare, tmp_path, "bench")
    code = "from benchmarks.needs import missing_packages; assert missing_packages() == {}, missing_packages()"
    run(python, "-c", f"import sys; sys.path.append({str(ROOT)!r}); {code}", folder=tmp_path)
