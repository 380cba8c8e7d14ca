"""The frozen-noise check of smooth rewards: a private reward from the same seed, for rewards that an adversary chooses.

Each function runs the real release twice on neighbours and measures the difference in the norm of its theorem. Instead
of the real one, the caller may give a copy that may be broken: a mechanism of its own, or `release`, which is called as
`privatise` is.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from quietq.audit.frozen_release import FrozenRelease, Released
from quietq.audit.movement import Movement
from quietq.audit.smooth_moves import farthest_move
from quietq.mechanisms.gaussian_process import GaussianProcessMechanism
from quietq.mechanisms.knots import least_shape
from quietq.mechanisms.private_function import PrivateFunction, PrivateKnots, PrivateTable
from quietq.mechanisms.privatise import privatise
from quietq.noise.box import UNIT, Box
from quietq.noise.entropy import SeededEntropy
from quietq.noise.grid_path import draw_grid
from quietq.noise.increments import IncrementBody
from quietq.noise.kernels import Exponential
from quietq.privacy.budget import Budget
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall


def frozen_path(mechanism: GaussianProcessMechanism, *, name: str = "reward, path", seed: int = 0) -> Movement:
    """Of a mechanism for a LipschitzBall, in the exponential kernel's norm on the released grid; few levels do.

    >>> from quietq import people
    >>> ball = people(50, low=0, high=0.5, slope=1)
    >>> move = frozen_path(GaussianProcessMechanism.for_relation(ball, Budget(0.9, 1e-4), levels=5))
    >>> round(move.stated, 4), 0.95 < move.share < 1  # 0.01 times the root of 5
    (0.0224, True)
    """
    ball = mechanism.relation
    if not isinstance(ball, LipschitzBall) or ball.actions != 1:
        raise InvalidInput("Only a path for the LipschitzBall of one reward function can be audited so far.")
    # Twice as fine as the grid, so that a function which is looked at beside the grid can show.
    return _smooth(frozen_table(mechanism, name, seed), ball, 2 * 2**mechanism.levels, seed, mechanism.box, _second)


def frozen_table(mechanism: GaussianProcessMechanism, name: str, seed: int) -> FrozenRelease:
    """A path's table, with the noise of a seed."""
    kernel = mechanism.kernel
    if not isinstance(kernel, Exponential):
        raise InvalidInput("Only a path of the exponential kernel can be audited so far.")
    grid = np.linspace(0, 1, 2**mechanism.levels + 1)

    def release(f: Any, seed: int) -> Released:
        private = mechanism.simulate(f, seed)
        assert isinstance(private, PrivateTable)
        return private.values, sigma_of(private)

    return FrozenRelease(
        name,
        "kernel's",
        release,
        np.zeros_like,
        lambda seed: draw_grid(kernel, mechanism.levels, (), SeededEntropy(seed)) / mechanism.budget.mu,
        lambda difference: math.sqrt(kernel.inner_on(grid, difference, difference)),
        seed,
    )


def frozen_knots(
    ball: LipschitzBall,
    budget: Budget,
    noise: Literal["k-norm", "knots"],
    *,
    pieces: int = 4,
    release: Callable[..., PrivateFunction] = privatise,
    seed: int = 0,
) -> Movement:
    """Of noise on knots: in the gauge of the body of increments (K-norm), or that of the ellipsoid (Gaussian)."""

    def values(f: Any, seed: int) -> Released:
        private = release(f, budget, noise=noise, pieces=pieces, relation=ball, simulate=seed)
        assert isinstance(private, PrivateKnots)
        return np.diff(private.values) if noise == "k-norm" else private.values, sigma_of(private)

    name = f"reward, {noise}"
    if noise == "k-norm":
        body = IncrementBody(ball, pieces)

        def unit(seed: int) -> Float[np.ndarray, " numbers"]:
            return body.draw(budget.epsilon, SeededEntropy(seed))

        frozen = FrozenRelease(name, "body's gauge", values, np.zeros_like, unit, body.gauge, seed)
        return _smooth(frozen, ball, pieces, seed, UNIT, np.diff)
    root = np.linalg.cholesky(least_shape(ball, pieces))

    def shaped(seed: int) -> Float[np.ndarray, " numbers"]:
        return root @ SeededEntropy(seed).normals((pieces + 1,)) / budget.mu

    def length(difference: Float[np.ndarray, " numbers"]) -> float:
        return float(np.linalg.norm(np.linalg.solve(root, difference)))

    frozen = FrozenRelease(name, "ellipsoid's gauge", values, np.zeros_like, shaped, length, seed)
    return _smooth(frozen, ball, pieces, seed, UNIT, np.asarray)


def _smooth(
    frozen: FrozenRelease,
    ball: LipschitzBall,
    pieces: int,
    seed: int,
    box: Box,
    looked_at: Callable[[np.ndarray], np.ndarray],
) -> Movement:
    """The farthest that functions of the ball, as differences of two rewards, move a release of functions.

    `looked_at` says which numbers the release is made of, as theory has it: only to point the search the way.
    """
    ends = box.from_unit(np.linspace(0, 1, pieces + 1))

    def function(values: Float[np.ndarray, " ends"]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda states: np.interp(states, ends, values)

    def moved(values: Float[np.ndarray, " ends"]) -> float:
        return frozen.moved(function(values / 2), function(-values / 2))

    def length(values: Float[np.ndarray, " ends"]) -> float:
        return frozen.length(looked_at(values))

    found, by, _ = farthest_move(moved, length, ball, pieces, seed)
    return Movement(frozen.name, frozen.stated, found, by, frozen.norm)


def _second(values: Float[np.ndarray, " ends"]) -> Float[np.ndarray, " numbers"]:
    return values[::2]


def sigma_of(private: PrivateFunction) -> float:
    """The noise's size, as a release states it."""
    assert private.certificate.sigma is not None
    return private.certificate.sigma
