"""Free constants of bandits, chosen on development arms: other arms, horizons and seeds than those that are reported.

    python -m benchmarks.bandit_tuning

Every policy gets the same care: a grid of its constants, the same arms and as many runs of each, for each epsilon by
itself. The constants with the least geometric mean over the arms of mean regrets are written to
benchmarks/results/tune-bandits.json, with all that was tried. Elimination has none: its constants are printed.
"""

import argparse
import itertools
import json
from collections.abc import Callable
from typing import Any

import numpy as np

import quietq as qq
from benchmarks import bandit_plays
from benchmarks.study import RESULTS
from quietq.learning.bandits import Episodes

DEVELOPMENT = {"two arms": (0.6, 0.54), "four arms": (0.85, 0.7, 0.5, 0.3), "ten arms": (0.5, *(0.4,) * 9)}
ARRIVALS, RUNS, SEED = 200_000, 64, 10**6
EPSILONS = (0.005, 0.02, 0.1, 0.25, 1.0)
EXPLORATION = {"exploration": (0.05, 0.1, 0.2, 0.4, 0.8, 1.1, 1.6)}
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "tree UCB": {"sampling": (0.1, 0.3, 1.0), "noise": (0.3, 0.5, 0.7, 1.0, 1.4)},
    "local flips": EXPLORATION,
    "UCB": EXPLORATION,
    "episodes": {"exploration": (1.01, 1.1, 1.3, 1.6, 2.0, 3.0)},  # the theorem asks for more than 1
}
CHOSEN = RESULTS / "tune-bandits.json"
Settings = dict[str, float]


def chosen(policy: str, epsilon: float | None) -> Settings:
    """What was found to be best; epsilon is None for what is not private."""
    rows = json.loads(CHOSEN.read_text())["rows"]
    return next(row["settings"] for row in rows if (row["policy"], row["epsilon"]) == (policy, epsilon))


def points(policy: str) -> list[Settings]:
    grid = GRIDS[policy]
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def regrets(policy: str, epsilon: float | None, means: np.ndarray) -> list[float]:
    """Mean regret of each point of the grid; all runs of all points at once."""
    if policy == "episodes":
        return [float(np.mean(_episodes(epsilon or 1.0, means, point["exploration"]))) for point in points(policy)]
    columns = {name: np.repeat([point[name] for point in points(policy)], RUNS) for name in GRIDS[policy]}
    plays: dict[str, Callable[..., np.ndarray]] = {
        "tree UCB": bandit_plays.tree, "local flips": bandit_plays.local, "UCB": bandit_plays.ucb,
    }  # fmt: skip
    given: dict[str, Any] = columns if epsilon is None else {"epsilon": epsilon, **columns}
    found = plays[policy](means, ARRIVALS, RUNS * len(points(policy)), SEED, **given)
    return found.reshape(-1, RUNS).mean(axis=1).tolist()


def _episodes(epsilon: float, means: np.ndarray, exploration: float) -> list[float]:
    generator = np.random.default_rng(SEED)
    return [
        bandit_plays.in_blocks(
            Episodes(len(means), qq.Budget(epsilon, 0.0), exploration=exploration, simulate=SEED + run),
            means, ARRIVALS, generator,
        )
        for run in range(RUNS)
    ]  # fmt: skip


def row(policy: str, epsilon: float | None) -> dict[str, Any]:
    found = {name: regrets(policy, epsilon, np.array(means)) for name, means in DEVELOPMENT.items()}
    score = np.exp(np.mean(np.log(list(found.values())), axis=0))
    best = int(np.argmin(score))
    tried = [point | {"regret": round(one, 1)} for point, one in zip(points(policy), score.tolist(), strict=True)]
    return {"policy": policy, "epsilon": epsilon, "settings": points(policy)[best], "tried": tried}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.bandit_tuning")
    parser.add_argument("--policy", nargs="+", choices=GRIDS, default=tuple(GRIDS))
    rows = json.loads(CHOSEN.read_text())["rows"] if CHOSEN.exists() else []
    for policy in parser.parse_args().policy:
        for epsilon in (None,) if policy == "UCB" else EPSILONS:
            found = row(policy, epsilon)
            rows = [one for one in rows if (one["policy"], one["epsilon"]) != (policy, epsilon)] + [found]
            CHOSEN.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
