"""One connection: uvicorn's, with bounds on what a client may make the server hold, and for how long."""

import asyncio
import json
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from quietq.server.limits import LEAST_TAKEN, MOST_HEAD, MOST_UNTAKEN, SECONDS_TO_TAKE


class Connection(HttpToolsProtocol):
    """The parser has no bounds of its own: a head without an end, or an answer that nobody takes, would stay."""

    _slow: ClassVar[dict["Connection", None]] = {}  # those that have not taken their answers, longest first
    _advanced = False  # whether the piece in hand began a message or held some of its body
    _unproductive = 0  # bytes of earlier pieces that did neither: a long head, or what surrounds the chunks of a body
    _head_too_large = False
    _check: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Reads on, unless all that comes is a head."""
        if self.transport.is_closing():
            return
        self._advanced = False
        super().data_received(data)
        self._unproductive = 0 if self._advanced else self._unproductive + len(data)
        if self._unproductive > MOST_HEAD and not self.transport.is_closing():
            self._head_too_large = True
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """A request begins."""
        self._advanced = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is there."""
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MOST_HEAD:
            self._head_too_large = True
            raise ValueError("the head is too large")  # to the parser, which then stops
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of its body is there."""
        self._advanced = True
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no request, in the form of all refusals, and hangs up."""
        status, sentence = 400, "This is not a request in HTTP/1.1."
        if self._head_too_large:
            status, sentence = 431, f"The head of a request must have at most {MOST_HEAD} bytes."
        content = json.dumps({"detail": sentence}).encode()
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(content)
        self.transport.write(STATUS_LINE[status] + head + content)
        self.transport.close()

    def on_response_complete(self) -> None:
        """The answer is given; what of the request's body was not waited for has as long as an idle client."""
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:
            self.loop.call_later(self.timeout_keep_alive, self._leave, self.cycle)

    def _leave(self, cycle: RequestResponseCycle) -> None:
        if self.cycle is cycle and not self.transport.is_closing():  # no other request has come
            self.transport.close()

    def pause_writing(self) -> None:
        """The client does not take what is sent as fast as it is made."""
        super().pause_writing()
        self._look_again()
        self._slow[self] = None
        while sum(each.transport.get_write_buffer_size() for each in self._slow) > MOST_UNTAKEN:
            longest = next(iter(self._slow))
            del self._slow[longest]
            longest.transport.abort()

    def resume_writing(self) -> None:
        """It took most of it."""
        super().resume_writing()
        self._stop_looking()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        super().connection_lost(exc)
        self._stop_looking()

    def _look_again(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._check = self.loop.call_later(SECONDS_TO_TAKE, self._hang_up_if_stalled, left)

    def _hang_up_if_stalled(self, before: int) -> None:
        if self.transport.get_write_buffer_size() > before - LEAST_TAKEN:
            self.transport.abort()
        else:
            self._look_again()

    def _stop_looking(self) -> None:
        self._slow.pop(self, None)
        if self._check is not None:
            self._check.cancel()
            self._check = None
