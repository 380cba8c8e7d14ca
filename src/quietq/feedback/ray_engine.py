"""People added up on a Ray cluster: each piece of a source, and each bucket, is a task.

Rows lie in files of this user's temporary folder, which every machine of the cluster must see under the same path, as
it must see the source's own files. Only tallies and counts come back; noise is drawn by whoever asks, never in a task,
so one that is run again draws nothing anew. No budget is touched here.
"""

import atexit
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import ClassVar, TypeVar

from quietq.feedback.engines import Engine, in_turn
from quietq.feedback.own_ray import ray_session
from quietq.privacy.errors import EngineFailed, MissingExtra, QuietqError

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
except ImportError as error:
    raise MissingExtra.of("ray", "The Ray engine needs Ray") from error

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


class RayEngine(Engine):
    """The Ray that is initialised, or the one at RAY_ADDRESS, or else one of our own.

    One of our own ends with the last engine that used it, or with Python.
    """

    in_memory = False

    def __init__(self) -> None:
        self._own: _OwnRay | None = None

    def map(self, function: Callable[[_Item], _Made], items: Iterable[_Item]) -> Iterator[_Made]:
        items = iter(items)
        first = list(itertools.islice(items, 1))  # what is refused at once starts no Ray
        if not first:
            return
        self._own = _OwnRay.needed()
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


class _OwnRay:
    """A Ray that was started here, for as long as somebody holds this."""

    _running: "ClassVar[weakref.ref[_OwnRay] | None]" = None

    def __init__(self) -> None:
        ends = ExitStack()
        ends.enter_context(ray_session())
        ended = weakref.finalize(self, ends.close)
        ended.atexit = False
        atexit.register(ended)  # which comes before the folder of our own Ray is removed

    @classmethod
    def needed(cls) -> "_OwnRay | None":
        """The one that runs, or a new one; None where somebody else's is initialised."""
        if ray.is_initialized():
            return None if cls._running is None else cls._running()
        own = cls()
        cls._running = weakref.ref(own)
        return own
