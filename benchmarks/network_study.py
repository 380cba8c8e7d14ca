"""Where a network overtakes features: correlation with the truth of `rounds` and of `network`, for the same people.

    python -m benchmarks.network_study --people 60000 --dimension 8 --shapes sines tree --rows-of 4000

Noise is that of so many people; rows are those of the first `--rows-of` of them, which both estimators are given, so
that a table takes minutes. Settings of the network were chosen on families.DEVELOPMENT (sines, tree, saddle, step,
cone, waves).
"""

import argparse
import json
import time
from typing import Any

import numpy as np

from benchmarks import families
from quietq import Budget
from quietq.feedback.loss import Squared
from quietq.feedback.statistic import Statistic
from quietq.mechanisms.mechanism import Mechanism, Task
from quietq.mechanisms.network import Network
from quietq.mechanisms.rounds import Rounds
from quietq.noise.entropy import SeededEntropy
from quietq.privacy import Certificate
from quietq.privacy.relations import OnePerson


class Few:
    """Feedback of some people in the place of many."""

    def __init__(self, rows: dict[str, np.ndarray], people: int) -> None:
        self.rows, self.people = rows, people

    def mean(self, statistic: Statistic) -> np.ndarray:
        tally = statistic.empty()
        statistic.add(tally, families.ROWS * np.arange(self.people), self.rows)
        return statistic.mean(tally, self.people)


def simulate(mechanism: Mechanism, feedback: Few, seed: int) -> Any:
    steps, entropy = mechanism.run(), SeededEntropy(seed)
    query = next(steps)
    while True:
        try:
            query = steps.send(query.law.add(query.numbers(feedback), entropy))
        except StopIteration as last:
            return mechanism.result(last.value, Certificate(method="simulated", standing="none", sigma=1.0))


def measure(shape: str, dimension: int, people: int, rows_of: int, draw: int) -> dict[str, Any]:
    drawn = families.ratings(shape, dimension, min(people, rows_of), draw)
    feedback = Few({name: drawn.rows[name].to_numpy() for name in (*drawn.states, "rating")}, drawn.people)
    task = Task(
        OnePerson(people), Budget(1.0, 1e-5), [(0.0, 1.0)] * dimension, loss=Squared(dimension, (0.0, 1.0)), asked=True
    )
    found: dict[str, Any] = {"shape": shape, "dimension": dimension, "people": people, "draw": draw}
    for kind in (Rounds, Network):
        began = time.process_time()
        reward = simulate(kind(task), feedback, draw)
        found[kind.name] = round(drawn.score(reward(drawn.fresh)).correlation, 4)
        found[f"{kind.name}, seconds"] = round(time.process_time() - began, 1)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, nargs="+", default=[10_000, 60_000])
    parser.add_argument("--dimension", type=int, nargs="+", default=[8])
    parser.add_argument("--shapes", nargs="+", default=list(families.DEVELOPMENT))
    parser.add_argument("--rows-of", type=int, default=4000)
    parser.add_argument("--draws", type=int, default=1)
    asked = parser.parse_args()
    for people in asked.people:
        for dimension in asked.dimension:
            for shape in asked.shapes:
                for draw in range(asked.draws):
                    print(json.dumps(measure(shape, dimension, people, asked.rows_of, draw)), flush=True)
