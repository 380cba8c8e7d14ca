"""What sensitivity and noise are measured in, as a certificate's JSON has it; and what a relation comes to in it.

Each kind of norm belongs to a theorem (docs/theory.md) and is registered once, by whoever draws noise in it: a
mechanism's in its own file, those of kernels and of several queries here, those of methods that noise as they go in
`interactive`, so that reading a certificate needs no JAX. `largest_difference` is the theorem's sensitivity, from the
relation and the norm alone: it knows nothing of how much noise was drawn, so that a certificate can hold the two
against each other. A norm that nobody registered has no theorem, and nothing is certified in it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from quietq.privacy.checks import Check, count, positive, shown
from quietq.privacy.errors import InvalidInput
from quietq.privacy.kinds import Kinds, Record, thaw
from quietq.privacy.words import UNKNOWN, in_words, listed, plural

_RIDGE = 1e-8  # of the projection on a band-limited kernel's terms
MOST_QUERIES = 10_000
OF_PRESENCE = {"lipschitz-presence": "lipschitz-ball", "rkhs-presence": "rkhs-ball"}
"""Weaker promises, whose neighbours lie in a ball like that of the stronger ones: its radius is what differs."""
UNIT_ROUNDING = 2.0**-24  # of float32
FEWEST = 1024
"""Rewards in float32 are clipped to twice the radius times the people, or times this if they are fewer."""


@dataclass(frozen=True, kw_only=True)
class Norm:
    """A kind of norm: its fields, the theorem about it, and its words."""

    fields: Mapping[str, Check]
    """All but the kind, each with its check."""
    difference: Callable[[Record, Record], float | None]
    """The most that neighbours of a relation differ by, from norm and relation; None where nothing bounds it."""
    words: Callable[[Record], str]
    dimension: Callable[[Record], int] | None = None
    """How many coordinates the states have on which it is defined; None if it does not look at states."""
    families: tuple[str, ...] = ()
    """Which noise is drawn in it: "gaussian", of deviation sigma in all directions; "pure", of density
    exp(-|z|/scale)."""
    epsilon: Callable[[Record, float, float], float] | None = None
    """Of any other noise, by norm, scale over sensitivity, and delta."""

    @property
    def several(self) -> bool:
        """Whether it is about several queries, in units of each one's own noise: then there is no one size of noise."""
        return "of" in self.fields

    def phrase(self, norm: Record) -> str:
        return self.words(norm)


def _in_own_kernel(norm: Record, relation: Record) -> float | None:
    if relation["kind"] == "rkhs-ball" and thaw(relation["kernel"]) == thaw(norm):
        return math.sqrt(relation["actions"]) * relation["radius"]
    return None


@dataclass(frozen=True, kw_only=True)
class KernelNorm(Norm):
    """The norm of a kernel's functions; its words are those of the kernel."""

    difference: Callable[[Record, Record], float | None] = _in_own_kernel
    families: tuple[str, ...] = ("gaussian",)
    aside: str = ""
    """What a ball's words add: of parts or weights as they are given, since others may have the same sum."""
    largest_value: Callable[[Record], float] | None = None
    """The most that a function of norm 1 can be anywhere, sup sqrt K(x, x); None if nobody has computed it."""

    def phrase(self, norm: Record) -> str:
        return f"the norm of {self.words(norm)}"


class Norms(Kinds[Norm]):
    """All norms; a kind is made known where the module is imported that draws noise in it."""

    def __setitem__(self, kind: str, norm: Norm) -> None:
        before = self.get(kind)
        if before is not None and before.difference.__module__ != norm.difference.__module__:
            raise InvalidInput(f"There is a norm of the kind {kind!r} already, with a theorem of its own.")
        super().__setitem__(kind, norm)


NORMS = Norms("norm", "What is certified must be measured in a norm that is known here")


def largest_difference(norm: Record, relation: Record) -> float:
    """The most that neighbours differ by in this norm; refused if the norm is unknown, or has no such bound."""
    known, kind = NORMS.find(norm), relation.get("kind")
    try:
        found = known.difference(norm, {**relation, "kind": OF_PRESENCE.get(kind, kind)})  # type: ignore[arg-type]
    except InvalidInput:
        raise
    except (*UNKNOWN, ArithmeticError, np.linalg.LinAlgError) as error:
        refused = f"The norm {shown(thaw(norm))} is not one that a difference can be measured in."
        raise InvalidInput(refused) from error
    if found is None:
        neighbours = f"the neighbours of a {relation.get('kind')} in {norm_in_words(norm)}"
        raise InvalidInput(f"Nothing bounds {neighbours}, so nothing is certified in it.")
    return positive("What neighbours differ by in this norm", found)


def norm_in_words(record: Record) -> str:
    """What sensitivity and noise are measured in."""
    return in_words(lambda: NORMS[record["kind"]].phrase(record), record)


