"""`quietq reward`.

Which options a kind of feedback has is said by its own `read`: those parameters that stand in `READ`, and every other
one whose default is a word, which names a column. So a kind is a file and a line in the registry, here as elsewhere,
and needs an entry here only for an option of another form.
"""

import inspect
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import quietq as qq
from quietq.cli.app import KINDS_OF_NOISE, answer, warn
from quietq.cli.ledger import LEDGER, SOURCE, open_account
from quietq.cli.options import JSON, Options, add_command, dashed, option, read_pair
from quietq.registry import FEEDBACK

if TYPE_CHECKING:
    from quietq.mechanisms import PrivateFunction

NEEDED = "  [required]"
FILES: Options = {
    "files": Annotated[
        list[Path] | None, typer.Argument(metavar="FILES", help="CSV or Parquet, one row per rating or comparison.")
    ],
    "kind": option(Literal[tuple(FEEDBACK)], "What the rows are; default ratings."),
}
PROMISE: Options = {
    "epsilon": option(float, "Privacy budget: how much any one person's data may matter, above 0." + NEEDED),
    "delta": option(float, "Probability that the promise fails; well below 1/people." + NEEDED),
    "noise": option(str, KINDS_OF_NOISE),
    "level": option(bool, "Episodes can end early, so that a constant counts: less noise in it.", "--level"),
    "sample": option(float, "Which part of the people each round looks at, e.g. 0.05: for a million and more."),
}
READ: dict[str, tuple[Any, str]] = {
    "people": (int, "How many people there are; public, not counted from any rows."),
    "box": (list[str], "Where states lie: once for all coordinates, or once for each, in order; public."),
    "person": (str, "Column that says who; default person."),
    "engine": (Literal["local", "ray"], "Where people are added up; default local."),
    "state": (
        list[str],
        "Column that says where; give it once per coordinate, or as 'e*' for all that start so; default state.",
    ),
    "rating": (str, "Column that says how good; default rating."),
    "low": (float, "Smallest reward that a person can give; public."),
    "high": (float, "Largest reward that a person can give; public."),
    "slope": (
        float,
        "Most that a person's reward changes over the whole width of the box; public. For one coordinate, or with "
        "--features additive.",
    ),
    "features": (
        Literal["additive", "columns"],
        "additive: one function of each coordinate, summed, which cannot hold interactions. columns: linear in the "
        "coordinates, for embeddings. Default: a model with interactions.",
    ),
    "items": (list[str], "Instead of a box, a public list: a file with one item's name per line, or once per item."),
    "action": (str, "Column that says which action is rated."),
    "actions": (list[str], "Their public list: a file with one name per line, or once per action."),
    "left": (list[str], "Column of the first state; give it once per coordinate, or as 'l*' for all that start so."),
    "right": (list[str], "Column of the second state, likewise."),
    "option": (list[str], "Of several states to choose from, one and its columns; give it once per option."),
    "choice": (str, "Column that says left, right or tie, or which option; default choice."),
    "segment": (str, "Column that says which rows of a person are the steps of one comparison."),
    "length": (int, "About how many rows a segment has; public."),
}
METAVARS = {"box": "LOW HIGH", "option": "NAME=COLUMN,COLUMN", "items": "FILE", "actions": "FILE"}
PARAMETERS = {"people": "count", "option": "options"}
"""What `read` calls an option; all others have the name of its parameter."""
RESULT: Options = {
    "check": option(bool, "Only read and count rows; nothing is spent, and no --epsilon, --delta or --out needed."),
    "out": option(Path, "The file that may leave: the private reward and its certificate." + NEEDED),
    "plot": option(Path, "A picture of the private reward, .png or .svg."),
    "ledger": option(str, LEDGER),
    "source": option(str, SOURCE),
}
ADDITIVE = "Additive: it is a sum of one function of each coordinate, and cannot hold interactions of two of them."


def _parameters(kind: str) -> dict[str, inspect.Parameter]:
    """What `read` takes besides the source, by the names of options."""
    found, names = inspect.signature(FEEDBACK[kind].load().read).parameters, {v: k for k, v in PARAMETERS.items()}
    named = {names.get(name, name): one for name, one in found.items()}
    return {name: one for name, one in named.items() if name in READ or isinstance(one.default, str)}


