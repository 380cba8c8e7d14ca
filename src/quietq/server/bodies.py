"""A request's body: read whole, but never more of it than is allowed, and not for ever."""

import asyncio

from fastapi import Request
from starlette.requests import ClientDisconnect

from quietq.server.limits import MOST_BYTES, SECONDS_TO_SEND, Refusal

_MOST_DIGITS = 12


async def read_body(request: Request) -> bytes:
    """All bytes of the body, whether their number was stated or not."""
    stated = request.headers.get("content-length", "0")
    if len(stated) > _MOST_DIGITS or (stated.isdecimal() and int(stated) > MOST_BYTES):
        raise _too_large()
    parts, size = [], 0
    try:
        async with asyncio.timeout(SECONDS_TO_SEND):
            async for part in request.stream():
                size += len(part)
                if size > MOST_BYTES:
                    raise _too_large()
                parts.append(part)
    except TimeoutError:
        raise Refusal(408, f"The body must arrive within {SECONDS_TO_SEND:g} seconds.") from None
    except ClientDisconnect:
        raise Refusal(400, "The body was cut off.") from None
    return b"".join(parts)


def _too_large() -> Refusal:
    return Refusal(413, f"The body must have at most {MOST_BYTES} bytes: send the states in parts.")
