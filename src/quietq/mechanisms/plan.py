"""What is to be expected of a release before anything is spent: the release itself, on people who do not exist.

A draw is a mean reward from the public prior (`smooth_prior`), people whose own rewards deviate from it, their rows
(`feedback.simulated`) and the noise of `privatise`. It is scored against the mean reward at fresh uniform states. No
private data is looked at, so it may be repeated, compared and chosen by. A reward that is rougher than the prior, or
states that are far from uniform, need more people than this says.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq import registry
from quietq.feedback.simulated import SIMULATED
from quietq.mechanisms.mechanism import Task
from quietq.mechanisms.privatise import choose, privatise
from quietq.mechanisms.smooth_prior import smooth_prior
from quietq.noise.feature_maps import Polynomials
from quietq.privacy import Budget, InvalidInput, PrivacyWarning, weak_delta
from quietq.privacy.checks import count, instance

SPREAD = 0.5
"""How far people's own rewards are from the mean one, over the deviation of the mean reward itself."""
STATES = 2000
"""Fresh ones that a release is scored on."""
MOST_DIMENSION, MOST_DRAWS = 64, 10_000
MOST_ROWS = 200_000
"""How many rows are simulated at the most to find the number of people that it takes."""
_PEOPLE_AT_ONCE = 500
_WORKERS = 2

Progress = Callable[[int, int], None]
"""Told how many rows were simulated so far, and how many there are to be as far as is known."""


@dataclass(frozen=True)
class Expected:
    """What one estimator does for so many people, draw by draw."""

    noise: str
    people: int
    correlations: tuple[float, ...]
    """Of the released reward with the true mean reward, over uniform states; 0 for a constant."""
    regrets: tuple[float, ...]
    """How far the state that the release likes best is below the best one: 0 is the best, 1 a random state."""

    @property
    def correlation(self) -> float:
        return fmean(self.correlations)

    @property
    def regret(self) -> float:
        return fmean(self.regrets)


