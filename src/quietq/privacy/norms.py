"""What sensitivity and noise are measured in, as a certificate's JSON has it; and what a relation comes to in it.

Each kind of norm belongs to a theorem (docs/theory.md) and is registered once, here, so that reading a certificate
needs no JAX, or by whoever draws noise in a norm of its own. `largest_difference` is the theorem's sensitivity, from
the relation and the norm alone: it knows nothing of how much noise was drawn, so that a certificate can hold the two
against each other. A norm that nobody registered has no theorem, and nothing is certified in it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.privacy.checks import Check, count, positive, probability, real, shown
from quietq.privacy.errors import InvalidInput
from quietq.privacy.kinds import Kinds, Record, sup_radius, thaw
from quietq.privacy.words import UNKNOWN, in_words, listed, plural

_RIDGE = 1e-8  # of the projection on a band-limited kernel's terms
MOST_QUERIES = 10_000
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
    known = NORMS.find(norm)
    try:
        found = known.difference(norm, relation)
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


def _queries(family: str) -> Check:
    """Several queries, each with the size of its own noise, which must be of this family."""

    def check(name: str, value: object) -> None:
        if not isinstance(value, list | tuple) or not 2 <= len(value) <= MOST_QUERIES:
            raise InvalidInput(f"{name} must be a list of 2 to {MOST_QUERIES} queries, not {shown(thaw(value))}.")
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
    aside=" (the norm of the weights)",
)
NORMS["band-limited"] = KernelNorm(
    fields={"half_width": positive, "tolerance": positive, "rank": count},
    difference=_in_band_limited,
    words=lambda k: f"the band-limited kernel with half-width {k['half_width']:g} ({plural(k['rank'], 'term')})",
    dimension=lambda k: 1,
)
NORMS["gaussian-queries"] = Norm(
    fields={"of": _queries("gaussian")},
    difference=lambda norm, relation: math.hypot(*_each(norm, relation)),
    words=lambda norm: f"units of each query's own noise, over {len(norm['of'])} queries together",
    families=("gaussian",),
)
NORMS["pure-queries"] = Norm(
    fields={"of": _queries("pure")},
    difference=lambda norm, relation: math.fsum(_each(norm, relation)),
    words=lambda norm: f"units of each query's own noise, added up over {len(norm['of'])} queries",
    families=("pure",),
)


# Knots: increments of a function between equally spaced points. Differences of at most rho in size, of slope at most l,
# are a convex body at d + 1 knots. Gaussian noise of a shape S measures increments u by sqrt(u' S^-1 u), which is
# largest at a vertex of the body; pure noise measures them by the gauge of a body of increments. Theorems:
# docs/theory.md, and `mechanisms.knots` and `noise.increments`, which draw it.

MOST_PIECES = 8


@lru_cache(maxsize=64)  # a file may ask for the same ones many times
def vertices(step: float, pieces: int) -> Float[np.ndarray, "vertices knots"]:
    """Points that include every vertex of {|v_j| <= 1, |v_{j+1} - v_j| <= step}, up to sign.

    At a vertex the knots fall into runs whose steps are all full, up or down, and each of which touches 1 or -1. So a
    knot's value is sign (1 - k step) with a whole k of at most `pieces`, and k changes by one within a run.
    """
    if not 1 <= pieces <= MOST_PIECES:
        raise InvalidInput(f"Shaped Gaussian noise has 1 to {MOST_PIECES} pieces between knots, not {pieces}.")
    spots = {
        (sign, k): sign * (1 - k * step) for sign in (1, -1) for k in range(pieces + 1) if 1 - k * step >= -1 - 1e-9
    }
    near = {
        spot: [other for other in spots if abs(spots[other] - value) <= step * (1 + 1e-9)]
        for spot, value in spots.items()
    }
    found: list[list[float]] = []

    def extend(path: list[tuple[int, int]], settled: bool) -> None:
        if len(found) > 200_000:
            raise InvalidInput(f"{pieces} pieces have too many vertices for this range and slope: use fewer knots.")
        left = pieces + 1 - len(path)
        if not left:
            if settled:
                found.append([spots[spot] for spot in path])
            return
        sign, k = path[-1]
        on = [spot for spot in ((sign, k - 1), (sign, k + 1)) if spot in spots and (settled or spot[1] < left)]
        for spot in on:  # the run goes on
            extend([*path, spot], settled or spot[1] == 0)
        for spot in near[path[-1]] if settled else ():  # another run may begin
            if spot[1] < left:
                extend([*path, spot], spot[1] == 0)

    for spot in [spot for spot, value in spots.items() if value >= -1e-9]:
        extend([spot], spot[1] == 0)
    return np.unique(np.array(found), axis=0)


def _in_shape(norm: Record, relation: Record) -> float | None:
    """A convex function is largest at a vertex of the body."""
    if relation["kind"] != "lipschitz-ball" or relation["actions"] != 1:
        return None
    shape, radius = np.array(norm["shape"], dtype=np.float64), relation["radius"]
    pieces = len(shape)
    points = np.diff(vertices(relation["lipschitz"] / pieces / radius, pieces), axis=1)
    lengths = np.linalg.norm(np.linalg.solve(np.linalg.cholesky(shape), points.T), axis=0)
    return radius * float(lengths.max())


def _check_shape(name: str, value: object) -> None:
    """The covariance of noise on increments, in units of its mean variance."""
    rows: Any = value if isinstance(value, list | tuple) else ()
    square = all(isinstance(row, list | tuple) and len(row) == len(rows) for row in rows)
    if not 1 <= len(rows) <= MOST_PIECES or not square:
        raise InvalidInput(f"{name} must be a square of 1 to {MOST_PIECES} rows.")
    shape = np.array([[real(name, number) for number in row] for row in rows])
    if not (np.array_equal(shape, shape.T) and math.isclose(float(np.trace(shape)), len(rows), rel_tol=1e-9)):
        raise InvalidInput(f"{name} must be symmetric, with a mean of 1 on its diagonal.")


NORMS["knots"] = Norm(
    fields={"shape": _check_shape},
    difference=_in_shape,
    words=lambda norm: f"the shape of the noise on {plural(len(norm['shape']), 'increment')} between knots",
    dimension=lambda norm: 1,
    families=("gaussian",),
)


def _in_gauge(norm: Record, relation: Record) -> float | None:
    """The gauge of one body of increments, at most over another: its steepest step, or its whole range."""
    if relation["kind"] != "lipschitz-ball" or relation["actions"] != 1:
        return None
    radius, lipschitz = relation["radius"], relation["lipschitz"]
    steepest = min(lipschitz, 2 * radius * norm["pieces"]) / norm["lipschitz"]
    return max(steepest, min(2 * radius, lipschitz) / (2 * norm["radius"]))


NORMS["increments"] = Norm(
    fields={"pieces": count, "radius": positive, "lipschitz": positive},
    difference=_in_gauge,
    words=lambda norm: (
        f"the gauge of what differences of at most {norm['radius']:g}, of slope at most {norm['lipschitz']:g}, can "
        f"do to {plural(norm['pieces'], 'increment')} between knots"
    ),
    dimension=lambda norm: 1,
    families=("pure",),
)


# Means over people, of vectors held to a length, and of the returns of policies. Replacing one of N people moves a mean
# of vectors of length at most B by at most 2B/N, and by sqrt(2) B/N where no two vectors can be more than a right angle
# apart. See docs/theory.md, section 11.

FARTHEST = {"mean-of-people": 2.0, "mean-within-right-angles": math.sqrt(2)}
"""How far apart the vectors of two people can be, in units of the bound."""


def _of_mean(norm: Record, relation: Record) -> float | None:
    if relation["kind"] != "one-person":
        return None
    return FARTHEST[norm["kind"]] * norm["bound"] / relation["people"]


def _of_returns(norm: Record, relation: Record) -> float | None:
    return 2 * math.sqrt(norm["policies"]) / relation["people"] if relation["kind"] == "one-person" else None


NORMS["mean-of-people"] = Norm(
    fields={"bound": positive},
    difference=_of_mean,
    words=lambda norm: f"the length of a mean of people's vectors, each held to {norm['bound']:g}",
    families=("gaussian",),
)
NORMS["mean-within-right-angles"] = Norm(
    fields={"bound": positive},
    difference=_of_mean,
    words=lambda norm: (
        f"the length of a mean of people's vectors, each held to {norm['bound']:g}, no two of which are more than a "
        "right angle apart"
    ),
    families=("gaussian",),
)
NORMS["returns"] = Norm(
    fields={"policies": count},
    difference=_of_returns,
    words=lambda norm: (
        f"the length of mean returns of {plural(norm['policies'], 'policy', 'policies')}, and of their squares, in "
        "units of half the range that each is held to"
    ),
    families=("gaussian",),
)


# What noises as it goes: observed rewards, rounds of averages and gradients, values. All that methods in worlds see of
# a relation is how much one reward can change (`sup_radius`).

_OPERATIONS = partial(count, least=0)  # of float32, whose rounding counts; none in float64


def _together(counted: str) -> Callable[[Record, Record], float]:
    def together(norm: Record, relation: Record) -> float:
        rounded = rounding(norm["operations"], relation["people"]) if norm["operations"] else 1.0
        return rounded * sup_radius(relation) * math.sqrt(norm[counted])

    return together


def _of_gradients(norm: Record, relation: Record) -> float:
    """Each round's own sensitivity, as rewards that differ by the norm's radius move it, counts as 1."""
    return math.sqrt(norm["rounds"]) * max(1.0, sup_radius(relation) / norm["radius"])


NORMS["rewards"] = Norm(
    fields={"count": count, "operations": _OPERATIONS},
    difference=_together("count"),
    words=lambda norm: f"the Euclidean norm of {plural(norm['count'], 'observed reward')} together",
    families=("gaussian",),
)
NORMS["mean-rewards"] = Norm(
    fields={"rounds": count, "operations": _OPERATIONS},
    difference=_together("rounds"),
    words=lambda norm: (
        f"units of the root of the number of mean rewards in a round, of {plural(norm['rounds'], 'round')} together"
    ),
    families=("gaussian",),
)
for _kind, _of, _one in (
    ("reward-gradients", "round's gradient", "round"),
    ("clipped-gradients", "gradient step", "step"),
):
    NORMS[_kind] = Norm(
        fields={"rounds": count, "radius": positive},
        difference=_of_gradients,
        words=lambda norm, of=_of, one=_one: (
            f"units of what rewards that differ by {norm['radius']:g} do to a {of}, of "
            f"{plural(norm['rounds'], one)} together"
        ),
        families=("gaussian",),
    )
NORMS["values"] = Norm(
    fields={"count": count, "discount": probability, "operations": _OPERATIONS},
    difference=lambda norm, relation: _together("count")(norm, relation) / (1 - norm["discount"]),
    words=lambda norm: (
        f"the Euclidean norm of {plural(norm['count'], 'value')} at knots, with discount {norm['discount']:g}"
    ),
    families=("gaussian",),
)


# People who come by (docs/theory.md, section 14). Each answer is used once, unless it is in a node on every level


def _of_visits(most: Callable[[Record, Record], float], contexts: bool = False) -> Callable[..., float | None]:
    """What all of a person's visits can come to: each as much as one, and all of them in the same sum."""

    def difference(norm: Record, relation: Record) -> float | None:
        if relation["kind"] != "arrivals" or relation["contexts"] is not contexts:
            return None
        return relation["visits"] * most(norm, relation)

    return difference


