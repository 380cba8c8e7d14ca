import importlib
import os
import pickle
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import polars as pl
import pytest

from quietq import Budget, privatise
from quietq.feedback.comparisons import Comparisons
from quietq.feedback.feedback import Feedback, engine_called
from quietq.feedback.ratings import Ratings
from quietq.feedback.returns import Returns
from quietq.feedback.row_statistics import ClippedGradient, Marginals
from quietq.feedback.sessions import Sessions
from quietq.feedback.statistic import Vector
from quietq.noise.box import Box
from quietq.noise.feature_maps import Polynomials
from quietq.privacy.errors import EngineFailed, InvalidInput, MissingExtra

ray = pytest.importorskip("ray")
from quietq.feedback import ray_engine, rows  # noqa: E402 - some need Ray
from quietq.feedback.ray_engine import ray_session  # noqa: E402

# Ray leaves sockets and files to the garbage collector, and announces changes of its own
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Tip. In future versions of Ray:FutureWarning"),
]

PEOPLE = 60
ROWS_EACH = 24
ONE: dict[str, Any] = {"box": (0, 2), "low": 0.0, "high": 1.0, "slope": 3.0, "people": PEOPLE + 5}
TWO: dict[str, Any] = ONE | {"box": [(0, 2), (-1, 1)], "state": ("state", "other"), "slope": None}


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with ray_session(num_cpus=2):  # as it is started for whoever has none
        yield


def ratings(names: bool) -> pl.DataFrame:
    """Every person's k-th row is among the k-th sixty, so that any split by row number tears everybody apart."""
    generator = np.random.default_rng(0)
    rows = PEOPLE * ROWS_EACH
    person = np.tile(np.arange(PEOPLE), ROWS_EACH)
    return pl.DataFrame(
        {
            "person": [f" Person {i}" if k % 2 else f"PERSON {i} " for k, i in enumerate(person)] if names else person,
            "state": generator.uniform(-0.1, 2.1, rows),
            "other": generator.uniform(-1.0, 1.0, rows),
            "rating": np.where(generator.random(rows) < 0.05, np.nan, generator.uniform(-0.2, 1.2, rows)),
        }
    )


def files(frame: pl.DataFrame, folder: Path, count: int, suffix: str) -> list[Path]:
    """File j holds the rows k with k // PEOPLE = j modulo the number of files."""
    paths = []
    turn = np.arange(frame.height) // PEOPLE % count
    for j in range(count):
        paths.append(folder / f"{j}.{suffix}")
        part = frame.filter(pl.Series(turn == j))
        part.write_csv(paths[-1]) if suffix == "csv" else part.write_parquet(paths[-1], row_group_size=100)
    return paths


def assert_same(one: Ratings, other: Ratings) -> None:
    assert one.not_private == other.not_private
    statistic = one.asked
    if statistic is None:
        assert one.loss is not None
        statistic = Marginals(one.loss, one.box.dimension, 1)
    assert np.array_equal(one.mean(statistic), other.mean(statistic))


@pytest.mark.slow
def test_rows_do_not_go_with_their_cluster() -> None:
    """They lie in files of this process, so that another Ray can be asked when one was stopped."""
    # The first test of this file: it starts and stops Ray twice, which cannot be while `cluster` is there
    table, read = kept("ratings")
    local = read(table)
    with ray_session(num_cpus=1):
        people = read(table, engine="ray")
        with pytest.raises(InvalidInput, match="cannot be copied elsewhere"):
            pickle.dumps(people)
    with ray_session(num_cpus=2):
        assert np.array_equal(people.mean(gradient(people)), local.mean(gradient(local)))
        assert privatise(people, Budget(1.0, 1e-5)).certificate.standing == "certified"


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("count", "suffix", "names", "kind"),
    [
        (8, "csv", True, "one"),
        (3, "parquet", False, "two"),
        (1, "parquet", True, "one"),
        *(
            pytest.param(count, suffix, names, kind, marks=pytest.mark.slow)
            for count in (1, 3, 8)
            for suffix in ("csv", "parquet")
            for names in (False, True)
            for kind in ("one", "two")
        ),
    ],
)
def test_same_as_on_one_machine(tmp_path: Path, count: int, suffix: str, names: bool, kind: str) -> None:
    frame = ratings(names)
    how: dict[str, Any] = TWO if kind == "two" else ONE
    local = Ratings.read(frame, **how)
    assert local.not_private["people_present"] == PEOPLE
    assert local.not_private["used_rows"] < local.not_private["rows"]
    told = []
    spread = Ratings.read(files(frame, tmp_path, count, suffix), engine=engine_called("ray", told.append), **how)
    assert_same(spread, local)
    assert told[-1] == frame.height


