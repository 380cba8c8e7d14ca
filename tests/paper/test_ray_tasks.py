"""Tasks on Ray: the same numbers as on this machine, and nothing is lost with a worker."""

import os
import sys
from pathlib import Path

import pytest
from small_tasks import at_home, dies_once, fails, of, square, trains

import paper
from paper.engine import carry_out
from paper.experiment import task
from paper.results import Cache
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
    marks, kept = tmp_path / "marks", Cache(tmp_path / "cache")
    tasks = [of(square, 2, marks), of(at_home, 3, marks, process=os.getpid()), of(dies_once, 7, marks)]
    tasks.append(task("trainings", "a training", trains, seed=1))
    (tmp_path / "marks.7").touch()  # or it would die here
    local = carry_out(tasks, Cache(None), "local")
    (tmp_path / "marks.7").unlink()
    found = carry_out(tasks, kept, "ray")
    assert (tmp_path / "marks.7").exists()  # it did die
    assert found == local
    assert [rows[0].get("square") for rows in found.values()] == [4, 9, 49, None]
    assert all(kept.get(task) == found[task] for task in tasks)


@pytest.mark.usefixtures("cluster")
def test_an_error_comes_back_as_it_was(tmp_path):
    with pytest.raises(ArithmeticError, match="7 is too much"):
        carry_out([of(fails, 7, tmp_path / "marks")], Cache(None), "ray")


def test_without_ray(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"quietq\[ray\]"):
        carry_out([of(square, 2, tmp_path / "marks")], Cache(None), "ray")