@dataclass(frozen=True)
class Plan:
    """What to expect of a release, for each estimator that applies, the best first."""

    kind: str
    people: int
    rows: int
    dimension: int
    budget: Budget
    useful: float
    """The correlation from which on a release is taken to be useful."""
    expected: tuple[Expected, ...]
    needed: dict[str, int | None]
    """By estimator: about how many people it takes to be useful; None if more than `tried`."""
    tried: int
    """The most people that a simulation is made for."""
    chosen: str
    """The estimator that `noise="auto"` takes."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        estimators = [
            {"noise": one.noise, "correlation": one.correlation, "regret": one.regret,
             "correlations": list(one.correlations), "regrets": list(one.regrets), "needed": self.needed[one.noise]}
            for one in self.expected
        ]  # fmt: skip
        shown = ("kind", "people", "rows", "dimension", "useful", "tried", "chosen")
        return {name: getattr(self, name) for name in shown} | asdict(self.budget) | {"estimators": estimators}

    def __str__(self) -> str:
        lines = [
            f"{one.noise}: correlation {one.correlation:.2f} ({min(one.correlations):.2f} to "
            f"{max(one.correlations):.2f}), regret {one.regret:.2f}; useful from {self.people_needed(one.noise)}"
            for one in self.expected
        ]
        return "\n".join(lines)

    def people_needed(self, noise: str) -> str:
        """In words."""
        number = self.needed[noise]
        return f"more than {self.tried:,} people" if number is None else f"about {number:,} people"


def plan(
    kind: str,
    budget: Budget,
    *,
    people: int,
    rows: int = 20,
    dimension: int = 1,
    useful: float = 0.9,
    draws: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Plan:
    """What to expect of a private reward before anything is spent, from people who do not exist.

    `kind` is "ratings" or "comparisons"; `people` with `rows` each speak of states in so many dimensions. For each
    estimator that applies there is the expected correlation with the true reward, the regret, and the number of people
    from which on the correlation is at least `useful`: that one is doubled or halved until it is found, and is a rough
    number. Nothing private is looked at, and nothing is spent.

    >>> found = plan("ratings", Budget(1, 1e-5), people=100, rows=5, dimension=2, draws=1)
    >>> found.chosen, found.expected[0].people
    ('rounds', 100)
    """
    _check(kind, people, rows, dimension, budget)
    draws = count("draws", draws, most=MOST_DRAWS)
    names, chosen = _estimators(kind, people, dimension, budget)
    if not isinstance(useful, float | int) or not 0 < useful < 1:
        raise InvalidInput(f"useful must be a correlation between 0 and 1, not {useful!r}.")
    if sentence := weak_delta(budget.delta, people):
        warnings.warn(sentence, PrivacyWarning, stacklevel=2)
    work = _Work(progress, len(names) * draws * people * rows)
    work.add(0)
    common: dict[str, Any] = {"rows": rows, "dimension": dimension, "budget": budget, "seed": seed}
    found, needed, most = [], {}, max(people, MOST_ROWS // rows)
    for name in names:
        one = expected(kind, people, noise=name, draws=draws, progress=work.add, **common)
        found.append(one)

        def ask(number: int, name: str = name) -> float:
            work.total += draws * number * rows
            more = expected(kind, number, noise=name, draws=draws, progress=work.add, **common)
            return more.correlation

        needed[name] = _find(people, one.correlation, useful, most, ask)
    found.sort(key=lambda one: -one.correlation)
    return Plan(kind, people, rows, dimension, budget, useful, tuple(found), needed, most, chosen)


def expected(
    kind: str,
    people: int,
    rows: int,
    dimension: int,
    budget: Budget,
    noise: str = "auto",
    *,
    draws: int = 5,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Expected:
    """What an estimator, by its name in `privatise`, is to be expected to do; `progress` is told of rows as they go.

    Draws with the same seed have the same rewards and tastes, so that numbers of people, budgets and estimators can be
    compared by fewer of them.
    """
    _check(kind, people, rows, dimension, budget)
    draws, seed = count("draws", draws, most=MOST_DRAWS), count("seed", seed, 0, 2**63 - 1)
    scores = []
    with warnings.catch_warnings(), ThreadPoolExecutor(_WORKERS) as pool:
        warnings.simplefilter("ignore", PrivacyWarning)  # nobody is there to protect
        for score in pool.map(
            lambda draw: _try(kind, people, rows, dimension, budget, noise, (seed, draw)), range(draws)
        ):
            scores.append(score)
            if progress is not None:
                progress(people * rows)
    correlations, regrets = zip(*scores, strict=True)
    return Expected(noise, people, correlations, regrets)


def _try(
    kind: str, people: int, rows: int, dimension: int, budget: Budget, noise: str, seed: tuple[int, int]
) -> tuple[float, float]:
    """One draw, and its correlation and regret."""
    seeds = [int(one) for one in np.random.SeedSequence(seed).generate_state(4)]
    crowd = _Crowd.draw(dimension, seeds[0])
    feedback = SIMULATED[kind](crowd, people, rows, dimension, seeds[1])
    released = privatise(feedback, budget, noise=noise, simulate=seeds[2])
    states = np.random.default_rng(seeds[3]).random((STATES, dimension))
    return _score(released(states[:, 0] if dimension == 1 else states), crowd.mean(states))


def _estimators(kind: str, people: int, dimension: int, budget: Budget) -> tuple[list[str], str]:
    """The names of the mechanisms that apply, and the one that "auto" takes: by public rules."""
    nobody = SIMULATED[kind](lambda points: np.zeros(points.shape[:2]), 2, 1, dimension, 0)
    task = Task.of(replace(nobody, count=people), budget)
    every = {name: entry.load() for name, entry in registry.MECHANISMS.items()}
    names = [name for name, one in every.items() if one.takes == task.gives and one.propose(task)]
    return names, choose("auto", task).name


def _check(kind: str, people: int, rows: int, dimension: int, budget: Budget) -> None:
    if kind not in SIMULATED:
        raise InvalidInput(f"kind must be one of {', '.join(map(repr, SIMULATED))}, not {kind!r}.")
    instance("budget", budget, Budget, "a Budget(epsilon, delta)")
    count("dimension", dimension, most=MOST_DIMENSION)
    if count("people", people, 2) * count("rows", rows) > 10**7:
        raise InvalidInput(f"people times rows must be at most 1e7 for a simulation, not {people * rows:g}.")


@dataclass(frozen=True)
class _Crowd:
    """A mean reward, and people around it: weights of the prior's features, in units of its deviation."""

    features: Polynomials
    deviations: Float[np.ndarray, " rank"]
    weights: Float[np.ndarray, " rank"]
    seed: int

    @classmethod
    def draw(cls, dimension: int, seed: int) -> "_Crowd":
        terms, variances = smooth_prior(dimension)
        order = sorted(range(len(terms)), key=lambda i: len(terms[i]))
        deviations = np.sqrt(variances[order] / variances.sum())
        weights = np.random.default_rng(seed).normal(size=len(order)) * deviations
        return cls(Polynomials(dimension, tuple(terms[i] for i in order)), deviations, weights, seed)

    def mean(self, states: Float[np.ndarray, "*rows d"]) -> Float[np.ndarray, "*rows"]:
        return self.features(states) @ self.weights

    def __call__(self, points: Float[np.ndarray, "people rows d"]) -> Float[np.ndarray, "people rows"]:
        """Everybody's own reward at their own states; the same people have the same tastes each time."""
        generator, found = np.random.default_rng((self.seed, 1)), []
        for first in range(0, len(points), _PEOPLE_AT_ONCE):
            features = self.features(points[first : first + _PEOPLE_AT_ONCE])
            own = self.weights + SPREAD * self.deviations * generator.normal(size=(len(features), len(self.weights)))
            found.append(np.einsum("urk,uk->ur", features, own))
        return np.concatenate(found)


class _Work:
    """Rows simulated so far, of those that are known to be needed."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def add(self, rows: int) -> None:
        self.done += rows
        if self.progress is not None:
            self.progress(self.done, self.total)


def _score(released: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    correlation = float(np.corrcoef(released, truth)[0, 1]) if np.ptp(released) > 0 else 0.0
    best = truth.max()
    return correlation, float((best - truth[np.argmax(released)]) / (best - truth.mean()))


def _find(people: int, correlation: float, useful: float, most: int, ask: Callable[[int], float]) -> int | None:
    """About how many people it takes: on a straight line between two numbers, one of which is twice the other."""
    low = high = (people, correlation)
    while high[1] < useful:
        if 2 * high[0] > most:
            return None
        low, high = high, (2 * high[0], ask(2 * high[0]))
    while low[1] >= useful:
        if low[0] < 4:
            return low[0]
        low, high = (low[0] // 2, ask(low[0] // 2)), low
    rough = low[0] * (high[0] / low[0]) ** ((useful - low[1]) / (high[1] - low[1]))
    digits = 10 ** max(len(str(int(rough))) - 2, 0)
    return -(-int(rough) // digits) * digits
