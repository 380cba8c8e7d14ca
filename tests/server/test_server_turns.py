"""Large requests take turns: a bounded number waits, nothing is done for who has hung up, counters do not wait."""

import asyncio
import threading
from typing import Any

import httpx
import pytest
from fastapi import Request
from serving import WAIT, Asked

from quietq.server import endpoints
from quietq.server.limits import MOST_WAITING, Refusal
from quietq.server.turns import Turns


def request(*messages: dict[str, Any]) -> Request:
    """A request whose client says so much and then nothing more."""
    left = list(messages)

    async def receive() -> Any:
        if not left:
            await asyncio.sleep(WAIT)
        return left.pop(0)

    return Request({"type": "http", "headers": []}, receive)


def test_nothing_is_done_for_a_client_that_has_hung_up():
    async def ask() -> int:
        turns = Turns(1, "test")
        with pytest.raises(Refusal, match="hung up"):
            await turns.take(request({"type": "http.disconnect"}), lambda: pytest.fail("worked for nobody"))
        return await turns.take(request(), lambda: 3)  # its turn was given back

    assert asyncio.run(ask()) == 3


def test_those_who_wait_are_bounded_and_counters_do_not_wait(files, monkeypatch):
    fresh, go, answer = Asked(files), threading.Event(), endpoints.body_answered

    def slow(*given):
        assert go.wait(WAIT)
        return answer(*given)

    monkeypatch.setattr(endpoints, "body_answered", slow)

    async def ask() -> tuple[list[httpx.Response], httpx.Response, list[int]]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(fresh.app), base_url="http://test") as client:
            large = {"states": [0.5] * 1000}
            tasks = [asyncio.create_task(client.post(fresh.url("agent"), json=large)) for _ in range(3 + MOST_WAITING)]
            done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            counters = await client.get("/metrics")
            small = await client.get(fresh.url("agent"), params={"state": 0.5})
            go.set()
            others = [small, *[await task for task in waiting]]
            return [task.result() for task in done], counters, [other.status_code for other in others]

    try:
        (refused,), counters, others = asyncio.run(ask())
    finally:
        go.set()
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "1"
    assert refused.json() == {"detail": "Too many large requests wait already: ask again in a moment."}
    assert counters.status_code == 200
    assert others == [200] * (3 + MOST_WAITING)
