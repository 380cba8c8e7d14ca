"""Audits of releases: many simulated draws from r and from r', distinguished by the best test there is.

Theorem (Neyman & Pearson). Of all tests with as many false alarms, a threshold on the likelihood ratio misses least.
The law of the noise knows its density, so the log of that ratio is, summed over a mechanism's queries,

    log p(seen - numbers') - log p(seen - numbers).

For Gaussian noise it is normal with means -mu^2/2 and mu^2/2 and deviation mu, where mu is the distance of the two over
sigma: then the worlds are exactly mu-GDP apart, and the threshold in the middle errs with Phi(-mu/2) in both. For pure
noise thresholds are set on draws of their own.

See docs/theory.md#lower-bounds.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import chdtr

from quietq.audit.bounds import MOST_RUNS
from quietq.audit.distinguisher import LEARNED_SHARE, Expected, Seen, learn
from quietq.audit.finding import Attack, Finding, Promise, Unprotected, count_errors
from quietq.audit.neighbours import add_move, farthest_move
from quietq.feedback.feedback import Feedback
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms import GaussianProcessMechanism
from quietq.mechanisms.release import Mechanism, Query
from quietq.noise import SeededEntropy
from quietq.noise.grid_path import GridNoise
from quietq.noise.laws import Gaussian
from quietq.privacy import Budget, Exponential, RkhsBall, epsilon_from_mu
from quietq.privacy.checks import count, positive
from quietq.released.private_function import PrivateTable
from quietq.worlds import World

Draw = Callable[[int, int], float | np.ndarray]
"""What is seen of a simulated release, by side (0 for r, 1 for r') and seed: its score, or a row of numbers."""
Progress = Callable[[int, int], None]


def audit_draws(
    draw: Draw,
    runs: int,
    attack: Attack,
    promise: Promise,
    *,
    expected: Expected | None = None,
    together: int = 1,
    seed: int = 0,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> Finding:
    """Draws `runs` releases a world and counts the errors of a test between them: all audits by draws end here.

    Args:
        draw: Gives the score of a release, larger where r' is likelier, or a row of numbers, for which a linear score
            is learned on a quarter of the draws.
        runs: How many releases there are of r, and as many of r'.
        attack: What is distinguished, for the finding.
        promise: What is promised.
        expected: How scores come out, by which thresholds are set; without it they are set on a quarter of the draws.
            What something was learned on is not judged.
        together: How many independent releases one draw gives the scores of.
        seed: Draws have the seeds that follow from it.
        confidence: With which all bounds hold together.
        progress: Is called with how many draws there were, and how many there will be.

    """
    runs = count("runs", runs, 40, MOST_RUNS)
    seed = count("seed", seed, 0)
    turns = -(-runs // together)

    def drawn(side: int) -> Float[np.ndarray, "runs ..."]:
        found = []
        for turn in range(turns):
            found.append(draw(side, (seed << 64) + 2 * turn + side))
            if progress is not None:
                progress(side * turns + turn + 1, 2 * turns)
        return np.array(found, np.float64) if together == 1 else np.concatenate(found)[:runs]

    pilot = 0 if expected is not None else round(LEARNED_SHARE * runs)
    taught, judged = Seen(drawn(0), drawn(1)).split(pilot)
    known = taught if expected is None else expected
    if judged.first.ndim == 2:
        weights, known = learn(taught)
        judged = judged.scored(weights)
    thresholds = known.thresholds(runs - pilot, promise.delta, confidence)
    return count_errors(judged, thresholds, attack, promise, confidence, pilot)


@dataclass(frozen=True, eq=False)
class BestTest:
    """Neyman and Pearson's test between what a mechanism makes of two neighbours' feedback."""

    mechanism: Mechanism
    before: Feedback | OwnFunction
    after: Feedback | OwnFunction

    @cached_property
    def _first(self) -> list[np.ndarray]:
        """What the first query asks of either neighbour, which is the same in all releases."""
        return self._numbers(next(self.mechanism.run()))

    def _numbers(self, query: Query) -> list[np.ndarray]:
        return [query.numbers(feedback) for feedback in (self.before, self.after)]

    def _answer(self, answer: Callable[[Query, list[np.ndarray]], np.ndarray]) -> list[Query]:
        """Runs the mechanism on such answers, which may look at what either neighbour would say; gives its queries."""
        steps, queries, seen = self.mechanism.run(), list[Query](), None
        with suppress(StopIteration):
            while True:
                query: Query = steps.send(seen)  # pyright: ignore[reportArgumentType]
                numbers = self._numbers(query) if queries else self._first
                queries.append(query)
                seen = answer(query, numbers)
        return queries

    def score(self, side: int, seed: int) -> float:
        """Scores a simulated release of `before` (side 0) or `after`: above 0 where the second is likelier."""
        entropy, scores = SeededEntropy(seed), list[float]()

        def answer(query: Query, numbers: list[np.ndarray]) -> np.ndarray:
            seen = query.law.add(numbers[side], entropy)
            before, after = (query.law.log_density(seen - each) for each in numbers)
            scores.append(after - before)
            return seen

        self._answer(answer)
        return math.fsum(scores)

    @cached_property
    def mu(self) -> float | None:
        """How far apart the two are in Gaussian DP, exactly; None for pure noise and for more than one query."""
        query, *further = self._answer(lambda _, numbers: numbers[0])
        unit, (before, after) = query.law.cost(1.0).mu, self._first
        return None if unit is None or further else unit * query.law.distance(after - before)

    @property
    def expected(self) -> Expected | None:
        """How scores come out, which is known for Gaussian noise, if there is anything to distinguish."""
        return Expected(-(self.mu**2) / 2, self.mu, self.mu**2 / 2, self.mu) if self.mu else None

    def audit(self, runs: int, move: str = "other data", source: str | None = None, **options: Any) -> Finding:
        """Releases both neighbours many times, by simulation, and tries to distinguish them.

        What is found comes from the data that was given: unless that is public or synthetic, it is not private.

        Args:
            runs: The number of releases of each neighbour.
            move: What differs between the neighbours, in words.
            source: What releases are made of, for the finding; by default the kind of feedback.
            options: Further options of `audit_draws`.

        Returns:
            The finding: lower bounds beside what is promised, and the verdict.

        """
        source = type(self.before).__name__.lower() if source is None else source
        seen = "every noisy answer of a release"
        attack = Attack.on_mechanism(self.mechanism, source, move, seen, "likelihood ratio")
        promise = Promise.of_mechanism(self.mechanism)
        return audit_draws(self.score, runs, attack, promise, **{"expected": self.expected, **options})


def audit_reward(world: World, mechanism: Mechanism, runs: int = 1000, **options: Any) -> Finding:
    """Audits a private reward: draws it from the world's reward and from the farthest neighbour that a search finds in
    the law's own distance, and tries to tell the two apart.

    Args:
        world: The world, whose reward is the first of the two.
        mechanism: The mechanism that makes it private.
        runs: Releases of each of the two.
        options: Those of `audit_draws`.

    >>> from quietq.feedback.own_function import OwnFunction
    >>> from quietq.mechanisms.candidates import choose
    >>> from quietq.worlds import WALK
    >>> walk = OwnFunction(None, WALK.relation(50), box=WALK.box)
    >>> audit_reward(WALK, choose("path", walk, Budget(0.9, 1e-4)), runs=50).verdict
    'consistent'

    """
    relation, before = mechanism.relation, world.mean_reward()
    by, move = farthest_move(mechanism)
    test = BestTest(mechanism, OwnFunction(before, relation), OwnFunction(add_move(before, move), relation))
    return test.audit(runs, f"worst ({by})", world.name, **options)


# The Gaussian process mechanism itself, as often as it takes for a tight bound on mu


def audit_mechanism(
    mu: float,
    runs: int,
    *,
    beta: float = 4.0,
    levels: int = 6,
    delta: float = 1e-4,
    seed: int | None = 0,
    confidence: float = 0.95,
    kind: type[GaussianProcessMechanism] = GaussianProcessMechanism,
    progress: Progress | None = None,
) -> Finding:
    """Audits a Gaussian process mechanism: tries to tell releases of 0 from those of a function as far away as the
    promise covers.

    Args:
        mu: The parameter that the mechanism promises.
        runs: Releases of each of the two functions.
        beta: Of the exponential kernel.
        levels: The grid has 2^levels cells.
        delta: The delta at which epsilon is stated.
        seed: Without one they are real releases, with noise from the operating system, of a synthetic function.
        confidence: The confidence of the bounds.
        kind: The mechanism's class.
        progress: Is called with how many of how many releases are done.

    >>> finding = audit_mechanism(mu=1.0, runs=4000)
    >>> finding.verdict, bool(finding.mu_lower > 0.8)
    ('consistent', True)

    """
    # Outputs of one release have independent noise, so each is a release of its own when neighbours differ in that
    # output alone: a function of many outputs, distinguished output by output, is as many audits of one function.
    outputs = 2000
    kernel, budget = Exponential(beta), Budget(epsilon_from_mu(positive("mu", mu), delta), delta)
    relation = RkhsBall(1 / math.sqrt(outputs), kernel, actions=outputs)
    law, grid = GridNoise(1.0, kernel, levels), np.linspace(0, 1, 2**levels + 1)
    bump = np.maximum(0, 1 - 4 * np.abs(grid - 0.5))
    move = bump / law.distance(bump)
    weights = optimal_weights(law, move)

    def draw(side: int, stream: int) -> Float[np.ndarray, " outputs"]:
        values = side * np.repeat(move[:, None], outputs, axis=1)
        mechanism = kind(kernel, 1.0, budget, relation=relation, levels=levels)
        released = mechanism.apply(lambda _: values) if seed is None else mechanism.simulate(lambda _: values, stream)
        assert isinstance(released, PrivateTable)
        scores = weights @ released.values
        _check_independent(scores * budget.mu)
        return scores

    expected = Expected(0.0, 1 / budget.mu, float(weights @ move), 1 / budget.mu)
    noise = "simulated noise" if seed is not None else "the operating system's noise"
    seen = f"the released function, {len(grid)} numbers, with {noise}"
    attack = Attack("gaussian-process", "none", str(RkhsBall(1.0, kernel)), "bump", seen, "likelihood ratio")
    return audit_draws(
        draw,
        runs,
        attack,
        Promise("certified", budget.epsilon, budget.delta, budget.mu),
        expected=expected,
        together=outputs,
        seed=seed or 0,
        confidence=confidence,
        progress=progress,
    )


def optimal_weights(law: Gaussian, difference: Float[np.ndarray, " numbers"]) -> Float[np.ndarray, " numbers"]:
    """K^-1 `difference` for noise of covariance K and size 1, by polarisation of the law's own distance.

    >>> law = GridNoise(1.0, Exponential(2.0), 2)
    >>> weights = optimal_weights(law, np.exp(-2.0 * np.linspace(0, 1, 5)))  # K(., 0): evaluation at 0
    >>> bool(np.allclose(weights, [1, 0, 0, 0, 0]))
    True
    """
    units = np.eye(len(difference))
    return np.array([law.distance(difference + e) ** 2 - law.distance(difference - e) ** 2 for e in units]) / 4


def _check_independent(scores: Float[np.ndarray, " outputs"]) -> None:
    """Seen of one release, in units of their deviation: if outputs shared noise, they would lie closer together."""
    spread = float(((scores - scores.mean()) ** 2).sum())
    if chdtr(len(scores) - 1, spread) < 1e-12:
        raise Unprotected("The outputs of one release share their noise, so each gives the others away.")
