"""Tasks for the tests of the engines, in a module of their own so that workers elsewhere can import them."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from paper import Row, Task


@dataclass(frozen=True)
class Square(Task):
    """Leaves a mark whenever it is done."""

    table: ClassVar[str] = "squares"
    number: int
    marks: str
    kind: str = "one"

    @property
    def title(self) -> str:
        return f"square of {self.number}"

    @property
    def program(self) -> str:
        return self.kind

    def rows(self) -> list[Row]:
        with open(Path(self.marks), "a") as file:
            file.write(f"{self.number}\n")
        return [{"number": self.number, "square": self.number**2}]


@dataclass(frozen=True)
class DiesOnce(Square):
    """Its worker is killed in the middle of it, the first time."""

    def rows(self) -> list[Row]:
        first = not Path(f"{self.marks}.{self.number}").exists()
        if first:
            Path(f"{self.marks}.{self.number}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().rows()


@dataclass(frozen=True)
class AtHome(Square):
    """Is not sent anywhere: it would not find its process there."""

    at_home: ClassVar[bool] = True
    process: int = os.getpid()

    def rows(self) -> list[Row]:
        assert os.getpid() == self.process
        return super().rows()


@dataclass(frozen=True)
class Fails(Square):
    """Raises."""

    def rows(self) -> list[Row]:
        raise ArithmeticError(f"{self.number} is too much")


@dataclass(frozen=True)
class Trains(Task):
    """A training, whose rows are numbers to the last bit."""

    table: ClassVar[str] = "trainings"
    seed: int

    @property
    def title(self) -> str:
        return f"training {self.seed}"

    def rows(self) -> list[Row]:
        import quietq as qq

        method = qq.Published.code(0.4, widths=(8,))
        agent = qq.Agent("walk", method, seed=self.seed).learn(300, simulate=16)
        returns = agent.not_private["episode_returns"]
        values = agent.q_values([[0.1], [0.7]], member=3)
        return [{"seed": self.seed, "return": sum(map(sum, returns)), "value": float(values[1, 0])}]
