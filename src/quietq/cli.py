"""The commands, nothing else: results on stdout (one JSON object with --json), everything else on stderr."""

import dataclasses
import itertools
import json
import math
import sys
import warnings
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import quietq as qq
from quietq.privacy import cap_any_dp, cap_gdp, compare, people_needed, steps_between, weak_delta
from quietq.privacy.checks import shown
from quietq.privacy.words import plural

app = typer.Typer(
    name="quietq",
    help="Learn from a reward that belongs to people, and publish the result without giving any of them away.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

Epsilon = Annotated[float, typer.Option(help="Privacy budget: how much any one person's data may matter, above 0.")]
Delta = Annotated[float, typer.Option(help="Probability that the promise fails; well below 1/people.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(qq.__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


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
        table.add_row(charge.theorem, _epsilon(charge.epsilon), _number(noise), _number(charge.ratio))
    console.print(table)
    if any(charge.epsilon is None or charge.ratio is None for charge in charges):
        print("Does not apply: the classical theorem and those built on it need an epsilon below 1 in each release.")
    if any(charge.protects is False for charge in charges):
        print("A ratio below 1 means that the theorem's noise does not protect at this budget.")


@app.command()
def limits(
    epsilon: Epsilon,
    delta: Delta,
    radius: Annotated[float, typer.Option(help="Most that neighbouring rewards differ, e.g. (high - low)/people.")],
    distance: Annotated[float, typer.Option(help="How far two rewards with opposite preferences are apart.")],
    score: Annotated[float, typer.Option(help="Score (0 worst, 1 best policy) that you hope for.")] = 0.9,
    width: Annotated[float | None, typer.Option(help="Range of one person's reward; default: the distance.")] = None,
    as_json: AsJson = False,
) -> None:
    """What any private algorithm can reach at all, and how many people a score takes at the least."""
    budget = qq.Budget(epsilon, delta)
    steps = steps_between(distance, radius)
    width = distance if width is None else width
    gdp = None if budget.is_pure else cap_gdp(budget.mu, steps)
    result = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "radius": radius,
        "distance": distance,
        "width": width,
        "steps": steps,
        "cap_gdp": gdp,
        "cap_any_dp": cap_any_dp(budget, steps),
        "score": score,
        "people_gdp": None
        if budget.is_pure
        else people_needed(score, budget, distance=distance, width=width, gaussian=True),
        "people_any_dp": people_needed(score, budget, distance=distance, width=width, gaussian=False),
    }
    if as_json:
        print(json.dumps(result))
        return
    table = Table(title=f"Best possible at ({epsilon:g}, {delta:g})-DP, radius {radius:g}, distance {distance:g}")
    for heading in ("algorithms", "score under both rewards, at most", f"people for a score of {score:g}, at least"):
        table.add_column(heading, justify="left" if heading == "algorithms" else "right")
    table.add_row("Gaussian noise", _cap(gdp), str(result["people_gdp"] or "-"))
    table.add_row("any", _cap(result["cap_any_dp"]), str(result["people_any_dp"]))
    Console().print(table)
    print(f"The people follow from score, distance and width ({width:g}), and do not depend on the radius.")


def _epsilon(value: float | None) -> str:
    return "does not apply" if value is None else f"epsilon {value:.4g}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _cap(value: float | None) -> str:
    return ">0.9999" if value is not None and value > 0.9999 else _number(value)


def _offender(error: Exception) -> str:
    """The value that could not be read, which typer's own message leaves out; the last one given is the one read."""
    names, found = getattr(getattr(error, "param", None), "opts", []), ""
    for given, following in itertools.pairwise([*sys.argv, ""]):
        name, equals, value = given.partition("=")
        if name in names:
            found = f": {shown(value if equals else following)}"
    return found


def main() -> None:
    """The `quietq` command. Wrong input: one sentence on stderr, exit code 2."""
    warnings.showwarning = lambda message, *_, **__: print(f"quietq: warning: {message}", file=sys.stderr)
    try:
        sys.exit(app(standalone_mode=False))
    except qq.QuietqError as error:
        sentence = str(error)
    except (ArithmeticError, MemoryError):
        sentence = "these numbers are too large or too small, or too far apart, to compute with."
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # typer's usage errors have no public base class, but all can format themselves
        if not hasattr(error, "format_message"):
            raise
        sentence = " ".join(error.format_message().split()) + _offender(error)  # type: ignore[attr-defined]
    print(f"quietq: {sentence}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
