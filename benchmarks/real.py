"""Real choices and ratings: people who were held out, private at epsilon = 1, delta = 1e-5, and not.

A quarter of the people is held out, another one for each split, and models are compared on the same splits: by the mean
over held-out people of each one's own accuracy, and by the error of ratings. The private model is the
mean of two draws of noise for each split. The best twin is the one that is best on the reported splits, which favours
the twin. The same model without noise tells what privacy costs from what the model does.

Nothing is chosen on these data: quietq's settings come from synthetic people. Earlier ones were also looked
at on other splits of the same people, and what was learned then may have stayed.
"""

from functools import lru_cache, partial

import numpy as np

import quietq as qq
from benchmarks.families import MADE_OF
from benchmarks.real_data import DATA, Choices, Rated, missing
from benchmarks.study import Case, Draws, Numbers, Study, own_files
from benchmarks.twins import TWINS, fit

NOISES = 2
"""Draws of noise for each split."""
PAIRS, FIRST, ERROR = "accuracy in pairs", "accuracy of the first choice", "error of a rating"
PRIVATE, NOISELESS = "quietq", "quietq without noise"
BUDGETS = {PRIVATE: qq.Budget(1, 1e-5), NOISELESS: qq.Budget(1e6, 1e-5)}
MODELS = (PRIVATE, NOISELESS, *TWINS)
TARGETS = {"swissmetro": -0.015, "electricity": -0.025, "train": -0.06, "insteval": 0.010}
"""For choices: accuracy in pairs, less the best twin's. For ratings: the error of a constant, less the model's own."""
SHOWN = {
    PAIRS: f"{PAIRS} (higher is better)",
    FIRST: f"{FIRST} (higher is better)",
    ERROR: f"{ERROR} (lower is better)",
}
GAP = {
    PAIRS: "accuracy in pairs, less that of the best twin (higher is better)",
    ERROR: "error of the best twin, less its own (higher is better)",
}
GAIN = "error of a constant, less its own (higher is better)"
COST = {PAIRS: "accuracy in pairs, lost to noise (lower is better)", ERROR: "error that noise adds (lower is better)"}


def study() -> Study:
    """Every model on the same splits; data whose package is missing is left out, and says so."""
    for name in DATA:
        if (sentence := missing(name)) is not None:
            print(sentence)
    cases = [_case(name, model) for model in MODELS for name in DATA]
    remarks = (
        "All numbers are for people who were held out, another quarter of them in each split. Twins are models without",
        "privacy, tuned by cross-validation over the other people: multinomial logits for choices, ridge regressions",
        "for ratings, both linear or with squares and products, and boosted trees (`benchmarks/twins.py`). Quietq",
        f"without noise has epsilon = 1e6; private, it is the mean of {NOISES} draws for each split. Its settings were",
        "chosen on synthetic people; earlier ones were also looked at on other splits of these. Standard errors are",
        "corrected for splits that share people (Nadeau & Bengio 2003): with 10 splits, 2.26 of them either way make",
        "a 95 % interval. Data and licences: `benchmarks/real_data.py`.",
    )
    return Study("real", "data", cases, remarks, "splits", 10, overlap=1 / 3, compare=partial(_compared, cases))


def _case(name: str, model: str) -> Case:
    ours = model in BUDGETS
    made_of = (*MADE_OF, *own_files("real_data", "real")) if ours else own_files("real_data", "real", "twins")
    measure = None if missing(name) else partial(_measure, name, model)
    return Case({"model": model, "data": name}, measure, made_of, TARGETS[name] if model == PRIVATE else None)


def _measure(name: str, model: str, number: int) -> Numbers:
    kept, held_out = split(_data(name), number)
    if model in TWINS:
        return scored(held_out, fit(model, kept)(held_out))
    people, seeds = kept.read(), range(NOISES * number, NOISES * (number + 1))
    found = [
        scored(held_out, qq.privatise(people, BUDGETS[model], simulate=seed)(held_out.states))
        for seed in (seeds if model == PRIVATE else seeds[:1])
    ]
    return {score: float(np.mean([one[score] for one in found])) for score in found[0]}


@lru_cache
def _data(name: str) -> Choices | Rated:
    return DATA[name]()


def _compared(cases: list[Case], found: list[Draws]) -> list[Draws]:
    by_case = {(case.labels["data"], case.labels["model"]): draws for case, draws in zip(cases, found, strict=True)}
    result = {}
    for name in DATA:
        result |= {(name, model): draws for model, draws in compared({m: by_case[name, m] for m in MODELS}).items()}
    return [result[case.labels["data"], case.labels["model"]] for case in cases]


def compared(found: dict[str, Draws]) -> dict[str, Draws]:
    """For one data set, each model beside the best twin: for the splits on which every twin was measured."""
    splits = set.intersection(*(set(found[twin]) for twin in TWINS))
    if not splits:
        return {model: {} for model in found}
    key = PAIRS if PAIRS in found[TWINS[0]][min(splits)] else ERROR
    sign = 1 if key == PAIRS else -1
    best = max(TWINS, key=lambda twin: sign * sum(found[twin][number][key] for number in splits))

    def beside(model: str, number: int) -> Numbers:
        numbers = found[model][number]
        gap = {GAP[key]: sign * (numbers[key] - found[best][number][key])}
        gain = {} if key == PAIRS else {GAIN: found["constant"][number][key] - numbers[key]}
        cost = {}
        if model == PRIVATE and number in found[NOISELESS]:
            cost = {COST[key]: sign * (found[NOISELESS][number][key] - numbers[key])}
        return gain | gap | cost | {SHOWN[name]: value for name, value in numbers.items()}

    return {model: {number: beside(model, number) for number in splits & set(found[model])} for model in found}


# People who are held out, and how well a model tells what they gave.


def split(data: Choices | Rated, number: int) -> tuple[Choices | Rated, Choices | Rated]:
    """Three quarters of the people, and the others; each number is another split of the same people."""
    people = np.random.default_rng(number).permutation(data.people)
    quarter = len(people) // 4
    return data.of(people[quarter:]), data.of(people[:quarter])


def scored(data: Choices | Rated, values: np.ndarray) -> Numbers:
    """By what a model says of each alternative, or of each row."""
    return accuracy(data, values) if isinstance(data, Choices) else error(data, values)


def accuracy(data: Choices, values: np.ndarray) -> Numbers:
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


def error(data: Rated, predicted: np.ndarray) -> Numbers:
    """The root of the mean squared error over all rows."""
    return {ERROR: float(np.sqrt(np.mean((predicted - data.rows["rating"].to_numpy()) ** 2)))}
