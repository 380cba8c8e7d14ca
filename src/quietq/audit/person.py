"""One person of many: can their presence, or what they said, be told from a release better than promised?

Two populations differ in one person's rows: as they are, and replaced by other ratings (a *rating* attack) or by none,
which makes the person neutral (a *presence* attack). Both are released many times, by simulation, and the attacker
knows everything but which of the two it was: all other people's rows, both versions of this one's, the mechanism. They
apply the best test there is, by Neyman and Pearson: the likelihood ratio of the very release, with the threshold in the
middle, fixed before a release is drawn.

The relation of a certificate is one name's rows. A person who goes by several names is counted as often and leaves it:
attacking all of their names at once shows what that costs, and refutes nothing that was promised of one name.

By the promise nobody guesses right more often than Phi(mu/2), or e^epsilon/(1 + e^epsilon) under pure epsilon-DP. All
that is measured here was made from true ratings: it is for the operator, and no certificate covers it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import ndtr

from quietq.audit.bounds import Errors, significance_of
from quietq.audit.draws import BestTest, Progress
from quietq.audit.finding import Attack, Finding, Promise
from quietq.feedback import Ratings
from quietq.mechanisms.privatise import choose
from quietq.privacy import Budget, InvalidInput
from quietq.privacy.checks import count, numbers

_NO_NAME = "target must be a person's name, a text or a number, or a list of one person's names."


@dataclass(frozen=True)
class PersonAttack:
    """What the best test made of one person, beside what was promised."""

    finding: Finding
    """The same beside audits of other kinds: for simulations with public data, because it is NOT private.

    Its errors, bounds and verdict, in its `to_dict` as well, come from the true ratings and are not marked. Where
    ratings are private, `to_dict` of this attack is the record to keep: there they stand under `not_private`.
    """
    exact_mu: float | None
    """How far apart the two populations' releases are, if the noise is what it says it is; None for pure noise."""
    names: int = 1  # how many names of the person were attacked together; the promise is for one

    @property
    def kind(self) -> str:
        """`rating` or `presence`."""
        return self.finding.attack.move

    @property
    def accuracy(self) -> float:
        """The share of right guesses, with even odds beforehand."""
        return self.finding.by_mu.accuracy

    @property
    def ceiling(self) -> float:
        """The accuracy that the promise allows at most."""
        promise = self.finding.promise
        if promise.mu is not None:
            return float(ndtr(promise.mu / 2))
        return (1 + promise.delta * math.exp(-promise.epsilon)) / (1 + math.exp(-promise.epsilon))

    @property
    def broken(self) -> bool:
        """Whether the finding refutes the promise at this confidence, by epsilon or by mu."""
        return self.finding.verdict == "refuted"

    @property
    def verdict(self) -> str:
        """The outcome in a sentence, and in a second one how many names it is about, if it is not one."""
        told = f"{self.accuracy:.3f} of the guesses were right, and the promise allows {self.ceiling:.3f}"
        chance = ", which may be chance" if self.accuracy > self.ceiling and not self.broken else ""
        end = "the promise is BROKEN" if self.broken else f"the promise stands{chance}"
        first = f"{told}: {end}, at confidence {self.finding.confidence:.7g}."
        if self.names == 1:
            return first
        return (
            f"{first} But the person goes by {self.names} names and is counted as often, and the certificate covers one"
            " name's rows only."
        )

    def to_dict(self) -> dict[str, Any]:
        """In JSON types; what comes of true ratings stands under `not_private`."""
        finding, promise = self.finding, self.finding.promise
        found = {name: getattr(self, name) for name in ("accuracy", "exact_mu", "broken", "verdict")}
        found |= {"epsilon_lower": finding.epsilon_lower, "mu_lower": finding.mu_lower}
        return {
            "kind": self.kind,
            "names": self.names,
            "releases": finding.runs,
            "confidence": finding.confidence,
            "promised": {
                "epsilon": promise.epsilon,
                "delta": promise.delta,
                "mu": promise.mu,
                "accuracy": self.ceiling,
            },
            "not_private": {"errors": finding.by_mu._asdict(), **found},
        }


