"""The options that several commands share, each declared once, how the words that they hold are read, and --config.

The names that can be chosen are literals here, so that help and completion need neither NumPy nor Gymnasium. A test
holds them against the tables themselves: `quietq.mechanisms.candidates.MECHANISMS`, `quietq.worlds.WORLDS` and
`quietq.feedback.FEEDBACK`.
"""

import shlex
import tomllib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

import quietq as qq
from quietq.cli.app import PAIRS, dashed
from quietq.paper.method_table import METHOD_TABLE

NOISES = ("path", "k-norm", "knots", "rounds", "moments")
WORLDS = ("walk", "thermostat", "navigation")
REWARD_FEEDBACK = ("ratings", "comparisons")
"""Kinds of feedback of which a reward is made."""


def complete(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Gives the shell a function that completes a word that was begun."""
    return lambda incomplete: [name for name in known if name.startswith(incomplete)]


# A file of options


def _read(context: typer.Context, file: Path | None) -> Path | None:
    """Takes what was not typed from the file: Click asks the context's `default_map` for it."""
    if file is None:
        return None
    from quietq.privacy.checks import did_you_mean, shown

    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise qq.InvalidInput(f"--config must be a TOML file, and {str(file)!r} is none: {error}.") from None
    params = [param for param in context.command.params if param.name != "config"]
    known = {max(param.opts, key=len).lstrip("-"): param for param in params}  # as it is typed
    context.default_map = {}
    for name, value in given.items():
        if name not in known or isinstance(value, dict):
            near = did_you_mean(name, list(known)) or f" `{context.command_path} --help` lists them."
            raise qq.InvalidInput(f"--config {str(file)!r} has {shown(name)}, which is no option.{near}")
        param = known[name]
        values = value if isinstance(value, list) else [value]
        words = [" ".join(map(str, one)) if isinstance(one, list) else str(one) for one in values]
        several = isinstance(value, list) or getattr(param, "multiple", False) or param.nargs != 1
        context.default_map[param.name] = words if several else words[0]
    return file


def repeat(context: typer.Context) -> str:
    """Returns the command that does the same again, quoted for a shell, with what stood in a --config file."""
    words = context.command_path.split()
    for param in context.command.params:
        value, source = context.params[param.name], context.get_parameter_source(param.name)
        if param.name == "config" or source is None or source.name == "DEFAULT":
            continue
        option = max(param.opts, key=len)
        for one in value if getattr(param, "multiple", False) or param.nargs == -1 else [value]:
            if option.startswith("-"):
                words.append(option)
            if option in PAIRS:
                words += one.split()
            elif isinstance(one, tuple):
                words += map(str, one)
            elif not isinstance(one, bool):
                words.append(str(one))
    return shlex.join(words)


def spends_again(context: typer.Context) -> str:
    """Returns the sentence with the command that repeats a release, and what repeating it costs."""
    return f"To release again, which spends the budget again: {repeat(context)}"


Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml", is_eager=True, callback=_read, help="Options from a file; what is typed goes before it."
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]

# The promise

EPSILON = "Privacy budget: how much any one person's data may matter, above 0."
DELTA = "Probability that the promise fails; well below 1/people."
PEOPLE = "How many people there are; public, not counted from any rows."
Epsilon = Annotated[float, typer.Option(help=EPSILON)]
Delta = Annotated[float, typer.Option(help=DELTA)]
People = Annotated[int, typer.Option(help=PEOPLE)]
NeededEpsilon = Annotated[float | None, typer.Option(help=f"{EPSILON} Required.")]
NeededDelta = Annotated[float | None, typer.Option(help=f"{DELTA} Required.")]
NeededPeople = Annotated[int | None, typer.Option(help=f"{PEOPLE} Required.")]
Noise = Annotated[
    str | None,
    typer.Option(
        help=f"Kind of noise: {', '.join(NOISES)}, or auto, a public rule: Gaussian unless --delta is 0.",
        autocompletion=complete(("auto", *NOISES)),
    ),
]
Pieces = Annotated[int | None, typer.Option(help="Pieces between the knots of k-norm and knots.")]
Level = Annotated[
    bool, typer.Option("--level", help="Episodes can end early, so that a constant counts: less noise in it.")
]

# What is charged, and what is written

LedgerUrl = Annotated[str | None, typer.Option("--ledger", help="Ledger to charge: a file, or postgresql://host/name.")]
LedgerSource = Annotated[
    str | None, typer.Option("--source", help="Source to charge; may be left out if the ledger has only one.")
]
Check = Annotated[
    bool,
    typer.Option(
        "--check", help="Only read and count rows; nothing is spent, and no --epsilon, --delta or --out needed."
    ),
]
Out = Annotated[Path | None, typer.Option(help="File of the release, which can be published.")]
Plot = Annotated[Path | None, typer.Option(help="A picture of what is released, .png or .svg.")]

