"""The only thing that may state an epsilon: what was promised, to whom, under which assumptions.

A certificate is the public part of a transcript: the relation, the budget, and the queries that were answered, each
with the norm and the size of its noise. What the queries cost together is computed from them, by the theorems of
`privacy.norms` and composition, and held against the budget, whenever a certificate is built or loaded.

A certificate is a statement, not a proof or a signature. One that is `certified` is made by a `Transcript`, or read
back from what one made, and by nothing else.
"""

import contextlib
import json
import math
import re
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from quietq.privacy.assumptions import ABOUT_ACCOUNTS, Assumption, Code
from quietq.privacy.budget import Budget, implies
from quietq.privacy.checks import Flag, Line, Positive, Real, Record, read_record, shown
from quietq.privacy.errors import InvalidInput
from quietq.privacy.norms import (
    TRAINED_METHODS,
    Answers,
    AnyNorm,
    EncodedMoments,
    ObservedRewards,
    ShapedIncrements,
    SmoothBound,
)
from quietq.privacy.relations import (
    AnyRelation,
    Arrivals,
    Family,
    LipschitzBall,
    OnePerson,
    Relation,
    RewardBall,
    Trajectories,
)
from quietq.version import __version__

SCHEMA = 4
MOST_QUERIES = 500
MOST_SENTENCES = 100
"""Assumptions, and remarks."""
Sides = Annotated[tuple[tuple[Real, Real], ...], Meta(min_length=1, max_length=5_000)]
"""A pair (low, high) for each coordinate."""
Standing = Literal["certified", "claimed", "none"]
_ONE_QUERY = (ShapedIncrements, SmoothBound, Answers, EncodedMoments)
"""Norms of which a certificate has one query alone, because what neighbours differ by takes long to compute."""
_METHOD = re.compile("[a-z][a-z0-9/-]*")
_CLOSE = 1e-9
"""Relative: what rounding may do to two ways of computing one number."""
_certifying: ContextVar[bool] = ContextVar("certifying", default=False)


class InvalidCertificate(InvalidInput):
    """The certificate would claim more than its parts support, or the text is not one."""


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise InvalidCertificate(sentence)


@contextlib.contextmanager
def certifying() -> Iterator[None]:
    """Lets certificates be certified; for `Transcript`, and for what reads one back or adds to it."""
    before = _certifying.set(True)
    try:
        yield
    finally:
        _certifying.reset(before)


_ABOUT_NOISE: dict[Family, tuple[tuple[Code, ...], ...]] = {
    "gaussian": (
        (Code.NUMBERS_BOUNDED, Code.FLOAT32_COVERED, Code.OWN_CODE),
        (Code.EXACT_NOISE, Code.WHOLE_NOISE, Code.OWN_CODE),
    ),
    "pure": ((Code.NUMBERS_BOUNDED, Code.FLIPPED, Code.OWN_CODE), (Code.EXACT_NOISE, Code.FLIPPED, Code.OWN_CODE)),
    "smooth": ((Code.WEIGHTS_EXACT, Code.OWN_CODE), (Code.EXACT_NOISE, Code.OWN_CODE)),
}
"""The codes of which each certificate has one or the other, by the family of the noise."""
_ABOUT_RELATION: dict[type[Relation], tuple[tuple[Code, ...], ...]] = {
    RewardBall: ((Code.NEIGHBOURS, Code.CALLER, Code.ONE_OF_DECLARED, Code.REWARD_OF_STATE),),
    OnePerson: ((Code.NAMES, Code.NEIGHBOURS), (Code.ONE_OF_DECLARED, Code.NEIGHBOURS)),
    Trajectories: (
        (Code.ONE_TRAJECTORY_EACH, Code.NEIGHBOURS),
        (Code.TRAJECTORIES_DECLARED, Code.NEIGHBOURS),
    ),
    Arrivals: (
        (Code.VISITS_TRUSTED, Code.VISITS_COUNTED, Code.NEIGHBOURS),
        (Code.ARRIVALS_PUBLIC, Code.FLIPPED, Code.NEIGHBOURS),
        (Code.STATE_SECRET, Code.FLIPPED, Code.NEIGHBOURS),
    ),
}
"""Who vouches that neighbours are as the relation says, by relation."""
_BRINGS = (
    (Code.ONE_OF_DECLARED, (Code.NAMES,)),
    (Code.VISITS_COUNTED, (Code.NAMES,)),
    (Code.REWARD_OF_STATE, (Code.INDEPENDENT,)),
)
"""What an assumption cannot be stated without."""
_OF_RELATION = {
    Code.ONE_OF_DECLARED: "people",
    Code.TRAJECTORY_REWARDS_CLIPPED: "largest_reward",
    Code.TRAJECTORIES_CUT: "horizon",
    Code.TRAJECTORIES_DECLARED: "count",
    Code.VISITS_COUNTED: "visits",
    Code.VISITS_TRUSTED: "visits",
}
"""Numbers that an assumption and the relation both state."""


