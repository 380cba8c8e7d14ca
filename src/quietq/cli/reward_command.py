"""`quietq reward`: people's mean reward, made private once."""

import inspect
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import quietq as qq
from quietq.cli.app import answer, app
from quietq.cli.ledger_command import open_account
from quietq.cli.options import (
    REWARD_FEEDBACK,
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
    read_assignment,
    read_names,
    read_pairs,
    refuse_others,
    spread_pairs,
)
from quietq.cli.releasing import NOTHING_SPENT, check_outputs, counts_in_words, draw, publish, typed_options
from quietq.progress import progress_line

if TYPE_CHECKING:
    from quietq.feedback import Comparisons, Ratings
    from quietq.released import PrivateFunction

OF_RATINGS = "Options of ratings"
OF_COMPARISONS = "Options of comparisons"


@app.command(rich_help_panel="Make people's data private")
def reward(
    context: typer.Context,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILES", help="CSV or Parquet, one row per rating or comparison.")
    ] = None,
    kind: Annotated[Literal["ratings", "comparisons"], typer.Option(help="What the rows are.")] = "ratings",
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
            help="additive: one function of each coordinate, summed, which cannot hold interactions. columns: linear "
            "in the coordinates, for embeddings. Default: a model with interactions."
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
            help="Column that says where; give it once per coordinate, or as 'e*' for all that start so; default "
            "state.",
            rich_help_panel=OF_RATINGS,
        ),
    ] = None,
    rating: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that says how good; default rating.", rich_help_panel=OF_RATINGS),
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
        typer.Option(metavar="COLUMN", help="Column that says which action is rated.", rich_help_panel=OF_RATINGS),
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
            metavar="NAME=COLUMN,COLUMN",
            help="Of several states to choose from, one and its columns; give it once per option.",
            rich_help_panel=OF_COMPARISONS,
        ),
    ] = None,
    choice: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that says left, right or tie, or which option; default choice.",
            rich_help_panel=OF_COMPARISONS,
        ),
    ] = None,
    segment: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that says which rows of a person are the steps of one comparison.",
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
    as_json: AsJson = False,
) -> None:
    """Make people's mean reward private, once: ratings or comparisons in, a file that may be published out."""
    from quietq.feedback.engines import engine_called

    sides = {
        name: _spell_out(columns, files or [])
        for name, columns in (("state", state), ("left", left), ("right", right))
        if columns is not None
    }
    choices = None if option is None else dict(map(_read_option, option))
    names = _name_coordinates(sides, choices or {})
    pairs = read_pairs(box)
    listed = None if items is None else read_names(items, "items")
    arguments = given(
        **sides,
        people=people,
        box=listed if pairs is None else spread_pairs(pairs, len(names)),
        person=person,
        engine=engine,
        features=None if features is None else qq.Splines(additive=True) if features == "additive" else qq.Columns(),
        rating=rating,
        low=low,
        high=high,
        slope=slope,
        action=action,
        actions=None if actions is None else read_names(actions, "actions"),
        options=choices,
        choice=choice,
        segment=segment,
        length=length,
    )
    _check_arguments(kind, arguments)
    if slope is not None and len(names) > 1 and features != "additive":
        raise qq.InvalidInput(
            "--slope is for one coordinate or --features additive, and a model with interactions has no use for it: "
            "leave it out."
        )
    if (box is None) == (items is None):
        raise qq.InvalidInput("There must be --box, low and high for each coordinate, or else --items, a public list.")
    if not files:
        raise qq.InvalidInput("There must be a file to read: CSV or Parquet, one row per rating or comparison.")
    read = partial(_find_kind(kind).read, files, **arguments)  # pyright: ignore[reportArgumentType]
    if check:
        counts = read().not_private
        return answer(as_json, {"not_private": counts}, NOTHING_SPENT, counts_in_words(counts))
    if epsilon is None or delta is None or out is None:
        raise missing("A private reward needs", epsilon=epsilon, delta=delta, out=out)
    budget = qq.Budget(epsilon, delta)
    account = open_account(ledger, source, "reward")
    check_outputs(files, out, plot)
    with progress_line(f"Reading {kind}") as say:
        group = read(engine=engine_called(engine or "local", lambda rows: say(f"Reading {kind}: {rows:,} rows")))
        say("Making the reward private")
        private = qq.privatise(group, budget, noise=noise or "auto", level=level, account=account)
    name = publish(private, out)
    plot = draw(plot, partial(_plot, private, names, actions))
    options = {"kind": kind, **typed_options(context), **sides}
    del options["files"]
    record = {
        "certificate": private.certificate.to_dict(),
        "out": str(out),
        "hash": name,
        "plot": None if plot is None else str(plot),
        "options": options,
        "not_private": group.not_private,
    }
    lines: list[object] = [private.certificate]
    if features == "additive":
        lines.append(
            "Additive: it is a sum of one function of each coordinate, and cannot hold interactions of two of them."
        )
    lines.append(f"\nMay be published: {out}" + ("" if plot is None else f" and {plot}"))
    answer(as_json, record, *lines, counts_in_words(group.not_private))


