"""Peers on the same people: correlation with the true mean reward, 1,000 people, epsilon = 1, delta = 1e-5."""

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import families, peer_tuning
from benchmarks.family_study import DIMENSIONS, MADE_OF
from benchmarks.peer_grids import PEERS
from benchmarks.peers import People, Settings
from benchmarks.study import RESULTS, Case, Numbers, Study

NAME, PEOPLE = "peers", 1000


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dimension", type=int, nargs="+", default=DIMENSIONS)
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=tuple(PEERS))


def study(options: argparse.Namespace) -> Study:
    """Each with the settings that were best on the development families, in the same dimension."""
    cases = []
    for name, peer in PEERS.items():
        for d in DIMENSIONS:
            settings = _chosen(name, d)
            if settings is None:
                continue
            wanted = name in options.peer and d in options.dimension
            labels = {"peer": name, "accounted for": peer.relation, "d": d}
            made_of = (peer_tuning.MADE_OF, (*peer_tuning.MADE_OF, *MADE_OF))[name == "quietq"]
            cases.append(Case(labels, _measure(name, d, settings), made_of, settings=settings, wanted=wanted))
    remark = (
        f"Mean over the reported families. Each peer's settings were the best of {peer_tuning.TRIALS} trials on the "
        "development families, in the same dimension; quietq has none to set. Grids: `benchmarks/peer_grids.py`."
    )
    return Study(NAME, "d", cases, (remark,))


def _chosen(name: str, d: int) -> Settings | None:
    """What tuning found; None before every trial was made."""
    if not PEERS[name].grid:
        return {}
    file = RESULTS / f"{peer_tuning.NAME}.json"
    rows: list[dict[str, Any]] = json.loads(file.read_text())["rows"] if file.exists() else []
    mine = [row for row in rows if row["peer"] == name and row["d"] == d]
    if len(mine) < peer_tuning.TRIALS:
        return None
    return max(mine, key=lambda row: row["numbers"]["correlation"]["mean"])["settings"]


def _measure(name: str, d: int, settings: Settings) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        found = {}
        for family in families.REPORTED:
            drawn = peer_tuning.ratings(family, d, PEOPLE, draw)
            reward = PEERS[name].fit(People.of(drawn), settings, draw)
            found[family] = drawn.score(reward(drawn.fresh)).correlation
        return {"all families": float(np.mean(list(found.values()))), **found}

    return measure
