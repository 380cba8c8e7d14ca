"""What a neighbouring relation is: which two inputs must look alike, as a class, and what is asked of its JSON.

A relation is one class: its fields with their checks, what neighbours may differ by, and its words. Certificates and
ledgers keep it as JSON (`describe`), so what they ask of it is answered from JSON.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol, runtime_checkable

from quietq.privacy.checks import Checked
from quietq.privacy.errors import InvalidInput, NoRkhsRadius
from quietq.privacy.kinds import Kinds, Record
from quietq.privacy.norms import OF_PRESENCE
from quietq.privacy.words import in_words


@runtime_checkable
class NoiseKernel(Protocol):
    """What a relation needs to know of a kernel.

    `lipschitz_radius` is the supremum of its norm over functions on [0, 1] of at most this size and slope.
    """

    @property
    def dimension(self) -> int: ...

    def lipschitz_radius(self, radius: float, lipschitz: float) -> float: ...

    def describe(self) -> dict[str, object]: ...


class Relation(Checked, ABC):
    """Which two inputs must look alike. A subclass with a `kind` of its own is known to certificates."""

    kind: ClassVar[str]
    unit: ClassVar[str | None] = None
    """What neighbours differ by, where that is the same for all relations of the kind."""
    no_radius: ClassVar[str]
    """Why it has no radius in any kernel, if it has none, and what works instead."""
    people: Any
    """Their number, if there is one; it is public."""

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            RELATIONS[cls.kind] = cls

    def describe(self) -> dict[str, object]:
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.fields}}

    def rkhs_radius(self, kernel: NoiseKernel) -> float:
        """The largest kernel norm of a difference of neighbours; raises NoRkhsRadius where there is none."""
        raise NoRkhsRadius(self.no_radius)

    def best_beta(self) -> float:
        """The beta of the exponential kernel in which the relation is smallest; NoRkhsRadius where there is none."""
        raise NoRkhsRadius(self.no_radius)

    @staticmethod
    @abstractmethod
    def words(record: Record) -> str:
        """What neighbours are, as a phrase."""

    @staticmethod
    def sup_radius(record: Record) -> float:
        """The most that one reward can differ between neighbours; refused where nothing bounds it."""
        raise InvalidInput(
            "This method needs to know how much one reward can change: state a SupBall (for features of length at most "
            "c, its radius is c times that of the weights), or use 'reward'."
        )

    @staticmethod
    def of_whom(number: int | None) -> str:
        """Which people there are and what is hidden of one, which comes before the words; nothing if none count."""
        if number is None:
            return ""
        if number == 1:
            return "what one person gave, which may have been anything else"
        return f"what {number:d} people gave, of whom one may have given anything else"

    def __str__(self) -> str:
        return relation_in_words(self.describe())


class Presence(Relation):
    """One person, whatever they gave, against nobody in their place: the neutral middle. The number of people stays.

    A weaker promise than that of replacing them, and half as far apart, where what each person adds lies around a
    middle: replacing somebody is two such steps, so it is worth twice its epsilon or mu to them (docs/theory.md).
    """

    unit = "any one person's presence, which is a weaker promise than any one person"

    @staticmethod
    def of_whom(number: int | None) -> str:
        people, one = ("one person", "the") if number == 1 else (f"{number:d} people", "any one of")
        return (
            f"what {people} gave (PRESENCE ONLY, the weaker promise: {one} {people} against the neutral middle in "
            "their place; replacing what they gave by anything else may give away twice as much)"
        )


RELATIONS: Kinds[type[Relation]] = Kinds("relation", "A certified relation must be one of those that are known here")


def sup_radius(record: Record) -> float:
    return RELATIONS.find(record).sup_radius(record)


def relation_in_words(record: Record) -> str:
    """A relation's `describe()` as a phrase; whatever JSON there is in a file, spelled out if it is no relation.

    >>> relation_in_words({"kind": "sup-ball", "radius": 1.0, "people": None})
    'rewards that differ by at most 1 anywhere'
    """
    return in_words(lambda: _in_words(RELATIONS[record["kind"]], record), record)


def guessed_in_words(record: Record) -> str:
    """What somebody would have to guess who wants to break the promise.

    >>> guessed_in_words({"kind": "one-person", "people": 9})
    'which of two equally likely versions of one person was there'
    """
    if is_presence(record):
        return "whether one person took part, which is as likely as not,"
    known = {"any one person": "one person", "any one trajectory": "one trajectory"}
    one = known.get(unit_of(record), "the reward, as far apart as is promised,")
    source = "from what all others are shown " if record.get("contexts") else ""
    return f"{source}which of two equally likely versions of {one} was there"


def is_presence(record: Record) -> bool:
    """Whether a relation is of the weaker kind."""
    kind = record.get("kind")
    return isinstance(kind, str) and kind in OF_PRESENCE


def unit_of(record: Record) -> str:
    """What neighbours differ by. One person is one person, whatever their number was when something was released."""
    kind = record.get("kind")
    known = RELATIONS.get(kind, Relation) if isinstance(kind, str) else Relation
    if known.unit is not None:
        return known.unit
    if record.get("people") is not None:
        return "any one person"
    return "".join(letter if letter.isprintable() else "?" for letter in relation_in_words(record))


def one_of_many(record: Record) -> str | None:
    """The unit, where it is one person, presence or trajectory: then relations of other kinds with the same add up."""
    unit = unit_of(record)  # else its words may leave out digits
    return unit if unit.startswith("any one ") else None


def _in_words(known: type[Relation], record: Record) -> str:
    who, bounds = known.of_whom(record.get("people")), known.words(record)
    return f"{who}; in numbers, {bounds}" if who else bounds