def _kind(relation: Relation) -> type[Relation]:
    return next(kind for kind in _ABOUT_RELATION if isinstance(relation, kind))


def is_vouched_for(relation: Relation, codes: list[Code]) -> bool:
    """Returns whether these assumptions say who makes sure that neighbours are as the relation says."""
    return all(set(one) & set(codes) for one in _ABOUT_RELATION[_kind(relation)])


class AnsweredQuery(Record, frozen=True, tag=False, tag_field=None):
    """One noisy answer, or all parts of one: what its noise is measured in, and how large it is."""

    norm: AnyNorm
    """What sensitivity and noise are measured in."""
    family: Family
    """`gaussian`; `pure`, of density exp(-|z|/s) in the norm; or `smooth`, Gaussian of a size that follows the data."""
    sensitivity: Positive
    """The most that neighbours differ by in the norm, errors of rounding included."""
    size: Positive
    """The standard deviation of Gaussian noise; the s of a density exp(-|z|/s); or how many smooth bounds the
    deviation is where it follows the data."""

    def check(self, relation: Relation) -> None:
        """Refuses a sensitivity below what the relation comes to, and noise that is not drawn in this norm."""
        needed = self.norm.sensitivity(relation)
        enough = self.sensitivity >= needed * (1 - _CLOSE)
        require(
            enough, f"sensitivity {self.sensitivity!r} is below {needed!r}, which {relation} come to in {self.norm}."
        )
        require(self.family in self.norm.families, f"No {self.family} noise is measured in {self.norm}.")


