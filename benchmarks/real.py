"""Real choices and ratings: accuracy for people who were held out, private at epsilon = 1 and not.

    python -m benchmarks real [--data swissmetro]

A quarter of the people is held out, ten times with fixed seeds; the private model is drawn several times for each. What
is compared is the mean over held-out people of each one's own accuracy: in pairs, of what they chose against each other
thing that they were offered (an even guess counts half), and of the first choice among all that was offered. Ratings
are compared by their root mean squared error over all rows of people who were held out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import quietq as qq
from benchmarks.real_data import DATA, Choices, Rated, missing
from benchmarks.row import Row
from benchmarks.twins import fit_choices, fit_ratings

SPLITS = tuple(range(10))
"""Seeds of the splits that are reported. Whatever is tuned is tuned on others (100 and up)."""
DRAWS = 3
BUDGET = qq.Budget(1.0, 1e-5)
LOSS = {"swissmetro": 0.015, "electricity": 0.025, "train": 0.06}
"""By how much the private model's accuracy in pairs may be below the best twin's."""
ERROR = 1.332
"""The largest error of InstEval's ratings; a constant has 1.342."""


@dataclass(frozen=True)
class Measured:
    """One model on one split."""

    model: str
    split: int
    numbers: dict[str, float]


def rows(names: tuple[str, ...] = tuple(DATA)) -> list[Row]:
    """Every measurement of this module; data whose package is missing is left out, and says so."""
    found = []
    for name in names:
        if (sentence := missing(name)) is not None:
            print(sentence)
            continue
        found += summary(name, list(measure(DATA[name](), SPLITS, DRAWS)))
    return found


def measure(data: Choices | Rated, splits: tuple[int, ...], draws: int) -> Iterator[Measured]:
    """Each model on each split."""
    for split in splits:
        kept, held_out = halves(data, split)
        ask = _ask(held_out)
        twins = fit_choices(kept) if isinstance(kept, Choices) else fit_ratings(kept)
        for name, twin in twins.items():
            yield Measured(name, split, ask(twin(held_out)))  # type: ignore[arg-type]
        people = kept.read()
        for draw in range(draws):
            private = qq.privatise(people, BUDGET, simulate=1000 * split + draw)
            yield Measured("private", split, ask(private(held_out.states)))


def halves(data: Choices | Rated, split: int) -> tuple[Choices | Rated, Choices | Rated]:
    """Three quarters of the people, and the others."""
    people = np.random.default_rng(split).permutation(data.people)
    quarter = len(people) // 4
    return data.of(people[quarter:]), data.of(people[:quarter])


def accuracy(data: Choices, scores: np.ndarray) -> dict[str, float]:
    """Means over people of how often a choice is told from the scores."""
    own = scores[np.arange(len(scores)), data.chosen][:, None]
    others = data.offered.copy()
    others[np.arange(len(scores)), data.chosen] = False
    right = np.where(others, (own > scores) + 0.5 * (own == scores), 0.0)
    best = np.where(others & (scores > own), 0.0, 1.0).all(axis=1) / (1 + (others & (scores == own)).sum(axis=1))
    person = np.unique(data.person, return_inverse=True)[1]

    def mean(numbers: np.ndarray, counts: np.ndarray) -> float:
        total = np.bincount(person, counts)
        return float((np.bincount(person, numbers)[total > 0] / total[total > 0]).mean())

    return {"pairs": mean(right.sum(axis=1), others.sum(axis=1)), "first": mean(best, np.ones(len(best)))}


def error(data: Rated, predicted: np.ndarray) -> dict[str, float]:
    return {"error": float(np.sqrt(np.mean((predicted - data.rows["rating"].to_numpy()) ** 2)))}


def _ask(data: Choices | Rated) -> Callable[[np.ndarray], dict[str, float]]:
    return (lambda scores: accuracy(data, scores)) if isinstance(data, Choices) else (lambda found: error(data, found))


def means(found: list[Measured]) -> dict[str, dict[str, float]]:
    """By model: the mean over splits and draws."""
    models = dict.fromkeys(one.model for one in found)
    return {
        model: {
            key: float(np.mean([one.numbers[key] for one in found if one.model == model])) for key in found[0].numbers
        }
        for model in models
    }


def summary(name: str, found: list[Measured]) -> list[Row]:
    """Smaller is better in rows that are held to something: what is lost against the best twin, or an error."""
    table = means(found)
    if "error" in found[0].numbers:
        return [
            Row(f"{name}, {model}: error", numbers["error"], "", ERROR if model == "private" else None)
            for model, numbers in table.items()
        ]
    best = max(numbers["pairs"] for model, numbers in table.items() if model != "private")
    first = max(numbers["first"] for model, numbers in table.items() if model != "private")
    told = [
        Row(f"{name}, {model}: accuracy {what}", numbers[key], "")
        for model, numbers in table.items()
        for key, what in (("pairs", "in pairs"), ("first", "of the first choice"))
    ]
    private = table["private"]
    return [
        *told,
        Row(f"{name}: lost in pairs against the best twin", best - private["pairs"], "", LOSS[name]),
        Row(f"{name}: lost of the first choice", first - private["first"], ""),
    ]
