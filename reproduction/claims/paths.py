"""Sample paths: how high they reach (Lemma 8, on which Theorem 5 rests), and their likelihood ratios (Lemma 11)."""

import math

import numpy as np
from scipy.stats import norm

from quietq.noise import SeededEntropy
from quietq.noise.grid_path import draw_grid
from quietq.privacy import Exponential
from quietq.privacy.relations import whiten
from reproduction.claims.statement import Measurements, at_most, power, says
from reproduction.experiment import Decision, Row, decide

MEAN = "E max/sigma"
CONSTANT = 8.68


@says("Lemma 8: expected maximum of a path")
def MAXIMUM(found: Measurements) -> Decision:
    pairs, bounds = found.at(MEAN), found.at(MEAN, "printed")
    over = [bound / true for (_, true), (_, bound) in zip(pairs, bounds, strict=True)]
    reached = ", ".join(f"{true:.3g} at beta {beta:g}" for beta, true in pairs)
    return decide(min(over) >= 1, reached=reached, low=min(over), high=max(over))


TAIL = says("Lemma 8: tail of the maximum")(
    at_most(1, "exceedance over the bound @ sigma = 0.5", "exceedance over the bound @ sigma = 3")
)
SUM = says("Lemma 8, proof: the constant")(at_most(CONSTANT, "the sum"))


@says("Lemma 11: moments of the likelihood ratio")
def MOMENTS(found: Measurements) -> Decision:
    under0, square = found.at("exponent under P0"), found.one("mu squared")
    bounded = all(value <= (x * x + x) * square / 2 + 0.05 for x, value in under0)
    words = ", ".join(f"{2 * value / square:+.2f} for lambda {x:g}" for x, value in under0)
    other = ", ".join(f"{2 * value / square:+.2f}" for value in found.all("exponent under P1"))
    return decide(bounded, words=words, side="within" if bounded else "beyond", other=other)


LAST_LINE = says("Lemma 11, proof: last line")(
    lambda found: decide(found.one("the last line's sum") >= found.one("norm squared"))
)


@says("Lemmas 8 and 11: measures over H^1")
def ROUGH(found: Measurements) -> Decision:
    slope = power(found.at("norm squared on a grid"))
    return decide(slope < 0.1, slope=slope, variation=found.all("quadratic variation over 2 beta sigma^2")[-1])


MATRICES = says("Claim 12: covariance matrices")(at_most(1e-9, "largest error"))


def measure(paths: int = 2000) -> list[Row]:
    """On fine grids, so many paths for the maximum at small beta; a tenth of it at large beta, on finer grids."""
    return [*_maxima(paths), *_tails(paths), _series()]


