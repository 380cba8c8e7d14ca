"""Every way from sessions to a policy, and the grid that its settings are chosen from, on the development systems."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import world_fqi, world_peers
from benchmarks.session_data import Policy, Steps
from benchmarks.world_peers import Settings
from quietq.worlds.private_world import HALT

Grid = dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Method:
    fit: Callable[[Steps, Settings, int], Policy]
    grid: Grid
    made_of: tuple[str, ...]
    """The benchmarks' modules that its numbers depend on."""
    by_hand: tuple[Settings, ...] = ()
    """Points that did well while the method was written, on development systems."""

    @property
    def only(self) -> Settings | None:
        """Its settings, if there is nothing to choose."""
        found = {name: values[0] for name, values in self.grid.items()}
        return found if all(len(values) == 1 for values in self.grid.values()) else None

    def points(self, number: int) -> list[Settings]:
        """Different points of the grid, at random, at most 32; for the same grid always the same."""
        sizes = [len(values) for values in self.grid.values()]
        numbers = np.random.default_rng(20).choice(math.prod(sizes), 32, replace=False)[:number]
        places = zip(*np.unravel_index(numbers, sizes), strict=True)
        return [{name: self.grid[name][i] for name, i in zip(self.grid, place, strict=True)} for place in places]

    def around(self, best: list[Settings], tried: list[Settings], number: int) -> list[Settings]:
        """New points around the best ones: each setting stays or moves by a place, beyond the end of its grid too."""
        rng, found = np.random.default_rng(len(tried)), []
        for attempt in range(100 * number):
            if len(found) == number:
                break
            near = {
                name: _moved(name, value, self.grid[name], rng.choice([-1, 0, 0, 0, 1]))
                for name, value in best[attempt % len(best)].items()
            }
            if near not in [*tried, *found]:
                found.append(near)
        return found

    def at_an_end(self, settings: Settings, tried: list[Settings]) -> list[str]:
        """Which settings are the least or the most that was tried, where there could be more."""
        names = [name for name in settings if name not in _WHOLE and (name, settings[name]) not in _LAST]
        values = {name: [math.inf if one[name] is None else one[name] for one in tried] for name in names}
        return [name for name in names if settings[name] in (min(values[name]), max(values[name]))]


def _moved(name: str, value: Any, grid: tuple[Any, ...], move: int) -> Any:
    """One place on, or where there is none, by the last ratio once more; shares near 1 by that of what is left."""
    place = grid.index(value) + move if value in grid else -1
    if move == 0 or 0 <= place < len(grid):
        return grid[place] if move else value
    if name in _WHOLE or (name, value) in _LAST:
        return value
    if name in _SHARES and move > 0:
        return float(f"{1 - (1 - value) * (1 - grid[-1]) / (1 - grid[-2]):.3g}")
    further = value * (grid[-1] / grid[-2] if move > 0 else grid[0] / grid[1])
    return max(1, round(further)) if isinstance(value, int) else float(f"{further:.1g}")


_SHARES = ("dynamics", "scales", "gram", "discount")
_WHOLE = ("white", "ensemble", "apart", "straight", "features", "scaling", "members", "optimiser", "widths", "averaged")
"""Grids that hold all there is, or that are in no order."""
_LAST = (("halt", None), ("penalty", 0.0), ("degree", 1))
"""Beyond them is nothing."""


def _network(steps: Steps, settings: Settings, seed: int) -> Policy:
    from benchmarks.world_sgd import network  # JAX only where it is needed

    return network(steps, settings, seed)


_PLANNED = ("session_data", "planners", "world_peers", "world_twin")
TWIN = "no privacy"
METHODS: dict[str, Method] = {
    "quietq": Method(world_peers.quietq, {"halt": (HALT,)}, _PLANNED),
    TWIN: Method(world_peers.non_private, {"halt": (None,)}, _PLANNED),
    "one-shot moments": Method(
        world_peers.one_shot,
        {
            "white": (False, True),
            "ensemble": (False, True),
            "halt": (2.5, 5.0, 10.0, 20.0, 40.0, None),
            "ridge": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
            "larger": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0),
            "steep": (1.0, 3.0, 10.0, 30.0),
            "dynamics": (0.3, 0.5, 0.7, 0.85, 0.95),
        },
        _PLANNED,
    ),
    "DP-SGD, networks": Method(
        _network,
        {
            "scaling": ("public", "spread", "place"),
            "scales": (0.03, 0.1, 0.2, 0.4),
            "features": (False, True),
            "straight": (False, True),
            "widths": ((16,), (32,), (16, 16)),
            "members": (1, 3),
            "apart": (False, True),
            "steps": (12, 25, 50, 100, 200, 400),
            "optimiser": (
                ("adam", 0.003), ("adam", 0.01), ("adam", 0.03), ("adam", 0.1),
                ("momentum", 0.01), ("momentum", 0.03), ("momentum", 0.1), ("momentum", 0.3), ("momentum", 1.0),
            ),
            "clip": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
            "averaged": (0.0, 0.3, 0.6),
            "penalty": (0.0, 0.01, 0.03, 0.1, 0.3, 1.0),
        },
        (*_PLANNED, "world_sgd"),
        (
            {
                "scaling": "place", "scales": 0.2, "features": True, "straight": False, "widths": (16, 16),
                "members": 1, "apart": True, "steps": 400, "optimiser": ("momentum", 0.03), "clip": 0.1,
                "averaged": 0.6, "penalty": 0.1,
            },
        ),
    ),
    "DP-FQI": Method(
        world_fqi.fitted_q,
        {
            "degree": (1, 2, 3, 4, 5),
            "length": (0.1, 0.25, 0.5, 1.0, 2.0),
            "ridge": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
            "rounds": (2, 3, 5, 10, 20, 40, 80),
            "gram": (0.1, 0.2, 0.4, 0.6, 0.8),
            "discount": (0.5, 0.7, 0.85, 0.93, 0.97, 0.99),
        },
        ("session_data", "world_peers", "world_fqi"),
    ),
}  # fmt: skip
