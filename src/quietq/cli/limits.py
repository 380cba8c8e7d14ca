"""`quietq limits`."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import quietq as qq
from quietq.cli.app import AsJson, Delta, Epsilon, app
from quietq.cli.numbers import number
from quietq.privacy import cap_any_dp, cap_gdp, people_needed, steps_between


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


def _cap(value: float | None) -> str:
    return ">0.9999" if value is not None and value > 0.9999 else number(value)
