"""Other kernels: what they take, which functions have a norm in them, and how long their queries take.

The paper's kernel for several dimensions, exp(-beta |x - y|_1), is exact, but few functions have a norm in it. Random
Fourier features only approximate a kernel: their paths have directions without any noise. The band-limited kernel has
another relation: each person's reward has no frequency above W and a norm of at most C; on the whole line its squares
integrate to C^2/2W. A slope is not declared, and the walk's own reward, with its kink, is not of this kind: what is
released is the reward without its frequencies above W. Seconds are this machine's.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

import quietq as qq
from quietq.noise.entropy import SeededEntropy
from quietq.noise.grid_path import draw_grid
from quietq.paper import BandLimited, FiniteRankMechanism
from quietq.privacy.relations import Exponential, whiten
from quietq.worlds import WALK, plan, score, walk_reward
from reproduction.claims.sampler import dense, seconds
from reproduction.claims.statement import power
from reproduction.experiment import Row
from reproduction.extensions.learners import PROMISE, budget
from reproduction.extensions.rows import BAND_LIMITED, DIMENSIONS, QUERIES, refusal, row

BETA = 4.0
"""The walk's, twice a slope of 1 over a range of 0.5."""
PRODUCT, EXPONENTIAL, UNSTRUCTURED = "product kernel", "exponential kernel", "kernel without structure"
LINE, SECTION = "norm of a broken line on points", "norm of the kernel's section on points"


def measure_dimension(dimension: int, people: int) -> list[Row]:
    """The noise that one more dimension costs, for people as on the walk, with mixed derivatives bounded too."""
    kernel = Exponential((BETA,) * dimension)
    relation = qq.RkhsBall(mixed_radius(people, dimension), kernel.norm, people=people)
    mechanism = qq.GaussianProcessMechanism.for_relation(relation, qq.Budget(1.0, 1e-5))
    setting = f"{PRODUCT}, {dimension} dimension{'s' if dimension > 1 else ''}"
    return [row(DIMENSIONS, setting, "sigma", mechanism.sigma, people=people, epsilon=1.0, delta=1e-5)]


def mixed_radius(people: int, dimension: int) -> float:
    """The norm of what replacing one person can change, if all mixed derivatives are bounded.

    Let |d_S f| <= rho (l/rho)^|S| for every set S of coordinates. The norm's square is a sum of integrals of such
    squares, the same along each axis as in one dimension: at most rho^2 (1 + l/rho)^d at beta = l/rho.

    >>> round(mixed_radius(50, 1) / qq.people(50, low=0, high=0.5, slope=1).rkhs_radius(qq.Exponential(BETA)), 12)
    1.0
    """
    ball = qq.people(people, low=0.0, high=0.5, slope=1.0)
    return ball.radius * (1 + ball.best_beta()) ** (dimension / 2)


def measure_covariance(draws: int, levels: int = 3) -> list[Row]:
    """Are two-dimensional draws what the kernel says they are?"""
    kernel = Exponential((BETA, BETA / 2))
    grids = (draw_grid(kernel, levels, (), SeededEntropy(seed)) for seed in range(draws))
    drawn = np.stack([grid.ravel() for grid in grids])
    axis = np.arange(2**levels + 1) / 2**levels
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return errors(f"{PRODUCT}, 2 dimensions", DIMENSIONS, drawn, kernel.covariance(points, points))


def errors(setting: str, extension: str, drawn: np.ndarray, expected: np.ndarray) -> list[Row]:
    """How far the covariance of draws (one a row, of mean 0) is from what it should be, and in standard errors."""
    apart = np.abs(drawn.T @ drawn / len(drawn) - expected)
    deviations = np.diag(expected)
    allowed = np.sqrt((np.outer(deviations, deviations) + expected**2) / len(drawn))
    return [
        row(extension, setting, "largest error of the covariance", apart.max()),
        row(extension, setting, "the same in standard errors", (apart / allowed).max()),
        row(extension, setting, "draws", len(drawn)),
    ]


