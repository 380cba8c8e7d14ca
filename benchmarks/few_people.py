"""How few people will do: those for a score of 0.98 on the walk, if one plans on the private reward.

`python -m benchmarks.few_people --draws 1000` plans on simulated releases of four rewards, by each kind of noise, and
scores the stationary policy under the true reward, 0 for the worst policy and 1 for the best. Noise is in proportion to
1/people, so each draw is made once and scaled. All have the same epsilon, which is not the same protection: K-norm
noise is pure. It is in proportion to 1/epsilon, too, so the people that it takes with the protection of Gaussian noise
follow, and are told beside.
"""

import argparse
from collections.abc import Callable

import numpy as np

from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.mechanism import Task
from quietq.mechanisms.privatise import choose
from quietq.mechanisms.release import simulate
from quietq.privacy import Budget, people
from quietq.privacy.limits import guess_right, of_hundred, pure_epsilon
from quietq.worlds import WALK

BUDGET, TARGET = Budget(0.9, 1e-4), 0.98
CELLS, AT = 128, 20
"""Of the grid that is planned on, and the people whose noise is drawn."""
STATES = np.linspace(0, 1, CELLS + 1)
SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "the walk": lambda s: 0.5 - np.abs(s - 0.5),
    "peak off the centre": lambda s: np.maximum(0.5 - np.abs(s - 0.35), 0),
    "ramp": lambda s: s / 2,
    "two peaks": lambda s: 0.5 - np.minimum(np.abs(s - 0.25), np.abs(s - 0.75)),
}
Curves = np.ndarray  # one row a draw, one column a state


def after_move(values: Curves) -> np.ndarray:
    """Mean values after a move to the left and to the right; `worlds.planning` has the same for one curve."""
    cells, reach = CELLS, round(CELLS * WALK.reach)
    area = np.pad(np.cumsum((values[:, 1:] + values[:, :-1]) / 2, axis=1), ((0, 0), (1, 0)))
    here = np.arange(cells + 1)
    right, left = np.minimum(here + reach, cells), np.maximum(here - reach, 0)
    to_right = area[:, right] - area + (here + reach - right) * values[:, -1:]
    to_left = area - area[:, left] + (left - here + reach) * values[:, :1]
    return np.stack([to_left, to_right]) / reach


def returns(rewards: Curves, act: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The return of each draw from a uniform start, and all actions' values at the first step."""
    value, q = np.zeros_like(rewards), np.zeros((2, *rewards.shape))
    for _ in range(WALK.steps):
        q = after_move(rewards + value)
        value = act(q)
    return np.trapezoid(value, dx=1 / CELLS, axis=1), q


def scores(planned: Curves, truth: np.ndarray) -> np.ndarray:
    """Of what is best for each planned reward, under the true one."""
    _, q = returns(planned, lambda q: q.max(axis=0))
    right = q[1] > q[0]
    found, _ = returns(np.broadcast_to(truth, planned.shape), lambda q: np.where(right, q[1], q[0]))
    worst, best = (returns(truth[None], act)[0][0] for act in (lambda q: q.min(axis=0), lambda q: q.max(axis=0)))
    return (found - worst) / (best - worst)


def noise_of(
    kind: str, pieces: int | None, draws: int, seed: int = 0, level: bool = False
) -> tuple[Curves, Callable[..., np.ndarray]]:
    """Noise for AT people, and what becomes of a reward without noise."""
    task = Task(people(AT, 0.0, 0.5, 1.0), BUDGET, slope=1.0, pieces=pieces, level=level)
    mechanism = choose(kind, task)

    def release(reward: Callable[[np.ndarray], np.ndarray], seed: int) -> np.ndarray:
        return simulate(mechanism, OwnFunction(reward, mechanism.relation), seed)(STATES)

    noise = np.stack([release(np.zeros_like, seed + draw) for draw in range(draws)])
    return noise, lambda reward: release(reward, seed) - noise[0]


def people_needed(noise: Curves, signal: np.ndarray, truth: np.ndarray) -> tuple[int, float]:
    """The fewest people for the target in the mean, and how far off that number is by chance."""

    def mean(number: int) -> tuple[float, float]:
        found = scores(signal + noise * (AT / number), truth)
        return float(found.mean()), float(found.std() / np.sqrt(len(found)))

    low, high = 2, 128
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if mean(middle)[0] >= TARGET else (middle, high)
    (before, error), (after, _) = mean(low), mean(high)
    return high, error / max(after - before, 1e-9)


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.few_people")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    kinds = ["path", "path/level", "knots/4", "knots/8", "k-norm/4", "k-norm/5", "k-norm/6"]
    parser.add_argument("--kinds", nargs="+", default=kinds)
    chosen = parser.parse_args()
    print("noise", *SHAPES, sep=" | ")
    for name in chosen.kinds:
        kind, _, rest = name.partition("/")
        pieces = int(rest) if rest.isdigit() else None
        noise, signal = noise_of(kind, pieces, chosen.draws, chosen.seed, level=rest == "level")
        found = [people_needed(noise, signal(shape), shape(STATES)) for shape in SHAPES.values()]
        print(name, *(f"{number} (± {error:.1f})" for number, error in found), sep=" | ", flush=True)
        if kind == "k-norm":
            times, right = BUDGET.epsilon / pure_epsilon(BUDGET.mu), of_hundred(guess_right(BUDGET.epsilon, 0.0))
            same = of_hundred(guess_right(BUDGET.epsilon, BUDGET.delta, BUDGET.mu))
            told = f"{name}, where a guesser is right in {same} of 100 cases as with the others, and not in {right}"
            print(told, *(round(number * times) for number, _ in found), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
