"""What the frozen-noise checks share: a promise and the spaces it is kept in."""

from typing import Any

import numpy as np

from quietq import Budget, SupBall, people
from quietq.noise.box import UNIT
from quietq.paper import FeatureKernel
from quietq.paper.agents.method import EnvironmentSpaces
from quietq.privacy.relations import RkhsBall

BUDGET, BALL, SUP = Budget(0.9, 1e-4), people(50, 0, 0.5, 1), SupBall(0.3)
SPACES = EnvironmentSpaces(UNIT, 2, 50)
PROMISE: dict[str, Any] = {"relation": SUP, "budget": BUDGET}
WEIGHTS = RkhsBall(0.02, FeatureKernel(lambda x: np.stack([x, x**2], axis=-1), 2).norm)
