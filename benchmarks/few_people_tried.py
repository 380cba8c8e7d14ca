"""What was tried to need fewer people than `few_people` says, and did not help throughout (docs/methods.md).

`python -m benchmarks.few_people_tried path prior policy` scores, for several numbers of people,

- path: what is planned on the mean of a path's posterior under a smooth prior,
- prior: K-norm noise, on the mean over random rewards, weighed by the density of the noise,
- policy: policies towards one place, chosen by the exponential mechanism and by permute-and-flip. A policy's score is
  how many people must change before it is the best: its distance moves by at most one when one person does.
"""

import argparse
from typing import Any

import numpy as np
from scipy.optimize import linprog

from benchmarks.few_people import AT, BUDGET, CELLS, SHAPES, STATES, noise_of, returns, scores
from quietq.mechanisms.mechanism import Task
from quietq.mechanisms.privatise import choose
from quietq.noise import SeededEntropy
from quietq.noise.increments import IncrementBody, to_curve
from quietq.privacy import people
from quietq.worlds import WALK

Array = np.ndarray
NUMBERS = (10, 12, 14, 16, 20, 24, 28, 34, 40)


def path(draws: int) -> None:
    noise, _ = noise_of("path", None, draws)
    mechanism: Any = choose("path", Task(people(AT, 0.0, 0.5, 1.0), BUDGET, slope=1.0))
    gaps = np.abs(STATES[:, None] - STATES)
    about_mean = np.eye(len(STATES)) - 1 / len(STATES)
    smooth = 0.15**2 * (1 + np.sqrt(3) * gaps / 0.3) * np.exp(-np.sqrt(3) * gaps / 0.3)  # Matern 3/2
    prior = about_mean @ smooth @ about_mean
    rough = mechanism.law.sigma**2 * np.exp(-mechanism.law.measured()["norm"]["beta"] * gaps)
    for name, shape in SHAPES.items():
        truth = shape(STATES)
        for number in NUMBERS:
            seen = (truth + noise * (AT / number)) @ about_mean
            spread = about_mean @ (rough * (AT / number) ** 2) @ about_mean
            mean = seen @ np.linalg.pinv(prior + spread, hermitian=True) @ prior
            tell(f"path, {name}", number, seen=scores(seen, truth), posterior=scores(mean, truth))


def prior(draws: int, pieces: int = 4, rewards: int = 4000) -> None:
    body = IncrementBody(people(AT, 0.0, 0.5, 1.0), pieces)
    noise, knots = body.draws(BUDGET.epsilon, SeededEntropy(1), draws), np.linspace(0, 1, pieces + 1)
    imagined = _random_rewards(rewards, np.random.default_rng(7))
    increments = np.diff([np.interp(knots, STATES, one) for one in imagined], axis=1)
    for name, shape in SHAPES.items():
        truth = shape(STATES)
        for number in NUMBERS:
            seen = np.diff(shape(knots)) + noise * (AT / number)
            raw = np.stack([np.interp(STATES, knots, curve) for curve in to_curve(seen)])
            means = []
            for one in seen:
                log = -BUDGET.epsilon * gauges(body, one - increments) * (number / AT)
                weights = np.exp(log - log.max())
                means.append(weights @ imagined / weights.sum())
            tell(f"k-norm/{pieces}, {name}", number, seen=scores(raw, truth), mean=scores(np.array(means), truth))


def _random_rewards(number: int, rng: np.random.Generator) -> Array:
    """Slopes up to 1 between random turns, and a range of at most 0.5."""
    found = []
    for turns in rng.poisson(rng.choice([1, 2, 4, 8], number)):
        slopes = rng.uniform(-1, 1, turns + 1)
        if rng.random() < 0.5:
            slopes = np.sign(slopes) * rng.choice([0.25, 0.5, 1.0], turns + 1, p=[0.2, 0.3, 0.5])
        steps = slopes[np.searchsorted(np.sort(rng.random(turns)), (STATES[1:] + STATES[:-1]) / 2)] / CELLS
        curve = np.append(0.0, np.cumsum(steps))
        found.append(curve * min(1.0, 0.5 / np.ptp(curve)))
    return np.array(found)


