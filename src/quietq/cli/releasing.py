"""`quietq reward`, `world`, `clone` and `evaluate-policies`: people's files in, something of them released, once."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import quietq as qq
from quietq.cli.app import answer, app, number, show_table, warn
from quietq.cli.ledger_command import open_account
from quietq.cli.options import (
    ActionBox,
    ActionColumns,
    Actions,
    AsJson,
    Box,
    Check,
    Config,
    Cut,
    End,
    Engine,
    Episode,
    Every,
    HighReward,
    LedgerSource,
    LedgerUrl,
    Level,
    LowReward,
    NeededDelta,
    NeededEpsilon,
    NeededPeople,
    Noise,
    Out,
    Person,
    Plot,
    RewardColumn,
    SessionFiles,
    State,
    StepColumn,
    given,
    missing,
    one_or_list,
    read_assignment,
    read_pairs,
    refuse_others,
    repeat,
    spends_again,
)
from quietq.progress import progress_line

if TYPE_CHECKING:
    import numpy as np

    from quietq.feedback.cells import Cells
    from quietq.released.publishable import Publishable

PANEL = "Make people's data private"
OF_RATINGS = "Options of ratings"
OF_COMPARISONS = "Options of comparisons"
COLUMN = "COLUMN"


# What the commands share


def read_sessions(
    options: Mapping[str, Any],
    *,
    next_state: Sequence[str] | None = (),
    progress: Callable[[int], None] | None = None,
) -> "qq.Sessions":
    """Reads people's sessions by the options of a command, which its context has by name (`context.params`).

    Args:
        options: What was typed, or stood in a --config file; None is what was not.
        next_state: Columns of the next state; None finds it in the next row, and none at all leaves it out.
        progress: Hears how many rows were read.

    """
    from quietq.feedback.feedback import engine_called

    people, low, high, step = (options[name] for name in ("people", "low", "high", "step"))
    pairs, acting = read_pairs(options["box"]), read_pairs(options.get("action_box"), "action_box")
    if acting and options["actions"]:
        raise qq.InvalidInput("There must be --actions, a public list, or else an --action-box, not both.")
    declared = one_or_list(options["actions"]) if options["actions"] else acting
    if people is None or pairs is None or declared is None or low is None or high is None:
        raise missing("Sessions need", people=people, box=pairs, actions=declared, low=low, high=high)
    if options["every"] is not None and step is None:
        raise missing("--every needs", step=step)
    if not options["files"]:
        raise qq.InvalidInput("There must be a file to read: CSV or Parquet, one row per step.")
    columns = {name: options.get(name) for name in ("person", "episode", "end", "cut", "propensity")}
    return qq.Sessions.read(
        options["files"],
        people=people,
        state=options["state"] or "state",
        next_state=next_state,
        box=pairs,
        action=one_or_list(options["action"] or ["action"]),
        actions=declared,
        low=low,
        high=high,
        step=step if options["every"] is None else (step, options["every"]),
        reward=options["reward"] or "reward",
        engine=engine_called(options["engine"] or "local", progress),
        **given(**columns),  # pyright: ignore[reportArgumentType]
    )


def counts_in_words(counts: dict[str, int]) -> str:
    told = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in counts.items())
    return f"Not private, for you only: {told}"


def tell_counts(counts: dict[str, int], as_json: bool) -> None:
    """Prints what --check found in the rows."""
    answer(as_json, {"not_private": counts}, "Nothing was spent, and nothing written.", counts_in_words(counts))


def check_outputs(files: Sequence[Path], **named: Path | None) -> None:
    """Refuses, before anything is read or spent, results that cannot be written, or only over what is needed."""
    from quietq.released.release_file import check_target

    sources = {path.resolve() for path in files}
    results = {name: path for name, path in named.items() if path is not None}
    if len({*sources, *(path.resolve() for path in results.values())}) < len(sources) + len(results):
        raise qq.InvalidInput(f"{', '.join(results)} and the files to read must be different files.")
    for name, path in results.items():
        if name == "plot":
            from quietq.cli.report.pictures import checked  # says what to install, if it has to

            checked(path)
        else:
            check_target(path)
        try:
            tempfile.TemporaryFile(dir=path.parent).close()  # some folders only say that they can be written to
        except OSError as error:
            raise qq.InvalidInput(
                f"{name} must name a file in a folder that can be written to, not {str(path)!r}."
            ) from error


def publish(released: "Publishable", out: Path) -> str:
    """Writes a release that was paid for; if that fails, says so."""
    if out.exists():
        warn(f"{out} is overwritten by a new release; if the old one was shared, budgets add up.")
    try:
        return qq.publish(released, out)
    except (OSError, qq.QuietqError) as error:
        raise qq.QuietqError(f"The budget was spent, but the release could not be written to {out}: {error}") from error


def draw(plot: Path | None, picture: Callable[[Path], None]) -> Path | None:
    """Draws a picture, and gives its file if there is one; the release stands without it."""
    if plot is None:
        return None
    try:
        picture(plot)
    except (OSError, qq.QuietqError) as error:
        warn(f"the release is written, but its picture is not: {error}")
        return None
    return plot


# The commands


@app.command(rich_help_panel=PANEL)
def reward(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILES", help="CSV or Parquet, one row per rating or comparison.")
    ] = None,
    kind: Annotated[
        Literal["ratings", "comparisons"],
        typer.Option(metavar="KIND", help="What the rows are: ratings or comparisons."),
    ] = "ratings",
    epsilon: NeededEpsilon = None,
    delta: NeededDelta = None,
    noise: Noise = "auto",
    level: Level = False,
    people: NeededPeople = None,
    box: Box = None,
    person: Person = None,
    engine: Engine = None,
    features: Annotated[
        Literal["columns"] | None,
        typer.Option(
            metavar="MODEL",
            help="columns: linear in the coordinates, for embeddings. Default: a model with interactions.",
        ),
    ] = None,
    items: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Instead of a box, a public list: a file with one item's name per line, or once per item.",
        ),
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with a coordinate of the state; once per coordinate, or as 'e*' for all that start so; "
            "default state.",
            rich_help_panel=OF_RATINGS,
        ),
    ] = None,
    rating: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column with the rating; default rating.", rich_help_panel=OF_RATINGS),
    ] = None,
    low: Annotated[
        float | None,
        typer.Option(help="Smallest reward that a person can give; public. Required.", rich_help_panel=OF_RATINGS),
    ] = None,
    high: Annotated[
        float | None,
        typer.Option(help="Largest reward that a person can give; public. Required.", rich_help_panel=OF_RATINGS),
    ] = None,
    slope: Annotated[
        float | None,
        typer.Option(
            help="Most that a person's reward changes over the whole width of the box; public. For one coordinate.",
            rich_help_panel=OF_RATINGS,
        ),
    ] = None,
    action: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column with the action that is rated.", rich_help_panel=OF_RATINGS),
    ] = None,
    actions: Actions = None,
    left: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the first state; give it once per coordinate, or as 'l*' for all that start so.",
            rich_help_panel=OF_COMPARISONS,
        ),
    ] = None,
    right: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of the second state, likewise.", rich_help_panel=OF_COMPARISONS),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN,...",
            help="Of several states to choose from, one and its columns; give it once per option.",
            rich_help_panel=OF_COMPARISONS,
        ),
    ] = None,
    choice: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with left, right or tie, or the chosen option; default choice.",
            rich_help_panel=OF_COMPARISONS,
        ),
    ] = None,
    segment: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with the name of the comparison that a step belongs to.",
            rich_help_panel=OF_COMPARISONS,
        ),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(help="About how many rows a segment has; public.", rich_help_panel=OF_COMPARISONS),
    ] = None,
    check: Check = False,
    out: Out = None,
    plot: Plot = None,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Make people's mean reward private, once: ratings or comparisons in, a file that may be published out."""
    from quietq.cli.report.pictures import MOST_COORDINATES, plot_function
    from quietq.feedback import FEEDBACK
    from quietq.feedback.feedback import engine_called

    pairs = read_pairs(box)
    of_kinds = {
        "ratings": given(
            state=_spell_out(state, files),
            rating=rating,
            low=low,
            high=high,
            slope=slope,
            action=action,
            actions=one_or_list(actions) if actions else None,
        ),
        "comparisons": given(
            left=_spell_out(left, files),
            right=_spell_out(right, files),
            option=None if option is None else dict(map(_read_option, option)),
            choice=choice,
            segment=segment,
            length=length,
        ),
    }
    arguments = of_kinds.pop(kind)
    for other, of_other in of_kinds.items():
        refuse_others(f"{kind} have", of_other, f", or say --kind {other}")
    if people is None or (kind == "ratings" and (low is None or high is None)):
        raise missing(f"{kind} need", people=people, **({"low": low, "high": high} if kind == "ratings" else {}))
    if (box is None) == (items is None):
        raise qq.InvalidInput("There must be --box, low and high for each coordinate, or else --items, a public list.")
    if not files:
        raise qq.InvalidInput("There must be a file to read: CSV or Parquet, one row per rating or comparison.")
    if option is not None:
        arguments["options"] = arguments.pop("option")
    if features is not None:
        arguments["features"] = qq.Columns()
    read = partial(
        FEEDBACK[kind].read,
        files,
        people=people,
        box=pairs if items is None else one_or_list(items),
        **given(person=person),
        **arguments,
    )
    if check:
        return tell_counts(read(engine=engine or "local").not_private, as_json)
    if epsilon is None or delta is None or out is None:
        raise missing("A private reward needs", epsilon=epsilon, delta=delta, out=out)
    coordinates = len(_spell_out(state or left, files) or ())
    if plot is not None and (items is not None or coordinates > MOST_COORDINATES):
        raise qq.InvalidInput(
            "--plot is for functions of one or two numbers; `quietq serve` lists items: leave it out."
        )
    budget = qq.Budget(epsilon, delta)
    account = open_account(ledger, source, "reward")
    check_outputs(files, out=out, plot=plot)
    with progress_line(f"Reading {kind}") as say:
        group = read(engine=engine_called(engine or "local", lambda rows: say(f"Reading {kind}: {rows:,} rows")))
        say("Making the reward private")
        private = qq.privatise(group, budget, noise=noise or "auto", level=level, account=account)
    name = publish(private, out)
    plot = draw(plot, partial(plot_function, private))
    record = {
        "certificate": private.certificate.to_dict(),
        "out": str(out),
        "hash": name,
        "plot": None if plot is None else str(plot),
        "not_private": group.not_private,
    }
    lines: list[object] = [private.certificate]
    lines.append(f"\nMay be published: {out}" + ("" if plot is None else f" and {plot}"))
    answer(as_json, record, *lines, counts_in_words(group.not_private))