class Certificate(Record, frozen=True, tag=False, tag_field=None, kw_only=True):
    """An immutable statement of privacy, in JSON and in plain words.

    `standing` is `certified` (there is a theorem and the code enforces its conditions), `claimed` (the paper's theorem,
    which does not hold) or `none`.

    >>> seeded = Certificate(method="gaussian-process", standing="none", reproducible=True)
    >>> Certificate.from_json(seeded.to_json()) == seeded
    True
    """

    method: Line
    """How the noise got in, e.g. `reward/path`."""
    standing: Standing
    """`certified`, `claimed` or `none`."""
    relation: AnyRelation | None = None
    """Which inputs are neighbouring."""
    budget: Budget | None = None
    """The (epsilon, delta) that is promised: what all queries together cost at the most."""
    queries: Annotated[tuple[AnsweredQuery, ...], Meta(max_length=MOST_QUERIES)] = ()
    """The noisy answers that the release is made of, one after the other, all with noise of one family."""
    domain: Sides | None = None
    """The public box of states, a pair (low, high) for each coordinate; slopes and norms are those over this box."""
    expected_error: Positive | None = None
    """The expected root mean square error of the released values, apart from a constant; public. It is over the box, by
    the noise; for models of rows where people's states lie, with sampling error, for rewards as their prior has them,
    without what given features cannot represent."""
    assumptions: Annotated[tuple[Assumption, ...], Meta(max_length=MOST_SENTENCES)] = ()
    """What the promise stands on: each a `code` of a closed list, from which it follows who vouches, and the `values`
    of its sentence."""
    remarks: Annotated[tuple[Line, ...], Meta(max_length=MOST_SENTENCES)] = ()
    """For the reader: choices made and why, conditions that failed."""
    reproducible: Flag = False
    """A seed or key was given, so that whoever knows it can subtract the noise: not private."""
    version: Line = __version__
    """Which quietq wrote it."""
    schema: Literal[4] = SCHEMA
    """The version of this form."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(bool(self.method.strip()), "method must be named.")
        sides = self.domain or ()
        require(all(low < high for low, high in sides), f"domain must have low below high, not {shown(self.domain)}.")
        if self.standing == "none":
            require(self.budget is None, "A certificate of standing 'none' must not state epsilon and delta.")
            return
        seeded = f"A reproducible draw is not private, so it cannot have standing {self.standing!r}, only 'none'."
        require(not self.reproducible, seeded)
        complete = self.budget is not None and self.relation is not None
        require(complete, f"The standing {self.standing!r} needs a budget and the relation that it holds for.")
        if self.standing == "claimed":
            require(bool(self.remarks), "A claim must remark what keeps it from being certified.")
        else:
            require(_certifying.get(), "Nothing is certified but by a Transcript, which charges, draws and rounds.")
            self._check()

    def _check(self) -> None:
        """Refuses a promise that its parts do not keep."""
        assert self.budget is not None
        assert self.relation is not None
        plain = _METHOD.fullmatch(self.method) is not None
        require(plain, f"A certified method must be a plain name such as reward/path, not {shown(self.method)}.")
        for part in self.method.split("/"):
            known = TRAINED_METHODS.get(part)
            refused = f"The method {part!r} proves nothing, so it can be 'claimed' at most and not 'certified'."
            require(known is None or known.standing == "certified", refused)
        require(bool(self.queries), "What is certified needs the queries that were answered, with their noise.")
        alone = any(isinstance(one.norm, _ONE_QUERY) for one in self.queries)
        several = "Noise on knots, on answers of arrivals, or that follows the data, is one query alone."
        require(len(self.queries) == 1 or not alone, several)
        own = TRAINED_METHODS[self.method].norm if self.method in TRAINED_METHODS else None
        for query in set(self.queries):
            query.check(self.relation)
            same = own is None or type(query.norm) is own
            require(same, f"The noise of {self.method!r} is not measured in {query.norm}.")
            sides = query.norm.dimension
            fits = sides is None or (self.domain is not None and len(self.domain) == sides)
            require(fits, f"domain must be the box that the norm is defined on, of {sides} coordinate(s).")
        self._check_cost(self.budget)
        self._check_assumptions(self.relation, own is not None)

    def _check_assumptions(self, relation: Relation, in_training: bool) -> None:
        """Refuses a promise that does not say what it stands on, or that says something else than its parts do."""
        stated = {one.code: one.values for one in self.assumptions}
        needed = [(Code.CHOSEN,), (Code.FAIR,), ABOUT_ACCOUNTS, *_ABOUT_NOISE[self.queries[0].family]]
        needed += _ABOUT_RELATION[_kind(relation)]
        needed += [then for code, then in _BRINGS if code in stated]
        needed += [(Code.INDEPENDENT,)] if in_training else []
        for codes in needed:
            somebody = f"A certified promise must state this, or what takes its place: {codes[0].sentence}"
            require(not stated.keys().isdisjoint(codes), somebody)
        facts: dict[Code, object] = {code: getattr(relation, name, None) for code, name in _OF_RELATION.items()}
        norm = self.queries[0].norm
        if isinstance(norm, ObservedRewards):
            facts[Code.REWARDS_NOISED_ONCE] = norm.count
        for code, fact in facts.items():
            agrees = code not in stated or stated[code] == (fact,)
            require(agrees, f"The certificate says otherwise than its assumption {code.value!r}: {fact!r}.")
        if Code.RATINGS_CLIPPED in stated and isinstance(relation, LipschitzBall) and relation.people is not None:
            low, high, slope = (float(number) for number in stated[Code.RATINGS_CLIPPED])
            moved = math.isclose(relation.radius * relation.people, high - low, rel_tol=_CLOSE)
            bent = math.isclose(relation.lipschitz * relation.people, 2 * slope, rel_tol=_CLOSE)
            require(moved and bent, "The relation is not that of people's ratings within the range and slope stated.")

    def _check_cost(self, budget: Budget) -> None:
        """Composition: squared mus add for Gaussian noise, epsilons for pure noise."""
        families = {query.family for query in self.queries}
        require(len(families) == 1, "All queries of one release must have noise of one family.")
        ratios = [query.sensitivity / query.size for query in self.queries]
        if families == {"gaussian"}:
            require(budget.delta > 0, "delta must be above 0: Gaussian noise is never pure.")
            mu = math.hypot(*ratios)
            if not implies(mu, budget.epsilon, budget.delta):  # else the largest mu that does need not be looked for
                _require_at_most("mu", mu, budget.mu)
        elif families == {"pure"}:
            require(budget.delta == 0, f"delta must be 0 for pure noise, not {budget.delta!r}.")
            _require_at_most("epsilon", math.fsum(ratios), budget.epsilon)
        else:
            require(budget.delta > 0, "delta must be above 0: noise that follows the data is never pure.")
            [query] = self.queries
            assert isinstance(query.norm, SmoothBound)  # no other norm has this family
            _require_at_most("epsilon", query.norm.epsilon(1 / ratios[0], budget.delta), budget.epsilon)

    @property
    def epsilon(self) -> float | None:
        return None if self.budget is None else self.budget.epsilon

    @property
    def delta(self) -> float | None:
        return None if self.budget is None else self.budget.delta

    @property
    def mu(self) -> float | None:
        """Returns the Gaussian-DP parameter; None for pure and for (epsilon, delta)-only methods."""
        if self.budget is None or any(query.family != "gaussian" for query in self.queries) or not self.queries:
            return None
        return self.budget.mu

    @property
    def sigma(self) -> float | None:
        """Returns the standard deviation of the noise, if it is Gaussian and one number."""
        sizes = {query.size for query in self.queries if query.family == "gaussian"}
        return sizes.pop() if len(sizes) == len(self.queries) == 1 else None

    def with_assumption(self, *more: Assumption, without: tuple[Assumption, ...] = ()) -> "Certificate":
        """Returns the certificate with further assumptions, in the place of others; one that promises nothing stays.

        Args:
            more: The further assumptions.
            without: Those that they take the place of.

        """
        if self.standing != "certified":
            return self
        kept = [one for one in self.assumptions if one not in without]
        with certifying():
            return msgspec.structs.replace(self, assumptions=tuple(dict.fromkeys([*kept, *more])))

    def with_remark(self, remark: str) -> "Certificate":
        """Returns the same promise with one more remark.

        Args:
            remark: The sentence.

        """
        with certifying():
            return msgspec.structs.replace(self, remarks=(*self.remarks, remark))

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Reads a certificate back from its JSON; raises InvalidCertificate for anything else.

        Args:
            text: What `to_json` gave.

        """
        try:
            record = json.loads(text, object_pairs_hook=_without_duplicates)
        except InvalidCertificate:
            raise
        except (ValueError, RecursionError) as error:
            raise InvalidCertificate("A certificate must be a JSON object, and this text is not JSON.") from error
        return cls.from_dict(record)

    @classmethod
    def from_dict(cls, record: object) -> "Certificate":
        """Reads a certificate back from its JSON types; raises InvalidCertificate for anything else.

        Args:
            record: What `to_dict` gave.

        """
        try:
            with certifying():
                return read_record(cls, record)
        except InvalidCertificate:
            raise
        except (InvalidInput, ArithmeticError) as error:
            raise InvalidCertificate(f"This is no certificate: {error}") from error

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.to_dict(),)

    def __str__(self) -> str:
        from quietq.privacy.explain import in_print

        return in_print(self)