def measure_membership(levels: tuple[int, ...]) -> list[Row]:
    """Which functions have a norm in the product kernel: seen on finer and finer grids, a norm settles or grows."""
    found = []
    for level in levels:
        x = np.arange(2**level + 1) / 2**level
        tent, sums = 1 - 2 * np.abs(x - 0.5), x[:, None] + x[None] - 1
        peak = 0.5 * np.outer(tent, tent)
        functions = {"smooth peak": peak, "ReLU unit": np.maximum(sums, 0), "tanh unit": np.tanh(sums)}
        for name, values in functions.items():
            norm = norm_on_grid(BETA, x, values)
            found.append(row(DIMENSIONS, f"{PRODUCT}, {name}", "norm on a grid", norm, at=2**level))
    kernel, ball = Exponential((BETA, BETA)), qq.people(100, low=0.0, high=0.5, slope=1.0)
    found.append(refusal(DIMENSIONS, f"{PRODUCT}, Lipschitz ball", lambda: ball.rkhs_radius(kernel)))
    found.append(refusal(DIMENSIONS, f"{PRODUCT}, Lipschitz bounds", lambda: kernel.norm.of_lipschitz(0.01, 0.04)))
    return found


def norm_on_grid(beta: float, axis: np.ndarray, values: np.ndarray) -> float:
    """The least norm, in the product kernel, of a function that takes these values on axis x axis."""
    return math.sqrt(float(np.sum(whiten(beta, axis, whiten(beta, axis, values).T) ** 2)))


def measure_random_features(frequencies: int, cells: int, beta: float = BETA) -> list[Row]:
    """The noise of random features in its quietest direction, in units of the exponential kernel's own there."""
    points = np.linspace(0, 1, cells + 1)
    kernel = Exponential(beta).covariance(points, points)
    # The spectrum of exp(-beta |x|) is Cauchy's; a frequency gives a sine and a cosine.
    angles = points[:, None] * (beta * np.random.default_rng(0).standard_cauchy(frequencies))
    features = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(frequencies)
    left = np.linalg.solve(np.linalg.cholesky(kernel), features)
    shares = np.sort(np.pad(np.linalg.svd(left, compute_uv=False), (0, max(len(points) - left.shape[1], 0))))
    setting = f"{frequencies} random Fourier frequencies, 1 dimension"
    return [
        row(DIMENSIONS, setting, "largest error of the kernel", np.abs(features @ features.T - kernel).max()),
        row(DIMENSIONS, setting, "noise left in the quietest direction", shares[0]),
        row(DIMENSIONS, setting, "directions", len(points)),
        row(DIMENSIONS, setting, "directions without noise", int(np.sum(shares < 1e-6))),
    ]


def without_high_frequencies(half_width: float) -> Callable[[np.ndarray], np.ndarray]:
    """The walk's reward, 0 outside [0, 1], without frequencies above the half-width."""
    places = np.linspace(0, 1, 2049)
    rewards = walk_reward(places)

    def reward(states: np.ndarray) -> np.ndarray:
        away = np.asarray(states)[:, None] - places
        part = 2 * half_width * np.sinc(2 * half_width * away) * rewards
        return np.asarray(np.trapezoid(part, places, axis=1))

    return reward


def norm_bound(half_width: float) -> float:
    """A norm that the reward of `without_high_frequencies` has at most: its squares integrate to 1/12 at most."""
    return math.sqrt(2 * half_width / 12)


def measure_terms(half_width: float, draws: int) -> list[Row]:
    """How many terms the band-limited kernel has, whether they make it up, and norms of rewards in it."""
    kernel, setting, points = BandLimited(half_width), f"W = {half_width:g}", np.linspace(0, 1, 33)
    wanted = np.sinc(2 * half_width * np.subtract.outer(points, points))
    drawn = np.stack([SeededEntropy(seed).normals((kernel.rank,)) for seed in range(draws)])
    rewards = {
        "norm of the reward without high frequencies": without_high_frequencies(half_width),
        "norm of the reward as it is, projected": walk_reward,
    }
    norms = {name: float(np.linalg.norm(kernel.project(f(kernel.sample_points)))) for name, f in rewards.items()}
    return [
        row(BAND_LIMITED, setting, "terms", kernel.rank),
        row(BAND_LIMITED, setting, "error of the terms", np.abs(kernel.covariance(points, points) - wanted).max()),
        *errors(setting, BAND_LIMITED, drawn @ kernel.features(points).T, wanted),
        *(row(BAND_LIMITED, setting, name, norm) for name, norm in norms.items()),
    ]