@pytest.mark.usefixtures("cluster")
def test_ranges_of_one_file_and_frames_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BATCH", 37)
    frame = ratings(names=False)
    first, *rest = (frame[k::5] for k in range(5))
    path = files(first, tmp_path, 1, "parquet")[0]
    rest[0].with_columns(pl.format("00{}.0", "person").alias("person")).write_csv(tmp_path / "named.csv")
    mixed = [path, str(tmp_path / "named.csv"), rest[1], [rest[2].lazy(), rest[3].to_pandas()]]
    assert_same(Ratings.read(mixed, engine="ray", **ONE), Ratings.read(frame, **ONE))


@pytest.mark.usefixtures("cluster")
def test_more_people_than_declared(tmp_path: Path) -> None:
    paths = files(ratings(names=False), tmp_path, 3, "csv")
    enough: dict[str, Any] = ONE | {"people": PEOPLE}
    too_few: dict[str, Any] = ONE | {"people": PEOPLE - 1}
    with pytest.raises(InvalidInput, match=f"more people in the data than the {PEOPLE - 1}"):
        Ratings.read(paths, engine="ray", **too_few)
    assert Ratings.read(paths, engine="ray", **enough).not_private["people_present"] == PEOPLE


@pytest.mark.usefixtures("cluster")
def test_refusals_in_the_same_words(tmp_path: Path) -> None:
    frame = ratings(names=False)
    frame.drop("state").write_parquet(tmp_path / "short.parquet")
    for source, message in (
        (tmp_path / "none.csv", "There is no file"),
        ([], "There is no file or data frame"),
        (7, "not int"),
        (tmp_path / "short.parquet", "There is no column 'state'"),
        (frame.drop("state"), "There is no column 'state'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            Ratings.read(source, engine="ray", **ONE)


@pytest.mark.usefixtures("cluster")
def test_what_a_task_refuses_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "torn.parquet"
    ratings(names=False).write_parquet(path, row_group_size=100, compression="zstd")
    data = bytearray(path.read_bytes())
    data[8:2000] = bytes(1992)
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match=r"^The ratings could not be read") as caught:
        Ratings.read(path, engine="ray", **ONE)
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.__context__ is None


# Rows that are kept, to be asked again on the cluster


def kept(kind: str) -> tuple[pl.DataFrame, Callable[..., Feedback]]:
    """States on a coarse grid, so that the order of a person's rows must not hang on one column; and how to read."""
    table, rng = ratings(names=True).rename({"state": "a", "other": "b"}), np.random.default_rng(1)
    box = [(0.0, 2.0), (-1.0, 1.0)]
    table = table.with_columns(pl.Series("a", rng.integers(0, 3, table.height) / 1.0))
    if kind == "ratings":
        return table, partial(Ratings.read, state=["a", "b"], box=box, low=0, high=1, people=PEOPLE)
    other = table.select("person", "a", "b").with_columns(c=2 - pl.col("a"), d=pl.lit(0.5))
    said = pl.Series("choice", rng.choice(["left", "right", "tie"], table.height))
    read = partial(Comparisons.read, left=["a", "b"], right=["c", "d"], box=box, people=PEOPLE)
    return other.with_columns(said), read


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("kind", "batch"), [("ratings", 10**6), ("ratings", 100), ("comparisons", 500)])
def test_any_buckets_and_order_gives_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, batch: int
) -> None:
    monkeypatch.setattr(rows, "BATCH", batch)
    frame, read = kept(kind)
    local = read(frame)
    frame.sample(fraction=1, shuffle=True, seed=batch).write_parquet(tmp_path / "shuffled.parquet")
    spread = read(tmp_path / "shuffled.parquet", engine="ray")
    assert spread.not_private == local.not_private
    assert local.loss is not None
    for statistic in (Marginals(local.loss, 2, 8), gradient(local)):
        assert np.array_equal(spread.mean(statistic), local.mean(statistic))
    one, other = (privatise(people, Budget(1.0, 1e-5), simulate=3) for people in (local, spread))
    assert np.array_equal(one.weights, other.weights)


