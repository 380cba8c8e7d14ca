"""Where people are added up: an engine is a `map` over pieces of a source and over buckets, and nothing else.

What is mapped are pure functions of rows, or of files that hold them: an engine may run them anywhere, in any order and
again, and neither sums nor counts change by a bit.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar, Literal, TypeVar

from quietq.privacy.errors import InvalidInput

EngineName = Literal["local", "ray"]
Progress = Callable[[int], None]
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
_Begun = TypeVar("_Begun")


class Engine:
    """Something that runs a function on many items: here the cores of this machine, as threads.

    NumPy and Polars let threads run side by side.
    """

    in_memory: ClassVar[bool] = True
    """Whether what is mapped sees this process's memory; else rows are in files that it can open."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress
        """Told the number of rows read so far."""

    def map(self, function: Callable[[_Item], _Made], items: Iterable[_Item]) -> Iterator[_Made]:
        """What the function makes of each item, in turn; items are taken as they are needed."""
        if isinstance(items, list) and len(items) == 1:  # not worth a thread
            yield function(items[0])
            return
        workers = min(len(os.sched_getaffinity(0)), 8)
        with ThreadPoolExecutor(workers) as pool:

            def begin(item: _Item) -> Future[_Made]:
                return pool.submit(function, item)

            yield from in_turn(begin, Future[Any].result, items, ahead=workers)


def engine_called(name: "EngineName | Engine", progress: Progress | None = None) -> Engine:
    """One of both engines, by the name that `read` takes; `progress` is told the number of rows read so far."""
    if isinstance(name, Engine):
        return name
    if name == "local":
        return Engine(progress)
    if name == "ray":
        from quietq.feedback.ray_engine import RayEngine

        return RayEngine(progress)
    raise InvalidInput(f"engine must be 'local' or 'ray', not {name!r}.")


def in_turn(
    begin: Callable[[_Item], _Begun], end: Callable[[_Begun], _Made], items: Iterable[_Item], ahead: int
) -> Iterator[_Made]:
    """What comes of each item in the end; so many are begun before the first has ended."""
    begun: deque[_Begun] = deque()
    for item in items:
        begun.append(begin(item))
        if len(begun) > ahead:
            yield end(begun.popleft())
    while begun:
        yield end(begun.popleft())