def together(certificates: "list[Certificate]", counted: Assumption) -> Certificate:
    """Returns the certificate of several Gaussian releases about the same people, of which the first is what leaves.

    Theorem (Gaussian composition; docs/theory.md#adaptive-composition). Their squared mus add up, whatever each saw of
    those before.
    """
    first = certificates[0]
    mus = [one.mu for one in certificates]
    if first.budget is None or None in mus or any(one.relation != first.relation for one in certificates):
        raise InvalidInput("Only Gaussian releases about the same people are stated together.")
    assumptions = [one for certificate in certificates for one in certificate.assumptions]
    with certifying():
        return msgspec.structs.replace(
            first,
            budget=Budget.from_mu(math.hypot(*(mu for mu in mus if mu is not None)), first.budget.delta),
            queries=tuple(query for certificate in certificates for query in certificate.queries),
            assumptions=tuple(dict.fromkeys([*assumptions, counted])),
        )


def _require_at_most(name: str, implied: float, stated: float) -> None:
    more = f"The noise stated comes to {name} = {implied!r}, more than the {stated!r} that is promised."
    require(implied <= stated * (1 + _CLOSE), more)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    require(len(record) == len(pairs), "A certificate must not state a field twice.")
    return record


def _restored(record: dict[str, Any]) -> Certificate:
    """Reads what a pickle holds: a function by its name, whatever made the pickle."""
    return Certificate.from_dict(record)
