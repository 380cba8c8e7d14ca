"""Tasks on Ray: the same numbers as on this machine, and nothing is lost with a worker."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_tasks import at_home, dies_once, fails, of, square, trains

import reproduction
from quietq.privacy.errors import MissingExtra
from reproduction.engine import carry_out
from reproduction.experiment import task
from reproduction.results import Cache

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Tip. In future versions of Ray:FutureWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray")
    found = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    here = {"env_vars": {"PYTHONPATH": found}, "py_modules": [str(Path(reproduction.__file__).parent)]}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", runtime_env=here)
    yield
    ray.shutdown()


@pytest.mark.slow  # Ray itself is started by default in tests/feedback/test_ray.py
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


class StandIn:
    """Ray's calls that the engine makes, one task after the other in this process."""

    def __init__(self) -> None:
        self.settings, self.sent, self.cancelled, self.ended = {}, [], [], False

    def is_initialized(self):
        return False

    @contextmanager
    def session(self, **settings):
        self.settings = settings
        yield
        self.ended = True

    def remote(self, **options):
        assert (options["num_cpus"], options["max_retries"] > 1) == (1, True)

        def send(work, task):
            self.sent.append(task)
            return lambda: work(task)

        return lambda work: SimpleNamespace(remote=lambda task: send(work, task))

    def wait(self, references, num_returns):
        return references[:num_returns], references[num_returns:]

    def get(self, reference):
        return reference()

    def cancel(self, reference):
        self.cancelled.append(reference)


def test_what_is_sent_where_and_that_nothing_is_left_behind(tmp_path, monkeypatch):
    marks, ray = tmp_path / "marks", StandIn()
    monkeypatch.setitem(sys.modules, "ray", ray)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "quietq.feedback.own_ray", SimpleNamespace(ray_session=ray.session))  # type: ignore[arg-type]
    tasks = [of(at_home, 3, marks, process=os.getpid()), of(square, 2, marks)]
    found = carry_out(tasks, Cache(None), "ray")
    assert found == carry_out(tasks, Cache(None))
    assert ray.sent == tasks[1:]  # the other uses files of this machine
    assert ray.settings["runtime_env"]["py_modules"] == [str(Path(reproduction.__file__).parent)]
    assert (ray.cancelled, ray.ended) == ([], True)
    failing = [of(fails, 7, marks), of(square, 5, marks)]
    with pytest.raises(ArithmeticError, match="7 is too much"):
        carry_out(failing, Cache(None), "ray")
    assert len(ray.cancelled) == 1  # nobody waits for the other


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_an_error_comes_back_as_it_was(tmp_path):
    with pytest.raises(ArithmeticError, match="7 is too much"):
        carry_out([of(fails, 7, tmp_path / "marks")], Cache(None), "ray")


def test_without_ray(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match="The Ray engine needs Ray"):
        carry_out([of(square, 2, tmp_path / "marks")], Cache(None), "ray")