def _options() -> Options:
    takes = {kind: _parameters(kind) for kind in FEEDBACK}
    further = {name: (str, f"Column {name}.") for one in takes.values() for name in one if name not in READ}
    options = {**FILES, **PROMISE}
    for name, (form, sentence) in {**READ, **further}.items():
        kinds = [kind for kind in FEEDBACK if name in takes[kind]]
        panel = f"Options of {' and '.join(kinds)}" if len(kinds) < len(FEEDBACK) else None
        if kinds:
            metavar = METAVARS.get(name, "COLUMN" if sentence.startswith("Column") else None)
            needed = all(takes[kind][name].default is inspect.Parameter.empty for kind in kinds)
            options[name] = option(form, sentence + NEEDED * needed, metavar=metavar, rich_help_panel=panel)
    return {**options, **RESULT, **JSON}


def reward(values: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    as_json, kind, files = values.pop("json", False), values.setdefault("kind", "ratings"), values.pop("files", [])
    values |= {name: _spelt_out(values[name], files) for name in ("state", "left", "right") if name in values}
    given = dict(values)
    arguments = _arguments(kind, {name: values.pop(name) for name in list(values) if name not in _NOT_READ})
    if not files:
        raise qq.InvalidInput("There must be a file to read: CSV or Parquet, one row per rating or comparison.")
    if values.pop("check", False):
        counts = FEEDBACK[kind].load().read(files, **arguments).not_private
        _warn_of_bad_rows(counts, arguments["count"])
        spent = "Nothing was spent, and nothing written."
        answer(as_json, {"not_private": counts}, spent, f"Not private, for you only: {_in_words(counts)}")
        return
    _require("A private reward needs", values, "epsilon", "delta", "out")
    budget, out, plot = qq.Budget(values["epsilon"], values["delta"]), values["out"], values.get("plot")
    account = open_account(values.get("ledger"), values.get("source"), "reward")
    _check_outputs(files, out, plot)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(f"Reading {kind}")
        group = FEEDBACK[kind].load().read(
            files, **arguments,
            progress=lambda rows: progress.update(task, description=f"Reading {kind}: {rows:,} rows"),
        )  # fmt: skip
        _warn_of_bad_rows(group.not_private, arguments["count"])
        progress.update(task, description="Making the reward private")
        private = qq.privatise(
            group, budget, noise=values.get("noise", "auto"), sample=values.get("sample"),
            level=values.get("level", False), account=account,
        )  # fmt: skip
    if out.exists():
        warn(f"{out} is overwritten by a new release; if the old one was shared, budgets add up.")
    name = qq.publish(private, out)
    plot = _plot(private, plot, given)
    record = {
        "certificate": private.certificate.to_dict(), "out": str(out), "hash": name,
        "plot": None if plot is None else str(plot), "options": _plain(given), "not_private": group.not_private,
    }  # fmt: skip
    written = f"\nMay be published: {out}" + ("" if plot is None else f" and {plot}")
    additive = [ADDITIVE] if given.get("features") == "additive" else []
    answer(
        as_json,
        record,
        private.certificate,
        *additive,
        written,
        f"Not private, for you only: {_in_words(group.not_private)}",
    )


def _in_words(counts: dict[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in counts.items())


def _warn_of_bad_rows(counts: dict[str, int], people: int) -> None:
    """What looks like a mistake in what was declared. It goes by the raw data, so nothing is refused."""
    rows, used, present = counts["rows"], counts["used_rows"], counts["people_present"]
    clipped = max((number for name, number in counts.items() if name.startswith("clipped_")), default=0)
    for wrong, sentence in (
        (used < rows / 2, f"only {used:,} of {rows:,} rows can be used: check columns, --box, lists and choices"),
        (clipped > used / 2, f"{clipped:,} ratings lie outside --low and --high: check these"),
        (present < people / 2, f"only {present:,} of {people:,} people have a usable row: check --people"),
    ):
        if wrong:
            warn(f"{sentence}. This comes from the raw data and is for you alone.")


add_command(
    "reward", "Make people's mean reward private, once: ratings or comparisons in, a file that may be published out.",
    _options, reward,
)  # fmt: skip
_NOT_READ = {*FILES, *PROMISE, *RESULT}


def _arguments(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """What `read` is called with; whatever it cannot use is refused, and so is what is missing."""
    takes, names, boxes = _parameters(kind), _coordinates(given), [read_pair(text) for text in given.get("box", ())]
    if wrong := [name for name in given if name not in takes]:
        other = [one for one in FEEDBACK if not set(wrong) - set(_parameters(one))]
        instead = f", or say --kind {other[0]}" if other else ""
        it = "it" if len(wrong) == 1 else "them"
        raise qq.InvalidInput(f"{kind} have no {dashed(*wrong)}: leave {it} out{instead}.")
    _require(f"{kind} need", given, *(name for name, one in takes.items() if one.default is one.empty))
    if boxes and len(boxes) not in (1, len(names)):
        raise qq.InvalidInput(
            f"--box must be given once, for all coordinates, or once for each of the {len(names)}, in their order, "
            f"not {len(boxes)} times."
        )
    if "slope" in given and len(names) > 1 and given.get("features") != "additive":
        raise qq.InvalidInput(
            "--slope is for one coordinate or --features additive, and a model with interactions has no use for it: "
            "leave it out."
        )
    read: dict[str, Callable[[Any], Any]] = {
        "box": lambda _: boxes * len(names) if len(boxes) == 1 else boxes,
        "features": lambda name: qq.Splines(additive=True) if name == "additive" else qq.Columns(),
        "option": lambda words: dict(map(_read_option, words)),
        "items": _read_names,
        "actions": _read_names,
    }
    return {PARAMETERS.get(name, name): read[name](value) if name in read else value for name, value in given.items()}


def _spelt_out(columns: list[str], files: list[Path]) -> list[str]:
    """Columns with all that a word such as e* stands for, in the order of the first file."""
    if not files or not any(word.endswith("*") for word in columns):
        return columns
    from quietq.feedback.rows import header

    names, found = header(files), []
    for word in columns:
        some = [name for name in names if name.startswith(word[:-1])] if word.endswith("*") else [word]
        if not some:
            raise qq.InvalidInput(f"No column's name starts with {word[:-1]!r}, as {word!r} says.")
        found += some
    return found


def _coordinates(given: dict[str, Any]) -> list[str]:
    """What the coordinates are called: by the columns of states, or of all the states that are compared."""
    sides = {f"--{name}": given[name] for name in ("left", "right") if name in given}
    sides |= {f"--option {name}": columns for name, columns in map(_read_option, given.get("option", ()))}
    if not sides:
        return list(given.get("state", ["state"]))
    sizes = [len(columns) for columns in sides.values()]
    if min(sizes) < max(sizes):
        numbers = " and ".join(map(str, sizes))
        raise qq.InvalidInput(f"{' and '.join(sides)} must have a column for each coordinate, not {numbers} columns.")
    further = " / …" if len(sides) > 2 else ""
    return [" / ".join(columns[:2]) + further for columns in zip(*sides.values(), strict=True)]


def _read_option(word: str) -> tuple[str, list[str]]:
    name, equals, columns = word.partition("=")
    if not equals or not name or not all(columns.split(",")):
        raise qq.InvalidInput(f"--option must be NAME=COLUMN,COLUMN, e.g. --option bus=fare,time, not {word!r}.")
    return name, columns.split(",")


def _read_names(words: list[str]) -> Any:
    """A public list, as it stands or in a file."""
    return words[0] if len(words) == 1 else words


def _require(sentence: str, given: dict[str, Any], *names: str) -> None:
    if missing := [name for name in names if name not in given]:
        raise qq.InvalidInput(f"{sentence} {dashed(*missing)}.")


def _plain(given: dict[str, Any]) -> dict[str, Any]:
    """As JSON has it."""
    pairs = {"box": [read_pair(text) for text in given["box"]]} if "box" in given else {}
    return {name: str(value) if isinstance(value, Path) else value for name, value in {**given, **pairs}.items()}


def _plot(private: "PrivateFunction", plot: Path | None, given: dict[str, Any]) -> Path | None:
    """The picture that was written; the release stands without it."""
    if plot is None:
        return None
    from quietq.cli.report import plot_reward

    actions = given.get("actions")
    try:
        if actions is not None and len(actions) == 1:  # a file
            actions = [line.strip() for line in Path(actions[0]).read_text("utf-8").splitlines() if line.strip()]
        plot_reward(private, plot, names=_coordinates(given), actions=actions)
    except (OSError, qq.QuietqError) as error:
        warn(f"the release is written, but its picture is not: {error}")
        return None
    return plot


def _check_outputs(files: list[Path], out: Path, plot: Path | None) -> None:
    """Before anything is read or spent: can the results be written, and over nothing that is needed?"""
    from quietq.mechanisms.container import check_target

    sources = {path.resolve() for path in files}
    results = {"out": out} if plot is None else {"out": out, "plot": plot}
    if len({*sources, *(path.resolve() for path in results.values())}) < len(sources) + len(results):
        raise qq.InvalidInput("out, plot and the files to read must be different files.")
    for name, path in results.items():
        if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise qq.InvalidInput(f"{name} must name a file in a folder that can be written to, not {str(path)!r}.")
        with tempfile.TemporaryFile(dir=path.parent):  # some folders only say that they can be written to
            pass
    check_target(out)
    if plot is not None:
        from quietq.cli.report.look import checked  # says what to install, if it has to, before anything is spent

        checked(plot)
