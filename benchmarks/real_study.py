"""Real choices and ratings: people who were held out, private at epsilon = 1, delta = 1e-5, and not.

A quarter of the people is held out, another one for each draw. What is compared is the mean over held-out people of
each one's own accuracy: in pairs, of what they chose against each other thing that they were offered (an even guess
counts half), and of the first choice among all that was offered. Ratings are compared by their root mean squared error
over all rows of the people who were held out.
"""

import argparse
from dataclasses import replace
from functools import lru_cache

import numpy as np

import quietq as qq
from benchmarks.family_study import MADE_OF
from benchmarks.real_data import DATA, Choices, Rated, missing
from benchmarks.study import ROOT, Case, Numbers, Study
from benchmarks.twins import TWINS, fit

NAME = "real"
BUDGET = qq.Budget(1, 1e-5)
DEVELOPMENT = 100
"""Splits from this number on are for trying things out, and are never reported."""
REFERENCE = {
    "swissmetro": "boosted trees",
    "electricity": "boosted trees",
    "train": "quadratic",
    "insteval": "constant",
}
"""What others are compared with split by split: for choices the twin that was best on development splits."""
TARGETS = {"swissmetro": -0.015, "electricity": -0.025, "train": -0.06, "insteval": 0.010}
"""How much better than that the private model must be: in accuracy in pairs, or in the error of a rating."""
MODELS = ("quietq", *TWINS)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", nargs="+", choices=DATA, default=tuple(DATA))
    parser.add_argument("--model", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--development", action="store_true", help="other splits, which are not reported")


def study(options: argparse.Namespace) -> Study:
    """Every model on the same splits; data whose package is missing is left out, and says so."""
    for name in options.data:
        if (sentence := missing(name)) is not None:
            print(sentence)
    first = DEVELOPMENT if options.development else 0
    cases = [
        replace(_case(name, model, first), wanted=name in options.data and model in options.model and not missing(name))
        for model in MODELS
        for name in DATA
    ]
    remarks = (
        "A quarter of the people is held out, another for each draw, and all numbers are for them. The gain is over",
        "the best twin for choices (in accuracy in pairs) and over a constant for ratings (in error); its target is in",
        "brackets. Data, with licences: `benchmarks/real_data.py`; models without privacy: `benchmarks/twins.py`.",
    )
    return Study(f"{NAME}-development" if first else NAME, "data", cases, remarks)


def _case(name: str, model: str, first: int) -> Case:
    made_of = tuple(ROOT / "benchmarks" / f"{one}.py" for one in ("real_study", "real_data", "twins"))
    private = model == "quietq"
    return Case(
        {"model": model, "data": name},
        lambda draw: _measure(name, model, first + draw),
        (*MADE_OF, *made_of) if private else made_of,
        TARGETS[name] if private else None,
    )


def _measure(name: str, model: str, split: int) -> Numbers:
    numbers, reference = _numbers(name, model, split), _numbers(name, REFERENCE[name], split)
    key = next(iter(numbers))
    gain = numbers[key] - reference[key]
    return {"gain over the reference": -gain if key == "error" else gain, **numbers}


@lru_cache(maxsize=256)
def _numbers(name: str, model: str, split: int) -> Numbers:
    kept, held_out = halves(_data(name), split)
    if model == "quietq":
        return scored(held_out, qq.privatise(kept.read(), BUDGET, simulate=split)(held_out.states))
    return scored(held_out, fit(model, kept)(held_out))


@lru_cache
def _data(name: str) -> Choices | Rated:
    return DATA[name]()


def halves(data: Choices | Rated, split: int) -> tuple[Choices | Rated, Choices | Rated]:
    """Three quarters of the people, and the others."""
    people = np.random.default_rng(split).permutation(data.people)
    quarter = len(people) // 4
    return data.of(people[quarter:]), data.of(people[:quarter])


def scored(data: Choices | Rated, scores: np.ndarray) -> Numbers:
    return accuracy(data, scores) if isinstance(data, Choices) else error(data, scores)


def accuracy(data: Choices, scores: np.ndarray) -> Numbers:
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

    return {
        "accuracy in pairs": mean(right.sum(axis=1), others.sum(axis=1)),
        "accuracy of the first choice": mean(best, np.ones(len(best))),
    }


def error(data: Rated, predicted: np.ndarray) -> Numbers:
    return {"error": float(np.sqrt(np.mean((predicted - data.rows["rating"].to_numpy()) ** 2)))}