@pytest.mark.usefixtures("cluster")
def test_sessions_are_paired_where_a_persons_rows_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their steps, in any order of rows, or by the order of rows over several files."""
    monkeypatch.setattr(rows, "BATCH", 150)
    rng, number = np.random.default_rng(0), 600
    frame = pl.DataFrame({"t": np.arange(number) // 30, "person": np.arange(number) % 30, "x": rng.random(number),
                          "go": rng.choice(["yes", "no"], number), "r": rng.random(number)})  # fmt: skip
    frame = frame.filter(pl.Series(rng.random(number) > 0.1)).with_columns(visit=pl.col("t") // 7)
    frame.sample(fraction=1, shuffle=True, seed=0).write_parquet(tmp_path / "shuffled.parquet")
    frame[:200].write_csv(tmp_path / "first.csv")
    frame[200:].write_parquet(tmp_path / "second.parquet")
    declared: dict[str, Any] = {"episode": "visit", "state": "x", "action": "go", "actions": ["no", "yes"],
                                "reward": "r", "box": (0, 1), "people": 30}  # fmt: skip
    returns = Returns(
        (lambda states: np.tile([0.2, 0.8], (len(states), 1)),), lambda states: np.full((len(states), 2), 0.5),
        Box.of((0, 1)), 2, (0.0, 1.0), (0.0, 9.0), 0.9, False,
    )  # fmt: skip
    in_order = [tmp_path / "first.csv", tmp_path / "second.parquet"]
    for sources, step in (((frame, tmp_path / "shuffled.parquet"), "t"), ((frame, in_order), None)):
        local, spread = (Sessions.read(source, **declared, step=step, engine=engine)  # type: ignore[arg-type]
                         for source, engine in zip(sources, ("local", "ray"), strict=True))  # fmt: skip
        assert spread.not_private == local.not_private
        assert np.array_equal(spread.mean(returns), local.mean(returns))


@pytest.mark.usefixtures("cluster")
def test_no_rows_at_all() -> None:
    frame, read = kept("ratings")
    for none in (frame.clear(), frame.with_columns(rating=pl.lit(None, pl.Float64))):
        with pytest.warns(UserWarning, match="No row of the ratings can be used"):
            local, spread = (read(none, engine=engine) for engine in ("local", "ray"))
        assert spread.not_private == local.not_private
        assert np.array_equal(spread.mean(gradient(spread)), local.mean(gradient(local)))


def gradient(people: Feedback) -> ClippedGradient:
    features = Polynomials(2, ((), ((0, 1),), ((1, 3),), ((0, 1), (1, 2))))
    assert people.loss is not None
    return ClippedGradient(people.loss, features, np.array([0.1, -0.3, 0.2, 0.5]), 0.1)


@dataclass(frozen=True)
class Deadly(Vector):
    """The worker that is asked this ends."""

    size = 1
    bound = 1.0

    def of_people(self, starts, columns):
        os._exit(1)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_worker_that_dies() -> None:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    rows, read = kept("ratings")
    people = read(rows, engine="ray")
    with pytest.raises(EngineFailed, match="failed with WorkerCrashedError"):
        people.mean(Deadly())
    assert np.isfinite(people.mean(gradient(people))).all()  # the others' rows are still there, and theirs too


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "quietq.feedback.ray_engine", raising=False)
    with pytest.raises(MissingExtra, match=r"^The Ray engine needs Ray: .*pip install .*\[ray\]'$"):
        importlib.import_module("quietq.feedback.ray_engine")


def own_processes() -> dict[int, str]:
    """This process and all that come from it, with their command lines."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return {process: Path(f"/proc/{process}/cmdline").read_text() for process in found}


