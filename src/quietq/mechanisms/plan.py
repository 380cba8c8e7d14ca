"""What is to be expected of a release before anything is spent: the release itself, on synthetic people.

A draw is a mean reward from the public prior, synthetic people whose own rewards deviate from it, their rows
(`feedback.synthetic`) and the noise of `privatise`. It is scored against the mean reward at fresh uniform states, or at
all items. No private data is looked at, so it may be repeated, compared and chosen by. A reward that is rougher than
the prior, or states that are far from uniform, need more people than this says.
"""

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.feedback.synthetic import Survey, SyntheticRewards
from quietq.mechanisms.candidates import candidates, privatise
from quietq.privacy import Budget, InvalidInput, PrivacyWarning, weak_promise
from quietq.privacy.checks import count, instance, one_of

MOST_DRAWS = 10_000
MOST_ROWS = 200_000
"""How many rows are simulated at the most to find the number of people that it takes."""


@dataclass(frozen=True)
class ExpectedError:
    """What one estimator reaches for a number of people, draw by draw."""

    noise: str
    people: int
    correlations: tuple[float, ...]
    """Correlations of released and true mean rewards, over uniform states or all items; 0 for a constant."""
    regrets: tuple[float, ...]
    """How far the state, item or (in each state) action that the release likes best is below the best one: 0 is the
    best, 1 a random one."""
    needed: int | None = None
    """About how many people it takes to be useful, if `plan` looked for it; None if more than it tried."""

    @property
    def correlation(self) -> float:
        return fmean(self.correlations)

    @property
    def spread(self) -> float:
        """The standard deviation of correlations between releases; 0 if there is one draw only."""
        return stdev(self.correlations) if len(self.correlations) > 1 else 0.0

    @property
    def regret(self) -> float:
        return fmean(self.regrets)


@dataclass(frozen=True)
class PeopleNeeded:
    """What to expect of a release, for each estimator that "auto" chooses among, the best first."""

    people: int
    survey: Survey
    budget: Budget
    useful: float
    """The correlation from which on a release is taken to be useful."""
    expected: tuple[ExpectedError, ...]
    tried: int
    """The most people that a simulation is made for."""
    chosen: str
    """The estimator that `noise="auto"` takes."""
    simulated: tuple[ExpectedError, ...]
    """What was simulated for these and for other numbers of people, to find how many it takes."""

    def to_dict(self) -> dict[str, Any]:
        """Returns what --json prints."""
        names = ("correlation", "spread", "regret")
        each = [asdict(one) | {name: getattr(one, name) for name in names} for one in self.expected]
        for one in each:
            del one["people"]
        asked = asdict(self.survey)
        del asked["segment_rows"]  # a plan is for comparisons of single states
        shown = {name: getattr(self, name) for name in ("people", "useful", "tried", "chosen")}
        return asked | shown | self.budget.to_dict() | {"estimators": each}

    def __str__(self) -> str:
        lines = [
            f"{one.noise}: correlation {one.correlation:.2f} ({min(one.correlations):.2f} to "
            f"{max(one.correlations):.2f}), regret {one.regret:.2f}; useful from {self.people_for(one)}"
            for one in self.expected
        ]
        return "\n".join(lines)

    def people_for(self, one: ExpectedError) -> str:
        """Says how many people an estimator takes to be useful."""
        return f"more than {self.tried:,} people" if one.needed is None else f"about {one.needed:,} people"