def _levels(norm: Record, relation: Record) -> int:
    """Each answer is in one node on each level, and there must be a leaf for everybody."""
    if relation["arrivals"] is None or relation["arrivals"] > 2 ** (norm["levels"] - 1):
        raise InvalidInput(f"A tree of {norm['levels']} levels has no place for all arrivals.")
    return norm["levels"]


def longest_column(scales: Sequence[float], decays: Sequence[float], steps: int) -> float:
    """The Euclidean length of 1, c_1, c_2, ..., of so many numbers, with c_k = sum_i scale_i decay_i^(k - 1).

    >>> longest_column([0.5], [0.5], 3) == math.sqrt(1 + 0.25 + 0.0625)
    True
    """
    pairs = [(a * b, p * q) for a, p in zip(scales, decays, strict=True) for b, q in zip(scales, decays, strict=True)]
    return math.sqrt(1 + math.fsum(a * (1 - p ** (steps - 1)) / (1 - p) for a, p in pairs))


def _column(norm: Record, relation: Record) -> float:
    if relation["arrivals"] is None:
        raise InvalidInput("A running sum needs a number of arrivals.")
    return longest_column(norm["scales"], norm["decays"], relation["arrivals"])


def _between(name: str, value: object) -> None:
    """Positive, so that the matrix has no negative entry, as the theorem asks."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, float) and 0 < one < 1 for one in value):
        raise InvalidInput(f"{name} must be numbers between 0 and 1.")


NORMS["answers"] = Norm(
    fields={},
    difference=_of_visits(lambda norm, relation: 1.0),
    words=lambda norm: "units of the range of an answer, summed over all sums that a person is in",
    families=("gaussian", "pure"),
)
NORMS["flips"] = Norm(
    fields={},
    difference=_of_visits(lambda norm, relation: 1.0),
    words=lambda norm: "units of the logarithm of the odds that an answer is passed on as it is",
    families=("pure",),
)
NORMS["tree-of-answers"] = Norm(
    fields={"levels": count},
    difference=_of_visits(_levels),
    words=lambda norm: f"units of the range of an answer, summed over {plural(norm['levels'], 'level')} of a tree",
    families=("pure",),
)
NORMS["tree-of-moments"] = Norm(
    fields={"levels": count, "length": positive},
    difference=_of_visits(lambda n, r: math.sqrt(2 * _levels(n, r)) * n["length"] ** 2, contexts=True),
    words=lambda norm: (
        f"the Frobenius norm of sums of zz' with |z| at most {norm['length']:g}, on {plural(norm['levels'], 'level')} "
        "of a tree"
    ),
    families=("gaussian",),
)
NORMS["encoded-moments"] = Norm(
    fields={"scales": _between, "decays": _between, "length": positive},
    difference=_of_visits(lambda n, r: math.sqrt(2) * _column(n, r) * n["length"] ** 2, contexts=True),
    words=lambda norm: (
        f"the Frobenius norm of encoded sums of zz' with |z| at most {norm['length']:g}, by a Toeplitz matrix of "
        f"{plural(len(norm['scales']), 'buffer')}"
    ),
    families=("gaussian",),
)
