"""`quietq limits`."""

from typing import Annotated

import typer

import quietq as qq
from quietq.cli.app import AsJson, Delta, Epsilon, app, number, print_json


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
    """Tell what any private algorithm can reach at all, and how many people a score takes at the least."""
    from quietq.privacy import cap_any_dp, cap_gdp, people_needed, steps_between

    budget = qq.Budget(epsilon, delta)
    steps = steps_between(distance, radius)
    width = distance if width is None else width
    gdp, people_gdp = None, None
    if not budget.is_pure:
        gdp = cap_gdp(budget.mu, steps)
        people_gdp = people_needed(score, budget, distance=distance, width=width, gaussian=True)
    any_dp = cap_any_dp(budget, steps)
    people_any_dp = people_needed(score, budget, distance=distance, width=width, gaussian=False)
    if as_json:
        print_json(
            {
                "epsilon": budget.epsilon, "delta": budget.delta, "radius": radius, "distance": distance,
                "width": width, "steps": steps, "cap_gdp": gdp, "cap_any_dp": any_dp, "score": score,
                "people_gdp": people_gdp, "people_any_dp": people_any_dp,
            }
        )  # fmt: skip
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"Best possible at ({epsilon:g}, {delta:g})-DP, radius {radius:g}, distance {distance:g}")
    for heading in ("algorithms", "score under both rewards, at most", f"people for a score of {score:g}, at least"):
        table.add_column(heading, justify="left" if heading == "algorithms" else "right")
    for kind, cap, people in (("Gaussian noise", gdp, people_gdp), ("any", any_dp, people_any_dp)):
        table.add_row(kind, ">0.9999" if cap is not None and cap > 0.9999 else number(cap), str(people or "-"))
    Console().print(table)
    print(f"The people follow from score, distance and width ({width:g}), and do not depend on the radius.")