def attack_person(
    ratings: object,
    target: object,
    instead: object,
    budget: Budget,
    *,
    releases: int = 500,
    seed: int = 0,
    confidence: float = 0.95,
    noise: str = "auto",
    pieces: int | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> PersonAttack:
    """Attacks one person, the `target`, whose rows in `ratings` are replaced by the rows `instead`: (state, rating).

    With no rows `instead` it is their presence that is attacked. `target` is a name; several, in a list, are one person
    who goes by all of them, against the promise for one. `noise` and `pieces` are those of `privatise`; `reading` is
    what `Ratings.read` takes: box, low, high, slope, people, and names of columns.

    >>> import polars
    >>> table = polars.DataFrame({"person": range(20), "state": [0.5] * 20, "rating": [1.0] * 20})
    >>> attack = attack_person(table, 3, [(0.5, 0.0)], Budget(0.9, 1e-4), releases=20, noise="path",
    ...                        box=(0, 1), low=0, high=1, slope=1, people=20)
    >>> attack.kind, attack.broken, round(attack.ceiling, 3), round(attack.exact_mu, 3)
    ('rating', False, 0.557, 0.147)
    """
    names = _told_apart(target if isinstance(target, Sequence) and not isinstance(target, str | bytes) else [target])
    significance_of(confidence)  # refused before the work, not after it
    releases = count("releases", releases)
    before = Ratings.read(ratings, **reading)
    columns = {name: reading[name] for name in ("person", "state", "rating") if name in reading}
    after = Ratings.read(replace_person(ratings, list(names.values()), instead, **columns), **reading)
    seeds = np.random.SeedSequence(count("seed", seed, 0)).generate_state(2 * releases + 1, np.uint64)

    test = BestTest(choose(noise, before, budget, pieces=pieces), before, after)
    scores: list[list[float]] = [[], []]
    for number, stream in enumerate(seeds[:-1]):
        scores[number % 2].append(test.score(number % 2, int(stream)))
        if progress is not None:
            progress(number + 1, 2 * releases)
    kind = "rating" if len(numbers("instead", instead)) else "presence"
    errors = Errors.at_threshold(*scores, threshold=0.0)
    attack = Attack("reward", "none", "one person", kind, "the private reward", "likelihood ratio")
    promise = Promise.of_mechanism(test.mechanism)
    return PersonAttack(Finding(attack, promise, releases, errors, errors, confidence), test.mu, len(names))


def replace_person(
    ratings: object,
    names: Sequence[object],
    instead: object,
    *,
    person: str = "person",
    state: str | Sequence[str] = "state",
    rating: str = "rating",
) -> Any:
    """The ratings as a Polars frame, with all rows under these names replaced by the rows `instead` under each.

    Spellings of one name are one name. A refusal shows no name and no rating.

    >>> import polars
    >>> table = polars.DataFrame({"person": ["Ann", "bob"], "state": [0.1, 0.2], "rating": [1.0, 0.0]})
    >>> replace_person(table, ["ann "], [(0.5, 0.3), (0.6, 0.4)]).rows()
    [('bob', 0.2, 0.0), ('ann ', 0.5, 0.3), ('ann ', 0.6, 0.4)]
    """
    import polars as pl

    from quietq.feedback.names import identities
    from quietq.feedback.rows import batches
    from quietq.feedback.schema import Number, Schema

    states = (state,) if isinstance(state, str) else tuple(state)
    fields = {name: Number(name, "state") for name in states} | {rating: Number(rating, "rating")}
    rows, targets = _rows(instead, list(fields)), _told_apart(names)
    types: dict[str, Any] = {person: pl.String, **dict.fromkeys(fields, pl.Float64)}
    who = pl.Series(list(targets), dtype=pl.Struct({"number": pl.Int64, "name": pl.String}))
    nobody = pl.Series([(None, None)], dtype=who.dtype)
    kept, found = [], pl.Series([], dtype=who.dtype)
    for batch in batches(ratings, Schema("ratings", person, fields)):
        identity = identities(batch[person]).to_struct()
        text = batch[person].cast(pl.String).set(identity.is_in(nobody.implode()), None)
        frame = pl.DataFrame([text, *(field.read(batch[name]) for name, field in fields.items())])
        kept.append(frame.filter(~identity.is_in(who.implode())))
        found = found.append(identity.filter(identity.is_in(who.implode())).unique())
    if found.n_unique() < len(who):
        raise InvalidInput("target must be somebody in the ratings, and there is no row of that name.")
    added = pl.DataFrame([(name, *row) for name in targets.values() for row in rows], schema=types, orient="row")
    return pl.concat([*kept, added])


def _told_apart(names: Sequence[object]) -> dict[tuple[int | None, str | None], str]:
    """One spelling of each name, by who it is when ratings are read."""
    import polars as pl

    from quietq.feedback.names import identities

    found: dict[tuple[int | None, str | None], str] = {}
    for name in names:
        if not isinstance(name, str | Real) or isinstance(name, bool):
            raise InvalidInput(_NO_NAME)
        try:
            given = name if isinstance(name, str) else str(int(name)) if isinstance(name, Integral) else float(name)
            ((number, text),) = identities(pl.Series([given])).rows()
        except InvalidInput:
            raise
        except (ValueError, OverflowError) as error:  # thousands of digits, or half of a character
            raise InvalidInput(_NO_NAME) from error
        if number is None and text is None:
            raise InvalidInput(_NO_NAME)
        found.setdefault((number, text), str(given))
    if not found:
        raise InvalidInput("target must be somebody in the ratings, and it names nobody.")
    return found


def _rows(instead: object, columns: Sequence[str]) -> list[list[float]]:
    refusal = f"instead must hold rows ({', '.join(columns)}), {len(columns)} finite numbers each, or none."
    try:
        rows = numbers("instead", instead)
    except InvalidInput as error:
        raise InvalidInput(refusal) from error
    none = rows.ndim > 0 and len(rows) == 0
    if not none and (rows.ndim != 2 or rows.shape[1] != len(columns) or not np.isfinite(rows).all()):
        raise InvalidInput(refusal)
    return rows.tolist()
