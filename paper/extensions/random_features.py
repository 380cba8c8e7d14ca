"""Random Fourier features only approximate a kernel: their paths have directions without any noise."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paper.extensions.row import DIMENSIONS, TABLE, row
from paper.task import Row, Task
from quietq.noise.kernels import Exponential


@dataclass(frozen=True)
class RandomFourier(Task):
    """The noise of random features in its quietest direction, in units of the exponential kernel's own there."""

    table: ClassVar[str] = TABLE
    frequencies: int
    cells: int
    beta: float = 4.0

    @property
    def title(self) -> str:
        """How many."""
        return f"extensions: {self.frequencies} random frequencies"

    def rows(self) -> list[Row]:
        """Error of the kernel, and the share of the noise that is left in the quietest and in the median direction."""
        points = np.linspace(0, 1, self.cells + 1)
        kernel = Exponential(self.beta).covariance(points, points)
        # The spectrum of exp(-beta |x|) is Cauchy's; a frequency gives a sine and a cosine.
        frequencies = self.beta * np.random.default_rng(0).standard_cauchy(self.frequencies)
        angles = points[:, None] * frequencies
        features = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(self.frequencies)
        root = np.linalg.cholesky(kernel)
        left = np.linalg.solve(root, features)
        shares = np.sort(np.pad(np.linalg.svd(left, compute_uv=False), (0, max(len(points) - left.shape[1], 0))))
        setting = f"{self.frequencies} random Fourier frequencies, 1 dimension"
        return [
            row(DIMENSIONS, setting, "largest error of the kernel", np.abs(features @ features.T - kernel).max()),
            row(DIMENSIONS, setting, "noise left in the quietest direction", shares[0]),
            row(DIMENSIONS, setting, "directions", len(points)),
            row(DIMENSIONS, setting, "directions without noise", int(np.sum(shares < 1e-6))),
        ]
