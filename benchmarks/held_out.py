"""People who are held out, and how well a model tells what they gave."""

import numpy as np

from benchmarks.real_data import Choices, Rated

Scores = dict[str, float]
PAIRS, FIRST, ERROR = "accuracy in pairs", "accuracy of the first choice", "error of a rating"


def split(data: Choices | Rated, number: int) -> tuple[Choices | Rated, Choices | Rated]:
    """Three quarters of the people, and the others; each number is another split of the same people."""
    people = np.random.default_rng(number).permutation(data.people)
    quarter = len(people) // 4
    return data.of(people[quarter:]), data.of(people[:quarter])


def scored(data: Choices | Rated, values: np.ndarray) -> Scores:
    """By what a model says of each alternative, or of each row."""
    return accuracy(data, values) if isinstance(data, Choices) else error(data, values)


def accuracy(data: Choices, values: np.ndarray) -> Scores:
    """Means over people of each one's own accuracy.

    In pairs: of what was chosen against each other thing that was offered, where an even guess counts half. Of the
    first choice: among all that was offered, where a guess among k counts 1/k.
    """
    own = values[np.arange(len(values)), data.chosen][:, None]
    others = data.offered.copy()
    others[np.arange(len(values)), data.chosen] = False
    right = np.where(others, (own > values) + 0.5 * (own == values), 0.0)
    best = np.where(others & (values > own), 0.0, 1.0).all(axis=1) / (1 + (others & (values == own)).sum(axis=1))
    person = np.unique(data.person, return_inverse=True)[1]

    def mean(numbers: np.ndarray, counts: np.ndarray) -> float:
        total = np.bincount(person, counts)
        return float((np.bincount(person, numbers)[total > 0] / total[total > 0]).mean())

    return {PAIRS: mean(right.sum(axis=1), others.sum(axis=1)), FIRST: mean(best, np.ones(len(best)))}


def error(data: Rated, predicted: np.ndarray) -> Scores:
    """The root of the mean squared error over all rows."""
    return {ERROR: float(np.sqrt(np.mean((predicted - data.rows["rating"].to_numpy()) ** 2)))}