def listening() -> list[tuple[int, str, int]]:
    """The process, the address and the port of each socket on which one of them waits for others."""
    waits = "0A"
    places = {}
    for line in (line for file in ("tcp", "tcp6") for line in Path(f"/proc/net/{file}").read_text().splitlines()[1:]):
        _, local, _, state, *_, inode = line.split()[:10]
        if state == waits:
            address, port = local.split(":")
            words = b"".join(struct.pack("=I", int(address[i : i + 8], 16)) for i in range(0, len(address), 8))
            family = socket.AF_INET if len(words) == 4 else socket.AF_INET6
            places[inode] = socket.inet_ntop(family, words), int(port, 16)
    found = []
    for process in own_processes():
        for file in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                inode = os.readlink(file).removeprefix("socket:[").removesuffix("]")
                if inode in places:
                    found.append((process, *places[inode]))
    return found


def answer(port: int, method: str, token: str | None) -> bytes:
    """What a server says to an empty gRPC request: its status, or whatever it is if it does not speak gRPC."""

    def frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
        return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content

    fields = {":method": "POST", ":scheme": "http", ":path": f"/ray.rpc.{method}", ":authority": "here",
              "content-type": "application/grpc", "te": "trailers"}  # fmt: skip
    fields |= {} if token is None else {"authorization": f"Bearer {token}"}
    pairs = ((name.encode(), value.encode()) for name, value in fields.items())
    head = b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in pairs)
    request = frame(4, 0, 0, b"") + frame(1, 4, 1, head) + frame(0, 1, 1, bytes(5))
    said = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + request)
        while b"grpc-status" not in said and (part := connection.recv(65536)):
            said += part
    return said.partition(b"grpc-status")[2] or said


@pytest.mark.usefixtures("cluster")
def test_no_other_machine_can_talk_to_a_ray_of_our_own() -> None:
    places = listening()
    assert len({process for process, *_ in places}) >= 4  # this one, the servers and the workers
    assert {address for _, address, _ in places} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


@pytest.mark.usefixtures("cluster")
def test_nobody_without_the_token_can_talk_to_a_ray_of_our_own() -> None:
    file = Path.home() / ".ray" / "auth_token"
    assert file.stat().st_mode & 0o077 == 0
    token = file.read_text().strip()
    methods = ("NodeInfoGcsService/GetAllNodeInfo", "NodeManagerService/GetNodeStats", "ObjectManagerService/Pull",
               "CoreWorkerService/GetCoreWorkerStats")  # fmt: skip
    fine, refused, processes, answered = b"\x010", b"\x0216", own_processes(), set()
    for process, _, port in listening():
        served = [method for method in methods if answer(port, method, token).startswith(fine)]
        answered.update(served)
        for wrong in (None, token[::-1]):
            assert all(answer(port, method, wrong).startswith(refused) for method in served)
        if not served:  # it speaks plain HTTP
            metrics = "monitor.py" in processes[process]  # tells how many machines there are, and nothing else
            with nullcontext() if metrics else pytest.raises(HTTPError, match="401"):
                urlopen(f"http://127.0.0.1:{port}").close()
    assert answered == set(methods)


@pytest.mark.usefixtures("cluster")
def test_no_other_user_can_open_the_folder_of_a_ray_of_our_own() -> None:
    paths = {line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines() if "plasma_store" in line}
    ours = [Path(path) for path in paths if path.split("/sockets/")[0].endswith(f"_{os.getpid()}")]
    assert ours
    for path in ours:
        assert any(folder.stat().st_mode & 0o777 == 0o700 for folder in path.parents)


def test_a_ray_that_would_ask_for_no_token_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", None)
    with pytest.raises(InvalidInput, match=r"^RAY_AUTH_MODE must be token, or not set, not 'disabled'"), ray_session():
        pass


