"""Photographs of the page that `quietq serve` shows, for docs/: an agent and its reward, and a world to watch.

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
from typing import Any

from quietq.privacy.errors import InvalidInput, MissingExtra

PEOPLE, STEPS, WIDTH = 2000, 40, 1200
PUSHES = ["left", "right"]
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def photograph(name: str, target: Path) -> None:
    """Writes the picture of that name: "page" or "page-world"."""
    with TemporaryDirectory() as folder, _visit() as page:
        out = Path(folder)
        files = _agent(out) if name == "page" else [_world(out)]
        with _serving(files) as url:
            page.goto(url)
            page.wait_for_selector("#plain p")
            height = _show_agent(page) if name == "page" else _show_world(page)
            page.screenshot(path=str(target), clip={"x": 0, "y": 0, "width": WIDTH, "height": height}, full_page=True)


def _show_agent(page: Any) -> int:
    page.fill("#state-0", "0.3")
    page.press("#state-0", "Enter")
    page.wait_for_selector("#answer table")
    area = page.locator("#plot svg").bounding_box()
    page.mouse.move(area["x"] + 0.75 * area["width"], area["y"] + 0.5 * area["height"])
    return 1330


def _show_world(page: Any) -> int:
    page.select_option("#rollout-policy", "random")
    page.click("#rollout-form button")
    page.wait_for_selector("#episode svg")
    page.fill("#moment", str(int(page.get_attribute("#moment", "max")) // 2))
    area = page.locator("#rollout").bounding_box()
    return int(area["y"] + area["height"]) + 16


def _agent(folder: Path) -> list[Path]:
    """What voters like, and an agent that was trained on it: as the demo makes them."""
    command = [sys.executable, "-m", "quietq.cli", "demo", "--quick", "--out", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [folder / "agent.qq", folder / "reward.qq"]


def _world(folder: Path) -> Path:
    """CartPole from sessions of people who are made up, and balance it as well as they can."""
    import gymnasium
    import numpy as np
    import polars as pl

    import quietq as qq

    env, rng, rows = gymnasium.make("CartPole-v1"), np.random.default_rng(0), []
    for person in range(PEOPLE):
        state, _ = env.reset(seed=person)
        for step in range(STEPS):
            action = int(rng.random() < 0.5 + 0.3 * np.sign(state[2] + 0.5 * state[3]))
            after, reward, ended, _, _ = env.step(action)
            push, places = PUSHES[action], (*map(float, state), *map(float, after))
            rows.append((person, step, *places, push, float(reward), int(ended)))
            state = after
            if ended:
                break
    befores, afters = ["position", "velocity", "angle", "spin"], [f"n{i}" for i in range(4)]
    frame = pl.DataFrame(rows, schema=["who", "step", *befores, *afters, "push", "reward", "end"], orient="row")
    sessions = qq.Sessions.read(
        frame, person="who", step="step", state=befores, next_state=afters, action="push", actions=PUSHES,
        reward="reward", low=0, high=1, end="end", box=[(-2.4, 2.4), (-3, 3), (-0.25, 0.25), (-3.5, 3.5)],
        people=PEOPLE,
    )  # fmt: skip
    qq.publish(qq.privatise(sessions, qq.Budget(1, 1e-5)), folder / "world.qq")
    return folder / "world.qq"


@contextmanager
def _visit() -> Iterator[Any]:
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

    from quietq.publishing.server.app import create_app
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
