"""944 voters, one compromise, and nobody's opinion given away.

In the American National Election Study of 1996 each respondent says where they stand, from 1 (left) to 7 (right). Let
that be a point on [0, 1], and let their reward for a policy at s fall off with the distance: 1 - |s - ideal|. An agent
walks along [0, 1] and should please them on average. Their mean reward is private; how much worse does the agent do
when it only sees a noisy one?

    python examples/voters.py --out voters

The data is part of statsmodels; pip install -e '.[examples]', or `make demo`, installs it.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import quietq as qq
from quietq.cli.report import plot_reward
from quietq.feedback import Ratings
from quietq.feedback.voters import voters
from quietq.mechanisms import privatise
from quietq.publishing import publish
from quietq.worlds import best_return, plan, policy_return, worst_return

EPSILONS = (0.1, 0.5, 1.0)
DELTA = 1e-5
GRID = np.linspace(0, 1, 1025)
STYLES = {0.1: ("#D55E00", ":"), 0.5: ("#009E73", "--"), 1.0: ("#0072B2", "-")}


@dataclass
class Outcome:
    """One private reward, drawn for real, and what planning on it costs."""

    private: qq.PrivateFunction
    lost: float
    """Utility lost, as a share of what lies between the best policy and the worst. Not private."""
    simulated: np.ndarray
    """The same share, over simulated draws. Not private."""


def utility_lost(reward: Callable, true: Callable, best: float, worst: float) -> float:
    """What a plan for one reward loses under the true one: 0 is the best policy's return, 1 the worst's."""
    return (best - policy_return(plan(reward).actions, true)) / (best - worst)


def compare(people: Ratings, draws: int = 30) -> tuple[dict[float, Outcome], float]:
    """One real draw for each epsilon, and simulated ones to see how much luck is in it; and what was spent in all."""
    account = qq.Accountant(qq.Budget(epsilon=1.25, delta=DELTA))  # all the real draws are of the same people
    true = people.functions()[0]
    best, worst = best_return(true), worst_return(true)
    outcomes = {}
    for epsilon in EPSILONS:
        budget = qq.Budget(epsilon, DELTA)
        private = privatise(people, budget, account=account)
        rewards = [private, *(privatise(people, budget, account=account, simulate=seed) for seed in range(draws))]
        lost = [utility_lost(reward, true, best, worst) for reward in rewards]
        outcomes[epsilon] = Outcome(private, lost[0], np.array(lost[1:]))
    return outcomes, account.get_epsilon(DELTA)


def draw(people: Ratings, outcomes: dict[float, Outcome], path: Path) -> None:
    """The rewards above, the policies that they lead to below."""
    figure = Figure(figsize=(8, 6.5), dpi=150, layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    rewards: list[tuple[str, Callable, str, str]] = [
        ("true mean (not private, for the operator)", people.functions()[0], "black", "-")
    ]
    for epsilon, outcome in outcomes.items():
        rewards.append((f"private, epsilon = {epsilon:g}, drawn for real", outcome.private, *STYLES[epsilon]))
    for row, (label, reward, color, line) in enumerate(rewards):
        top.plot(GRID, reward(GRID), color=color, linestyle=line, linewidth=2.2 if row == 0 else 1.4, label=label)
        right = plan(reward)(GRID) == 1
        bottom.fill_between(GRID, -row - 0.35, -row + 0.35, where=right.tolist(), color=color, alpha=0.35, lw=0)
        for switch in GRID[1:][np.diff(right.astype(int)) != 0]:
            bottom.plot([switch, switch], [-row - 0.35, -row + 0.35], color=color, linewidth=2.5)
    top.set(ylabel="mean reward", title="944 voters: the true reward is NOT PRIVATE, so this picture is not either")
    top.legend(frameon=False, fontsize=10)
    names = ["true", *(f"epsilon = {epsilon:g}" for epsilon in outcomes)]
    bottom.set_yticks([-row for row in range(len(names))], names)
    bottom.set(xlim=(0, 1), xlabel="position, from left to right", title="Policy: go right where shaded, else left")
    figure.savefig(path)


def table(outcomes: dict[float, Outcome]) -> Table:
    """What privacy costs."""
    result = Table(
        title="NOT PRIVATE, for the operator: utility lost under the true reward",
        caption="Only the real draw is released; the simulated ones show how much is luck.",
    )
    for name in ("epsilon", "noise sigma", "real draw", "simulated, mean", "simulated, worst"):
        result.add_column(name, justify="right")
    for epsilon, outcome in outcomes.items():
        shares = (outcome.lost, outcome.simulated.mean(), outcome.simulated.max())
        result.add_row(f"{epsilon:g}", f"{outcome.private.certificate.sigma:.4f}", *(f"{x:.3%}" for x in shares))
    return result


def main(out: Path) -> dict[float, Outcome]:
    """Runs it all and writes the pictures and the releases to a folder."""
    out.mkdir(parents=True, exist_ok=True)
    people = voters()
    outcomes, spent = compare(people)
    for epsilon, outcome in outcomes.items():
        publish(outcome.private, out / f"voters_{epsilon:g}.qq")
        plot_reward(outcome.private, out / f"voters_{epsilon:g}.png", title=f"944 voters, epsilon = {epsilon:g}")
    draw(people, outcomes, out / "not_private_comparison.png")
    console = Console()
    console.print(table(outcomes))
    console.print(f"Each voters_*.qq keeps its own promise; all of them together are ({spent:.2f}, {DELTA:g})-DP.")
    console.print(f"Written to {out}. What starts with not_private stays with the operator.")
    return outcomes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What privacy costs 944 voters.")
    parser.add_argument("--out", type=Path, default=Path("voters"), help="folder for pictures and releases")
    main(parser.parse_args().out)
