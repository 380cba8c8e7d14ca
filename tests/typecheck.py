"""The run-time type checker of the tests: beartype, with ints accepted where floats are asked for."""

import dataclasses
import functools
import inspect
from types import FunctionType
from typing import Any, get_type_hints

import jaxtyping
import typer
from beartype import BeartypeConf, FrozenDict, beartype

# Commands ask for typer.Context, as typer has it, and are given one of the class that it is made from.
CONTEXT = FrozenDict({typer.Context: typer.Context.__base__})
typecheck = beartype(conf=BeartypeConf(hint_overrides=CONTEXT, is_pep484_tower=True, violation_type=TypeError))
_jaxtyped = jaxtyping.jaxtyped
OFTEN, ONE_IN = 500, 16
"""A function with sizes that was checked so often is checked at one call in so many: wrong types are not rare."""


def check_fast() -> None:
    """Has jaxtyping's import hook make the same checks in a fraction of the time.

    jaxtyping binds the arguments of every call and checks them twice, for the sake of its messages. Here a function is
    checked once, and a memory of the sizes that names stand for is kept for those only whose annotations have names;
    and of these, inner loops are checked at some calls only.
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
    if not any("jaxtyping." in repr(annotation) for annotation in checked.__annotations__.values()):
        return typechecker(_with_names_looked_up(checked))
    calls, alone = 0, None

    @functools.wraps(checked)
    def with_sizes(*arguments: Any, **named: Any) -> Any:
        nonlocal calls, alone
        calls += 1
        if calls > OFTEN and calls % ONE_IN:
            return checked(*arguments, **named)
        if alone is None:  # what is never called is never made ready to be checked, which takes long
            alone = typechecker(_with_names_looked_up(checked))
        with _jaxtyped("context"):
            return alone(*arguments, **named)

    return with_sizes


def _with_names_looked_up(given: FunctionType) -> FunctionType:
    """The same function; what a quote stands for that is not there yet, such as its own class, may be anything."""
    if not any(map(_is_quoted, given.__annotations__.values())):
        return given
    found = FunctionType(given.__code__, given.__globals__, given.__name__, given.__defaults__, given.__closure__)
    functools.update_wrapper(found, given)
    found.__kwdefaults__ = given.__kwdefaults__
    hints = given.__annotations__.items()
    found.__annotations__ = {name: _looked_up(hint, given.__globals__) for name, hint in hints}
    return found


def _looked_up(annotation: Any, names: dict[str, Any]) -> Any:
    def holder(it: Any) -> None: ...

    holder.__annotations__ = {"it": annotation}
    try:
        return get_type_hints(holder, names, include_extras=True)["it"]
    except Exception:  # as jaxtyping does, which has more kinds of it than NameError
        return Any


def _is_quoted(annotation: Any) -> bool:
    text = repr(annotation)
    return (
        isinstance(annotation, str)
        or "ForwardRef" in text
        or ("'" in text and "jaxtyping." not in text and not isinstance(annotation, type))
    )
