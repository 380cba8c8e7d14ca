"""Settings of the peers, chosen on the development families by successive halving.

    python -m benchmarks.peer_tuning --minutes 50

Points of wide grids are tried at random on three tasks, the best of them on eight, and so on; then points around the
best four, until none of the best settings is the least or the most that was tried. What was measured is kept, so that
a run that was ended goes on later; what was chosen is written to benchmarks/results/tune-peers.json as it is found.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks import families
from benchmarks.peer_grids import PEERS
from benchmarks.peers import People, Settings
from benchmarks.study import RESULTS, ROOT, fingerprint

DIMENSIONS, PEOPLE = (2, 8), 1000
KINDS: dict[str, Callable[..., families.Draw]] = {
    "ratings": lru_cache(maxsize=32)(families.ratings),
    "comparisons": lru_cache(maxsize=32)(families.comparisons),
}
GENERATIONS = 4
"""Of points around the best, at most."""
TASKS = [(family, draw) for draw in range(4) for family in families.DEVELOPMENT]
MADE_OF = tuple(
    ROOT / "benchmarks" / f"{name}.py" for name in ("families", "peers", "peer_sgd", "peer_opacus")
)  # what quietq's own code gives to peers, polynomials, is held by its tests
CHOSEN, KEPT = RESULTS / "tune-peers.json", ROOT / "runs" / "benchmarks" / "tune-peers.jsonl"


def chosen(peer: str, kind: str, dimension: int) -> Settings | None:
    """What was found to be best; None if it was not searched for yet."""
    if not PEERS[peer].grids:
        return {}
    rows = json.loads(CHOSEN.read_text())["rows"] if CHOSEN.exists() else []
    found = [row for row in rows if (row["peer"], row["kind"], row["d"]) == (peer, kind, dimension)]
    return _as_on_grid(found[0]["settings"]) if found else None


def score(peer: str, kind: str, dimension: int, family: str, draw: int, settings: Settings) -> float:
    """Correlation with the truth at fresh states; 0 for what is no number."""
    drawn = KINDS[kind](family, dimension, PEOPLE, draw)
    values = PEERS[peer].fit(People.of(drawn), settings, draw)(drawn.fresh)
    return drawn.score(values).correlation if np.isfinite(values).all() else 0.0


class OutOfTime(Exception):
    pass


class Search:
    """For one peer's settings, for a kind of feedback and a dimension."""

    def __init__(self, peer: str, kind: str, dimension: int, known: dict[str, float], until: float) -> None:
        self.peer, self.kind, self.dimension, self.known, self.until = peer, kind, dimension, known, until
        self.made_of = fingerprint(MADE_OF)
        self.tried: list[Settings] = []

    def run(self) -> list[Settings]:
        """The best settings, best first."""
        peer = PEERS[self.peer]
        if not peer.grids:
            return [{}]
        if peer.after:
            first = Search(peer.after, self.kind, self.dimension, self.known, self.until).run()
            self.tried += first
        else:
            first = self._halved(peer.points(), (3, 24), (8, 8), (16, 8))
        for _ in range(GENERATIONS):
            second = self._halved(peer.neighbours(first[:4], self.tried), (3, 12), (8, 6))
            first = self._halved([*first, *second], (8, 10), (16, 8), (32, 3))
            if not peer.edges(first[0], self.tried):
                break
        return first

    def mean(self, settings: Settings, tasks: int) -> float:
        """Over the first tasks."""
        return float(np.mean([self._measured(settings, family, draw) for family, draw in TASKS[:tasks]]))

    def _halved(self, candidates: list[Settings], *rungs: tuple[int, int]) -> list[Settings]:
        """On each rung, so many tasks; so many of the candidates go on, and the others stand behind them."""
        self.tried += [one for one in candidates if one not in self.tried]
        behind: list[Settings] = []
        for tasks, kept in rungs:
            candidates = sorted(candidates, key=lambda one: -self.mean(one, tasks))
            candidates, behind = candidates[:kept], [*candidates[kept:], *behind]
        return [*candidates, *behind][: max(8, rungs[-1][1])]

    def _measured(self, settings: Settings, family: str, draw: int) -> float:
        key = json.dumps([self.peer, self.kind, self.dimension, family, draw, settings, self.made_of])
        if key not in self.known:
            if time.monotonic() > self.until:
                raise OutOfTime
            self.known[key] = score(self.peer, self.kind, self.dimension, family, draw, settings)
            with KEPT.open("a") as file:
                file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]

    def row(self) -> dict[str, Any]:
        best = self.run()[0]
        found = {"peer": self.peer, "kind": self.kind, "d": self.dimension, "trials": len(self.tried)}
        if best:
            found |= {"settings": best, "at the end of what was tried": PEERS[self.peer].edges(best, self.tried)}
        return found | {"correlation": self.mean(best, len(TASKS))}


def _as_on_grid(settings: Settings) -> Settings:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.peer_tuning")
    parser.add_argument("--minutes", type=float, default=50.0, help="what is not done by then is left for later")
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=tuple(PEERS))
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=tuple(KINDS))
    parser.add_argument("--dimension", type=int, nargs="+", default=DIMENSIONS)
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    known = dict(json.loads(line) for line in KEPT.read_text().splitlines()) if KEPT.exists() else {}
    rows = json.loads(CHOSEN.read_text())["rows"] if CHOSEN.exists() else []
    order = [(peer, kind, d) for peer in options.peer for kind in options.kind for d in options.dimension]
    for peer, kind, d in order:
        try:
            row = Search(peer, kind, d, known, until).row()
        except OutOfTime:
            print("Out of time: the same command goes on from here.")
            break
        rows = [one for one in rows if (one["peer"], one["kind"], one["d"]) != (peer, kind, d)] + [row]
        rows.sort(key=lambda one: (list(PEERS).index(one["peer"]), one["kind"], one["d"]))
        CHOSEN.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
