"""What every kernel offers."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.privacy.errors import NoRkhsRadius


class Kernel(ABC):
    """A covariance on [0, 1]^d whose Hilbert space norm says how much noise a function needs."""

    dimension: int
    """Number of coordinates of a state."""

    @property
    def tables(self) -> tuple[tuple[Any, ...], ...]:
        """The tables that an exact path on a grid consists of, each the product of its exponential kernels, one per
        axis; none where there is no such path.
        """
        return ()

    @abstractmethod
    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        """K(x_i, y_j) for points x and y, in unit coordinates."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """The kernel in JSON, with its `kind`."""

    def lipschitz_radius(self, radius: float, lipschitz: float) -> float:
        """Sup of the norm over |f| <= radius with slope at most lipschitz; NoRkhsRadius where it is infinite."""
        raise NoRkhsRadius(
            f"A ball of Lipschitz functions is not bounded in the norm of the {self.describe()['kind']} kernel; "
            "use Exponential for such a relation, or state an RkhsBall in this kernel."
        )

    def norm_on(self, points: np.ndarray, values: np.ndarray) -> float:
        """sqrt(v' K^-1 v) for a function known at `points` only: the norm of its least-norm interpolant.

        This is what separates two releases that are seen at these points: the best test between f and f' has
        d' = norm_on(points, f - f')/sigma. Dense; O(points^3).
        """
        from scipy.linalg import cho_factor, cho_solve

        return math.sqrt(float(values @ cho_solve(cho_factor(self.covariance(points, points)), values)))
