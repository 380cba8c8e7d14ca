"""Work that takes a while: in threads beside the loop that serves everybody, by turns, for those who still wait."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fastapi import Request

from quietq.server.limits import MOST_WAITING, Refusal

Found = TypeVar("Found")


class Turns:
    """So many threads, and a bounded number of requests that wait for them."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._free = asyncio.Semaphore(threads)
        self._waiting = 0

    async def take(self, request: Request, work: Callable[[], Found]) -> Found:
        """What the work gives, once it is this request's turn; nothing is done for a client that has hung up."""
        if self._waiting >= MOST_WAITING:
            raise Refusal(503, "Too many large requests wait already: ask again in a moment.")
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            if await request.is_disconnected():
                raise Refusal(400, "The client has hung up.")  # nobody reads this, but it is counted
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._free.release()