def _spell_out(columns: list[str] | None, files: list[Path] | None) -> list[str] | None:
    """Replaces a word such as e* by all columns that it stands for, in the order of the first file."""
    if columns is None or not files:
        return columns
    from quietq.feedback.rows import header

    found: list[str] = []
    for word in columns:
        some = [word]
        if word.endswith("*"):
            some = [name for name in header(files) if name.startswith(word[:-1])]
        if not some:
            raise qq.InvalidInput(f"No column's name starts with {word[:-1]!r}, as {word!r} says.")
        found += some
    return found


def _read_option(word: str) -> tuple[str, list[str]]:
    example = "NAME=COLUMN,COLUMN, e.g. --option bus=fare,time"
    name, columns = read_assignment(word, "--option", example)
    if not all(columns.split(",")):
        raise qq.InvalidInput(f"--option must be {example}, not {word!r}.")
    return name, columns.split(",")


@app.command(rich_help_panel=PANEL)
def world(
    context: typer.Context,
    files: SessionFiles = None,
    people: NeededPeople = None,
    person: Person = None,
    episode: Episode = None,
    step: StepColumn = None,
    every: Every = None,
    state: State = None,
    next_state: Annotated[
        list[str] | None,
        typer.Option(
            metavar=COLUMN,
            help="Column of the next state, once per coordinate; default: the state of the episode's next row.",
        ),
    ] = None,
    box: Box = None,
    action: ActionColumns = None,
    actions: Actions = None,
    action_box: ActionBox = None,
    reward: RewardColumn = None,
    low: LowReward = None,
    high: HighReward = None,
    end: End = None,
    cut: Cut = None,
    engine: Engine = None,
    degree: Annotated[
        int | None,
        typer.Option(
            help="Degree of the polynomials of state and action that model changes of the state; a higher one has more "
            "noise; default 1."
        ),
    ] = None,
    epsilon: NeededEpsilon = None,
    delta: NeededDelta = None,
    check: Check = False,
    out: Out = None,
    plot: Plot = None,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Make a private world of people's logged sessions, once: an environment to train in with any RL library."""
    from quietq.cli.report.pictures import plot_world
    from quietq.released.private_world import spreads

    model = qq.WorldModel() if degree is None else qq.WorldModel(degree=degree)
    if check:
        sessions = read_sessions(context.params, next_state=next_state)
        model.feature_map(sessions.spaces)  # refused now rather than later
        return tell_counts(sessions.not_private, as_json)
    if epsilon is None or delta is None or out is None:
        raise missing("A private world needs", epsilon=epsilon, delta=delta, out=out)
    budget = qq.Budget(epsilon, delta)
    account = open_account(ledger, source, "world")
    check_outputs(files or [], out=out, plot=plot)
    with progress_line("Reading sessions") as say:
        sessions = read_sessions(
            context.params, next_state=next_state, progress=lambda rows: say(f"Reading sessions: {rows:,} rows")
        )
        say("Making the world private")
        private = qq.privatise(sessions, budget, world=model, account=account)
        name = publish(private, out)
    plot = draw(plot, partial(plot_world, private))
    found = spreads(private, private.box, private.moved)
    record = {
        "errors": private.errors.to_dict(),
        "spreads": {name: column.tolist() for name, column in found._asdict().items()}
        | {"coordinates": list(private.moved)},
        "certificate": private.certificate.to_dict(),
        "out": str(out),
        "hash": name,
        "plot": None if plot is None else str(plot),
        "again": repeat(context),
        "not_private": sessions.not_private,
    }
    published = f"\nMay be published: {' and '.join(str(one) for one in (out, plot) if one is not None)}"
    lines = [private, "", private.certificate, published, spends_again(context)]
    answer(as_json, record, *lines, counts_in_words(sessions.not_private))


@app.command(rich_help_panel=PANEL)
def clone(
    context: typer.Context,
    files: SessionFiles = None,
    people: NeededPeople = None,
    person: Person = None,
    episode: Episode = None,
    step: StepColumn = None,
    every: Every = None,
    state: State = None,
    box: Box = None,
    action: ActionColumns = None,
    actions: Actions = None,
    action_box: ActionBox = None,
    reward: RewardColumn = None,
    low: LowReward = None,
    high: HighReward = None,
    end: End = None,
    cut: Cut = None,
    engine: Engine = None,
    returns: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Range that each person's mean return is clipped to; public. Required unless --best is 1."),
    ] = None,
    best: Annotated[
        float, typer.Option(help="About which share of the people to imitate, those with the highest returns.")
    ] = 0.2,
    epsilon: NeededEpsilon = None,
    delta: NeededDelta = None,
    check: Check = False,
    out: Out = None,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Make a policy that imitates the people who did best private, once: to act with, or to publish."""
    if check:
        return tell_counts(read_sessions(context.params).not_private, as_json)
    if epsilon is None or delta is None or out is None:
        raise missing("A private policy needs", epsilon=epsilon, delta=delta, out=out)
    budget = qq.Budget(epsilon, delta)
    account = open_account(ledger, source, "clone")
    check_outputs(files or [], out=out)
    with progress_line("Reading sessions") as say:
        sessions = read_sessions(context.params, progress=lambda rows: say(f"Reading sessions: {rows:,} rows"))
        say("Imitating people")
        private = qq.clone(sessions, budget, returns=returns, best=best, account=account)
        name = publish(private, out)
    record = {
        "threshold": private.threshold,
        "certificate": private.certificate.to_dict(),
        "out": str(out),
        "hash": name,
        "again": repeat(context),
        "not_private": sessions.not_private,
    }
    lines = [*private.in_words(), "", private.certificate, f"\nMay be published: {out}", spends_again(context)]
    answer(as_json, record, *lines, counts_in_words(sessions.not_private))


@app.command(rich_help_panel="Before you spend anything")
def synthetic(
    out: Annotated[Path, typer.Argument(help="A new CSV file.")],
    people: Annotated[int, typer.Option(help="How many people there are in it.")] = 500,
    as_json: AsJson = False,
) -> None:
    """Write sessions of synthetic people, to try `world` on: they push CartPole at random."""
    from quietq.feedback.synthetic import write_cart_pole_sessions

    if out.exists():
        raise qq.InvalidInput(f"There is a file {str(out)!r} already, which synthetic sessions do not replace.")
    rows = write_cart_pole_sessions(out, people)
    answer(as_json, {"out": str(out), "rows": rows}, f"Wrote {rows:,} steps of {people:,} synthetic people: {out}")


@app.command("evaluate-policies", rich_help_panel=PANEL)
def evaluate_policies(
    context: typer.Context,
    files: SessionFiles = None,
    people: NeededPeople = None,
    person: Person = None,
    episode: Episode = None,
    step: StepColumn = None,
    every: Every = None,
    state: State = None,
    box: Box = None,
    action: ActionColumns = None,
    actions: Actions = None,
    reward: RewardColumn = None,
    low: LowReward = None,
    high: HighReward = None,
    end: End = None,
    cut: Cut = None,
    propensity: Annotated[
        str | None,
        typer.Option(metavar=COLUMN, help="Column of the probability with which the action was chosen."),
    ] = None,
    engine: Engine = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ACTION",
            help="A policy: the action that is always taken, or a published agent, NAME=FILE.qq; give it once per "
            "policy. Required.",
        ),
    ] = None,
    behaviour: Annotated[
        str | None,
        typer.Option(
            metavar="P,P,...",
            help="Probabilities with which actions were chosen, in the order of their list, or learnt, for a tenth of "
            "the budget; default: the column --propensity.",
        ),
    ] = None,
    returns: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Range that each person's weighted return is clipped to; public. Required."),
    ] = None,
    discount: Annotated[float, typer.Option(help="Discount factor of later rewards.")] = 1.0,
    per_step: Annotated[
        bool, typer.Option("--per-step", help="Divide each episode's return by its number of steps.")
    ] = False,
    against: Annotated[
        str | None, typer.Option(metavar="NAME", help="Policy that all others are compared with.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of all intervals jointly.")] = 0.95,
    epsilon: NeededEpsilon = None,
    delta: NeededDelta = None,
    out: Out = None,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Estimate privately what policies would have been worth to the people of logged sessions."""
    if policy is None or returns is None or epsilon is None or delta is None:
        raise missing("Evaluating policies needs", policy=policy, returns=returns, epsilon=epsilon, delta=delta)
    budget = qq.Budget(epsilon, delta)
    account = open_account(ledger, source, "evaluate-policies")
    policies = dict(map(_read_policy, policy))
    chosen = _read_behaviour(behaviour)
    check_outputs(files or [], out=out)
    sessions = read_sessions(context.params)
    found = qq.evaluate_policies(
        sessions,
        policies,
        budget,
        behaviour=chosen,
        account=account,
        returns=returns,
        discount=discount,
        per_step=per_step,
        against=against,
        confidence=confidence,
    )
    record = {**found.to_dict(), "not_private": sessions.not_private, "out": None if out is None else str(out)}
    if out is not None:
        record["hash"] = publish(found, out)
    if as_json:
        return answer(True, record)
    rows = [(name, *map(number, one)) for name, one in found.values.items()]
    show_table("", ("policy", "value", "from", "to"), rows, ("policy",))
    answer(False, record, found.certificate, *([] if out is None else [f"\nMay be published: {out}"]))


def _read_policy(word: str) -> "tuple[str, str | Publishable]":
    name, chosen = read_assignment(word, "--policy", "NAME=ACTION or NAME=FILE.qq, e.g. --policy always=high")
    return name, qq.load(chosen) if chosen.endswith(".qq") else chosen


def _read_behaviour(word: str | None) -> "Cells | Callable[[np.ndarray], np.ndarray] | None":
    import numpy as np

    from quietq.feedback.cells import Cells

    if word is None:
        return None
    if word == "learnt":
        return Cells(1, lambda states: np.zeros(len(states)))
    try:
        chosen = np.array([float(one) for one in word.split(",")])
    except ValueError:
        raise qq.InvalidInput(
            f"--behaviour must be numbers such as 0.5,0.3,0.2, one for each action, or learnt, not {word!r}."
        ) from None
    return lambda states: np.tile(chosen, (len(states), 1))
