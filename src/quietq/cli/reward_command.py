"""`quietq reward`.

Which options a kind of feedback has is said by its own `read`: those parameters that stand in `READ`, and every other
one whose default is a word, which names a column. So a kind is a file and an entry of `quietq.feedback.FEEDBACK`,
and needs an entry here only for an option of another form.
"""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import quietq as qq
from quietq.cli.app import KINDS_OF_NOISE, NOISES, answer
from quietq.cli.known_names import REWARD_FEEDBACK
from quietq.cli.ledger_command import open_account
from quietq.cli.options import JSON, Options, add_command, dashed, option
from quietq.cli.releasing import (
    NEEDED,
    NOTHING_SPENT,
    PROMISE,
    check_outputs,
    check_pairs,
    counts_in_words,
    draw,
    plain,
    publish,
    read_boxes,
    read_names,
    reading,
    require,
    results,
)

if TYPE_CHECKING:
    from quietq.released import PrivateFunction

FILES: Options = {
    "files": Annotated[
        list[Path] | None, typer.Argument(metavar="FILES", help="CSV or Parquet, one row per rating or comparison.")
    ],
    "kind": option(Literal[REWARD_FEEDBACK], "What the rows are; default ratings."),
}
HOW: Options = {
    **PROMISE,
    "noise": option(str, KINDS_OF_NOISE, autocompletion=NOISES),
    "level": option(bool, "Episodes can end early, so that a constant counts: less noise in it.", "--level"),
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
PARAMETERS = {"option": "options", "items": "box"}
"""What `read` calls an option; all others have the name of its parameter."""
ADDITIVE = "Additive: it is a sum of one function of each coordinate, and cannot hold interactions of two of them."


def _reader(kind: str) -> Any:
    from quietq.feedback import FEEDBACK

    return FEEDBACK[kind].read


def _parameters(kind: str) -> dict[str, inspect.Parameter]:
    """What `read` takes besides the source, by the names of options."""
    found, names = inspect.signature(_reader(kind)).parameters, {"options": "option"}
    named = {names.get(name, name): one for name, one in found.items()}
    if "box" in named:  # which may be a list: one of both options
        named["box"] = named["items"] = named["box"].replace(default=None)
    return {name: one for name, one in named.items() if name in READ or isinstance(one.default, str)}


def _options() -> Options:
    takes = {kind: _parameters(kind) for kind in REWARD_FEEDBACK}
    further = {name: (str, f"Column {name}.") for one in takes.values() for name in one if name not in READ}
    options = {**FILES, **HOW}
    for name, (form, sentence) in {**READ, **further}.items():
        kinds = [kind for kind in takes if name in takes[kind]]
        panel = f"Options of {' and '.join(kinds)}" if len(kinds) < len(takes) else None
        if kinds:
            metavar = METAVARS.get(name, "COLUMN" if sentence.startswith("Column") else None)
            needed = all(takes[kind][name].default is inspect.Parameter.empty for kind in kinds)
            options[name] = option(form, sentence + NEEDED * needed, metavar=metavar, rich_help_panel=panel)
    return {**options, **results("reward"), **JSON}


def reward(values: dict[str, Any]) -> None:
    from quietq.feedback.engines import engine_called

    as_json, kind, files = values.pop("json", False), values.setdefault("kind", "ratings"), values.pop("files", [])
    values |= {name: _spelt_out(values[name], files) for name in ("state", "left", "right") if name in values}
    given = dict(values)
    arguments = _arguments(kind, {name: values.pop(name) for name in list(values) if name not in _NOT_READ})
    if not files:
        raise qq.InvalidInput("There must be a file to read: CSV or Parquet, one row per rating or comparison.")
    if values.pop("check", False):
        counts = _reader(kind)(files, **arguments).not_private
        return answer(as_json, {"not_private": counts}, NOTHING_SPENT, counts_in_words(counts))
    require("A private reward needs", values, "epsilon", "delta", "out")
    budget, out = qq.Budget(values["epsilon"], values["delta"]), values["out"]
    account = open_account(values.get("ledger"), values.get("source"), "reward")
    check_outputs(files, out, values.get("plot"))
    with reading(kind) as (told, say):
        arguments["engine"] = engine_called(arguments.get("engine", "local"), told)
        group = _reader(kind)(files, **arguments)
        say("Making the reward private")
        private = qq.privatise(
            group, budget, noise=values.get("noise", "auto"), level=values.get("level", False), account=account,
        )  # fmt: skip
    name = publish(private, out)
    plot = draw(values.get("plot"), partial(_plot, private, given))
    record = {
        "certificate": private.certificate.to_dict(), "out": str(out), "hash": name,
        "plot": None if plot is None else str(plot), "options": plain(given), "not_private": group.not_private,
    }  # fmt: skip
    written = f"\nMay be published: {out}" + ("" if plot is None else f" and {plot}")
    further = [ADDITIVE] if given.get("features") == "additive" else []
    answer(as_json, record, private.certificate, *further, written, counts_in_words(group.not_private))


add_command(
    "reward", "Make people's mean reward private, once: ratings or comparisons in, a file that may be published out.",
    _options, reward,
)  # fmt: skip
_NOT_READ = {*FILES, *HOW, *results("reward")}


def _arguments(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """What `read` is called with; whatever it cannot use is refused, and so is what is missing."""
    check_pairs(given)
    takes, names = _parameters(kind), _coordinates(given)
    if wrong := [name for name in given if name not in takes]:
        other = [one for one in REWARD_FEEDBACK if not set(wrong) - set(_parameters(one))]
        instead = f", or say --kind {other[0]}" if other else ""
        it = "it" if len(wrong) == 1 else "them"
        raise qq.InvalidInput(f"{kind} have no {dashed(*wrong)}: leave {it} out{instead}.")
    require(f"{kind} need", given, *(name for name, one in takes.items() if one.default is one.empty))
    if "slope" in given and len(names) > 1 and given.get("features") != "additive":
        raise qq.InvalidInput(
            "--slope is for one coordinate or --features additive, and a model with interactions has no use for it: "
            "leave it out."
        )
    if "box" in takes and ("box" in given) == ("items" in given):
        raise qq.InvalidInput("There must be --box, low and high for each coordinate, or else --items, a public list.")
    read: dict[str, Callable[[Any], Any]] = {
        "box": lambda words: read_boxes("box", words, len(names)),
        "features": lambda name: qq.Splines(additive=True) if name == "additive" else qq.Columns(),
        "option": lambda words: dict(map(_read_option, words)),
        "items": partial(read_names, "items"),
        "actions": partial(read_names, "actions"),
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


def _plot(private: "PrivateFunction", given: dict[str, Any], plot: Path) -> None:
    from quietq.cli.report import plot_reward

    actions = given.get("actions")
    if actions is not None and len(actions) == 1:  # a file
        actions = [line.strip() for line in Path(actions[0]).read_text("utf-8").splitlines() if line.strip()]
    plot_reward(private, plot, names=_coordinates(given), actions=actions)
