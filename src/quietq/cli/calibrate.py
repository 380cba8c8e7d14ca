"""`quietq calibrate`."""

import dataclasses
import math
from typing import Annotated, Any

import typer

import quietq as qq
from quietq.cli.app import AsJson, Delta, Epsilon, app, number, print_json

SENTENCES = {
    "mu": "Gaussian-DP parameter that the budget allows",
    "radius": "most that one person moves the mean reward",
    "lipschitz": "most that one person moves its slope",
    "beta": "roughness of the noise that fits best",
    "sensitivity": "most that one person moves the reward, in the noise's own norm",
    "sigma": "standard deviation of the noise, per release",
}


@app.command()
def calibrate(
    epsilon: Epsilon,
    delta: Delta,
    people: Annotated[int, typer.Option(help="How many people stand behind the reward; public.")],
    low: Annotated[float, typer.Option(help="Smallest reward that a person can give.")],
    high: Annotated[float, typer.Option(help="Largest reward that a person can give.")],
    slope: Annotated[float, typer.Option(help="Most that a person's reward changes over the width of the box.")],
    rounds: Annotated[int, typer.Option(help="Releases that share the budget.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Tell how much noise a reward needs: mu, sensitivity, sigma, and what other theorems would charge."""
    from quietq.privacy import compare, weak_delta

    budget = qq.Budget(epsilon, delta)
    relation = qq.people(people, low=low, high=high, slope=slope)
    charges = compare(budget, rounds)
    mechanism = qq.GaussianProcessMechanism.for_relation(relation, budget)
    result = {
        "epsilon": budget.epsilon, "delta": budget.delta, "mu": budget.mu, "people": people,
        "radius": relation.radius, "lipschitz": relation.lipschitz, "beta": relation.best_beta(),
        "sensitivity": mechanism.sensitivity, "rounds": rounds, "sigma": mechanism.sigma * math.sqrt(rounds),
        "comparison": [{**dataclasses.asdict(charge), "protects": charge.protects} for charge in charges],
        "warnings": [sentence] if (sentence := weak_delta(delta, people)) else [],
    }  # fmt: skip
    if as_json:
        print_json(result)
        return
    _show(result, charges)


def _show(result: dict[str, Any], charges: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    from quietq.privacy.words import plural

    console = Console()
    counts = f"{plural(result['people'], 'person', 'people')}, {plural(result['rounds'], 'release')}"
    table = Table(title=f"Noise for ({result['epsilon']:g}, {result['delta']:g})-DP, {counts}")
    for heading in ("", "value", "what it is"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for name, sentence in SENTENCES.items():
        table.add_row(name, f"{result[name]:.5g}", sentence)
    console.print(table)
    table = Table(title="The same promise by other theorems")
    for heading in ("theorem", "charges for this noise", "noise it asks for", "ratio"):
        table.add_column(heading, justify="left" if heading == "theorem" else "right")
    for charge in charges:
        noise = None if charge.noise_multiplier is None else charge.noise_multiplier * result["sensitivity"]
        epsilon = "does not apply" if charge.epsilon is None else f"epsilon {charge.epsilon:.4g}"
        table.add_row(charge.theorem, epsilon, number(noise), number(charge.ratio))
    console.print(table)
    if any(charge.epsilon is None or charge.ratio is None for charge in charges):
        print("Does not apply: the classical theorem and those built on it need an epsilon below 1 in each release.")
    if any(charge.protects is False for charge in charges):
        print("A ratio below 1 means that the theorem's noise does not protect at this budget.")
