"""The `quietq` command itself: how it prints an answer, and how it tells what was typed wrongly.

Only light modules are imported at the top of a command's file, so that `quietq --help` is there at once; a command
imports what it works with when it runs.
"""

import io
import json
import os
import re
import sys
import warnings
from collections.abc import Container, Iterable, Sequence
from typing import Annotated

import typer

import quietq as qq

app = typer.Typer(
    name="quietq",
    help="Release private rewards, environments and policies from people's data, once, with a certificate.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)

PAIRS = ("--box", "--action-box")
"""Options of two numbers that may be given once per coordinate: typer has no such, so that each pair is one word."""
INTERRUPTED = 130
"""What a command ends with after Ctrl-C."""


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(qq.__version__)
        raise typer.Exit
    show_help(context)


def show_help(context: typer.Context) -> None:
    """Prints the help of a group where no command of it is named."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def answer(as_json: bool, record: object, *lines: object) -> None:
    """Prints the result on stdout: as one JSON object, or in lines for people."""
    print(json.dumps(record) if as_json else "\n".join(map(str, lines)))


def show_table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[object]], words: Container[str] = ()
) -> None:
    """Prints a table on stdout, numbers on the right and the columns of `words` on the left."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title or None)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in words else "right", overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    Console().print(table)


def warn(sentence: object) -> None:
    """Prints a warning on stderr, in which arguments of Python are called as options: `action_box` is --action-box."""
    said = re.sub(r"`([a-z_]+)`", lambda found: dashed(found[1]), str(sentence))
    print(f"quietq: warning: {said}", file=sys.stderr)


def number(value: float | None, digits: int = 4) -> str:
    """Writes a number with this many digits, or a dash where there is no value."""
    return "-" if value is None else f"{value:.{digits}g}"


def dashed(*names: str) -> str:
    """Writes options as they are typed: `--people, --epsilon and --delta`."""
    words = ["--" + name.replace("_", "-") for name in names]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def main() -> None:
    """Runs the `quietq` command. Wrong input is one sentence on stderr, and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal cannot show must not lose all the rest
            stream.reconfigure(errors="replace")
    warnings.showwarning = lambda message, *_, **__: warn(message)
    try:
        code = app(join_pairs(sys.argv[1:]), prog_name="quietq", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # typer has caught it
            _tell_of_the_interrupt()
        sys.exit(code)
    except BrokenPipeError:  # whoever read the answer has seen enough; Python must not try to write the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        sentence = f"{error.strerror or type(error).__name__}: {str(error.filename or '')!r}."
    except (ArithmeticError, MemoryError):
        sentence = "these numbers are too large or too small, or too far apart, to compute with."
    except KeyboardInterrupt:
        _tell_of_the_interrupt()
        sys.exit(INTERRUPTED)
    except Exception as error:
        if message := getattr(error, "format_message", None):  # typer's usage errors have no public base class
            sentence = usage_sentence(error, message())
        elif isinstance(error, qq.QuietqError):
            sentence = str(error)
        else:
            raise
    print(f"quietq: {sentence}", file=sys.stderr)
    sys.exit(2)


def join_pairs(words: Sequence[str]) -> list[str]:
    """Makes one word of `--box LOW HIGH`, because typer has no pairs that may be repeated."""
    joined = list(words)
    for place in reversed(range(len(joined))):
        if joined[place] in PAIRS:
            joined[place : place + 3] = [f"{joined[place]}={' '.join(joined[place + 1 : place + 3])}"]
    return joined


def _tell_of_the_interrupt() -> None:
    from quietq.privacy.account import released_here

    spent = (
        "the budget was charged already: what was drawn is lost unless it is in the file that was named, and running "
        "it again spends again"
    )
    print(f"\nquietq: stopped; {spent if released_here() else 'nothing was spent'}.", file=sys.stderr)


def usage_sentence(error: Exception, message: str) -> str:
    """Says what was typed wrongly, and what would be right, which typer's own message may leave out."""
    from quietq.privacy.checks import did_you_mean, shown

    sentence = " ".join(message.split())
    context = getattr(error, "ctx", None)
    param = getattr(error, "param", None)
    command = "quietq" if context is None else context.command_path
    if hasattr(error, "possibilities") and (option := getattr(error, "option_name", None)):
        params = [] if context is None else context.command.get_params(context)
        near = did_you_mean(option, [name for one in params for name in (*one.opts, *one.secondary_opts)])
        return f"No such option: {option}.{near or f' `{command} --help` lists them.'}"
    if sentence.startswith("No such command") and "Did you mean" not in sentence:
        return f"{sentence} `{command} --help` lists them."
    if sentence.startswith("Missing argument") and (wanted := getattr(param, "help", None)):
        return f"{sentence.rstrip('.')}: {wanted}"
    if param is None or not sentence.startswith("Invalid value"):
        return sentence
    name, of_file = max(param.opts, key=len), (context.default_map or {}).get(param.name, "") if context else ""
    value = _find_offender(param.opts) or str(of_file)
    if choices := re.search(r" is not one of (.*?)\.?$", sentence):
        known = re.findall(r"'(.*?)'", choices[1])
        return f"{name} must be one of {', '.join(known)}, not {shown(value)}.{did_you_mean(value, known)}"
    for word, right in (("integer", "a whole number"), ("number", "a number"), ("float", "a number")):
        if value and word in sentence:
            return f"{name} must be {right}, not {shown(value)}."
    return f"{sentence.rstrip('.')}: {shown(value)}." if value else sentence


def _find_offender(names: Sequence[str]) -> str:
    """Finds the value of an option that could not be read; the last one given is the one read."""
    found = ""
    for place, word in enumerate(sys.argv):
        name, equals, value = word.partition("=")
        if name in names:
            found = value if equals else " ".join(sys.argv[place + 1 : place + 2])
    return found
