"""Checks of what comes from outside, each with a one-sentence refusal.

Numbers are kept between 1e-100 and 1e100 in size, so that nothing computed from a few of them overflows.

What certificates, ledgers and releases state is a `Record`, a frozen `msgspec.Struct`. A field's type carries its check
(`Positive`, `Count`, `Line`, ...), and all checks and types are looked at when a record is built, be it by a caller or
from a file: what cannot be built cannot be loaded. Records of several kinds are told apart by their tag, the field
`kind` in JSON; a union of them is closed, and fields that a kind does not have are refused.
"""

import functools
import math
import os
import sys
import typing
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from numbers import Integral, Real as RealNumber
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
import numpy as np
from jaxtyping import Float
from msgspec import Meta
from msgspec.structs import force_setattr

from quietq.privacy.errors import BudgetExhausted, InvalidInput

Kept = TypeVar("Kept", bound="Record")
Check = Callable[[str, object], Any]
"""A function from the name and value of a field to the value as it is to be kept, or a refusal."""


class Checked:
    """A frozen dataclass that keeps each of these fields as its check gives it."""

    fields: ClassVar[Mapping[str, Check]]

    def __post_init__(self) -> None:
        for name, check in self.fields.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))


LARGEST = 1e100
SMALLEST = 1e-100
MOST = 10**15
"""The largest count: still exact as a float."""
LONGEST_NAME = 80
"""Letters of a column's or an action's name, which is public text that travels along."""
_MOST_MARKS = 2
"""On one letter, as Thai and Vietnamese have them; a heap of marks would print over other lines."""


