"""`quietq calibrate`."""

import dataclasses
import json
import math
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import quietq as qq
from quietq.cli.app import AsJson, Delta, Epsilon, app
from quietq.cli.numbers import number
from quietq.privacy import compare, weak_delta
from quietq.privacy.words import plural


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
    """How much noise a reward needs: mu, sensitivity, sigma, and what other theorems would charge."""
    budget = qq.Budget(epsilon, delta)
    relation = qq.people(people, low=low, high=high, slope=slope)
    charges = compare(budget, rounds)
    mechanism = qq.GaussianProcessMechanism.for_relation(relation, budget)
    result = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "mu": budget.mu,
        "people": people,
        "radius": relation.radius,
        "lipschitz": relation.lipschitz,
        "beta": relation.best_beta(),
        "sensitivity": mechanism.sensitivity,
        "rounds": rounds,
        "sigma": mechanism.sigma * math.sqrt(rounds),
        "comparison": [{**dataclasses.asdict(charge), "protects": charge.protects} for charge in charges],
        "warnings": [sentence] if (sentence := weak_delta(delta, people)) else [],
    }
    if as_json:
        print(json.dumps(result))
        return
    console = Console()
    sentences = {
        "mu": "Gaussian-DP parameter that the budget allows",
        "radius": "most that one person moves the mean reward",
        "lipschitz": "most that one person moves its slope",
        "beta": "roughness of the noise that fits best",
        "sensitivity": "most that one person moves the reward, in the noise's own norm",
        "sigma": "standard deviation of the noise, per release",
    }
    given = f"{plural(people, 'person', 'people')}, {plural(rounds, 'release')}"
    table = Table(title=f"Noise for ({epsilon:g}, {delta:g})-DP, {given}")
    for heading in ("", "value", "what it is"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for name, sentence in sentences.items():
        table.add_row(name, f"{result[name]:.5g}", sentence)
    console.print(table)
    table = Table(title="The same promise by other theorems")
    for heading in ("theorem", "charges for this noise", "noise it asks for", "ratio"):
        table.add_column(heading, justify="left" if heading == "theorem" else "right")
    for charge in charges:
        noise = None if charge.noise_multiplier is None else charge.noise_multiplier * mechanism.sensitivity
        table.add_row(charge.theorem, _charged(charge.epsilon), number(noise), number(charge.ratio))
    console.print(table)
    if any(charge.epsilon is None or charge.ratio is None for charge in charges):
        print("Does not apply: the classical theorem and those built on it need an epsilon below 1 in each release.")
    if any(charge.protects is False for charge in charges):
        print("A ratio below 1 means that the theorem's noise does not protect at this budget.")


def _charged(value: float | None) -> str:
    return "does not apply" if value is None else f"epsilon {value:.4g}"
