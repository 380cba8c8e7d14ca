"""Hyper-parameters as options of `quietq train`: made from the methods' own fields, and only when they are needed.

The methods need JAX, which takes seconds to import. So the options are not part of the command until somebody runs it
or asks for its help.
"""

import dataclasses
import inspect
import types
import typing
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

import quietq as qq
from quietq.privacy.checks import shown

if TYPE_CHECKING:
    from quietq.learning import Method

KEY = "quietq.hyper"
"""Where a context keeps what was given."""
PANEL = "Hyper-parameters"


class WithHyperParameters(TyperCommand):
    """A command with one option more for each hyper-parameter of any method."""

    context_class = typer.Context

    def get_params(self, ctx: Any) -> list[Any]:
        """The command's own options, those of the methods, and --help."""
        own = super().get_params(ctx)
        return [*self.params, *_options(), *own[len(self.params) :]]

    def invoke(self, ctx: Any) -> Any:
        """Runs the command, which finds the hyper-parameters that were given with `given`."""
        names = [option.name for option in _options()]
        found = {name: ctx.params.pop(name) for name in names}
        ctx.meta[KEY] = {name: value for name, value in found.items() if value is not None}
        return super().invoke(ctx)


def given(context: typer.Context) -> dict[str, str | bool]:
    """The hyper-parameters that were given, as text."""
    return context.meta[KEY]


def read(kind: "type[Method]", texts: Mapping[str, str | bool]) -> dict[str, Any]:
    """The values of hyper-parameters that were given as text, for one method; it must have all of them."""
    from quietq.learning import options_of

    own = options_of(kind)
    for name in texts:
        if name not in own:
            raise qq.InvalidInput(
                f"{kind.name!r} has no option {_dashed(name)}: it has {', '.join(map(_dashed, own))}."
            )
    hints = typing.get_type_hints(kind)
    return {name: _value(name, text, hints[name]) for name, text in texts.items()}


def made(kind: "type[Method]", values: Mapping[str, Any], **further: Any) -> Any:
    """The method with these hyper-parameters; `published` starts from the preset's own."""
    from quietq.learning import Published

    if issubclass(kind, Published):
        preset = Published.text if values.get("preset") == "text" else Published.code
        return preset(**values, **further)
    return kind(**values, **further)


def settings(method: "Method") -> dict[str, Any]:
    """All hyper-parameters of a method, as `made` takes them."""
    from quietq.learning import options_of

    return {name: getattr(method, name) for name in options_of(type(method))}


@cache
def _options() -> list[Any]:
    """One option a name, over all methods; typer makes them from a signature."""
    from quietq.learning import METHODS, options_of

    fields: dict[str, list[tuple[type[Method], dataclasses.Field[Any]]]] = defaultdict(list)
    for kind in METHODS.values():
        for name, field in options_of(kind).items():
            fields[name].append((kind, field))
    parameters = []
    for name, owners in fields.items():
        flag = all(typing.get_type_hints(kind)[name] is bool for kind, _ in owners)
        dashed = _dashed(name)
        option = typer.Option(
            f"{dashed}/--no-{dashed[2:]}" if flag else dashed,
            help=_help(name, owners), rich_help_panel=PANEL, show_default=False,
            metavar=None if flag else _kind_of_value(typing.get_type_hints(owners[0][0])[name]),
        )  # fmt: skip
        annotation = Annotated[(bool if flag else str) | None, option]
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))

    def holder(**_: object) -> None:
        """Never called: typer reads its signature."""

    holder.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    holder.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app = typer.Typer(add_completion=False)
    app.command()(holder)
    return list(typer.main.get_command(app).params)


def _help(name: str, owners: "list[tuple[type[Method], dataclasses.Field[Any]]]") -> str:
    """The sentence of each method's field, and its default by method."""
    told: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for kind, field in owners:
        default = getattr(made(kind, {}), name)
        told[field.metadata["help"]][_written(default)].append(kind.name)
    parts = []
    for sentence, defaults in told.items():
        listed = "; ".join(f"{default} in {', '.join(kinds)}" for default, kinds in defaults.items())
        parts.append(f"{sentence} (Default {listed}.)")
    return " ".join(parts)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, tuple) else "not set" if value is None else f"{value}"


def _kind_of_value(hint: Any) -> str:
    hint, optional = _without_none(hint)
    word = "<int,...>" if typing.get_origin(hint) is tuple else {int: "<int>", float: "<float>"}.get(hint, "<word>")
    return f"{word[:-1]}|none>" if optional else word


def _value(name: str, text: str | bool, hint: Any) -> Any:
    """A text as what the field's type asks for."""
    hint, optional = _without_none(hint)
    if isinstance(text, bool) or hint is Any or hint is str:
        return text
    if optional and text.lower() == "none":
        return None
    if typing.get_origin(hint) is Literal:
        if text not in typing.get_args(hint):
            raise qq.InvalidInput(
                f"{_dashed(name)} must be one of {', '.join(typing.get_args(hint))}, not {shown(text)}."
            )
        return text
    try:
        if typing.get_origin(hint) is tuple:
            return tuple(int(part) for part in text.split(",") if part.strip())
        return hint(text)
    except ValueError as error:
        words = {int: "a whole number", float: "a number"}.get(hint, "whole numbers with commas between them")
        raise qq.InvalidInput(f"{_dashed(name)} must be {words}, not {shown(text)}.") from error


def _without_none(hint: Any) -> tuple[Any, bool]:
    """A type, and whether None may be given instead."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        rest = [one for one in typing.get_args(hint) if one is not type(None)]
        return rest[0], len(rest) < len(typing.get_args(hint))
    return hint, False


def _dashed(name: str) -> str:
    return "--" + name.replace("_", "-")