def _maxima(most: int) -> list[Row]:
    rows = []
    for beta in (0.1, 1.0, 10.0, 100.0, 1000.0, 2e4):
        levels, paths = (12, most) if beta < 50 else (16, max(most // 10, 20))
        ranges = []
        for first in range(0, paths, 100):  # in pieces, for memory
            drawn = draw_grid(Exponential(beta), levels, (min(100, paths - first),), SeededEntropy(first))
            ranges.append(np.ptp(drawn, axis=0) / 2)  # by symmetry its mean is that of the maximum
        found, setting = np.concatenate(ranges), f"{paths} paths"
        # What a grid misses of a maximum, in increments (Chernoff 1965).
        mean = float(found.mean()) + 0.5826 * math.sqrt(2 * beta * 2.0**-levels)
        error = float(found.std()) / math.sqrt(paths)
        rows.append(MAXIMUM.row(MEAN, mean, CONSTANT * math.sqrt(beta), setting=setting, x=beta))
        rows.append(MAXIMUM.row("its standard error", error, setting=setting, x=beta))
    return rows


def _tails(paths: int, beta: float = 1e-3) -> list[Row]:
    rows = []
    unit = draw_grid(Exponential(beta), 6, (50 * paths,), SeededEntropy(5)).max(axis=0)
    for sigma, heights in ((0.5, (0.5, 1.0, 1.5)), (3.0, (1.0, 2.0, 4.0, 8.0))):
        for u in heights:
            share = float((sigma * unit >= CONSTANT * math.sqrt(beta) * sigma + u).mean())
            rows.append(
                TAIL.row(
                    "exceedance over the bound", share / math.exp(-u * u / 2), 1, setting=f"sigma = {sigma:g}", x=u
                )
            )
    exact = float(norm.sf(CONSTANT * math.sqrt(beta) + 8.0 / 3.0)) / math.exp(-32.0)
    rows.append(TAIL.row("exact lower bound over the bound", exact, 1, setting="sigma = 3, u = 8"))
    four = draw_grid(Exponential(1.0), 8, (2, 10 * paths), SeededEntropy(6))
    high = np.quantile(four[:, 0].max(axis=0), 0.99)
    both = float((np.abs(four).max(axis=(0, 1)) >= high).mean()) / 0.01
    return [*rows, TAIL.row("both signs of two paths", both, 1, setting="beta = 1, 99 % quantile")]


def _series() -> Row:
    i = np.arange(400)
    terms = (np.sqrt(i) + 1 + np.exp(-np.sqrt(i) - 1)) * 2.0 ** (-i / 2)
    return SUM.row("the sum", 1 / math.sqrt(math.pi) + terms.sum(), CONSTANT)


def measure_moments(paths: int = 100_000) -> list[Row]:
    return [*_ratios(paths), *_roughness(), *_closed_forms()]


def _ratios(paths: int, beta: float = 2.0) -> list[Row]:
    grid = np.linspace(0, 1, 65)
    direction = whiten(beta, grid, 0.4 * np.maximum(0, 1 - 4 * np.abs(grid - 0.5)))
    square = float(direction @ direction)
    noise = whiten(beta, grid, draw_grid(Exponential(beta), 6, (paths,), SeededEntropy(7)).T) @ direction
    rows = [MOMENTS.row("mu squared", square, setting="sigma = 1")]
    for order in (0.5, 1.0, 2.0):
        for words, shift in (("exponent under P0", -square / 2), ("exponent under P1", square / 2)):
            moment = math.log(float(np.exp(order * (noise + shift)).mean()))
            rows.append(MOMENTS.row(words, moment, (order**2 + order) * square / 2, x=order))
    flat = Exponential(0.1).norm_on(grid, np.ones(65)) ** 2
    rows.append(LAST_LINE.row("the last line's sum", 0.1**2 + 1.0, setting="g = 1, beta = 0.1"))
    return [*rows, LAST_LINE.row("norm squared", flat, setting="g = 1, beta = 0.1")]


def _roughness(beta: float = 3.0, levels: int = 16) -> list[Row]:
    rows, path = [], draw_grid(Exponential(beta), levels, (), SeededEntropy(8))
    for level in range(6, levels + 1, 2):
        seen = path[:: 2 ** (levels - level)]
        variation = float((np.diff(seen) ** 2).sum()) / (2 * beta)
        squared = Exponential(beta).norm_on(np.linspace(0, 1, len(seen)), seen) ** 2
        rows.append(ROUGH.row("quadratic variation over 2 beta sigma^2", variation, 0, x=len(seen)))
        rows.append(ROUGH.row("norm squared on a grid", squared, x=len(seen)))
    return rows


def _closed_forms(n: int = 40) -> list[Row]:
    rows = []
    for beta in (0.1, 3.0, 50.0):
        step, kernel = beta / (2 * n), Exponential(beta)
        even, odd = np.arange(0, 2 * n + 1, 2) / (2 * n), np.arange(1, 2 * n, 2) / (2 * n)
        k10, q = kernel.covariance(odd, even), math.exp(-2 * step)
        beside = q * (np.eye(n + 1, k=1) + np.eye(n + 1, k=-1))
        inverse = (np.diag([1.0] + [1 + q * q] * (n - 1) + [1.0]) - beside) / (1 - q * q)
        weight = math.exp(-step) / (1 + q)
        two = weight * (np.eye(n, n + 1) + np.eye(n, n + 1, k=1))
        apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        product = weight * (np.exp(-np.abs(2 * apart - 1) * step) + np.exp(-(2 * apart + 1) * step))
        errors = (
            inverse @ kernel.covariance(even, even) - np.eye(n + 1),
            k10 @ inverse - two,
            two @ k10.T - product,
            kernel.covariance(odd, odd) - product - math.tanh(step) * np.eye(n),
        )
        rows.append(MATRICES.row("largest error", max(np.abs(error).max() for error in errors), 0, x=beta))
    return rows
