"""Tasks for the tests of the engines, in a module of their own so that workers elsewhere can import them."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from reproduction.experiment import Row, Task, task


def square(number: int, marks: str, kind: str = "one") -> list[Row]:
    """Leaves a mark whenever it is done."""
    with open(Path(marks), "a") as file:
        file.write(f"{number}\n")
    return [{"number": number, "square": number**2}]


def slowly(number: int, marks: str) -> list[Row]:
    time.sleep(0.2)
    return square(number, marks)


def dies_once(number: int, marks: str) -> list[Row]:
    """Its worker is killed in the middle of it, the first time."""
    first = not Path(f"{marks}.{number}").exists()
    if first:
        Path(f"{marks}.{number}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number, marks)


def at_home(number: int, marks: str, process: int) -> list[Row]:
    """Is not sent anywhere: it would not find its process there."""
    assert os.getpid() == process
    return square(number, marks)


def fails(number: int, marks: str) -> list[Row]:
    raise ArithmeticError(f"{number} is too much")


def trains(seed: int) -> list[Row]:
    """A training, whose rows are numbers to the last bit."""
    from quietq import paper

    method = paper.Published.code(0.4, widths=(8,))
    agent = paper.Agent("walk", method, seed=seed).learn(300, simulate=16)
    returns = agent.not_private["episode_returns"]
    values = agent.q_values([[0.1], [0.7]], member=3)
    return [{"seed": seed, "return": sum(map(sum, returns)), "value": float(values[1, 0])}]


def of(measure: Any, number: int, marks: Path, program: str = "one", **further: Any) -> Task:
    settings = {"number": number, "marks": str(marks), **further}
    return task("squares", f"{measure.__name__} of {number}", measure, program, measure is at_home, **settings)
