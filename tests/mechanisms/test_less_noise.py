"""How much less noise the theorems of docs/theory.md need than what was there before."""

import math
import time

import numpy as np
import pytest
from scipy.stats import chi2, norm

from quietq import Budget, people, privatise
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.path import Path
from quietq.noise.box import UNIT
from quietq.noise.entropy import SystemEntropy
from quietq.paper.baselines.balle import Admissible
from quietq.privacy import Exponential

BUDGET = Budget(0.9, 1e-4)


@pytest.mark.parametrize(("numbers", "ratio"), [(1, 0.56), (5, 0.51), (10, 0.49), (40, 0.47)])
def test_evaluation_by_its_exact_divergence(numbers: int, ratio: float) -> None:
    """Over the largest alpha that tail bounds allow for the same beta (section 4.6)."""
    epsilon, delta, exact = BUDGET.epsilon, BUDGET.delta, Admissible.for_budget(BUDGET, numbers)
    beta, z = exact.beta, norm.isf(delta / 2)
    upper, lower = chi2.isf(delta / 2, numbers), chi2.ppf(delta / 2, numbers)
    narrower = math.expm1(2 * beta) * upper / 2 - beta * numbers
    wider = beta * numbers + math.expm1(-2 * beta) * lower / 2
    bounds = [  # the root of size z a + a^2/2 = epsilon - rest
        math.sqrt((size * z) ** 2 + 2 * (epsilon - rest)) - size * z
        for size, rest in ((math.exp(beta), narrower), (1.0, wider))
    ]
    assert min(bounds) / exact.alpha == pytest.approx(ratio, abs=0.006)


@pytest.mark.parametrize("levels", [10, 16])
def test_an_exact_table_takes_less_than_two_seconds(levels: int) -> None:
    """Of a processor, from values to what is released, however busy the machine is; it is about a tenth of one."""
    ball, kernel = people(50, 0, 0.5, 1), Exponential(4.0)
    law = Path(OwnFunction(None, ball, box=UNIT), BUDGET, kernel, radius=ball.rkhs_radius(kernel), levels=levels).law
    values = np.linspace(0, 0.5, 2**levels + 1)
    began = time.process_time()
    released = law.add(values, SystemEntropy())
    assert time.process_time() - began < 2
    assert released.shape == values.shape
    assert np.abs(released - values).max() < 10 * law.sigma


def test_a_release_from_a_function_takes_less_than_two_seconds() -> None:
    began = time.process_time()
    private = privatise(lambda s: s / 4, Budget(0.9, 1e-5), relation=people(2000, 0, 0.5, 1), noise="path")
    assert private.values.shape == (65537,)  # type: ignore[attr-defined]
    assert time.process_time() - began < 2
