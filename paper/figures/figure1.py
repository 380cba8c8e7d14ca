"""The paper's figure 1: learning curves by noise level, and by how often the noise is drawn anew.

Both algorithms that go by its name are run: the authors' program (`code`) and the listing (`text`). Without noise it
does not matter how often none is drawn, so that curve is run once for each.
"""

from dataclasses import dataclass
from typing import ClassVar

from paper.experiment import Claim, Experiment, Tables
from paper.figures.curves import curve_rows, where
from paper.figures.noise_claims import EVERY, as_printed_learns, converges, more_samples, resets_help
from paper.task import Row, Task
from quietq.learning.published import Preset, Published

SIGMAS = (0.2, 0.4, 0.6, 0.8, 1.0)
"""The paper's noise levels, but for 0."""
BETWEEN = 10
"""Paths in a run, for the curves between one a round and one for all."""


@dataclass(frozen=True)
class NoiseLevel(Task):
    """One noise level of one algorithm, with so many paths in a run (None: as many as can be)."""

    table: ClassVar[str] = "figure1"
    preset: Preset
    sigma: float
    resets: int | None
    steps: int = 5000
    seeds: int = 10
    seed: int = 1

    @property
    def title(self) -> str:
        """For the bar."""
        return f"Figure 1: {self.preset}, sigma {self.sigma:g}, {self.noise}"

    @property
    def program(self) -> str:
        """Noise is an argument of the program; how many paths there are is part of its shape."""
        return program_of(self.preset, self.resets, self.steps, self.seeds)

    @property
    def noise(self) -> str:
        """How often the noise is drawn, in words."""
        if self.sigma == 0:
            return "none"
        if self.resets is None:
            return EVERY[self.preset]
        return "one path" if self.resets == 1 else f"{self.resets} paths"

    def rows(self) -> list[Row]:
        """A row an episode and seed."""
        make = Published.code if self.preset == "code" else Published.text
        columns: Row = {"preset": self.preset, "sigma": self.sigma, "noise": self.noise, "resets": self.resets}
        return curve_rows(make(self.sigma, resets=self.resets), self.steps, self.seeds, self.seed, columns)


def program_of(preset: str, resets: int | None, steps: int, seeds: int) -> str:
    """The name of the compiled program of the paper's algorithm; figure 2 uses the same one."""
    return f"published/{preset}/{resets}/{steps}/{seeds}"


class Figure1(Experiment):
    """More noise learns less; drawing it less often gives the privacy away; and as printed nothing is learned."""

    name: ClassVar[str] = "figure1"
    title: ClassVar[str] = "Figure 1: learning curves by noise level"

    def tasks(self, quick: bool) -> list[Task]:
        """All levels of both algorithms; `quick` has three programs to compile, where all of it has six."""
        if quick:
            settings = [("code", 0.0, None), ("code", 0.4, None), ("code", 1.0, None), ("code", 0.4, 1)]
            settings += [("code", 1.0, 1), ("text", 0.0, None), ("text", 1.0, None)]
            return [NoiseLevel(*setting, steps=1000, seeds=3) for setting in settings]
        tasks: list[Task] = []
        for preset in ("code", "text"):
            tasks.append(NoiseLevel(preset, 0.0, None))
            tasks += [NoiseLevel(preset, sigma, resets) for resets in (None, BETWEEN, 1) for sigma in SIGMAS]
        return tasks

    def claims(self, tables: Tables) -> list[Claim]:
        """What the curves say about the paper's words."""
        code, text = (where(tables["figure1"], preset=preset) for preset in ("code", "text"))
        return [more_samples(code), converges(code), resets_help(code), as_printed_learns(text)]
