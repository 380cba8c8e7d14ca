"""Every peer with the relation that it accounts for and the grid that its settings are chosen from."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.peers import People, Reward, Settings


@dataclass(frozen=True)
class Peer:
    relation: str
    grid: dict[str, tuple[Any, ...]]
    fit: Callable[[People, Settings, int], Reward]

    def trials(self, number: int) -> list[Settings]:
        """Different points of the grid, at random; for the same grid always the same."""
        sizes = [len(values) for values in self.grid.values()]
        points = np.random.default_rng(20).permutation(math.prod(sizes))[:number]
        places = [np.unravel_index(point, sizes) for point in points]
        return [
            {name: values[i] for (name, values), i in zip(self.grid.items(), place, strict=True)} for place in places
        ]


_DESCENT = {
    "learning rate": (0.003, 0.01, 0.03, 0.1),
    "clip": (0.03, 0.1, 0.3, 1.0),
    "steps": (25, 50, 100, 200),
    "sampling": (1.0, 0.3),
}
_NUMBERS = (5, 10, 20, 40, 80, 160)
_WIDTHS = ((16,), (32,), (64,), (16, 16), (32, 32))
PEERS: dict[str, Peer] = {
    "quietq": Peer("replace", {}, peers.quietq),
    "DP-SGD, network, jax-privacy": Peer("add or remove", {"widths": _WIDTHS, **_DESCENT}, peers.sgd_network),
    "DP-SGD, network, Opacus": Peer("add or remove", {"widths": _WIDTHS, **_DESCENT}, peers.opacus_network),
    "DP-SGD, polynomials, jax-privacy": Peer("add or remove", {"number": _NUMBERS, **_DESCENT}, peers.sgd_polynomials),
    "DP-SGD, polynomials, same promise": Peer(
        "replace", {"number": _NUMBERS, **_DESCENT}, partial(peers.sgd_polynomials, replace=True)
    ),
    "AdaSSP of people": Peer(
        "add or remove",
        {"number": (5, 10, 20, 40, 80), "length": (0.5, 0.75, 1.0, 1.5), "ridge": (0.3, 1.0, 3.0, 10.0)},
        peers.ada_ssp,
    ),
    "mean of clipped fits": Peer(
        "replace",
        {
            "features": ("polynomials", "fourier"),
            "number": (3, 5, 10, 20, 40),
            "norm": (0.03, 0.1, 0.2, 0.5),
            "ridge": (0.3, 1.0, 3.0, 10.0),
        },
        peers.mean_of_fits,
    ),
    "randomised response": Peer(
        "replace, local",
        {"number": (3, 5, 10, 20, 40), "bound": (0.025, 0.05, 0.1, 0.2), "size": (0.05, 0.1, 0.2, 0.5)},
        peers.randomised_response,
    ),
    "no privacy: pooled ridge": Peer(
        "none",
        {"number": (20, 40, 80, 160, 300), "ridge": (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)},
        peers.pooled_ridge,
    ),
}
