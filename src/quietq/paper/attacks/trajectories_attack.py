"""Audits of policy evaluation, whose noise follows the data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quietq.audit.draws import audit_draws
from quietq.audit.finding import Attack, Finding, Movement, Promise
from quietq.feedback.cells import Cells
from quietq.noise import SeededEntropy
from quietq.paper.baselines.balle import Admissible, Evaluation, Trajectory, Visits
from quietq.privacy import Budget, Trajectories

_HORIZON, _REWARD = 3, 1.0
_LONGEST = 40


def audit_evaluation(people: int, budget: Budget, runs: int = 1000, **options: Any) -> Finding:
    """Audits the value of a policy from people's trajectories: one of them gained the most there is, or lost it.

    Args:
        people: The number of trajectories.
        budget: The (epsilon, delta) of the release.
        runs: Releases of each of the two inputs.
        options: Those of `audit_draws`.

    """
    relation = Trajectories(count=people, largest_reward=_REWARD, horizon=_HORIZON)
    evaluation = Evaluation(budget=budget, relation=relation, gamma=0.5, cells=Cells.states(_HORIZON))
    others: list[Trajectory] = [(list(range(_HORIZON)), [0.0] * _HORIZON)] * (people - 1)
    worlds = [[*others, (list(range(_HORIZON)), [sign * _REWARD] * _HORIZON)] for sign in (-1, 1)]
    moved, seen = "one trajectory's rewards", "the released weights"
    attack = Attack("evaluation", "a chain of three states", str(relation), moved, seen, "learned")
    return audit_draws(
        lambda side, stream: evaluation.release(worlds[side], simulate=stream).weights,
        runs,
        attack,
        Promise("certified", budget.epsilon, budget.delta),
        **options,
    )


def frozen_trajectories(evaluation: Evaluation, trajectories: Sequence[Trajectory], *, seed: int = 0) -> Movement:
    """Returns how far replacing the last trajectory moves the weights, beside what the noise on them is enough for.

    The same seed gives noise of another size for a neighbour: what is held fixed is the smooth bound of the data at
    hand, read off the noise that is in its release, and no replacement may exceed it. Cells are taken for whole
    numbers, as with `Cells.states`.
    """
    rng, cells, largest = np.random.default_rng(seed), evaluation.cells.count, evaluation.relation.largest_reward
    fit = evaluation._fit()

    def weights(data: Sequence[Trajectory]) -> np.ndarray:
        return fit.estimate(Visits.of(data, evaluation.cells, evaluation.gamma, evaluation.relation))

    everywhere = np.append(np.arange(cells), np.zeros(_LONGEST, np.int64))
    answers: list[tuple[str, Trajectory]] = [("nobody", ([], []))]
    answers += [("everywhere", (everywhere, np.full(len(everywhere), sign * largest))) for sign in (1.0, -1.0)]
    for length in rng.integers(1, _LONGEST, 20):
        rewards = rng.choice([-1e9, -largest, largest, 1e9], length)
        answers.append(("random", (rng.integers(-1, cells + 1, length), rewards)))
    here = weights(trajectories)
    found = [float(np.linalg.norm(weights([*trajectories[:-1], other]) - here)) for _, other in answers]
    best = int(np.argmax(found))
    unit = SeededEntropy(seed).normals((fit.dimension,))
    noise = evaluation.release(trajectories, simulate=seed).weights - here
    alpha = Admissible.for_budget(evaluation.budget, fit.dimension, evaluation.share).alpha
    stated = float(noise @ unit / (unit @ unit)) * alpha
    return Movement(f"evaluation, {evaluation.kind}", stated, found[best], answers[best][0])
