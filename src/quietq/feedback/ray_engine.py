"""People added up on a Ray cluster: each piece of a source, and each bucket, is a task.

Rows lie in files of this user's temporary folder, which every machine of the cluster must see under the same path, as
it must see the source's own files. Only tallies and counts come back; noise is drawn by whoever asks, never in a task,
so one that is run again draws nothing anew. No budget is touched here.

Whoever has no Ray gets one of our own on this machine: no other machine and no other user can talk to it. Left to
itself, Ray listens on all interfaces, takes up any cluster that a file in a folder open to everybody names, and lets
everybody write to its own folder, in which the rows lie that do not fit into its memory. Here it is told to

- start anew, and look for no other;
- listen on the loopback interface only;
- ask whoever connects for a token, which is in a file that only the user can read;
- keep its sockets, logs and rows in a folder that only the user can open, and that is removed at the end.

If one of them does not hold, it is not started, or stopped at once. What listens where is in `docs/scale.md`.
"""

import atexit
import itertools
import logging
import os
import secrets
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from quietq.privacy.errors import EngineFailed, InvalidInput, MissingExtra, QuietqError

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
except ImportError as error:
    raise MissingExtra.of("ray", "The Ray engine needs Ray") from error

from quietq.feedback.buckets import SHORT_PLACE, rows_folder
from quietq.feedback.feedback import Engine, in_turn

QUIET: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
_LOOPBACK = ("127.0.0.1", "::1")
_LONGEST_PLACE = 16  # bytes; Ray's sockets lie 87 deeper, and their paths may not be longer than 103
_ADVICE = "Start a Ray of your own, with a token, and name it in RAY_ADDRESS; nothing was read."
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


class RayEngine(Engine):
    """The Ray that is initialised, or the one at RAY_ADDRESS, or else one of our own.

    One of our own ends with the last engine that used it, or with Python.
    """

    in_memory = False
    _own: ExitStack | None = None

    def map(self, function: Callable[[_Item], _Made], items: Iterable[_Item]) -> Iterator[_Made]:
        items = iter(items)
        first = list(itertools.islice(items, 1))  # what is refused at once starts no Ray
        if not first:
            return
        self._own = _own_ray()
        run, shared = ray.remote(_run), ray.put(function)
        ahead = 4 * int(ray.cluster_resources().get("CPU", 1))
        yield from in_turn(lambda item: run.remote(shared, item), _result, itertools.chain(first, items), ahead)


def _run(function: Callable[[_Item], _Made], item: _Item) -> _Made:
    """Runs in a task."""
    return function(item)


def _result(begun: "ray.ObjectRef[_Made]") -> _Made:
    """What a task refused is refused here in the same words; of other failures no more is said than their kind."""
    try:
        return ray.get(begun)
    except RayError as error:
        failure = _refusal(error)
    raise failure  # here, so that nothing of the worker's is carried along


def _refusal(error: RayError) -> QuietqError:
    cause: BaseException | None = error
    while isinstance(cause, RayError) or (cause is not None and not isinstance(cause, QuietqError)):
        cause = getattr(cause, "cause", None) or cause.__cause__
    if cause is not None:
        return type(cause)(str(cause).splitlines()[0])  # Ray adds lines of its own
    kind = type(error.cause if isinstance(error, RayTaskError) else error).__name__
    return EngineFailed(f"A task on the Ray cluster failed with {kind}; its logs there say more.")


_running: "weakref.ref[ExitStack] | None" = None


def _own_ray() -> ExitStack | None:
    """A Ray that was started here, for as long as somebody holds this; None where somebody else's is initialised."""
    global _running
    if ray.is_initialized():
        return None if _running is None else _running()
    own, ends = ExitStack(), ExitStack()
    ends.enter_context(ray_session())
    ended = weakref.finalize(own, ends.close)
    ended.atexit = False
    atexit.register(ended)  # which comes before the folder of our own Ray is removed
    _running = weakref.ref(own)
    return own


@contextmanager
def ray_session(**options: Any) -> Iterator[None]:
    """Ray, at RAY_ADDRESS or else our own, until the end, unless somebody else stops it or this is a fork."""
    with ExitStack() as folders:
        if os.environ.get("RAY_ADDRESS", "") in ("", "local"):
            _refuse_without_token()
            _hide_token()
            place = tempfile.gettempdir()
            short = place if len(os.fsencode(place)) <= _LONGEST_PLACE else SHORT_PLACE
            _start(folders.enter_context(rows_folder(short)), options)
        else:
            ray.init(**QUIET, **options)
        process, name = os.getpid(), session_name()
        try:
            yield
        finally:
            if os.getpid() == process and ray.is_initialized() and session_name() == name:
                ray.shutdown()


def session_name() -> tuple[str, str]:
    """Returns what tells the Ray that is initialised from any other."""
    here = ray.get_runtime_context()
    return here.get_node_id(), here.get_job_id()


def _refuse_without_token() -> None:
    mode = os.environ.get("RAY_AUTH_MODE", "token")
    if mode.lower() != "token":
        raise InvalidInput(
            f"RAY_AUTH_MODE must be token, or not set, not {mode!r}: else every user of this machine could read "
            "the rows from the Ray that is started here. Nothing was read."
        )


def _start(folder: Path, options: dict[str, Any]) -> None:
    try:  # there are no public names for them
        from ray._private import ray_constants
        from ray._raylet import AuthenticationMode, get_authentication_mode  # pyright: ignore[reportAttributeAccessIssue]

        usual = ray_constants.ENABLE_RAY_CLUSTER
    except (ImportError, AttributeError) as error:
        raise EngineFailed(f"Ray {ray.__version__} cannot be kept to this machine. {_ADVICE}") from error
    ray_constants.ENABLE_RAY_CLUSTER = False  # then a node's address is that of the loopback interface
    try:  # Ray opens the folder that it is given to everybody: it is one in ours
        ray.init("local", _temp_dir=str(folder / "r"), **QUIET, **options)
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = usual
    alone = ray.util.get_node_ip_address() in _LOOPBACK
    if not alone or get_authentication_mode() != AuthenticationMode.TOKEN:
        ray.shutdown()
        fault = "requires no token" if alone else "listens on other interfaces than loopback"
        raise EngineFailed(f"Ray {ray.__version__} {fault}. {_ADVICE}")


def _hide_token() -> None:
    """Makes sure that only the user can read the token, which Ray itself would write for everybody to read."""
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return
    try:
        file = Path.home() / ".ray" / "auth_token"  # where Ray looks for it
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), tempfile.NamedTemporaryFile("w", dir=file.parent) as new:
            new.write(secrets.token_hex(32))
            new.flush()
            os.link(new.name, file)  # never in the place of one that is in use
        file.chmod(0o600)
    except (OSError, RuntimeError) as error:  # Path.home raises the second for a user whom the system does not know
        raise InvalidInput(
            f"RAY_AUTH_TOKEN_PATH must name a file with a token, as ~/.ray cannot hold one ({type(error).__name__}). "
            "Nothing was read."
        ) from error