def shown(value: object) -> str:
    """`value` as it fits in a sentence."""
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    except ValueError:  # Python does not write out a whole number of thousands of digits
        return "a number of thousands of digits"
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def plural(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question for whoever may have mistyped a name; nothing if none is near."""
    near = {one.casefold(): one for one in known}
    found = get_close_matches(name.casefold(), near, 1)
    return f" Did you mean {near[found[0]]!r}?" if found else ""


def one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Refuses what is none of the names that are known."""
    names = tuple(known)
    if not isinstance(value, str) or value not in names:
        near = did_you_mean(value, names) if isinstance(value, str) else ""
        raise InvalidInput(f"{name} must be one of {', '.join(names)}, not {shown(value)}.{near}")


def real(name: str, value: object) -> float:
    number = math.nan
    if isinstance(value, RealNumber) and not isinstance(value, bool):
        with suppress(OverflowError):
            number = float(value)
    if abs(number) <= LARGEST:
        return number
    right = f"at most {LARGEST:g} in size" if math.isfinite(number) else "a finite number"
    raise InvalidInput(f"{name} must be {right}, not {shown(value)}.")


def positive(name: str, value: object) -> float:
    number = real(name, value)
    if number >= SMALLEST:
        return number
    least = f"above {SMALLEST:g}" if number > 0 else "above 0"
    raise InvalidInput(f"{name} must be {least}, not {number!r}.")


def not_negative(name: str, value: object) -> float:
    number = real(name, value)
    if number >= 0:
        return number
    raise InvalidInput(f"{name} must be at least 0, not {number!r}.")


def probability(name: str, value: object) -> float:
    """`value` as a float in [0, 1)."""
    number = real(name, value)
    if 0 < number < SMALLEST:
        raise InvalidInput(f"{name} must be 0 or above {SMALLEST:g}, not {number!r}.")
    if 0 <= number < 1:
        return number
    raise InvalidInput(f"{name} must be at least 0 and below 1, not {number!r}.")


def positive_delta(value: object, name: str = "delta") -> float:
    """A delta in (0, 1), as Gaussian noise needs it."""
    number = probability(name, value)
    if number > 0:
        return number
    raise InvalidInput(
        f"{name} must be above 0 here, not 0: a pure budget has no finite mu, "
        "so Gaussian noise cannot meet it; use a pure mechanism or a positive delta."
    )


def count(name: str, value: object, least: int = 1, most: int | None = MOST) -> int:
    """`value` as a whole number of at least `least` and, unless that is None, at most `most`."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least:
        if most is None or int(value) <= most:
            return int(value)
        raise InvalidInput(f"{name} must be at most {most}, not {shown(value)}.")
    raise InvalidInput(f"{name} must be a whole number of at least {least}, not {shown(value)}.")


def ends(low: object, high: object) -> tuple[float, float]:
    """The ends of a range that are given one by one, as `low` and `high`."""
    found = real("low", low), real("high", high)
    if found[0] < found[1]:
        return found
    raise InvalidInput(f"high must be above low, but high is {found[1]!r} and low is {found[0]!r}.")


def interval(name: str, value: Any) -> tuple[float, float]:
    """The ends of a range that is given as a pair."""
    with suppress(TypeError, ValueError):  # not two numbers
        low, high = (real(name, end) for end in value)
        if low < high:
            return low, high
    raise InvalidInput(f"{name} must be a range, low below high, not {shown(value)}.")


def flag(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidInput(f"{name} must be True or False, not {shown(value)}.")


def optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def instance(name: str, value: object, kind: object, hint: str) -> None:
    """Refuses a `value` that is not of the `kind`; `hint` says in words what would be right."""
    if not isinstance(value, kind):  # pyright: ignore[reportArgumentType]
        raise InvalidInput(f"{name} must be {hint}, not {type(value).__name__}.")


def numbers(name: str, value: object) -> Float[np.ndarray, "..."]:
    """`value` as a new float64 array; a refusal does not show it, for it may be private."""
    with suppress(Exception):  # of whatever kind: its words may hold private values
        if not _is_masked(value):  # as an array it would show what lies under the mask
            array = np.asarray(value)
            if array.dtype.kind not in "OSUcmM":  # objects, text, complex numbers, dates
                return array.astype(np.float64)
    raise InvalidInput(f"{name} must be real numbers in a regular array, not text, gaps or other things.")


def checked_names(what: str, given: Sequence[str], number: int) -> tuple[str, ...]:
    """So many names, each of a few printable letters, and no two alike: nothing else that a file says may be shown."""
    for name in given:
        if not (isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable() and name.strip()):
            raise InvalidInput(
                f"The name of each {what} must be 1 to {LONGEST_NAME} printable letters, not {shown(name)}."
            )
        if _heaps_marks(name):
            raise InvalidInput(
                f"The name of each {what} must have letters with at most {_MOST_MARKS} marks on each, such as accents."
            )
    if len(given) != number or len(set(given)) < number:
        raise InvalidInput(f"There must be {number} different names of {what}s, not {len(given)}.")
    return tuple(given)


def _heaps_marks(name: str) -> bool:
    """Says whether marks without width stand alone, are too many on a letter, or enclose what is near."""
    marks = _MOST_MARKS  # none without a letter
    for letter in name:
        kind = unicodedata.category(letter)
        marks = marks + 1 if kind == "Mn" else _MOST_MARKS if letter.isspace() else 0
        if marks > _MOST_MARKS or kind in ("Me", "Cf"):
            return True
    return False


def is_own(thing: object) -> bool:
    """Says whether it is of one of quietq's own classes, by identity: a class can claim to be of any module."""
    kind = type(thing)
    module = sys.modules.get(kind.__module__) if kind.__module__.startswith("quietq.") else None
    return getattr(module, kind.__qualname__, None) is kind


STATES_OF_PEOPLE = "an array of states: it must take all of them; what was charged before stays charged"


def ask_code(
    what: str,
    function: Callable[..., Any],
    *given: Any,
    where: str = STATES_OF_PEOPLE,
) -> Any:
    """Returns what a function of the caller's says of private values, or of points at which its values are private.

    Of a failure no more is reported than its type: its words and its frames may hold what it was given.
    """
    try:
        return function(*given)
    except Exception as error:
        failure = type(error).__name__
    raise InvalidInput(f"{what} failed with {failure} on {where}.")


def _is_masked(value: object) -> bool:
    return isinstance(value, np.ma.MaskedArray) or (
        isinstance(value, list | tuple) and any(_is_masked(item) for item in value)
    )


def same_process(process: int, what: str) -> None:
    """Refuses to go on in a process other than the one numbered `process`: a fork would spend a budget twice."""
    if os.getpid() != process:
        raise BudgetExhausted(f"{what} belongs to another process, and a fork must not spend its budget again.")


def line(name: str, value: object) -> str:
    """Returns text of one printable line: line breaks and control characters could forge lines of what is printed."""
    if isinstance(value, str) and value.isprintable():
        return value
    raise InvalidInput(f"{name} must be printable text in one line, not {shown(value)}.")


def checked_by(check: Check) -> Meta:
    """Attaches a check to a field's type."""
    return Meta(extra={"check": check})


Positive = Annotated[float, checked_by(positive)]
Real = Annotated[float, checked_by(real)]
Probability = Annotated[float, checked_by(probability)]
Count = Annotated[int, checked_by(count)]
Natural = Annotated[int, checked_by(functools.partial(count, least=0))]
Flag = Annotated[bool, checked_by(flag)]
Line = Annotated[str, checked_by(line)]


def _check_of(hint: Any) -> Check | None:
    """Returns the check that a type carries, be it by itself, beside None, or for each item of a tuple."""
    carried = [one.extra["check"] for one in getattr(hint, "__metadata__", ()) if isinstance(one, Meta) and one.extra]
    if carried:
        return carried[0]
    inner = [check for check in map(_check_of, typing.get_args(hint)) if check is not None]
    if not inner:
        return None
    [check] = set(inner)  # of one tuple, all items have the same
    return _of_each(check) if typing.get_origin(hint) is tuple else optional(check)


def _of_each(check: Check) -> Check:
    """Returns the check of a tuple whose items have this check."""
    return lambda name, value: [check(name, one) for one in value] if isinstance(value, list | tuple) else value


@functools.cache
def _fields(kind: type["Record"]) -> Sequence[tuple[str, Any, Check | None]]:
    """Returns each field's name, its type, and the check that its type carries."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return [(field.name, field.type, _check_of(hints[field.name])) for field in msgspec.structs.fields(kind)]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """Something stated, immutable, with every field checked when it is built."""

    def __post_init__(self) -> None:
        for name, hint, check in _fields(type(self)):
            value = getattr(self, name)
            try:
                force_setattr(self, name, msgspec.convert(value if check is None else check(name, value), hint))
            except msgspec.ValidationError as error:
                raise InvalidInput(f"{name} is of another type than it must be: {error}.") from None

    def to_dict(self) -> dict[str, Any]:
        """Returns the record in JSON's own types."""
        return msgspec.json.decode(msgspec.json.encode(self))


def read_record(kind: type[Kept] | Any, value: object) -> Kept:
    """Builds a record of this kind, or of one of a union, from JSON's own types; refuses whatever does not fit.

    Nothing is left out, even where a field has a default, so that a record says what its JSON says and no more.
    """
    try:
        found = msgspec.convert(value, kind)
        if found.to_dict() == value:
            return found
        sentence, where = "It must state every field of its kind, as it is written", ""
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        sentence, _, place = str(error).partition(" - at `$")
        where = place.rstrip("`").lstrip(".")
    said = sentence.rstrip(".")
    raise InvalidInput(f"{where}: {said}." if where else f"{said}.")