def measure_broken_line(half_width: float = 6.0) -> list[Row]:
    """Norms in the band-limited kernel, on more points, of a tent, as ReLU networks have it, and of its own section."""
    kernel, setting, found = BandLimited(half_width), f"W = {half_width:g}", []
    for points in (4, 8, 12, 16, 20):
        grid = np.linspace(0, 1, points)
        tent, section = np.maximum(0, 0.3 - np.abs(grid - 0.47)), kernel.covariance(np.array([0.5]), grid)[0]
        found.append(row(BAND_LIMITED, setting, LINE, kernel.norm_on(grid, tent), at=points))
        found.append(row(BAND_LIMITED, setting, SECTION, kernel.norm_on(grid, section), at=points))
    return found


def measure_releases(half_width: float, people: tuple[int, ...], draws: int) -> list[Row]:
    """Plans on the reward as the band-limited kernel releases it, or the exponential one (half-width 0)."""
    found, setting, reward = [], EXPONENTIAL, walk_reward
    if half_width:
        setting, reward = f"W = {half_width:g}", without_high_frequencies(half_width)
    for number in people:
        mechanism = qq.GaussianProcessMechanism.for_relation(WALK.relation(number), budget())
        if half_width:
            relation = qq.RkhsBall(2 * norm_bound(half_width) / number, BandLimited(half_width).norm, people=number)
            mechanism = FiniteRankMechanism.for_relation(relation, budget())
        releases = [mechanism.simulate(reward, seed) for seed in range(draws)]
        found.append(row(BAND_LIMITED, setting, "sigma", mechanism.sigma, people=number, **PROMISE))
        for i, one in enumerate(releases):
            reached = score(plan(one))
            found.append(row(BAND_LIMITED, setting, "score", reached, draw=i, people=number, **PROMISE))
    return found


Kernel = Literal["exponential", "product", "band-limited"]


def measure_queries(kernel: Kernel | None, numbers: tuple[int, ...]) -> list[Row]:
    """Seconds for each number of queries of one release, and the power of the number that they grow with.

    None is a kernel whose structure is not used: each value is drawn given all before it.
    """
    setting, d, repeats, times = UNSTRUCTURED, 1, 2, []
    release: Any = dense
    if kernel is not None:
        setting, release, repeats = f"{kernel} kernel", _release(kernel), 5
        d = release.box.dimension
    for number in numbers:
        unit = np.random.default_rng(0).random((number, d) if d > 1 else number)
        times.append(seconds(release, unit if kernel is None else release.box.from_unit(unit), repeats))
    pairs = list(zip(numbers, times, strict=True))
    return [
        *(row(QUERIES, setting, "seconds", taken, at=number) for number, taken in pairs),
        row(QUERIES, setting, "power of the number of queries", power(pairs)),
    ]


def _release(kernel: Kernel) -> Any:
    promise = qq.Budget(1.0, 1e-5)
    if kernel == "band-limited":
        relation = qq.RkhsBall(0.02, BandLimited(5.0).norm, people=100)
        return FiniteRankMechanism.for_relation(relation, promise).simulate(walk_reward, 0)
    if kernel == "product":
        relation = qq.RkhsBall(0.02, qq.Exponential((4.0, 4.0)).norm, people=100)
        mechanism = qq.GaussianProcessMechanism.for_relation(relation, promise, levels=8)
        return mechanism.simulate(lambda s: walk_reward(s[:, 0]) * walk_reward(s[:, 1]), 0)
    relation = qq.people(100, low=0.0, high=0.5, slope=1.0)
    return qq.GaussianProcessMechanism.for_relation(relation, promise).simulate(walk_reward, 0)
