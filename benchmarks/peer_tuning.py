"""Settings of the peers, tried on the development families: mean correlation over them."""

import argparse
from collections.abc import Callable

import numpy as np

from benchmarks import families
from benchmarks.family_study import DIMENSIONS
from benchmarks.peers import PEERS, People
from benchmarks.study import ROOT, Case, Numbers, Study

NAME, PEOPLE, TRIALS = "tune-peers", 1000, 24
MADE_OF = tuple(
    ROOT / "benchmarks" / f"{name}.py" for name in ("families", "peers", "peer_sgd", "peer_opacus")
)  # what quietq's own code gives to peers, polynomials and clipped fits, is held by its tests


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dimension", type=int, nargs="+", default=DIMENSIONS)
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=tuple(PEERS))


def study(options: argparse.Namespace) -> Study:
    """One draw of each family for each trial: there are eight of them."""
    cases = []
    for name, peer in PEERS.items():
        for d in DIMENSIONS if peer.grid else ():
            for trial in range(TRIALS):
                wanted = name in options.peer and d in options.dimension
                labels = {"peer": name, "d": d, "trial": trial}
                cases.append(
                    Case(labels, _measure(name, d, trial), MADE_OF, settings=peer.settings(trial), wanted=wanted)
                )
    return Study(NAME, "d", cases, ("All of it is in `benchmarks/results/tune-peers.json`.",))


def _measure(name: str, d: int, trial: int) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        peer, found = PEERS[name], []
        for family in families.DEVELOPMENT:
            drawn = families.ratings(family, d, PEOPLE, draw)
            reward = peer.fit(People.of(drawn), peer.settings(trial), draw)
            found.append(drawn.score(reward(drawn.fresh)).correlation)
        return {"correlation": float(np.mean(found))}

    return measure
