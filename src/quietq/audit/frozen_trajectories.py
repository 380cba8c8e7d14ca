"""The frozen-noise check of policy evaluation: one person's trajectory replaced by any other.

The noise follows the data, so the same seed gives noise of another size for a neighbour: what is held fixed is the
smooth bound of the data at hand, read off the noise that is in its release, and no replacement may exceed it.
"""

from collections.abc import Sequence

import numpy as np

from quietq.audit.movement import Movement
from quietq.feedback.trajectories import Trajectory, Visits
from quietq.mechanisms.evaluation import Evaluation
from quietq.mechanisms.smooth_sensitivity import Admissible
from quietq.noise.entropy import SeededEntropy

_RANDOM = 20
_LONGEST = 40


def frozen_trajectories(evaluation: Evaluation, trajectories: Sequence[Trajectory], *, seed: int = 0) -> Movement:
    """How far replacing the last trajectory moves the weights, beside what the noise on them is enough for.

    Cells are taken for whole numbers, as with `Cells.states`.
    """
    rng, cells, largest = np.random.default_rng(seed), evaluation.cells.count, evaluation.relation.largest_reward
    fit = evaluation._fit()

    def weights(data: Sequence[Trajectory]) -> np.ndarray:
        return fit.estimate(Visits.of(data, evaluation.cells, evaluation.gamma, evaluation.relation))

    everywhere = np.append(np.arange(cells), np.zeros(_LONGEST, np.int64))
    answers: list[tuple[str, Trajectory]] = [("nobody", ([], []))]
    answers += [("everywhere", (everywhere, np.full(len(everywhere), sign * largest))) for sign in (1.0, -1.0)]
    for length in rng.integers(1, _LONGEST, _RANDOM):
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
