"""What the commands share: the app, the options that several have, and how a mistake is told.

Only light modules are imported at the top of a command's file, so that `quietq --help` is there at once; a command
imports what it works with when it runs.
"""

import io
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import quietq as qq
from quietq.cli import known_names

GROUPS = {
    "Make people's data private": ("reward", "world", "evaluate-policies"),
    "Before you spend anything": ("demo", "plan", "calibrate", "limits", "worlds"),
    "Publish": ("publish", "verify", "keygen", "serve"),
    "Keep budgets": ("ledger",),
    "Attack": ("audit",),
    "The system of Wang & Hegde (2019)": ("paper",),
}
"""The commands, by what a person wants."""


class Commands(TyperGroup):
    """A group of commands, which prints its help where none is named."""

    context_class = typer.Context

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"rich_markup_mode": None, **settings, "invoke_without_command": True})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """By what a person wants, where that is said; each with its first sentence."""
        for title, group in (GROUPS if ctx.parent is None else {"Commands": self.list_commands(ctx)}).items():
            found = [(name, self.commands[name]) for name in group if name in self.commands]
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(200)) for name, command in found])


app = typer.Typer(
    name="quietq",
    cls=Commands,
    help="Learn from a reward that belongs to people, and publish the result without giving any of them away.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help fits on a page, and needs no import of rich
    context_settings={"max_content_width": 120},
)

Epsilon = Annotated[float, typer.Option(help="Privacy budget: how much any one person's data may matter, above 0.")]
Delta = Annotated[float, typer.Option(help="Probability that the promise fails; well below 1/people.")]
People = Annotated[int, typer.Option(help="How many people there are; public, not counted from any rows.")]
Low = Annotated[float, typer.Option(help="Smallest reward that a person can give; public.")]
High = Annotated[float, typer.Option(help="Largest reward that a person can give; public.")]
Slope = Annotated[
    float, typer.Option(help="Most that a person's reward changes over the whole width of the box; public.")
]


def names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """For the shell, which completes a word that was begun."""
    return lambda incomplete: [name for name in known if name.startswith(incomplete)]


KINDS_OF_NOISE = (
    f"Kind of noise: {', '.join(known_names.NOISES)}, or auto, a public rule: Gaussian unless --delta is 0."
)
NOISES = names(("auto", *known_names.NOISES))
Noise = Annotated[str, typer.Option(help=KINDS_OF_NOISE, autocompletion=NOISES)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


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
    """What a group does where no command is named."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def answer(as_json: bool, record: object, *lines: object) -> None:
    """The result on stdout: as one JSON object, or in lines for people."""
    print(json.dumps(record) if as_json else "\n".join(map(str, lines)))


def show_table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[object]], words: Container[str] = ()
) -> None:
    """A table on stdout, numbers on the right and `words` on the left."""
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
    """Arguments of Python, in backquotes, are called as options are: `action_box` is --action-box."""
    said = re.sub(r"`([a-z_]+)`", lambda found: "--" + found[1].replace("_", "-"), str(sentence))
    print(f"quietq: warning: {said}", file=sys.stderr)


def number(value: float | None, digits: int = 4) -> str:
    """So many digits, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}g}"


_INTERRUPTED = 130
"""What a command ends with after Ctrl-C."""


def _tell_of_the_interrupt() -> None:
    from quietq.privacy.account import released_here

    spent = (
        "the budget was charged already: what was drawn is lost unless it is in the file that was named, and running "
        "it again spends again"
    )
    print(f"\nquietq: stopped; {spent if released_here() else 'nothing was spent'}.", file=sys.stderr)


def main() -> None:
    """The `quietq` command. Wrong input: one sentence on stderr, exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal cannot show must not lose all the rest
            stream.reconfigure(errors="replace")
    warnings.showwarning = lambda message, *_, **__: warn(message)
    try:
        code = app(prog_name="quietq", standalone_mode=False)
        sys.stdout.flush()
        if code == _INTERRUPTED:  # typer has caught it
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
        sys.exit(_INTERRUPTED)
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's usage errors have no public base class, but all can do this
            from quietq.cli.mistakes import usage_sentence

            sentence = usage_sentence(error)
        elif isinstance(error, qq.QuietqError):
            sentence = str(error)
        else:
            raise
    print(f"quietq: {sentence}", file=sys.stderr)
    sys.exit(2)
