"""Peers on the same people: correlation with the true mean reward, 1,000 people, epsilon = 1, delta = 1e-5."""

import argparse
from collections.abc import Callable
from importlib.util import find_spec

from benchmarks import families, peer_tuning
from benchmarks.family_study import MADE_OF
from benchmarks.peer_grids import PEERS
from benchmarks.peer_tuning import DIMENSIONS, KINDS
from benchmarks.peers import Settings
from benchmarks.study import Case, Numbers, Study

NAME = "peers"
FAMILIES = ("peak", "two-peaks", "interaction", "ravine")
"""Three that have targets and one that was never looked at."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dimension", type=int, nargs="+", choices=DIMENSIONS, default=DIMENSIONS)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=tuple(KINDS))
    parser.add_argument("--family", nargs="+", choices=families.REPORTED, default=FAMILIES)
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=tuple(PEERS))


def study(options: argparse.Namespace) -> Study:
    """Each with the settings that were best on the development families, for this kind and dimension."""
    cases = []
    for kind in KINDS:
        for d in DIMENSIONS:
            for name, peer in PEERS.items():
                settings = peer_tuning.chosen(name, kind, d)
                if settings is None:
                    continue
                able = find_spec(peer.needs) is not None
                asked = able and kind in options.kind and d in options.dimension and name in options.peer
                labels = {"kind": kind, "d": d, "peer": name, "promise": peer.promise}
                made_of = peer_tuning.MADE_OF if peer.grids else (*peer_tuning.MADE_OF, *MADE_OF)
                for family in families.REPORTED:
                    measure, wanted = _measure(name, kind, d, family, settings), asked and family in options.family
                    cases.append(Case({**labels, "family": family}, measure, made_of, None, settings, wanted))
    remark = (
        "Each peer's settings were the best on the development families, for the same kind and dimension, of the "
        f"trials in `benchmarks/results/{peer_tuning.CHOSEN.name}` (`python -m benchmarks.peer_tuning`); quietq has "
        'none to set. "Replace" is what quietq promises.'
    )
    return Study(NAME, "family", cases, (remark,))


def _measure(name: str, kind: str, d: int, family: str, settings: Settings) -> Callable[[int], Numbers]:
    return lambda draw: {"correlation": peer_tuning.score(name, kind, d, family, draw, settings)}
