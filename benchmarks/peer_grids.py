"""Every peer with what it promises and the grids that its settings are chosen from."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.peers import People, Reward, Settings

Grid = dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Peer:
    promise: str
    fit: Callable[[People, Settings, int], Reward]
    grids: tuple[Grid, ...] = ()
    """None if there is nothing to set."""
    at_random: int = 96
    """How many points of the grids are tried at first, and then how many around the best of them."""
    around: int = 48
    after: str = ""
    """The peer whose best settings are tried first, instead of points at random."""
    needs: str = "quietq"
    """A package that may not be there."""

    def points(self) -> list[Settings]:
        """Different points of each grid, at random; for the same grid always the same."""
        found: list[Settings] = []
        for grid in self.grids:
            sizes = [len(values) for values in grid.values()]
            numbers = np.random.default_rng(20).choice(math.prod(sizes), self.at_random // len(self.grids), False)
            places = zip(*np.unravel_index(numbers, sizes), strict=True)
            found += [{name: grid[name][i] for name, i in zip(grid, place, strict=True)} for place in places]
        return found

    def neighbours(self, best: list[Settings], tried: list[Settings]) -> list[Settings]:
        """New points around the best ones: each setting stays or moves by one place, beyond the end of its grid too."""
        generator, found = np.random.default_rng(len(tried)), []
        for attempt in range(100 * self.around):
            if len(found) == self.around:
                break
            settings = best[attempt % len(best)]
            grid = next(grid for grid in self.grids if grid.keys() == settings.keys())
            near = {
                name: _moved(name, value, grid[name], generator.choice([-1, 0, 0, 1]))
                for name, value in settings.items()
            }
            if near not in [*tried, *found]:
                found.append(near)
        return found

    @staticmethod
    def edges(settings: Settings, tried: list[Settings]) -> list[str]:
        """Which settings are the least or the most that was tried, where there could be more."""
        like = [one for one in tried if one.keys() == settings.keys()]
        names = [name for name in settings if name not in _WHOLE and settings[name] != _MOST.get(name)]
        values = {name: [one[name] for one in like] for name in names}
        return [name for name in names if settings[name] in (min(values[name]), max(values[name]))]


_WHOLE = ("optimiser", "decay", "averaged", "sampling", "power", "widths")
"""Grids that hold all there is, or that are in no order."""
_MOST = {"number": 300, "ridge": 3000.0}
"""Beyond is nothing: quietq's prior has 300 polynomials, and such a ridge leaves moments alone."""


def _moved(name: str, value: Any, grid: tuple[Any, ...], move: int) -> Any:
    """One place on, or where there is none, by the last ratio once more."""
    place = grid.index(value) + move if value in grid else -1
    if move == 0 or 0 <= place < len(grid):
        return grid[place] if move else value
    if name in _WHOLE or (move > 0 and value == _MOST.get(name)):
        return value
    further = value * (grid[-1] / grid[-2] if move > 0 else grid[0] / grid[1])
    further = min(further, _MOST.get(name, math.inf))
    return max(1, round(further)) if isinstance(value, int) else float(f"{further:.1g}")


_DESCENT: Grid = {
    "optimiser": ("adam", "plain", "momentum"),
    "rate": (0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
    "clip": (0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
    "steps": (6, 12, 25, 50, 100, 200),
    "sampling": (1.0, 0.5, 0.2),
    "decay": (1.0, 0.3, 0.0),
    "averaged": (0.0, 0.25, 0.5, 0.8),
}
_WIDTHS = ((), (8,), (16,), (32,), (64,), (128,), (16, 16), (32, 32))
_NUMBERS = (3, 5, 10, 20, 30, 40, 60, 80, 120, 160, 300)
_POWERS = (0.0, 0.25, 0.5, 1.0)
_SGD: tuple[Grid, ...] = (
    {"widths": _WIDTHS, "scale": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0), **_DESCENT},
    {"number": _NUMBERS, "power": _POWERS, **_DESCENT},
)
PEERS: dict[str, Peer] = {
    "quietq": Peer("replace", peers.quietq),
    "quietq, noise='fits'": Peer("replace", partial(peers.quietq, noise="fits")),
    "no privacy: pooled ridge": Peer(
        "none",
        peers.pooled_ridge,
        ({"number": _NUMBERS, "ridge": (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)},),
        48,
        24,
    ),
    "mean of clipped fits": Peer(
        "replace",
        peers.mean_of_fits,
        (
            {
                "number": _NUMBERS,
                "power": _POWERS,
                "ridge": (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
                "clip": (0.0003, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
                "size": (0.03, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0),
            },
        ),
    ),
    "AdaSSP of people": Peer(
        "replace",
        peers.ada_ssp,
        (
            {
                "number": _NUMBERS,
                "power": _POWERS,
                "matrix": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
                "moment": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
                "ridge": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0),
            },
        ),
    ),
    "randomised response": Peer(
        "replace, local",
        peers.randomised_response,
        (
            {
                "number": _NUMBERS,
                "bound": (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
                "size": (0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0),
            },
        ),
    ),
    "DP-SGD, jax-privacy": Peer("replace", peers.sgd, _SGD, 80, 40),
    "DP-SGD, jax-privacy, half the noise": Peer(
        "add or remove", partial(peers.sgd, replace=False), _SGD, 0, 24, after="DP-SGD, jax-privacy"
    ),
    "DP-SGD, Opacus": Peer("replace", peers.opacus, _SGD, 0, 12, after="DP-SGD, jax-privacy", needs="opacus"),
}
