"""A headless Chromium, what it is shown, and a server with a token, for tests of the page."""

import os
import re
import shutil
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving import WAIT, catalogue_of

from quietq.publishing.server.application import create_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
REFUSED = re.compile(r"Failed to load resource: .* status of 4(01|22) ")  # as the browser tells of any 4xx


def missing(what: str) -> None:
    """Skips the test, or fails it where all programs must be there."""
    if os.environ.get("QUIETQ_TEST_PROGRAMS") == "required":
        pytest.fail(f"{what} is not installed, and QUIETQ_TEST_PROGRAMS asks for it.")
    pytest.skip(f"{what} is not installed")


@contextmanager
def chromium() -> "Iterator[Browser]":
    """The browser of the system, without a window."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("Playwright")
        raise
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        missing("Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def serving_here(*files: Path, token: str | None = None, hosts: Sequence[str] = ("*",)) -> Iterator[str]:
    """The address of a server in a thread of this process, which is cheap; it is stopped in the end."""
    from uvicorn import Config, Server

    listener = socket.create_server(("127.0.0.1", 0))  # connections wait from now on
    app = create_app(catalogue_of(*files), token, hosts)
    config = Config(app, log_config=None, lifespan="off", ws="none")
    server = Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(WAIT)
        listener.close()
    assert not thread.is_alive()


class Visitor:
    """One visit: the page, and what it asked of whom while it was open."""

    def __init__(self, page: "Page", url: str) -> None:
        self.page = page
        self.url = url
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.set_default_timeout(20_000)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._hear)

    def _hear(self, message: "ConsoleMessage") -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def open(self, release: str | None = None, shown: str = "#plot svg") -> "Page":
        """The page, with its plot and certificate; of the release whose list entry is clicked, if one is named."""
        self.page.goto(f"{self.url}/")
        if release is not None:
            self.page.get_by_role("button", name=release).click()
        self.page.wait_for_selector("#plain p")
        self.page.wait_for_selector(shown)
        return self.page

    def behaved(self) -> None:
        """Asserts that since the last time the page asked something, nobody but its server, and had no error."""
        self.page.evaluate("0")  # what has happened is heard before it is answered
        elsewhere = [each for each in self.requests if not each.startswith((f"{self.url}/", "data:", "blob:"))]
        complaints = [text for text in self.complaints if not REFUSED.match(text)]
        assert self.requests
        assert (elsewhere, complaints) == ([], [])
        self.requests.clear()
        self.complaints.clear()
