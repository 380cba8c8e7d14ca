"""Peers on the same people: correlation with the true mean reward, 1,000 people, epsilon = 1, delta = 1e-5.

Their settings were chosen on the development families (`python -m benchmarks.peer_study --minutes 50`): the best of
points at random, then points around the best four, until none of the best settings is the least or the most that was
tried.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from benchmarks import families, peers
from benchmarks.family_study import MADE_OF
from benchmarks.peers import People, Reward
from benchmarks.search import Chosen, Grid, Grids, Kept, Search, Settings
from benchmarks.study import ROOT, Case, Numbers, Study, fingerprint

DIMENSIONS, PEOPLE = (2, 8), 1000
FAMILIES = ("peak", "two-peaks", "interaction", "ravine")
"""Three that have targets and one that was never looked at."""
GENERATIONS = 4
"""Of points around the best, at most."""
TASKS = [(family, draw) for draw in range(4) for family in families.DEVELOPMENT]
MADE_OF_PEERS = tuple(
    ROOT / "benchmarks" / f"{name}.py" for name in ("families", "peers", "peer_sgd")
)  # what quietq's own code gives to peers, polynomials, is held by its tests
CHOSEN = Chosen("tune-peers", ("peer", "kind", "d"))
MOST = {"number": 300, "ridge": 3000.0}
"""Beyond is nothing: quietq's prior has 300 polynomials, and such a ridge leaves moments alone."""


@dataclass(frozen=True)
class Peer:
    promise: str
    fit: Callable[[People, Settings, int], Reward]
    grids: tuple[Grid, ...] = ()
    """None if there is nothing to set."""
    at_random: int = 96
    """How many points of the grids are tried at first, and then how many around the best of them."""
    around: int = 48

    @property
    def settings(self) -> Grids:
        unordered = ("optimiser", "decay", "averaged", "sampling", "power", "widths")
        return Grids(self.grids, unordered, tuple(MOST.items()), MOST)


_NUMBERS = (3, 5, 10, 20, 30, 40, 60, 80, 120, 160, 300)
_POWERS = (0.0, 0.25, 0.5, 1.0)
_DESCENT: Grid = {
    "optimiser": ("adam", "plain", "momentum"),
    "rate": (0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
    "clip": (0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
    "steps": (6, 12, 25, 50, 100, 200),
    "sampling": (1.0, 0.5, 0.2),
    "decay": (1.0, 0.3, 0.0),
    "averaged": (0.0, 0.25, 0.5, 0.8),
}
PEERS: dict[str, Peer] = {
    "quietq": Peer("replace", peers.quietq),
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
    "DP-SGD, jax-privacy": Peer(
        "replace",
        peers.sgd,
        (
            {
                "widths": ((), (8,), (16,), (32,), (64,), (128,), (16, 16), (32, 32)),
                "scale": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
                **_DESCENT,
            },
            {"number": _NUMBERS, "power": _POWERS, **_DESCENT},
        ),
        80,
        40,
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dimension", type=int, nargs="+", choices=DIMENSIONS, default=DIMENSIONS)
    parser.add_argument("--family", nargs="+", choices=families.REPORTED, default=FAMILIES)
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=tuple(PEERS))


def study(options: argparse.Namespace) -> Study:
    """Each with the settings that were best on the development families, for this dimension."""
    cases = []
    for d in DIMENSIONS:
        for name, peer in PEERS.items():
            settings = CHOSEN.settings(name, "ratings", d) if peer.grids else {}
            if settings is None:
                continue
            asked = d in options.dimension and name in options.peer
            labels = {"kind": "ratings", "d": d, "peer": name, "promise": peer.promise}
            made_of = MADE_OF_PEERS if peer.grids else (*MADE_OF_PEERS, *MADE_OF)
            for family in families.REPORTED:
                measure, wanted = partial(_measure, name, d, settings, family), asked and family in options.family
                cases.append(Case({**labels, "family": family}, measure, made_of, None, settings, wanted))
    remark = (
        "Each peer's settings were the best on the development families, for the same kind and dimension, of the "
        f"trials in `benchmarks/results/{CHOSEN.file.name}` (`python -m benchmarks.peer_study`); quietq has "
        'none to set. "Replace" is what quietq promises.'
    )
    return Study("peers", "family", cases, (remark,))


def _measure(name: str, d: int, settings: Settings, family: str, draw: int) -> Numbers:
    return {"correlation": score(name, d, settings, family, draw)}


def score(peer: str, dimension: int, settings: Settings, family: str, draw: int) -> float:
    """Correlation with the truth at fresh states; 0 for what is no number."""
    drawn = _ratings(family, dimension, PEOPLE, draw)
    values = PEERS[peer].fit(People.of(drawn), settings, draw)(drawn.fresh)
    return drawn.score(values).correlation if np.isfinite(values).all() else 0.0


_ratings = lru_cache(maxsize=32)(families.ratings)


def search(kept: Kept, name: str, kind: str, dimension: int) -> dict[str, Any]:
    """The best settings of one peer, as they are written down."""
    peer, key = PEERS[name], [name, dimension, fingerprint(MADE_OF_PEERS)]
    found = Search(partial(score, name, dimension), TASKS, kept, key)
    first = found.best(peer.settings.points(peer.at_random), (3, 24), (8, 8), (16, 8), least=8)
    for _ in range(GENERATIONS):
        second = found.best(peer.settings.around(first[:4], found.tried, peer.around), (3, 12), (8, 6), least=8)
        first = found.best([*first, *second], (8, 10), (16, 8), (32, 3), least=8)
        if not peer.settings.at_an_end(first[0], found.tried):
            break
    return {
        "peer": name,
        "kind": kind,
        "d": dimension,
        "trials": len(found.tried),
        "settings": first[0],
        "at the end of what was tried": peer.settings.at_an_end(first[0], found.tried),
        "correlation": found.mean(first[0], len(TASKS)),
    }


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.peer_study")
    parser.add_argument("--minutes", type=float, default=50.0, help="what is not done by then is left for later")
    searched = [name for name, peer in PEERS.items() if peer.grids]
    parser.add_argument("--peer", nargs="+", choices=searched, default=searched)
    parser.add_argument("--dimension", type=int, nargs="+", default=DIMENSIONS)
    options = parser.parse_args()
    kept = Kept(CHOSEN.name, time.monotonic() + 60 * options.minutes)
    CHOSEN.write([(peer, "ratings", d) for peer in options.peer for d in options.dimension], partial(search, kept))


if __name__ == "__main__":
    main()