def gauges(body: IncrementBody, increments: Array) -> Array:
    sums = np.cumsum(increments, axis=1)
    ranges = np.maximum(sums.max(axis=1), 0) - np.minimum(sums.min(axis=1), 0)
    steepest = np.abs(increments).max(axis=1) * body.pieces / body.ball.lipschitz
    return np.maximum(steepest, ranges / (2 * body.ball.radius))


def policy(draws: int, cells: int = 24, discount: float = 0.9) -> None:
    moves, rng = _moves(cells), np.random.default_rng(0)
    rights = np.arange(cells + 1) < np.arange(cells + 2)[:, None]  # to the right until here, to the left from there on
    nearest = np.rint(STATES * cells).astype(int)
    for name, shape in SHAPES.items():
        truth = shape(STATES)
        away = np.array([_people_away(right, shape(np.linspace(0, 1, cells + 1)), moves, discount) for right in rights])
        worst, best = (returns(truth[None], act)[0][0] for act in (lambda q: q.min(axis=0), lambda q: q.max(axis=0)))
        wide = rights[:, nearest]
        value, _ = returns(np.broadcast_to(truth, wide.shape), lambda q, wide=wide: np.where(wide, q[1], q[0]))
        value = (value - worst) / (best - worst)
        for number in NUMBERS:
            weights = np.exp(-BUDGET.epsilon * number * away / 2)
            noisy = -number * away + rng.exponential(2 / BUDGET.epsilon, (draws, len(away)))
            mean = np.full(2, weights @ value / weights.sum())
            tell(f"policy, {name}", number, exponential=mean, permute_and_flip=value[noisy.argmax(axis=1)])


def _moves(cells: int) -> tuple[Array, Array]:
    """Mean values after a move to the left and to the right, as matrices on a coarse grid."""
    unit, reach = np.eye(cells + 1), round(cells * WALK.reach)
    area = np.vstack([np.zeros(cells + 1), np.cumsum((unit[1:] + unit[:-1]) / 2, axis=0)])
    here = np.arange(cells + 1)
    right, left = np.minimum(here + reach, cells), np.maximum(here - reach, 0)
    to_right = area[right] - area + (here + reach - right)[:, None] * unit[-1]
    to_left = area - area[left] + (left - here + reach)[:, None] * unit[0]
    return to_left / reach, to_right / reach


def _people_away(right: Array, reward: Array, moves: tuple[Array, Array], discount: float) -> float:
    """What part of the people must change before the policy is the best one: a linear program."""
    to_left, to_right = moves
    n, followed = len(reward), np.where(right[:, None], to_right, to_left)
    value = np.linalg.solve(np.eye(n) - discount * followed, followed)
    better = np.where(right, 1, -1)[:, None] * ((to_right - to_left) @ (np.eye(n) + discount * value))
    slopes, column = np.diff(np.eye(n), axis=0), np.ones((n, 1))
    limits = np.vstack(
        [
            np.hstack([-better, 0 * column]),
            *(np.hstack([sign * np.eye(n), -0.5 * column]) for sign in (1, -1)),
            *(np.hstack([sign * slopes, -2 / (n - 1) * column[1:]]) for sign in (1, -1)),
        ]
    )
    bounds = np.concatenate([better @ reward, np.zeros(len(limits) - n)])
    found = linprog(np.append(np.zeros(n), 1.0), limits, bounds, bounds=[(None, None)] * n + [(0, None)])
    return float(found.fun) if found.status == 0 else np.inf


def tell(what: str, number: int, **found: Array) -> None:
    print(what, f"{number} people", *(f"{name} {one.mean():.4f}" for name, one in found.items()), sep=" | ", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m benchmarks.few_people_tried")
    parser.add_argument("what", nargs="+", choices=("path", "prior", "policy"))
    parser.add_argument("--draws", type=int, default=400)
    chosen = parser.parse_args()
    for what in chosen.what:
        {"path": path, "prior": prior, "policy": policy}[what](chosen.draws)
