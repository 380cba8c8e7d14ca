"""The run-time type checker of the tests: beartype, with ints accepted where floats are asked for."""

import dataclasses
import functools
import inspect
from types import FunctionType
from typing import Any

import jaxtyping
import typer
from beartype import BeartypeConf, FrozenDict, beartype

# Commands ask for typer.Context, as typer has it, and are given one of the class that it is made from.
CONTEXT = FrozenDict({typer.Context: typer.Context.__base__})
typecheck = beartype(conf=BeartypeConf(hint_overrides=CONTEXT, is_pep484_tower=True, violation_type=TypeError))
_jaxtyped = jaxtyping.jaxtyped


def check_fast() -> None:
    """Has jaxtyping's import hook make the same checks in a fraction of the time.

    jaxtyping binds the arguments of every call and checks them twice, for the sake of its messages. Here a function is
    checked once, and a memory of the sizes that names stand for is kept for those only whose annotations have names.
    """
    jaxtyping.jaxtyped = _checked  # pyright: ignore[reportAttributeAccessIssue]


def _checked(checked: Any = None, *, typechecker: Any) -> Any:
    if checked is None:
        return functools.partial(_checked, typechecker=typechecker)
    if type(checked) is type and dataclasses.is_dataclass(checked) and isinstance(checked.__init__, FunctionType):
        checked.__init__ = _checked(checked.__init__, typechecker=typechecker)
        return checked
    if not isinstance(checked, FunctionType) or inspect.isgeneratorfunction(checked):
        return _jaxtyped(checked, typechecker=typechecker)
    annotations = checked.__annotations__.values()
    if any(map(_is_quoted, annotations)):  # what quotes stand for may not be there at run time, which jaxtyping allows
        return _jaxtyped(checked, typechecker=typechecker)
    alone = typechecker(checked)
    if not any("jaxtyping." in repr(annotation) for annotation in annotations):
        return alone

    @functools.wraps(checked)
    def with_sizes(*arguments: Any, **named: Any) -> Any:
        with _jaxtyped("context"):
            return alone(*arguments, **named)

    return with_sizes


def _is_quoted(annotation: Any) -> bool:
    text = repr(annotation)
    return (
        isinstance(annotation, str)
        or "ForwardRef" in text
        or ("'" in text and "jaxtyping." not in text and not isinstance(annotation, type))
    )
