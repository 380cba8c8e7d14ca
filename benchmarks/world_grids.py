"""Every way from sessions to a policy, and the grid that its settings are chosen from, on the development systems."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import world_peers
from benchmarks.session_data import Policy, Steps
from benchmarks.world_peers import Settings
from quietq.worlds.private_world import HALT


@dataclass(frozen=True)
class Method:
    fit: Callable[[Steps, Settings, int], Policy]
    grid: dict[str, tuple[Any, ...]]

    def trials(self, number: int) -> list[Settings]:
        """Different points of the grid, at random; for the same grid always the same."""
        sizes = [len(values) for values in self.grid.values()]
        points = np.random.default_rng(20).permutation(math.prod(sizes))[:number]
        return [
            {name: values[i] for (name, values), i in zip(self.grid.items(), place, strict=True)}
            for place in (np.unravel_index(point, sizes) for point in points)
        ]


def _network(steps: Steps, settings: Settings, seed: int) -> Policy:
    from benchmarks.world_sgd import network  # JAX only where it is needed

    return network(steps, settings, seed)


_HALTS = (5.0, 10.0, 20.0, None)
TWIN = "no privacy"
METHODS: dict[str, Method] = {
    "quietq": Method(world_peers.quietq, {"halt": (HALT,)}),
    TWIN: Method(world_peers.non_private, {"halt": (None,)}),
    "one-shot moments": Method(
        world_peers.one_shot, {"halt": _HALTS, "ridge": (0.3, 1.0, 3.0), "larger": (1.0, 10.0, 30.0)}
    ),
    "DP-SGD, networks": Method(
        _network,
        {
            "widths": ((16,), (32,), (32, 32)),
            "steps": (50, 100, 200),
            "rate": (0.003, 0.01, 0.03),
            "clip": (0.1, 0.3, 1.0),
            "penalty": (0.0, 0.1, 1.0),
        },
    ),
    "DP-FQI": Method(
        world_peers.fitted_q,
        {
            "degree": (1, 2, 3),
            "length": (0.5, 1.0),
            "ridge": (0.3, 1.0, 3.0),
            "rounds": (5, 10, 20, 40),
            "gram": (0.3, 0.6),
            "discount": (0.9, 0.97),
        },
    ),
}