@pytest.mark.parametrize(
    "fault", ["listens on other interfaces", "requires no token", "cannot be kept to this machine"]
)
def test_a_ray_that_is_open_to_others_is_stopped(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Whatever a later version does."""
    from ray import _raylet
    from ray._private import ray_constants

    started, stopped = [], []
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", lambda *_, **__: started.append(ray_constants.ENABLE_RAY_CLUSTER))
    monkeypatch.setattr(ray, "shutdown", lambda: stopped.append(True))
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "192.0.2.7" if "other" in fault else "127.0.0.1")
    monkeypatch.setattr(_raylet, "get_authentication_mode", lambda: None)
    usual = ray_constants.ENABLE_RAY_CLUSTER
    if "cannot" in fault:
        monkeypatch.delattr(ray_constants, "ENABLE_RAY_CLUSTER")
    with pytest.raises(EngineFailed, match=rf"^Ray \S+ {fault}.*RAY_ADDRESS; nothing was read\.$"), ray_session():
        pass
    assert (started, stopped) == (([], []) if "cannot" in fault else ([False], [True]))
    assert "cannot" in fault or usual == ray_constants.ENABLE_RAY_CLUSTER


def test_only_the_user_can_read_the_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    ray_engine._hide_token()
    (file,) = (tmp_path / ".ray").iterdir()
    assert (file.name, file.stat().st_mode & 0o777, len(file.read_text())) == ("auth_token", 0o600, 64)
    file.write_text("another")  # which may be in use
    file.chmod(0o644)
    ray_engine._hide_token()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("another", 0o600)
    monkeypatch.setenv("HOME", "/dev/null")
    with pytest.raises(InvalidInput, match="RAY_AUTH_TOKEN_PATH must name a file"):
        ray_engine._hide_token()


OWN = """if True:
    import gc, polars, ray
    from quietq.feedback.ratings import Ratings
    from quietq.feedback.row_statistics import Marginals
    ratings = polars.DataFrame({"person": [1, 1, 2], "state": [0.0, 1.0, 0.5], "rating": [0.0, 1.0, 1.0]})
    Ratings.read(ratings, box=(0, 1), low=0, high=1, slope=1, people=2, engine="ray")
    gc.collect()  # Ray may have caught an exception on the way, in whose frames people are held
    assert not ray.is_initialized()
    two = dict(box=[(0, 1)] * 2, state=["state", "b"], low=0, high=1, people=2, engine="ray")
    ratings = ratings.with_columns(b=polars.lit(0.5))
    one, other = Ratings.read(ratings, **two), Ratings.read(ratings, **two)
    del one
    assert ray.is_initialized() and other.mean(asked := Marginals(other.loss, 2, 2)).shape == (asked.size,)
    print(ray.get_runtime_context().get_node_id(), ray.nodes()[0]["RayletSocketName"].split("/r/session_")[0])
    if ENDS:
        del other
        gc.collect()
        assert not ray.is_initialized()
"""


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False], ids=["with the last people", "with Python"])
def test_its_own_ray_lives_as_long_as_it_is_needed_and_prints_nothing(tmp_path: Path, ends: bool) -> None:
    code = OWN.replace("ENDS", str(ends))
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("192.0.2.7:6379")  # anybody can write it where Ray looks
    environment = os.environ | {"RAY_TMPDIR": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    node, folder = result.stdout.split()
    assert not Path(folder).exists()
    time.sleep(2)
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not any(node.encode() in line for line in running)


@pytest.mark.slow
def test_its_own_ray_and_its_folder_do_not_outlive_a_killed_process() -> None:
    code = OWN.partition("    if ENDS")[0] + "    import sys, time; sys.stdout.flush(); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        _, folder = process.stdout.readline().split()
        process.kill()
    assert Path(folder).exists()
    time.sleep(5)
    assert not any(folder.encode() in path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline"))
    rows, read = kept("ratings")
    read(rows)
    assert not Path(folder).exists()


@pytest.mark.usefixtures("cluster")
def test_a_kind_of_feedback_that_it_has_never_heard_of(tmp_path: Path) -> None:
    import head_count
    from head_count import Answers, Leaning

    ray.cloudpickle.register_pickle_by_value(head_count)  # the workers do not have this folder
    rows = ratings(names=True).with_columns(pl.when(pl.col("other") < 0).then(pl.lit("No")).otherwise(pl.lit("yes")))
    rows = rows.rename({"literal": "answer"})
    paths = files(rows, tmp_path, 3, "csv")
    local, spread = (Answers.read(paths, people=PEOPLE, engine=engine) for engine in ("local", "ray"))
    often = Answers.read(paths, people=PEOPLE, engine="ray", keep=True)
    assert np.array_equal(local.mean(Leaning()), spread.mean(Leaning()))
    assert np.array_equal(local.mean(Leaning()), often.mean(Leaning()))
    assert local.not_private == spread.not_private
