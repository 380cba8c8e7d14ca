"""`quietq reward`: people's mean reward, made private once."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

import quietq as qq
from quietq.cli.app import answer, app
from quietq.cli.config import Config
from quietq.cli.ledger_command import open_account
from quietq.cli.options import (
    Actions,
    AsJson,
    Box,
    Check,
    Engine,
    LedgerSource,
    LedgerUrl,
    Level,
    NeededDelta,
    NeededEpsilon,
    NeededPeople,
    Noise,
    Out,
    Person,
    Plot,
    given,
    missing,
    one_or_list,
    read_assignment,
    read_pairs,
    refuse_others,
)
from quietq.cli.releasing import check_outputs, counts_in_words, draw, publish, tell_counts
from quietq.progress import progress_line

OF_RATINGS = "Options of ratings"
OF_COMPARISONS = "Options of comparisons"


@app.command(rich_help_panel="Make people's data private")
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
        Literal["additive", "columns"] | None,
        typer.Option(
            metavar="MODEL",
            help="additive: one function of each coordinate, summed, which cannot hold interactions. columns: linear "
            "in the coordinates, for embeddings. Default: a model with interactions.",
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
            help="Most that a person's reward changes over the whole width of the box; public. For one coordinate, or "
            "with --features additive.",
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
    from quietq.feedback.buckets import engine_called
    from quietq.feedback.feedback import named

    pairs = read_pairs(box)
    listed = () if actions is None else named("actions", one_or_list(actions))
    of_kinds = {
        "ratings": given(
            state=_spell_out(state, files),
            rating=rating,
            low=low,
            high=high,
            slope=slope,
            action=action,
            actions=listed or None,
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
    ((other, of_other),) = of_kinds.items()
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
        arguments["features"] = qq.Splines(additive=True) if features == "additive" else qq.Columns()
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
    columns = _spell_out(state or left, files)
    if plot is not None and (items is not None or len(columns or ()) > MOST_COORDINATES):
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
    plot = draw(plot, partial(plot_function, private, names=columns, actions=listed))
    record = {
        "certificate": private.certificate.to_dict(),
        "out": str(out),
        "hash": name,
        "plot": None if plot is None else str(plot),
        "not_private": group.not_private,
    }
    lines: list[object] = [private.certificate]
    if features == "additive":
        lines.append(
            "Additive: it is a sum of one function of each coordinate, and cannot hold interactions of two of them."
        )
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
