"""Options from a file (--config), and the command line that repeats a run, whatever of it stood in such a file."""

import shlex
import tomllib
from pathlib import Path
from typing import Annotated

import typer

import quietq as qq

PAIRS = ("--box", "--action-box")
"""Options of two numbers that may be given once per coordinate: typer has no such, so that each pair is one word."""


def _read(context: typer.Context, file: Path | None) -> Path | None:
    """Takes what was not typed from the file: Click asks the context's `default_map` for it."""
    if file is None:
        return None
    from quietq.privacy.checks import did_you_mean, shown

    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise qq.InvalidInput(f"--config must be a TOML file, and {str(file)!r} is none: {error}.") from None
    known = {_option(param).lstrip("-"): param for param in context.command.params if param.name != "config"}
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


Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml", is_eager=True, callback=_read, help="Options from a file; what is typed goes before it."
    ),
]


def repeat(context: typer.Context) -> str:
    """Returns the command line that does the same again, quoted for a shell; files and ledgers are named, not shown."""
    words = context.command_path.split()
    for param in context.command.params:
        value, source = context.params[param.name], context.get_parameter_source(param.name)
        if param.name == "config" or source is None or source.name == "DEFAULT":
            continue
        for one in value if getattr(param, "multiple", False) or param.nargs == -1 else [value]:
            option = _option(param)
            words += [option] if option.startswith("-") else []
            if option in PAIRS:
                words += one.split()
            elif not isinstance(one, bool):
                words += map(str, one if isinstance(one, tuple) else [one])
    return shlex.join(words)


def spends_again(context: typer.Context) -> str:
    """Tells the command that repeats a release, and what that costs."""
    return f"To release again, which spends the budget again: {repeat(context)}"


def _option(param: object) -> str:
    """Returns a parameter's name as it is typed: --out; and of arguments, files."""
    return max(getattr(param, "opts"), key=len)  # noqa: B009 (typer's parameters have no public class)
