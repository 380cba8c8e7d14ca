"""`quietq plan`."""

import sys
from typing import Annotated

import typer

import quietq as qq
from quietq.cli.app import AsJson, Epsilon, answer, app, names, show_table
from quietq.cli.known_names import REWARD_FEEDBACK

KINDS = REWARD_FEEDBACK
WORDS = """Correlation: of the private reward with the true one, over the box or all items. Regret: what the state, item
or (in each state) action that the private reward likes best lacks, from 0 (none is better) to 1 (a random one is as
good). All people were simulated, and nothing was spent. A reward that is rougher than these, or states that are crowded
in parts of the box, take more."""


@app.command()
def plan(
    kind: Annotated[
        str, typer.Argument(help=f"What people will give: {' or '.join(KINDS)}.", autocompletion=names(KINDS))
    ],
    people: Annotated[int, typer.Option(help="How many people there will be.")],
    epsilon: Epsilon,
    delta: Annotated[float, typer.Option(help="Probability that the promise fails; well below 1/people.")] = 1e-5,
    rows: Annotated[int, typer.Option(help="How many rows each of them will give.")] = 20,
    dimension: Annotated[int, typer.Option(help="How many coordinates a state has.")] = 1,
    items: Annotated[int | None, typer.Option(help="How many items there are, if states are items of a list.")] = None,
    actions: Annotated[int, typer.Option(help="How many actions ratings depend on.")] = 1,
    options: Annotated[int, typer.Option(help="Among how many options each comparison chooses.")] = 2,
    useful: Annotated[float, typer.Option(help="Correlation from which on a reward is useful.")] = 0.9,
    draws: Annotated[int, typer.Option(help="Simulations of each; more of them make better numbers.")] = 5,
    seed: Annotated[int, typer.Option(help="Makes the simulations repeatable.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Tell what to expect of a private reward before anything is spent, and how many people it takes."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from quietq.privacy.words import plural

    budget = qq.Budget(epsilon, delta)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), TextColumn("left"))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("Simulating people", total=None)
        found = qq.plan(
            kind, budget, people=people, rows=rows, dimension=dimension, items=items, actions=actions, options=options,
            useful=useful, draws=draws, seed=seed,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    if as_json:
        return answer(True, found.to_dict())
    table = [
        (
            one.noise + (" (auto)" if one.noise == found.chosen else ""),
            f"{one.correlation:.2f}",
            f"{min(one.correlations):.2f} to {max(one.correlations):.2f}",
            f"{one.regret:.2f}",
            found.people_needed(one.noise),
        )
        for one in found.expected
    ]
    headings = ("estimator", "correlation", f"in {plural(draws, 'draw')}", "regret", f"correlation {useful:g} takes")
    show_table(f"{people:,} people with {found.survey}, ({epsilon:g}, {delta:g})-DP", headings, table, ("estimator",))
    print(WORDS)
