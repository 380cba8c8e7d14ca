"""Free constants of bandits, chosen on development arms: other arms and seeds than those that are reported.

    python -m benchmarks.bandit_tuning

The rule, which was written down before anything was looked at and is the same for every policy: each point of the grid
is played 20 times on each of three sets of arms, for half of the reported arrivals; the five with the least score are
played 100 times more at fresh seeds, and of these the least score then is chosen. A score is the geometric mean over
the sets of arms of mean regrets: means, so that runs that lose the best arm count in full, and a second round, because
such runs are rare and 20 of them may have none. If the choice is at an end of the grid, the file says so.

Local flips are tuned for each epsilon by itself. The rule said so of the tree too, but it takes longest: before any of
its results was there it was cut to epsilon = 0.25, where it is judged, and has the same constants elsewhere.
Elimination is not here, whose constants are printed, nor are episodes: theirs is at its default, just above what the
theorem asks for.

All that was tried is written to benchmarks/results/tune-bandits.json. Widths of linear policies are tried on rows of
three kinds; what came out is the default of `width`.
"""

import argparse
import itertools
import json
from collections.abc import Callable
from typing import Any

import numpy as np

import quietq as qq
from benchmarks import bandit_plays
from benchmarks.linear_bandit_plays import directions, play
from benchmarks.study import RESULTS
from quietq.learning.bandits import Linear, LinearTree, LinUCB

DEVELOPMENT = {"two arms": (0.6, 0.54), "four arms": (0.85, 0.7, 0.5, 0.3), "ten arms": (0.5, *(0.4,) * 9)}
ARRIVALS, SEED = 500_000, 10**6
FIRST, FINALISTS, SECOND = 20, 5, 100
EPSILONS: dict[str, tuple[float | None, ...]] = {"tree UCB": (0.25,), "local flips": (0.005, 0.02, 0.1, 0.25, 1.0)}
EXPLORATION = {"exploration": (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.1, 1.6, 2.4)}
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "tree UCB": {"sampling": (0.03, 0.1, 0.3, 1.0, 2.0), "noise": (0.35, 0.5, 0.7, 1.0, 1.4)},
    "local flips": EXPLORATION,
    "UCB": EXPLORATION,
}
WIDTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
WIDTH_RUNS = 24
LINEAR: dict[str, type] = {"linear, factors": Linear, "linear, tree": LinearTree, "LinUCB": LinUCB}
CHOSEN = RESULTS / "tune-bandits.json"
Settings = dict[str, float]


def chosen(policy: str, epsilon: float | None) -> Settings | None:
    """What was found to be best; epsilon is None for what is not private. None if it was not searched for yet."""
    rows = json.loads(CHOSEN.read_text())["rows"] if CHOSEN.exists() else []
    return next((row["settings"] for row in rows if (row["policy"], row["epsilon"]) == (policy, epsilon)), None)


def points(policy: str) -> list[Settings]:
    grid = GRIDS[policy]
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def regrets(
    policy: str, epsilon: float | None, means: np.ndarray, tried: list[Settings], runs: int, seed: int
) -> list[float]:
    """Mean regret of each point; all runs of all points at once."""
    columns = {name: np.repeat([point[name] for point in tried], runs) for name in GRIDS[policy]}
    plays: dict[str, Callable[..., np.ndarray]] = {
        "tree UCB": bandit_plays.tree, "local flips": bandit_plays.local, "UCB": bandit_plays.ucb,
    }  # fmt: skip
    given: dict[str, Any] = columns if epsilon is None else {"epsilon": epsilon, **columns}
    found = plays[policy](means, ARRIVALS, runs * len(tried), seed, **given)
    return found.reshape(-1, runs).mean(axis=1).tolist()


def scores(policy: str, epsilon: float | None, tried: list[Settings], runs: int, seed: int) -> list[float]:
    found = [regrets(policy, epsilon, np.array(means), tried, runs, seed) for means in DEVELOPMENT.values()]
    return np.exp(np.mean(np.log(found), axis=0)).tolist()