def plan(
    kind: str,
    budget: Budget,
    *,
    people: int,
    rows: int = 20,
    dimension: int = 1,
    items: int | None = None,
    actions: int = 1,
    options: int = 2,
    useful: float = 0.9,
    draws: int = 5,
    seed: int = 0,
    tell: Callable[[float], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PeopleNeeded:
    """Simulates releases of synthetic people, and says what to expect of a private reward, before anything is spent.

    For each estimator that "auto" chooses among, at the same protection, the result has the expected correlation with
    the true reward, the regret, and a rough number of people for a useful correlation, found by doubling or halving.

    Args:
        kind: "ratings" or "comparisons".
        budget: The (epsilon, delta) that the release may cost.
        people: The number of people.
        rows: Rows per person.
        dimension: The number of coordinates of a state.
        items: The number of items of a list, in the place of a dimension.
        actions: The number of actions that ratings depend on.
        options: The number of options of each choice, for comparisons.
        useful: The correlation at which a reward is useful.
        draws: Simulated releases of each estimator.
        seed: Makes the simulations repeatable.
        tell: Is called beforehand with about how many minutes it takes, judged by one draw.
        progress: Is called with how many of how many estimators are done.

    >>> found = plan("ratings", Budget(1, 1e-5), people=100, rows=5, dimension=2, draws=1)
    >>> found.chosen, found.expected[0].people
    ('rounds', 100)

    """
    if kind == "sessions":
        raise InvalidInput(
            "A plan is for ratings or comparisons. Worlds differ too much: rehearse a release of sessions in a "
            "simulator that is like yours, by qq.rehearse(...), as docs/sessions.md says."
        )
    one_of("kind", kind, ("ratings", "comparisons"))
    survey = Survey(kind, rows, dimension, items, actions, options)
    _check(people, survey, budget)
    draws = count("draws", draws, most=MOST_DRAWS)
    names = _estimators(people, survey, budget)
    if not isinstance(useful, float | int) or not 0 < useful < 1:
        raise InvalidInput(f"useful must be a correlation between 0 and 1, not {useful!r}.")
    if sentence := weak_promise(budget, people):
        warnings.warn(sentence, PrivacyWarning, stacklevel=2)
    if tell is not None:
        began = time.monotonic()
        for name in names:
            expected(survey, people, budget, name, draws=1, seed=seed)
        # Twice as long as for these people alone, because other numbers of people are tried besides.
        tell(2 * draws * (time.monotonic() - began) / 60)
    found, simulated, most = [], [], max(people, MOST_ROWS // rows)

    def expect(number: int, name: str) -> ExpectedError:
        simulated.append(expected(survey, number, budget, name, draws=draws, seed=seed))
        return simulated[-1]

    for name in names:
        one = expect(people, name)
        needed = _find(
            people, one.correlation, useful, most, lambda number, name=name: expect(number, name).correlation
        )
        found.append(replace(one, needed=needed))
        if progress is not None:
            progress(len(found), len(names))
    found.sort(key=lambda one: -one.correlation)
    return PeopleNeeded(people, survey, budget, useful, tuple(found), most, names[0], tuple(simulated))


def expected(
    survey: Survey,
    people: int,
    budget: Budget,
    noise: str = "auto",
    *,
    draws: int = 5,
    seed: int = 0,
) -> ExpectedError:
    """Simulates what to expect of an estimator.

    Draws with the same seed have the same rewards and tastes, so that numbers of people, budgets and estimators can be
    compared by fewer of them.

    Args:
        survey: What people are asked: the kind, rows per person, dimension, items, actions and options.
        people: The number of people.
        budget: The (epsilon, delta) of the release.
        noise: The estimator, by its name in `privatise`.
        draws: Simulated releases.
        seed: Makes the simulations repeatable.

    """
    _check(people, survey, budget)
    draws, seed = count("draws", draws, most=MOST_DRAWS), count("seed", seed, 0, 2**63 - 1)
    with warnings.catch_warnings(), ThreadPoolExecutor(2) as pool:
        warnings.simplefilter("ignore", PrivacyWarning)  # nobody is there to protect
        scores = list(pool.map(lambda draw: _try(survey, people, budget, noise, (seed, draw)), range(draws)))
    correlations, regrets = zip(*scores, strict=True)
    return ExpectedError(noise, people, correlations, regrets)


def _try(survey: Survey, people: int, budget: Budget, noise: str, seed: tuple[int, int]) -> tuple[float, float]:
    """One draw, and its correlation and regret."""
    seeds = [int(one) for one in np.random.SeedSequence(seed).generate_state(4)]
    rewards = SyntheticRewards.draw(survey, seeds[0])
    read, rows = survey.draw(people, seeds[1], rewards)
    released = privatise(read(rows), budget, noise=noise, simulate=seeds[2])
    states = np.random.default_rng(seeds[3]).random((2000, survey.dimension))
    if survey.items is not None:
        states = np.arange(float(survey.items))[:, None]
    found = released(states[:, 0] if survey.dimension == 1 else states)
    return _score(found.reshape(len(states), -1), rewards.mean(states))


def _estimators(people: int, survey: Survey, budget: Budget) -> list[str]:
    """The names of the mechanisms that "auto" chooses among, by public rules, the one that it takes first."""
    read, rows = replace(survey, rows=1).draw(2, 0, lambda points, *_: np.zeros(points.shape[:2]))
    return list(dict.fromkeys(one.name for one in candidates(replace(read(rows), people=people), budget)))


def _check(people: int, survey: Survey, budget: Budget) -> None:
    instance("budget", budget, Budget, "a Budget(epsilon, delta)")
    rows, most = count("people", people, 2) * survey.rows, 2 * 10**7 // survey.options
    if rows > most:
        raise InvalidInput(f"people times rows must be at most {most:g} for a simulation, not {rows:g}.")


def _score(
    released: Float[np.ndarray, "states actions"], truth: Float[np.ndarray, "states actions"]
) -> tuple[float, float]:
    """Correlation and regret: of the best action in each state or, without actions, of the best state."""
    correlation = float(np.corrcoef(released.ravel(), truth.ravel())[0, 1]) if np.ptp(released) > 0 else 0.0
    if truth.shape[1] == 1:
        released, truth = released.T, truth.T
    best, chosen = truth.max(axis=1), np.take_along_axis(truth, released.argmax(axis=1)[:, None], axis=1)[:, 0]
    return correlation, float((best - chosen).sum() / (best - truth.mean(axis=1)).sum())


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
