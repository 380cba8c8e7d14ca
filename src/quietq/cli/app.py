"""What the commands share: the app, the options that several have, and how a mistake is told."""

import io
import sys
import warnings
from typing import Annotated

import typer
from typer.core import TyperGroup

import quietq as qq
from quietq.privacy.checks import shown


class Commands(TyperGroup):
    """The group of all commands; its context is what the annotations say."""

    context_class = typer.Context


app = typer.Typer(
    name="quietq",
    cls=Commands,
    help="Learn from a reward that belongs to people, and publish the result without giving any of them away.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

Epsilon = Annotated[float, typer.Option(help="Privacy budget: how much any one person's data may matter, above 0.")]
Delta = Annotated[float, typer.Option(help="Probability that the promise fails; well below 1/people.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(qq.__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def _offender(error: Exception) -> str:
    """The value that could not be read, which typer's own message leaves out; the last one given is the one read.

    An option of several values takes as many of the words after it, even if they are options themselves.
    """
    option, found = getattr(error, "param", None), ""
    names, values = getattr(option, "opts", []), max(getattr(option, "nargs", 1), 1)
    for place, given in enumerate(sys.argv):
        name, equals, value = given.partition("=")
        if name in names:
            following = sys.argv[place + 1 : place + 1 + values - bool(equals)]
            found = f": {shown(' '.join(([value] if equals else []) + following))}"
    return found and found + (f", where {values} values are needed" if values > 1 else "")


def main() -> None:
    """The `quietq` command. Wrong input: one sentence on stderr, exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal cannot show must not lose all the rest
            stream.reconfigure(errors="replace")
    warnings.showwarning = lambda message, *_, **__: print(f"quietq: warning: {message}", file=sys.stderr)
    try:
        sys.exit(app(standalone_mode=False))
    except qq.QuietqError as error:
        sentence = str(error)
    except OSError as error:
        sentence = f"{error.strerror or type(error).__name__}: {str(error.filename or '')!r}."
    except (ArithmeticError, MemoryError):
        sentence = "these numbers are too large or too small, or too far apart, to compute with."
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # typer's usage errors have no public base class, but all can format themselves
        if not hasattr(error, "format_message"):
            raise
        sentence = " ".join(error.format_message().split()) + _offender(error)  # type: ignore[attr-defined]
    print(f"quietq: {sentence}", file=sys.stderr)
    sys.exit(2)
