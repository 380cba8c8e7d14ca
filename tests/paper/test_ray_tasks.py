"""Tasks on Ray: the same numbers as on this machine, and nothing is lost with a worker."""

import importlib
import os
import sys
from pathlib import Path

import pytest
from small_tasks import AtHome, DiesOnce, Fails, Square, Trains

import paper
from paper import Shelf, carry_out
from quietq.privacy.errors import MissingExtra

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Tip. In future versions of Ray:FutureWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray")
    found = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    here = {"env_vars": {"PYTHONPATH": found}, "py_modules": [str(Path(paper.__file__).parent)]}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", runtime_env=here)
    yield
    ray.shutdown()


@pytest.mark.slow  # Ray itself is started by default in tests/rewards/test_ray.py
@pytest.mark.usefixtures("cluster")
def test_the_same_numbers_as_local_and_a_killed_worker_loses_nothing(tmp_path):
    marks, kept = str(tmp_path / "marks"), Shelf(tmp_path / "shelf")
    tasks = [Square(2, marks), AtHome(3, marks), DiesOnce(7, marks), Trains(1)]
    (tmp_path / "marks.7").touch()  # or it would die here
    local = carry_out(tasks, Shelf(None), "local")
    (tmp_path / "marks.7").unlink()
    found = carry_out(tasks, kept, "ray")
    assert (tmp_path / "marks.7").exists()  # it did die
    assert found == local
    assert [rows[0].get("square") for rows in found.values()] == [4, 9, 49, None]
    assert all(kept.get(task) == found[task] for task in tasks)


@pytest.mark.usefixtures("cluster")
def test_an_error_comes_back_as_it_was(tmp_path):
    with pytest.raises(ArithmeticError, match="7 is too much"):
        carry_out([Fails(7, str(tmp_path / "marks"))], Shelf(None), "ray")


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "paper.ray_engine", raising=False)
    with pytest.raises(MissingExtra, match=r"quietq\[ray\]"):
        importlib.import_module("paper.ray_engine")