def _find_kind(kind: str) -> "type[Ratings | Comparisons]":
    from quietq.feedback import FEEDBACK

    return FEEDBACK[kind]  # pyright: ignore[reportReturnType]


def _check_arguments(kind: str, arguments: dict[str, object]) -> None:
    """Refuses what the `read` of this kind of feedback cannot use, and names what is missing."""
    takes = {one: inspect.signature(_find_kind(one).read).parameters for one in REWARD_FEEDBACK}
    others = [one for one in takes if one != kind and set(takes[one]) >= set(arguments) - set(takes[kind])]
    typed = {"option" if name == "options" else name: value for name, value in arguments.items()}
    instead = f", or say --kind {others[0]}" if others else ""
    refuse_others(f"{kind} have", typed, [*takes[kind], "option"] if "options" in takes[kind] else takes[kind], instead)
    required = [name for name, one in takes[kind].items() if one.default is one.empty]
    required = [name for name in required if name not in ("source", "box")]  # instead of --box there may be --items
    if set(required) - set(arguments):
        raise missing(f"{kind} need", **{name: arguments.get(name) for name in required})


def _spell_out(columns: list[str], files: list[Path]) -> list[str]:
    """Replaces a word such as e* by all columns that it stands for, in the order of the first file."""
    if not files or not any(word.endswith("*") for word in columns):
        return columns
    from quietq.feedback.rows import header

    names = header(files)
    found: list[str] = []
    for word in columns:
        some = [name for name in names if name.startswith(word[:-1])] if word.endswith("*") else [word]
        if not some:
            raise qq.InvalidInput(f"No column's name starts with {word[:-1]!r}, as {word!r} says.")
        found += some
    return found


def _name_coordinates(sides: dict[str, list[str]], choices: dict[str, list[str]]) -> list[str]:
    """Names the coordinates by the columns of states, or of all the states that are compared."""
    compared = {f"--{name}": sides[name] for name in ("left", "right") if name in sides}
    compared |= {f"--option {name}": columns for name, columns in choices.items()}
    if not compared:
        return sides.get("state", ["state"])
    sizes = [len(columns) for columns in compared.values()]
    if min(sizes) < max(sizes):
        numbers = " and ".join(map(str, sizes))
        raise qq.InvalidInput(
            f"{' and '.join(compared)} must have a column for each coordinate, not {numbers} columns."
        )
    further = " / …" if len(compared) > 2 else ""
    return [" / ".join(columns[:2]) + further for columns in zip(*compared.values(), strict=True)]


def _read_option(word: str) -> tuple[str, list[str]]:
    example = "NAME=COLUMN,COLUMN, e.g. --option bus=fare,time"
    name, columns = read_assignment(word, "--option", example)
    if not all(columns.split(",")):
        raise qq.InvalidInput(f"--option must be {example}, not {word!r}.")
    return name, columns.split(",")


def _plot(private: "PrivateFunction", names: list[str], actions: list[str] | None, plot: Path) -> None:
    from quietq.cli.report import plot_reward

    if actions is not None and len(actions) == 1:  # a file
        actions = [line.strip() for line in Path(actions[0]).read_text("utf-8").splitlines() if line.strip()]
    plot_reward(private, plot, names=names, actions=actions)