def kernel_in_words(record: Record) -> str:
    return in_words(lambda: NORMS[record["kind"]].words(record), record)


def rounding(operations: int, people: int | None) -> float:
    """How much farther apart neighbours can be than without rounding, after so many operations in a row in float32.

    Each changes a number of the size that rewards are clipped to by at most 2^-24 of it, for each of two neighbours.
    """
    return 1 + 4 * operations * UNIT_ROUNDING * max(people or 0, FEWEST)


def _in_exponential(norm: Record, relation: Record) -> float | None:
    if relation["kind"] != "lipschitz-ball":
        return _in_own_kernel(norm, relation)
    radius, beta, slope = relation["radius"], norm["beta"], relation["lipschitz"] / relation["radius"]
    return math.sqrt(relation["actions"]) * radius * math.sqrt(1 + beta / 2 + slope / beta * slope / 2)


def _in_band_limited(norm: Record, relation: Record) -> float | None:
    """A function that is projected on finitely many terms can differ by a little more than it did before."""
    found = _in_own_kernel(norm, relation)
    stretch = 1 + math.sqrt(2 * norm["rank"] * norm["tolerance"]) / (2 * math.sqrt(_RIDGE))
    return None if found is None else stretch * found


def _each(norm: Record, relation: Record) -> list[float]:
    """What neighbours differ by in each of several queries, in units of its noise."""
    return [largest_difference(query["norm"], relation) / query["size"] for query in norm["of"]]


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {shown(value)}.")


def _betas(name: str, value: object) -> None:
    if not isinstance(value, list | tuple) or not value:
        raise InvalidInput(f"{name} must be a list, one entry for each coordinate, not {shown(thaw(value))}.")
    for beta in value:
        positive(name, beta)


def _parts(name: str, value: object) -> None:
    parts = value if isinstance(value, list | tuple) else ()
    if not all(isinstance(part, Mapping) and part.get("kind") == "exponential" and len(part) == 2 for part in parts):
        raise InvalidInput(f"{name} must be exponential kernels, not {shown(thaw(value))}.")
    _betas(name, [part.get("beta") for part in parts])


def queries(family: str, least: int = 2) -> Check:
    """Several queries, each with the size of its own noise, which must be of this family."""

    def check(name: str, value: object) -> None:
        if not isinstance(value, list | tuple) or not least <= len(value) <= MOST_QUERIES:
            raise InvalidInput(f"{name} must be a list of {least} to {MOST_QUERIES} queries, not {shown(thaw(value))}.")
        for query in value:
            if not isinstance(query, Mapping) or set(query) != {"norm", "size"}:
                raise InvalidInput(f"{name} must have a norm and a size for each query, not {shown(thaw(query))}.")
            known = NORMS.find(query["norm"])
            if family not in known.families or known.several:
                raise InvalidInput(f"{name} must be single queries with {family} noise, each.")
            positive(name, query["size"])

    return check


NORMS["exponential"] = KernelNorm(
    fields={"beta": positive},
    difference=_in_exponential,
    words=lambda k: f"the exponential kernel with beta {k['beta']:g}",
    dimension=lambda k: 1,
    largest_value=lambda k: 1.0,
)
NORMS["additive"] = KernelNorm(
    fields={"parts": _parts},
    words=lambda k: f"the additive kernel with beta {listed([part['beta'] for part in k['parts']])}",
    dimension=lambda k: len(k["parts"]),
    aside=" (the parts' own norms, squared and summed)",
    largest_value=lambda k: math.sqrt(len(k["parts"])),
)
NORMS["product"] = KernelNorm(
    fields={"betas": _betas},
    words=lambda k: f"the product kernel with beta {listed(k['betas'])}",
    dimension=lambda k: len(k["betas"]),
)
NORMS["features"] = KernelNorm(
    fields={"phi": _text, "rank": count, "dimension": count},
    words=lambda k: f"the kernel of {plural(k['rank'], 'feature')} ({k['phi']})",
    dimension=lambda k: k["dimension"],
    families=("gaussian", "pure"),
    aside=" (the norm of the weights)",
)
NORMS["band-limited"] = KernelNorm(
    fields={"half_width": positive, "tolerance": positive, "rank": count},
    difference=_in_band_limited,
    words=lambda k: f"the band-limited kernel with half-width {k['half_width']:g} ({plural(k['rank'], 'term')})",
    dimension=lambda k: 1,
)
NORMS["gaussian-queries"] = Norm(
    fields={"of": queries("gaussian")},
    difference=lambda norm, relation: math.hypot(*_each(norm, relation)),
    words=lambda norm: f"units of each query's own noise, over {len(norm['of'])} queries together",
    families=("gaussian",),
)
NORMS["pure-queries"] = Norm(
    fields={"of": queries("pure")},
    difference=lambda norm, relation: math.fsum(_each(norm, relation)),
    words=lambda norm: f"units of each query's own noise, added up over {len(norm['of'])} queries",
    families=("pure",),
)
