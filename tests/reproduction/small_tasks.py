"""Tasks for the tests of the engines, in a module of their own so that workers elsewhere can import them."""

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


def fails(number: int, marks: str) -> list[Row]:
    raise ArithmeticError(f"{number} is too much")


def of(measure: Any, number: int, marks: Path, program: str = "one", **further: Any) -> Task:
    settings = {"number": number, "marks": str(marks), **further}
    return task("squares", f"{measure.__name__} of {number}", measure, program, **settings)
