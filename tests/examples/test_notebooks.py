"""The notebooks run from the first cell to the last, on small settings, and publish what is certified."""

import os
from pathlib import Path

import pytest

nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from quietq.mechanisms.release_file import open_release  # noqa: E402

FOLDER = Path(__file__).parents[2] / "examples"
SMALL = {
    "dosing": {"PEOPLE": 60, "NEW_PATIENTS": 20},
    "cartpole_from_sessions": {"PEOPLE": 40, "TRAINING_STEPS": 2048, "EPISODES": 2},
}
FILES = {
    "dosing": {"world.qq", "not_private_glucose.png"},
    "cartpole_from_sessions": {"world.qq", "policy.qq", "not_private_episodes.png"},
}


def run(name: str, folder: Path, **settings: object) -> None:
    """With these settings in place of those in the cell that is tagged for it."""
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    (parameters,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    parameters.source += "".join(f"\n{key} = {value!r}" for key, value in settings.items())
    nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()


def test_the_committed_files_hold_no_output():
    for name in SMALL:
        notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert all(not cell.outputs and cell.execution_count is None for cell in code)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dosing", "cartpole_from_sessions"])
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FOLDER.parent / "src"), os.environ.get("PYTHONPATH", "")]))
    run(name, tmp_path, **SMALL[name], FOLDER="out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES[name]
    for path in (tmp_path / "out").glob("*.qq"):
        certificate = open_release(path).certificate
        assert certificate.standing == "certified"
        assert certificate.epsilon == pytest.approx(0.944, abs=1e-3)  # the rest is for the check
