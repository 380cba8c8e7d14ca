"""Cases of the study of bandits with real people's answers: travellers, and a replay of Open Bandit as plumbing."""

from collections.abc import Callable
from typing import Any

import numpy as np

import quietq as qq
from benchmarks import bandit_data
from benchmarks.bandit_data import open_bandit, replay, travellers
from benchmarks.study import ROOT, Numbers
from quietq.learning.bandits import UCB, Episodes, Linear, LinearTree, LinUCB

ARRIVALS, RUNS, SEED, FEATURES = (5_000, 20_000), 5, 40_000, 6
SHARE = "share that was shown what they chose"


def people_cases(budget: qq.Budget, without: str) -> list[Any]:
    """Labels, what to measure, the code behind it and its settings; widths are the default, chosen elsewhere."""
    pure = qq.Budget(budget.epsilon, 0.0)
    found = []
    for arrivals in ARRIVALS:
        given: dict[str, Any] = {"budget": budget, "dimension": FEATURES, "arrivals": arrivals}
        made: dict[str, tuple[float | str, Callable[[int], Any]]] = {
            "linear, factors": (1.0, lambda seed, g=given: Linear(bandit_data.ARMS, simulate=seed, **g)),
            "linear, tree": (1.0, lambda seed, g=given: LinearTree(bandit_data.ARMS, simulate=seed, **g)),
            "linear, factors, width 1": (
                1.0, lambda seed, g=given: Linear(bandit_data.ARMS, simulate=seed, width=1.0, **g),
            ),
            "LinUCB": (without, lambda seed: LinUCB(bandit_data.ARMS, dimension=FEATURES)),
            "episodes": (1.0, lambda seed: Episodes(bandit_data.ARMS, pure, simulate=seed)),
            "UCB": (without, lambda seed: UCB(bandit_data.ARMS)),
            "always Swissmetro": (without, lambda seed: _Always()),
        }  # fmt: skip
        for policy, (epsilon, make) in made.items():
            labels = {"arms": "travellers", "policy": policy, "arrivals": arrivals, "epsilon": epsilon}
            found.append((labels, _share(make, arrivals), _MADE_OF, {}))
    labels = {"arms": "Open Bandit, replayed", "policy": "episodes", "arrivals": 10_000, "epsilon": 1.0}
    return [*found, (labels, _replayed(pure), _MADE_OF, {})]


_MADE_OF = (
    ROOT / "src" / "quietq" / "learning" / "bandits", ROOT / "benchmarks" / "bandit_data.py",
    ROOT / "benchmarks" / "bandit_people.py",
)  # fmt: skip


class _Always:
    def choose(self, context: Any) -> int:
        return 1

    def learn(self, context: Any, arm: int, reward: float) -> None:
        pass


def _share(make: Callable[[int], Any], arrivals: int) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        shares = []
        for run in range(SEED + draw * RUNS, SEED + (draw + 1) * RUNS):
            policy, taken = make(run), 0
            for person in travellers(arrivals, run):
                arm = policy.choose(person.context)
                policy.learn(person.context, arm, float(arm == person.chosen))
                taken += arm == person.chosen
            shares.append(taken / arrivals)
        return {
            SHARE: float(np.mean(shares)),
            "its standard error over the runs": float(np.std(shares, ddof=1) / np.sqrt(RUNS)),
        }

    return measure


def _replayed(budget: qq.Budget) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        matched, clicks = replay(Episodes(80, budget, simulate=SEED + draw), open_bandit())
        return {"impressions that matched": matched, "clicks among them": clicks}

    return measure
