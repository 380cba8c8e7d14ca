"""Commands for methods: one for each, with the options of its own dataclass and no others.

The methods need JAX, which takes seconds to load. So a command's options are built when somebody runs it or asks for
its help, and a list of methods is printed without.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Annotated, Any, Literal, get_type_hints

import typer
from typer.core import TyperCommand

import quietq as qq
from quietq.cli.app import Commands, app, show_help

Options = dict[str, Any]
"""By name, the annotation with its typer.Option; what is not given is None."""
PANEL = "Hyper-parameters (defaults in brackets)"


def option(kind: Any, sentence: str, *names: str, **more: Any) -> Any:
    return Annotated[kind | None, typer.Option(*names, help=sentence, **more)]


JSON: Options = {"json": option(bool, "Print one JSON object on stdout.", "--json")}


def fields_of(kind: type, *parts: str) -> Options:
    """An option for each field of a dataclass that belongs to one of these parts, from its type and metadata."""
    hints, options = get_type_hints(kind), {}
    for field in dataclasses.fields(kind):
        if field.metadata.get("part") in parts:
            hint, choices = hints[field.name], tuple(field.metadata["choices"])
            names = [dashed(field.name)] if hint is bool else []
            options[field.name] = option(Literal[choices] if choices else hint, field.metadata["help"], *names)
    return options


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
        return self._command.get_params(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual, but `--box LOW HIGH` is one value: typer has no pairs that may be repeated."""
        words = list(args)
        for place in reversed([place for place, word in enumerate(words) if word in ("--box", "--action-box")]):
            words[place : place + 3] = [f"{words[place]}={' '.join(words[place + 1 : place + 3])}"]
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
        return self._command.invoke(ctx)


def add_command(
    name: str, sentence: str, options: Callable[[], Options], run: Callable[[dict[str, Any]], None]
) -> None:
    """A command whose options are built when they are first needed."""

    class Command(LazyCommand):
        def __init__(self, **_: Any) -> None:
            super().__init__(name, sentence, options, run)

    app.command(name, cls=Command)(lambda: None)


def read_pair(text: str, name: str = "box") -> tuple[float, float]:
    """What `--box` has for one coordinate."""
    try:
        low, high = map(float, text.split())
    except ValueError:
        box = dashed(name)
        raise qq.InvalidInput(f"{box} must be two numbers, LOW and HIGH, e.g. {box} -1 1, not {text!r}.") from None
    return low, high


def add_group(
    parent: typer.Typer, name: str, sentence: str, metavar: str, build: Callable[[], Iterable[LazyCommand]]
) -> None:
    """A group of commands whose options are built when they are first needed."""

    class CommandGroup(Commands):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            for command in build():
                self.add_command(command)

    group = typer.Typer(cls=CommandGroup, help=sentence, subcommand_metavar=metavar)
    parent.add_typer(group, name=name)
    group.callback()(show_help)


def hyper_parameters(method: str) -> Options:
    """An option for each field of the method that has a sentence, with that sentence and its default."""
    from quietq.paper.agents.hyper_parameters import name_kind, options_of, write_value
    from quietq.paper.methods import METHODS, build_method

    kind, defaults, options = METHODS[method], build_method(method, {}), {}
    for name, field in options_of(kind).items():
        flag, written = isinstance(getattr(defaults, name), bool), dashed(name)
        names = f"{written}/--no-{written[2:]}" if flag else written
        sentence = f"{field.metadata['help'].rstrip('.')} ({write_value(getattr(defaults, name))})."
        metavar = None if flag else name_kind(kind, name)
        options[name] = option(bool if flag else str, sentence, names, metavar=metavar, rich_help_panel=PANEL)
    return options


def kinds(method: str) -> tuple[bool, bool]:
    """Whether a method learns from a private reward, and whether it promises something for a budget."""
    from quietq.paper.agents.in_loop_method import InLoopMethod
    from quietq.paper.agents.reward_learner import RewardLearner
    from quietq.paper.methods import METHODS

    kind = METHODS[method]
    on_reward = issubclass(kind, RewardLearner)
    return on_reward, on_reward or issubclass(kind, InLoopMethod)


def dashed(*names: str) -> str:
    """Options as they are typed: `--people, --epsilon and --delta`."""
    words = ["--" + name.replace("_", "-") for name in names]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