# Rows of people

Engine = Annotated[Literal["local", "ray"] | None, typer.Option(help="Where people are summed; default local.")]
Person = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with the person's name; default person.")]
Box = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LOW HIGH", help="Where states lie: once for all coordinates, or once for each, in order; public."
    ),
]
Actions = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="Public list of actions: a file with one name per line, or once per action."),
]
ActionColumns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the action; once per coordinate where actions are numbers; default action.",
    ),
]
ActionBox = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LOW HIGH",
        help="Instead of --actions, where actions lie that are numbers: once for all coordinates, or once for each; "
        "public.",
    ),
]

# Sessions

SessionFiles = Annotated[list[Path] | None, typer.Argument(metavar="FILES", help="CSV or Parquet, one row per step.")]
Episode = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column with the episode's name, for people with several.")
]
StepColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of the steps' order; default: the order of rows.")
]
Every = Annotated[float | None, typer.Option(help="Difference of that column between consecutive steps; default 1.")]
State = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column of the state; give it once per coordinate; default state."),
]
RewardColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with the reward; default reward.")]
LowReward = Annotated[float | None, typer.Option(help="Smallest reward of a step; public. Required.")]
HighReward = Annotated[float | None, typer.Option(help="Largest reward of a step; public. Required.")]
End = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column that is 1 where an episode terminated.")]
Cut = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column that is 1 where an episode was truncated.")]

# Attacks

Runs = Annotated[int, typer.Option(help="Runs under r, and as many under r', at least 40; most are judged.")]
Confidence = Annotated[float, typer.Option(help="Confidence with which all bounds hold together.")]
Seed = Annotated[int, typer.Option(help="Seed of all randomness: audits are simulations.")]
AuditedWorld = Annotated[
    str | None,
    typer.Option(help=f"One of {', '.join(WORLDS)}; default walk.", autocompletion=complete(WORLDS)),
]
Move = Annotated[
    Literal["shift", "zigzag"] | None,
    typer.Option(help="How r' differs from r; default the worst known."),
]
AuditFolder = Annotated[Path | None, typer.Option(help="Folder for what is found; default runs/audit.")]

# Methods of the paper

MethodName = Annotated[
    str,
    typer.Argument(
        metavar="METHOD", help="One that `quietq paper methods` lists.", autocompletion=complete(METHOD_TABLE)
    ),
]
HyperParameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A hyper-parameter, which `quietq paper methods METHOD` lists; may be repeated.",
    ),
]
MethodPeople = Annotated[int | None, typer.Option(help=f"{PEOPLE} An audit has 50 by default.")]
MethodEpsilon = Annotated[float | None, typer.Option(help=f"{EPSILON} An audit has 0.9 by default.")]
MethodDelta = Annotated[float | None, typer.Option(help=f"{DELTA} An audit has 1e-4 by default.")]
Radius = Annotated[
    float | None, typer.Option(help="Instead of people: most that neighbouring rewards differ, however rough.")
]


def missing(sentence: str, **options: object) -> "qq.InvalidInput":
    """Returns the refusal that names those of the options that were not given."""
    return qq.InvalidInput(f"{sentence} {dashed(*(name for name, value in options.items() if value is None))}.")


def given(**options: object) -> dict[str, object]:
    """Returns those of the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def refuse_others(what: str, options: Collection[str], instead: str = "") -> None:
    """Refuses options that were given and that nothing would be done with."""
    if options:
        it = "it" if len(options) == 1 else "them"
        raise qq.InvalidInput(f"{what} no {dashed(*options)}: leave {it} out{instead}.")


def read_pairs(words: Sequence[str] | None, name: str = "box") -> list[tuple[float, float]] | None:
    """Reads what `--box` has for each coordinate.

    It is done first of all: a pair of which one number is left out takes the next option for the other.
    """
    if not words:
        return None
    pairs = []
    for text in words:
        try:
            low, high = map(float, text.split())
        except ValueError:
            box = dashed(name)
            raise qq.InvalidInput(f"{box} must be two numbers, LOW and HIGH, e.g. {box} -1 1, not {text!r}.") from None
        pairs.append((low, high))
    return pairs


def one_or_list(words: Sequence[str]) -> str | list[str]:
    """A word that was given once stands alone: the file of a public list, or the one column."""
    return words[0] if len(words) == 1 else list(words)


def read_assignment(word: str, option: str, example: str) -> tuple[str, str]:
    """Reads NAME=VALUE."""
    name, equals, value = word.partition("=")
    if not (name and equals and value):
        raise qq.InvalidInput(f"{option} must be {example}, not {word!r}.")
    return name, value
