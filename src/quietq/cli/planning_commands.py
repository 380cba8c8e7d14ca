"""`quietq plan` and `calibrate`: what a budget buys, shown before anything is spent.

See docs/theory.md#gaussian-curve.
"""

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import quietq as qq
from quietq.cli.app import answer, app, number, show_table
from quietq.cli.options import (
    REWARD_FEEDBACK,
    AsJson,
    Box,
    Config,
    Delta,
    Epsilon,
    HighReward,
    Level,
    LowReward,
    People,
    complete,
    read_pairs,
)

PANEL = "Before you spend anything"
QUICK_DRAWS = 2
"""The number of draws of a plan for ratings or comparisons with --quick."""


@app.command(rich_help_panel=PANEL)
def plan(
    kind: Annotated[
        str,
        typer.Argument(
            help=f"What people will give: {', '.join(REWARD_FEEDBACK)} or sessions.",
            autocompletion=complete((*REWARD_FEEDBACK, "sessions")),
        ),
    ],
    people: Annotated[int, typer.Option(help="How many people there will be.")],
    epsilon: Epsilon,
    delta: Delta = 1e-5,
    rows: Annotated[int, typer.Option(help="How many rows each of them will give.")] = 20,
    dimension: Annotated[int, typer.Option(help="How many coordinates a state has.")] = 1,
    items: Annotated[int | None, typer.Option(help="How many items there are, if states are items of a list.")] = None,
    actions: Annotated[int, typer.Option(help="How many actions ratings depend on.")] = 1,
    options: Annotated[int, typer.Option(help="Among how many options each comparison chooses.")] = 2,
    useful: Annotated[float, typer.Option(help="Smallest correlation at which a reward is useful.")] = 0.9,
    draws: Annotated[int, typer.Option(help="Simulations of each; more of them make better numbers.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the simulations.")] = 0,
    env: Annotated[
        str | None,
        typer.Option(
            metavar="ID or FILE.qq", help="Of sessions: the Gymnasium environment or private world that people act in."
        ),
    ] = None,
    behaviour: Annotated[
        Path | None,
        typer.Option(metavar="FILE.qq", help="Of sessions: a policy that people act by; default at random."),
    ] = None,
    box: Box = None,
    low: LowReward = None,
    high: HighReward = None,
    steps: Annotated[int, typer.Option(help="Of sessions: the most steps of an episode.")] = 300,
    wanted: Annotated[float | None, typer.Option(help="Of sessions: the least return of a policy that works.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Take about a minute: fewer draws.")] = False,
    plot: Annotated[Path | None, typer.Option(help="A picture of what to expect, .png or .svg.")] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Tell what to expect of a private release before anything is spent, and how many people it takes."""
    from quietq.cli.releasing import check_outputs, draw
    from quietq.cli.report.pictures import plot_expected
    from quietq.privacy.checks import plural
    from quietq.progress import progress_of

    budget = qq.Budget(epsilon, delta)
    if kind == "sessions":
        rewards = None if low is None or high is None else (low, high)
        asked = {"people": people, "wanted": wanted, "steps": steps, "draws": draws, "seed": seed, "rewards": rewards}
        limits = {"sizes": (), "minutes": 1.0} if quick else {}
        return _rehearse(env, budget, behaviour, plot, as_json, {**asked, **limits, "box": read_pairs(box)})
    for name, given in {"env": env, "behaviour": behaviour, "wanted": wanted}.items():
        if given is not None:
            raise qq.InvalidInput(f"--{name} is for sessions: leave it out.")
    check_outputs([], plot=plot)
    draws = min(draws, QUICK_DRAWS) if quick else draws
    with progress_of("Simulating people", transient=True) as progress:
        found = qq.plan(
            kind,
            budget,
            people=people,
            rows=rows,
            dimension=dimension,
            items=items,
            actions=actions,
            options=options,
            useful=useful,
            draws=draws,
            seed=seed,
            tell=_tell,
            progress=progress,
        )
    simulated = [(one.noise, one.people, one.correlation, one.spread) for one in found.simulated]
    draw(plot, lambda path: plot_expected(simulated, useful, "correlation", path))
    if as_json:
        return answer(True, found.to_dict())
    table = [
        (
            one.noise + (" (auto)" if one.noise == found.chosen else ""),
            f"{one.correlation:.2f}",
            f"{min(one.correlations):.2f} to {max(one.correlations):.2f}",
            f"{one.regret:.2f}",
            found.people_for(one),
        )
        for one in found.expected
    ]
    headings = ("estimator", "correlation", f"in {plural(draws, 'draw')}", "regret", f"correlation {useful:g} takes")
    show_table(f"{people:,} people with {found.survey}, ({epsilon:g}, {delta:g})-DP", headings, table, ("estimator",))
    print(
        "Correlation: of the private reward with the true one, over the box or all items.\n"
        "Regret: what the state, item or (in each state) action that the private reward likes best lacks, from 0 (none "
        "is better) to 1 (a random one is as good).\n"
        "All people were simulated, and nothing was spent. A reward that is rougher than these, or states that are "
        "crowded in parts of the box, take more."
    )


def _tell(minutes: float) -> None:
    from quietq.progress import write_seconds

    print(f"This takes about {write_seconds(60 * minutes)}.", file=sys.stderr)


def _rehearse(
    env: str | None,
    budget: "qq.Budget",
    behaviour: Path | None,
    plot: Path | None,
    as_json: bool,
    asked: dict[str, Any],
) -> None:
    """Releases sessions of simulated people, and shows in a table what to expect."""
    from quietq.cli.releasing import check_outputs, draw
    from quietq.cli.report.pictures import plot_expected
    from quietq.progress import progress_of

    if env is None:
        raise qq.InvalidInput("--env must say where people act: a Gymnasium id, or a private world's file.")
    check_outputs([], plot=plot)
    source = qq.load(env) if env.endswith(".qq") else env
    policy = None if behaviour is None else qq.load(behaviour)
    act = None if policy is None else lambda seen, _: policy.predict(seen)[0]  # type: ignore[union-attr]
    with progress_of("Releasing simulated people", transient=True) as progress:
        found = qq.rehearse(
            source,  # type: ignore[arg-type]
            budget,
            behaviour=act,
            tell=_tell,
            progress=progress,
            **asked,
        )
    expected = [(one.way, one.people, one.score, one.spread) for one in found.expected]
    draw(plot, lambda path: plot_expected(expected, found.wanted, "score", path))
    if as_json:
        return answer(True, found.to_dict())
    table = [
        (
            f"{one.people:,}",
            one.way,
            number(one.score),
            number(one.spread),
            "-" if one.interval is None else " to ".join(map(number, one.interval)),
            len(one.scores),
        )
        for one in found.expected
    ]
    headings = ("people", "way", "expected score", "spread", "95 of 100 releases", "draws")
    show_table(f"Sessions from {env}, ({budget.epsilon:g}, {budget.delta:g})-DP", headings, table, ("way",))
    print(f"With {found.people:,} people take {found.best.way}.")
    if found.wanted is not None:
        fewest = (
            "No number that was tried works." if found.needed is None else f"From {found.needed:,} people on it works."
        )
        print(fewest)
    print("All people were simulated, and nothing was spent. Yours may behave otherwise.")


SENTENCES = {
    "mu": "Gaussian-DP parameter that the budget allows",
    "radius": "most that one person moves the mean reward",
    "lipschitz": "most that one person moves its slope",
    "beta": "roughness of the noise that fits best",
    "sensitivity": "most that one person moves the reward, in the noise's own norm",
    "sigma": "standard deviation of the noise, per release",
    "error": "the same about the noise's own mean, which changes no policy unless episodes can end early",
}


@app.command(rich_help_panel=PANEL)
def calibrate(
    epsilon: Epsilon,
    delta: Delta,
    people: People,
    low: Annotated[float, typer.Option(help="Smallest reward that a person can give; public.")],
    high: Annotated[float, typer.Option(help="Largest reward that a person can give; public.")],
    slope: Annotated[
        float, typer.Option(help="Most that a person's reward changes over the whole width of the box; public.")
    ],
    level: Level = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Tell how much noise a reward needs as a path: mu, sensitivity and sigma.

    It is what `quietq reward --noise path` and `privatise` draw: with the least noise about its mean or, with --level,
    with the least noise. What they take by default where it is less is shown too.
    """
    from quietq.feedback.own_function import OwnFunction
    from quietq.mechanisms.candidates import choose
    from quietq.mechanisms.path import Path
    from quietq.privacy import PrivacyWarning, weak_promise
    from quietq.privacy.checks import plural

    budget = qq.Budget(epsilon, delta)
    relation = qq.people(people, low=low, high=high, slope=slope)
    declared = OwnFunction(None, relation, slope=slope, largest=max(abs(low), abs(high)))
    mechanism = choose("path", declared, budget, level=level, fewest=True)
    assert isinstance(mechanism, Path)
    assert isinstance(mechanism.kernel, qq.Exponential)
    if weak := weak_promise(budget, people):
        warnings.warn(weak, PrivacyWarning, stacklevel=1)
    numbers = {
        "mu": budget.mu,
        "radius": relation.radius,
        "lipschitz": relation.lipschitz,
        "beta": mechanism.kernel.beta,
        "sensitivity": mechanism.sensitivity,
        "sigma": mechanism.sigma,
        "error": mechanism.expected_error,
    }
    taken = choose("auto", declared, budget, level=level, fewest=True)  # what a release takes if no noise is asked for
    auto = {"noise": taken.name, "pieces": getattr(taken, "pieces", None), "error": taken.expected_error}
    if as_json:
        asked = {"epsilon": budget.epsilon, "delta": budget.delta, "people": people, "level": level}
        return answer(True, numbers | asked | {"auto": auto, "warnings": [weak] if weak else []})
    rows = [(name, f"{value:.5g}", SENTENCES[name]) for name, value in numbers.items()]
    title = f"Noise for ({budget.epsilon:g}, {budget.delta:g})-DP, {plural(people, 'person', 'people')}"
    show_table(title, ("", "value", "what it is"), rows, ("", "what it is"))
    if taken.name != "path":
        error = f"error {auto['error']:.5g}, lines between knots included"
        print(f"Noise {taken.name!r} with {auto['pieces']} pieces is less: {error}.\n'auto' takes it.")