def row(policy: str, epsilon: float | None) -> dict[str, Any]:
    first = sorted(zip(scores(policy, epsilon, points(policy), FIRST, SEED), points(policy), strict=True), key=_score)
    finalists = [point for _, point in first[:FINALISTS]]
    second = sorted(zip(scores(policy, epsilon, finalists, SECOND, 2 * SEED), finalists, strict=True), key=_score)
    best = second[0][1]
    ends = [name for name, values in GRIDS[policy].items() if best[name] in (values[0], values[-1])]
    told = [[point | {"regret": round(score, 1)} for score, point in found] for found in (second, first)]
    return {
        "policy": policy, "epsilon": epsilon, "settings": best, "at an end of the grid": ends,
        "arrivals": ARRIVALS, "second round": told[0], "first round": told[1],
    }  # fmt: skip


def _score(scored: tuple[float, Settings]) -> float:
    return scored[0]


def _kinds(generator: np.random.Generator, shape: tuple[int, ...], d: int) -> np.ndarray:
    """A constant for each arm's kind, and numbers from 0 to 1 for the rest."""
    kinds = np.broadcast_to(np.eye(shape[-1]), (*shape, shape[-1]))
    rows = np.concatenate([kinds, generator.random((*shape, d - shape[-1]))], axis=-1)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def _blocks(generator: np.random.Generator, shape: tuple[int, ...], d: int) -> np.ndarray:
    """One row about the person, the same in each arm's block."""
    runs, batch, arms = shape
    person = generator.random((runs, batch, d // arms))
    person[..., 0] = 1.0
    person /= np.linalg.norm(person, axis=-1, keepdims=True)
    return np.einsum("rbf,ac->rbacf", person, np.eye(arms)).reshape(*shape, d)


LINEAR_PROBLEMS: dict[str, dict[str, Any]] = {
    "directions": {"rows": directions, "arms": 5, "dimension": 3, "arrivals": 20_000, "epsilon": 0.5},
    "kinds": {"rows": _kinds, "arms": 4, "dimension": 8, "arrivals": 10_000, "epsilon": 2.0},
    "blocks": {"rows": _blocks, "arms": 3, "dimension": 9, "arrivals": 40_000, "epsilon": 0.8},
}


def width_row(policy: str) -> dict[str, Any]:
    """Mean regrets of each width. The largest within a tenth of the best is chosen: it leans least on rows that look
    in all directions by themselves."""
    kind, regret = LINEAR[policy], {}
    for name, problem in LINEAR_PROBLEMS.items():
        given = {"dimension": problem["dimension"]}
        if kind is not LinUCB:
            budget = qq.Budget(problem["epsilon"], 1e-6)
            given |= {"budget": budget, "arrivals": problem["arrivals"], "simulate": SEED}
        made, runs = kind(problem["arms"], **given), WIDTH_RUNS * len(WIDTHS)
        found = play(made, problem["arrivals"], runs, SEED, problem["rows"], np.repeat(WIDTHS, WIDTH_RUNS))
        regret[name] = list(found.values())[-1].reshape(-1, WIDTH_RUNS).mean(axis=1)
    score = np.exp(np.mean(np.log(list(regret.values())), axis=0))
    each = {name: [round(one, 1) for one in found.tolist()] for name, found in regret.items()}
    tried = [{"width": w, "regret": round(one, 1)} for w, one in zip(WIDTHS, score.tolist(), strict=True)]
    best = {"width": max(w for w, one in zip(WIDTHS, score, strict=True) if one <= 1.1 * score.min())}
    return {"policy": policy, "epsilon": None, "settings": best, "tried": tried, "each": each}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.bandit_tuning")
    parser.add_argument("--policy", nargs="+", choices=[*GRIDS, *LINEAR], default=[*GRIDS, *LINEAR])
    for policy in parser.parse_args().policy:
        for epsilon in EPSILONS.get(policy, (None,)):
            found = width_row(policy) if policy in LINEAR else row(policy, epsilon)
            rows = json.loads(CHOSEN.read_text())["rows"] if CHOSEN.exists() else []
            rows = [one for one in rows if (one["policy"], one["epsilon"]) != (policy, epsilon)] + [found]
            CHOSEN.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
