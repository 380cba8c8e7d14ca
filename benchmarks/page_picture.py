"""A photograph of the page that `quietq serve` shows, for docs/: the demo's agent and its reward.

The releases are drawn anew, with noise from the operating system, because only such may be called certified; so no two
photographs have the same curves.
"""

import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from quietq.privacy.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTH = 1200
"""Pixels of the page, from left to right."""
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def photograph(target: Path) -> None:
    """Writes the picture: a state is asked for, and the pointer reads another one off the plot."""
    with TemporaryDirectory() as folder, _visit() as page, _serving(_agent(Path(folder))) as url:
        page.goto(url)
        page.wait_for_selector("#plain p")
        page.fill("#state-0", "0.3")
        page.press("#state-0", "Enter")
        page.wait_for_selector("#answer table")
        area = page.locator("#plot svg").bounding_box()
        assert area is not None
        page.mouse.move(area["x"] + 0.75 * area["width"], area["y"] + 0.5 * area["height"])
        page.screenshot(path=target, clip={"x": 0, "y": 0, "width": WIDTH, "height": 1330}, full_page=True)


def _agent(folder: Path) -> list[Path]:
    """What voters like, and an agent that was trained on it: as the demo makes them."""
    command = [sys.executable, "-m", "quietq.cli", "demo", "--out", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [folder / "agent.qq", folder / "reward.qq"]


@contextmanager
def _visit() -> "Iterator[Page]":
    """An empty page of the system's browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise MissingExtra.of("test", "A picture of the page needs Playwright") from error
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        raise InvalidInput("A picture of the page needs Chromium: `make programs` installs it.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser.new_page(viewport={"width": WIDTH, "height": 1000}, color_scheme="light")
        finally:
            browser.close()


@contextmanager
def _serving(files: list[Path]) -> Iterator[str]:
    """The address of a server in a thread of this process, on this machine alone."""
    from uvicorn import Config, Server

    from quietq.publishing.server.application import create_app
    from quietq.publishing.server.catalogue import open_catalogue, read_served

    app = create_app(open_catalogue([read_served(file) for file in files]))
    server = Server(Config(app, log_config=None, lifespan="off", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(30)
