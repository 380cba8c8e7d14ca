"""Settings of the peers, tried on the development families: mean correlation over them."""

import argparse
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from benchmarks import families
from benchmarks.family_study import DIMENSIONS
from benchmarks.peer_grids import PEERS
from benchmarks.peers import People, Settings
from benchmarks.study import ROOT, Case, Numbers, Study

ratings = lru_cache(maxsize=32)(families.ratings)
"""Every peer sees the same draws."""
NAME, PEOPLE, TRIALS = "tune-peers", 1000, 24
MADE_OF = tuple(
    ROOT / "benchmarks" / f"{name}.py" for name in ("families", "peers", "peer_sgd", "peer_opacus")
)  # what quietq's own code gives to peers, polynomials and clipped fits, is held by its tests


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dimension", type=int, nargs="+", default=DIMENSIONS)
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=tuple(PEERS))


def study(options: argparse.Namespace) -> Study:
    """One draw of each family for each trial: there are eight of them."""
    cases = [
        Case(
            {"peer": name, "d": d, "trial": trial},
            _measure(name, d, settings),
            MADE_OF,
            settings=settings,
            wanted=name in options.peer and d in options.dimension,
        )
        for name, peer in PEERS.items()
        if peer.grid
        for d in DIMENSIONS
        for trial, settings in enumerate(peer.trials(TRIALS))
    ]
    return Study(NAME, "d", cases)


def _measure(name: str, d: int, settings: Settings) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        found = []
        for family in families.DEVELOPMENT:
            drawn = ratings(family, d, PEOPLE, draw)
            reward = PEERS[name].fit(People.of(drawn), settings, draw)
            found.append(drawn.score(reward(drawn.fresh)).correlation)
        return {"correlation": float(np.mean(found))}

    return measure
