"""What else was tried to need fewer people than `few_people` says, and did not help throughout (docs/methods.md).

`python -m benchmarks.few_people_priors mixture families radial waves` tells of

- mixture: paths, planned on the posterior's mean under 36 Gaussian priors, smooth ones of four sizes and three lengths,
  with a straight line of three sizes; each counts by how likely it makes the release, so that nothing was chosen,
- families: K-norm noise, planned on the mean over random rewards of the families that "auto" was developed on,
- radial: the least root mean square of noise of any density that is a function of the gauge alone, over K-norm noise,
- waves: K-norm noise on the first cosines in place of increments, in what one person can do to these.
"""

import argparse
import itertools
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.optimize import linprog

from benchmarks.auto_study import DEVELOPMENT, FINE, JUDGED, POINTS, Family
from benchmarks.few_people import AT, BUDGET, CELLS, SHAPES, STATES, noise_of, people_needed, scores
from benchmarks.few_people_tried import gauges, tell
from quietq.mechanisms.mechanism import Task
from quietq.mechanisms.privatise import choose
from quietq.noise import SeededEntropy
from quietq.noise.increments import IncrementBody, to_curve
from quietq.privacy import people

Array = np.ndarray
BALL = people(AT, 0.0, 0.5, 1.0)


def random_rewards(family: Family, number: int, seed: int) -> Array:
    """Of range 0.5 and slope 1 at the most, as in `auto_study`."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(number):
        curve = family(rng)
        steepest = float(np.abs(np.diff(curve)).max()) * (FINE - 1)
        found.append(np.interp(STATES, POINTS, curve * min(rng.uniform(0.2, 1) / steepest, 0.5 / np.ptp(curve))))
    return np.array(found)


def mixture(draws: int) -> None:
    noise, _ = noise_of("path", None, draws)
    mechanism: Any = choose("path", Task(BALL, BUDGET, slope=1.0))
    gaps, line = np.abs(STATES[:, None] - STATES), np.outer(STATES - 0.5, STATES - 0.5)
    contrasts = np.linalg.svd(np.eye(len(STATES)) - 1 / len(STATES))[0][:, :-1]
    rough = mechanism.law.sigma**2 * np.exp(-mechanism.law.measured()["norm"]["beta"] * gaps)
    priors = []
    for length, size, slope in itertools.product((0.15, 0.3, 0.6), (0.03, 0.07, 0.15, 0.3), (0.0, 0.3, 1.0)):
        smooth = (1 + np.sqrt(3) * gaps / length) * np.exp(-np.sqrt(3) * gaps / length)  # Matern 3/2
        priors.append(contrasts.T @ (size**2 * smooth + slope**2 * line) @ contrasts)

    def posterior(seen: Array, number: int) -> Array:
        spread, seen = contrasts.T @ rough @ contrasts * (AT / number) ** 2, seen @ contrasts
        inverses = [np.linalg.inv(prior + spread) for prior in priors]
        likely = np.stack(
            [np.linalg.slogdet(one)[1] / 2 - np.einsum("ij,jk,ik->i", seen, one, seen) / 2 for one in inverses]
        )
        weights = np.exp(likely - likely.max(axis=0))
        means = np.stack([seen @ inverse @ prior for inverse, prior in zip(inverses, priors, strict=True)])
        return np.einsum("ki,kij->ij", weights / weights.sum(axis=0), means) @ contrasts.T

    for name, shape in SHAPES.items():
        for number in (22, 26, 30, 34, 38, 44):
            truth, seen = shape(STATES), shape(STATES) + noise * (AT / number)
            tell(f"path, {name}", number, seen=scores(seen, truth), posterior=scores(posterior(seen, number), truth))
    for (name, family), number in itertools.product({**DEVELOPMENT, **JUDGED}.items(), (20, 60)):
        found = []
        for index, truth in enumerate(random_rewards(family, 60, 99)):
            seen = truth + noise[np.arange(4 * index, 4 * index + 4) % draws] * (AT / number)
            found.append([scores(each, truth).mean() for each in (seen, posterior(seen, number))])
        tell(f"path, {name}", number, seen=np.array(found)[:, 0], posterior=np.array(found)[:, 1])


def families(draws: int, rewards: int = 1000) -> None:
    """Each reward as it is, mirrored and upside down."""
    found = np.concatenate([random_rewards(one, rewards, 7 + i) for i, one in enumerate(DEVELOPMENT.values())])
    imagined = np.concatenate([found, found[:, ::-1], -found, -found[:, ::-1]])
    imagined -= imagined.mean(axis=1, keepdims=True)
    for pieces, (name, shape), number in itertools.product((4, 6, 8), SHAPES.items(), (11, 15, 18, 22, 26)):
        body, knots, truth = IncrementBody(BALL, pieces), np.linspace(0, 1, pieces + 1), shape(STATES)
        increments = np.diff([np.interp(knots, STATES, one) for one in imagined], axis=1)
        seen = np.diff(shape(knots)) + body.draws(BUDGET.epsilon, SeededEntropy(1), draws) * (AT / number)
        raw = np.stack([np.interp(STATES, knots, curve) for curve in to_curve(seen)])
        logs = np.stack([-BUDGET.epsilon * gauges(body, one - increments) * (number / AT) for one in seen])
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        mean = weights @ imagined / weights.sum(axis=1, keepdims=True)
        tell(f"k-norm/{pieces}, {name}", number, seen=scores(raw, truth), posterior=scores(mean, truth))


def radial(_: int) -> None:
    """A density f(gauge) is epsilon-DP if f changes by a factor of e^epsilon at most within 1: a linear program for f,
    on a grid of 12 cells a unit. K-norm noise has f = exp(-epsilon gauge)."""
    for epsilon, size in itertools.product((BUDGET.epsilon, 4.0), (1, 2, 4, 6, 8)):
        near, cells = 12, int(12 * 1.3 * (size + 14) / epsilon)
        edges, start = np.arange(cells + 1) / near, np.exp(-epsilon * np.arange(cells) / near)
        mass, square = (np.diff(edges ** (size + more)) / (size + more) * start for more in (0, 2))
        pairs = [(i, i + k) for i in range(cells) for k in range(-near, near + 1) if k and 0 <= i + k < cells]
        first, second = np.array(pairs).T
        limits = sparse.csr_matrix((np.ones(len(pairs)), (np.arange(len(pairs)), first)), (len(pairs), cells))
        ratios = np.exp(epsilon) * start[second] / start[first]
        limits -= sparse.csr_matrix((ratios, (np.arange(len(pairs)), second)), (len(pairs), cells))
        # both sides in units of the larger, so that no number is tiny
        limits = sparse.diags(1 / np.maximum(ratios, 1)) @ limits
        found = linprog(square / square.max(), limits, np.zeros(len(pairs)), (mass / mass.max())[None], [1.0])
        best = found.x @ square / (found.x @ mass) / (size * (size + 1) / epsilon**2)
        print(f"epsilon {epsilon:g}, {size} numbers: {best**0.5:.5f} times the noise", flush=True)


def waves(draws: int, cells: int = 64, more: int = 160) -> None:
    """The body is held by finitely many of its supporting planes, each by a linear program over a person's functions;
    uniform points come from its box by rejection."""
    grid, weights = np.linspace(0, 1, cells + 1), np.r_[0.5, np.ones(cells - 1), 0.5] / cells
    slopes = sparse.csr_matrix(np.diff(np.eye(cells + 1), axis=0))
    limits = sparse.vstack([slopes, -slopes]).tocsr()
    sides = [(-BALL.radius, BALL.radius)] * (cells + 1)
    for number in (3, 4, 5, 6):
        rng, orders = np.random.default_rng(number), np.pi * np.arange(1, number + 1)[:, None]
        functions, curves = np.cos(orders * grid) * weights, np.cos(orders * STATES)
        moment = curves * np.r_[0.5, np.ones(CELLS - 1), 0.5] / CELLS

        def farthest(direction: Array, functions: Array = functions) -> float:
            each = np.full(2 * cells, BALL.lipschitz / cells)
            return -linprog(-(direction @ functions), limits, each, bounds=sides).fun

        box = np.array([farthest(one) for one in np.eye(number)])
        signs = [np.array([1, *rest]) for rest in itertools.product((-1, 1), repeat=number - 1)]
        planes = np.array([*signs, *rng.normal(size=(more, number))]) / box
        ends, found = np.array([farthest(one) for one in planes]), np.zeros((0, number))
        while len(found) < draws:
            points = rng.uniform(-1, 1, (100_000, number)) * box
            found = np.concatenate([found, points[(np.abs(points @ planes.T) <= ends).all(axis=1)]])
        noise = 2 * rng.gamma(number + 1, 1 / BUDGET.epsilon, (draws, 1)) * found[:draws] @ curves
        needed = [people_needed(noise, 2 * moment @ shape(STATES) @ curves, shape(STATES)) for shape in SHAPES.values()]
        print(f"{number} waves", *(f"{few} (± {error:.1f})" for few, error in needed), sep=" | ", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m benchmarks.few_people_priors")
    tried = {"mixture": mixture, "families": families, "radial": radial, "waves": waves}
    parser.add_argument("what", nargs="+", choices=tuple(tried))
    parser.add_argument("--draws", type=int, default=400)
    chosen = parser.parse_args()
    for what in chosen.what:
        tried[what](chosen.draws)
