"""Commands for methods: one for each, with the options of its own dataclass and no others.

The methods need JAX, which takes seconds to load. So a command's options are built when somebody runs it or asks for its
help, and a list of methods is printed without.
"""

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

import quietq as qq

if TYPE_CHECKING:
    from quietq.learning import Method

Options = dict[str, Any]
"""By name, the annotation with its typer.Option; what is not given is None."""
PANEL = "Hyper-parameters (defaults in brackets)"


def option(kind: Any, sentence: str, *names: str, **more: Any) -> Any:
    """One that need not be given."""
    return Annotated[kind | None, typer.Option(*names, help=sentence, **more)]


PROMISE: Options = {
    "people": option(int, "How many people stand behind the reward; public."),
    "radius": option(float, "Instead of people: most that neighbouring rewards differ, however rough."),
    "epsilon": option(float, "Privacy budget, above 0."),
    "delta": option(float, "Probability that the promise fails, well below 1/people."),
}
NOISE: Options = {
    "noise": option(
        Literal["auto", "path", "k-norm", "knots"], "Of the private reward; path, or k-norm if delta is 0."
    ),
    "pieces": option(int, "Pieces between the knots of k-norm and knots."),
}
JSON: Options = {"json": option(bool, "Print one JSON object on stdout.", "--json")}


class LazyCommand(TyperCommand):
    """A command whose options are built when they are first needed; `run` is called with those that were given."""

    context_class = typer.Context

    def __init__(
        self, name: str, summary: str, options: Callable[[], Options], run: Callable[[dict[str, Any]], None],
        details: str = "",
    ) -> None:  # fmt: skip
        super().__init__(name, help=f"{summary} {details}", short_help=summary, rich_markup_mode=None)
        self._options, self._run = options, run

    @cached_property
    def _command(self) -> TyperCommand:
        """The same command as typer builds it, from a function with these options for a signature."""
        options = self._options()

        def run(**values: Any) -> None:
            self._run({name: value for name, value in values.items() if value is not None})

        run.__annotations__ = options
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter(name, keyword, default=None, annotation=options[name]) for name in options]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        app = typer.Typer(add_completion=False)
        app.command(self.name)(run)
        return typer.main.get_command(app)  # pyright: ignore[reportReturnType]

    def get_params(self, ctx: Any) -> list[Any]:
        """The options, and --help."""
        return self._command.get_params(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual, but `--box LOW HIGH` is one value: typer has no pairs that may be repeated."""
        words = list(args)
        for place in reversed([place for place, word in enumerate(words) if word == "--box"]):
            words[place : place + 3] = [f"--box={' '.join(words[place + 1 : place + 3])}"]
        return super().parse_args(ctx, words)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """In two sections, and narrow enough for a page."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            title = getattr(param, "rich_help_panel", None) or "Options"
            sections.setdefault(title, []).append(param.get_help_record(ctx))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows, col_max=24)

    def invoke(self, ctx: Any) -> Any:
        """Runs it."""
        return self._command.invoke(ctx)


def hyper_parameters(kind: "type[Method]") -> Options:
    """An option for each field of the method that has a sentence, with that sentence and its default."""
    from quietq.learning import options_of

    hints, defaults = typing.get_type_hints(kind), build_method(kind, {})
    options: Options = {}
    for name, field in options_of(kind).items():
        flag, written = hints[name] is bool, dashed(name)
        names = f"{written}/--no-{written[2:]}" if flag else written
        options[name] = option(
            bool if flag else str, f"{field.metadata['help'].rstrip('.')} ({_write(getattr(defaults, name))}).", names,
            metavar=None if flag else _name_kind(hints[name]), rich_help_panel=PANEL,
        )  # fmt: skip
    return options


def read_values(kind: "type[Method]", given: Mapping[str, Any]) -> dict[str, Any]:
    """The hyper-parameters among what was given, as the method's fields want them."""
    from quietq.learning import options_of

    hints = typing.get_type_hints(kind)
    return {name: _read(name, given[name], hints[name]) for name in options_of(kind) if name in given}


def build_method(kind: "type[Method]", values: Mapping[str, Any], **further: Any) -> Any:
    """The method with these hyper-parameters; `published` starts from its preset's."""
    preset = getattr(kind, values.get("preset", "code"), kind)
    return preset(**values, **further)


def dashed(*names: str) -> str:
    """Options as they are typed: `--people, --epsilon and --delta`."""
    words = ["--" + name.replace("_", "-") for name in names]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _write(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()


def _split(hint: Any) -> tuple[Any, bool]:
    """A type, and whether None may be given instead."""
    if isinstance(hint, types.UnionType):
        return hint.__args__[0], types.NoneType in hint.__args__
    return hint, False


def _name_kind(hint: Any) -> str:
    """The kind of value, as the help has it."""
    hint, optional = _split(hint)
    word = "int,..." if typing.get_origin(hint) is tuple else {int: "int", float: "float"}.get(hint, "word")
    return f"<{word}|none>" if optional else f"<{word}>"


def _read(name: str, text: str | bool, hint: Any) -> Any:
    """A text as what the field's type asks for."""
    from quietq.privacy.checks import shown

    hint, optional = _split(hint)
    if isinstance(text, bool) or (optional and text.lower() == "none"):
        return text if isinstance(text, bool) else None
    choices, wanted = typing.get_args(hint) if typing.get_origin(hint) is Literal else (), ""
    try:
        if typing.get_origin(hint) is tuple:
            wanted = "whole numbers with commas between them"
            return tuple(int(part) for part in text.split(",") if part.strip())
        if hint in (int, float):
            wanted = "a whole number" if hint is int else "a number"
            return hint(text)
    except ValueError:
        raise qq.InvalidInput(f"{dashed(name)} must be {wanted}, not {shown(text)}.") from None
    if choices and text not in choices:
        raise qq.InvalidInput(f"{dashed(name)} must be one of {', '.join(choices)}, not {shown(text)}.")
    return text
