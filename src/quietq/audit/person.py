"""One person of many: can their presence, or what they said, be told from a release better than promised?

Two populations differ in one person's rows: as they are, and replaced by other ratings (a *rating* attack) or by none,
which makes the person neutral (a *presence* attack). Both are released many times, by simulation, and the attacker
knows everything but which of the two it was: all other people's rows, both versions of this one's, the mechanism. They
apply the best test there is, by Neyman and Pearson: the likelihood ratio of the very release, with the threshold in the
middle, fixed before a release is drawn.

By the promise nobody guesses right more often than Phi(mu/2), or e^epsilon/(1 + e^epsilon) under pure epsilon-DP. All
that is measured here was made from true ratings: it is for the operator, and no certificate covers it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr

from quietq.audit.bounds import Errors, epsilon_lower, mu_lower, significance_of
from quietq.audit.finding import Attack, Finding, Promise
from quietq.audit.likelihood import best_test
from quietq.noise.private_function import PrivateFunction
from quietq.privacy.budget import Budget
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput
from quietq.rewards.choice import Noise
from quietq.rewards.people import People
from quietq.rewards.privatise import privatise

Kind = Literal["rating", "presence"]
Name = str | int | float


@dataclass(frozen=True)
class PersonAttack:
    """What the best test made of one person, beside what was promised."""

    kind: Kind
    budget: Budget
    pure: bool
    """Whether the noise is pure, so that epsilon alone was promised."""
    releases: int
    """Of each population."""
    confidence: float
    errors: Errors
    exact_mu: float | None
    """How far apart the two populations' releases are, if the noise is what it says it is; None for pure noise."""
    epsilon_lower: float
    mu_lower: float

    @property
    def accuracy(self) -> float:
        """The share of right guesses, with even odds beforehand."""
        return self.errors.accuracy

    @property
    def ceiling(self) -> float:
        """The accuracy that the promise allows at most."""
        return 1 / (1 + math.exp(-self.budget.epsilon)) if self.pure else float(ndtr(self.budget.mu / 2))

    @property
    def broken(self) -> bool:
        """Whether the promise is refuted at this confidence."""
        return self.epsilon_lower > self.budget.epsilon if self.pure else self.mu_lower > self.budget.mu

    @property
    def verdict(self) -> str:
        """The outcome in a sentence."""
        told = f"{self.accuracy:.3f} of the guesses were right, and the promise allows {self.ceiling:.3f}"
        end = "the promise is BROKEN" if self.broken else "the promise stands"
        return f"{told}: {end}, at confidence {self.confidence:.7g}."

    def finding(self) -> Finding:
        """The same beside audits of other kinds."""
        promise = Promise(
            "certified", self.budget.epsilon, 0.0 if self.pure else self.budget.delta,
            None if self.pure else self.budget.mu,
        )  # fmt: skip
        attack = Attack("reward", "none", "one person", self.kind, "the private reward", "likelihood ratio")
        return Finding(attack, promise, self.releases, self.errors, self.errors, self.confidence)

    def to_dict(self) -> dict[str, Any]:
        """In JSON types; what comes of true ratings stands under `not_private`."""
        return {
            "kind": self.kind,
            "releases": self.releases,
            "confidence": self.confidence,
            "promised": {
                "epsilon": self.budget.epsilon,
                "delta": 0.0 if self.pure else self.budget.delta,
                "mu": None if self.pure else self.budget.mu,
                "accuracy": self.ceiling,
            },
            "not_private": {
                "accuracy": self.accuracy,
                "errors": self.errors._asdict(),
                "exact_mu": self.exact_mu,
                "epsilon_lower": self.epsilon_lower,
                "mu_lower": self.mu_lower,
                "broken": self.broken,
                "verdict": self.verdict,
            },
        }


def attack_person(
    ratings: object,
    target: Name | Sequence[Name],
    instead: Sequence[Sequence[float]],
    budget: Budget,
    *,
    releases: int = 500,
    seed: int = 0,
    confidence: float = 0.95,
    noise: Noise = "auto",
    pieces: int | None = None,
    **reading: Any,
) -> PersonAttack:
    """Attacks one person, the `target`, whose rows in `ratings` are replaced by the rows `instead`: (state, rating).

    With no rows `instead` it is their presence that is attacked. Several names are one person who goes by all of them,
    against the promise for one. `noise` and `pieces` are those of `privatise`; `reading` is what `People.read` takes:
    box, low, high, slope, count, and names of columns.

    >>> import polars
    >>> table = polars.DataFrame({"person": range(20), "state": [0.5] * 20, "rating": [1.0] * 20})
    >>> attack = attack_person(table, 3, [(0.5, 0.0)], Budget(0.9, 1e-4), releases=20, noise="path",
    ...                        box=(0, 1), low=0, high=1, slope=1, count=20)
    >>> attack.kind, attack.broken, round(attack.ceiling, 3), round(attack.exact_mu, 3)
    ('rating', False, 0.557, 0.172)
    """
    names = list(target) if isinstance(target, Sequence) and not isinstance(target, str) else [target]
    significance_of(confidence)  # refused before the work, not after it
    releases = count("releases", releases)
    before = People.read(ratings, **reading)
    columns = {name: reading[name] for name in ("person", "state", "rating") if name in reading}
    after = People.read(replace_person(ratings, names, instead, **columns), **reading)
    seeds = np.random.SeedSequence(count("seed", seed, 0)).generate_state(2 * releases + 1, np.uint64)

    def release(people: People, simulate: int) -> PrivateFunction:
        return privatise(people, budget, noise=noise, pieces=pieces, simulate=simulate)

    score, exact_mu = best_test(before, after, before.relation, budget, release(before, int(seeds[-1])))
    scores = [[score(release(people, int(s))) for s in seeds[i:-1:2]] for i, people in enumerate((before, after))]
    errors, pure = Errors.at_threshold(*scores, threshold=0.0), exact_mu is None
    delta = 0.0 if pure else budget.delta
    return PersonAttack(
        kind="rating" if len(instead) else "presence",
        budget=budget,
        pure=pure,
        releases=releases,
        confidence=confidence,
        errors=errors,
        exact_mu=exact_mu,
        epsilon_lower=epsilon_lower(errors, delta, confidence),
        mu_lower=mu_lower(errors, confidence),
    )


def replace_person(
    ratings: object,
    names: Sequence[Name],
    instead: Sequence[Sequence[float]],
    *,
    person: str = "person",
    state: str | Sequence[str] = "state",
    rating: str = "rating",
) -> Any:
    """The ratings as a Polars frame, with all rows under these names replaced by the rows `instead` under each.

    >>> import polars
    >>> table = polars.DataFrame({"person": ["Ann", "bob"], "state": [0.1, 0.2], "rating": [1.0, 0.0]})
    >>> replace_person(table, ["ann "], [(0.5, 0.3), (0.6, 0.4)]).rows()
    [('bob', 0.2, 0.0), ('ann ', 0.5, 0.3), ('ann ', 0.6, 0.4)]
    """
    import polars as pl

    from quietq.rewards.ratings import NAME, NUMBER, Columns, batches, identity

    columns = Columns(person, (state,) if isinstance(state, str) else tuple(state), rating)
    types: dict[str, Any] = {person: pl.String, **dict.fromkeys(columns.numbers, pl.Float64)}
    plain = [pl.col(name).cast(dtype, strict=False) for name, dtype in types.items()]
    frame = pl.concat([batch.select(*plain, *identity(batch, person)) for batch in batches(ratings, columns)])
    targets = pl.concat(
        [one.select(*identity(one, person)) for one in (pl.DataFrame({person: [name]}) for name in names)]
    )
    kept = frame.join(targets, on=[NUMBER, NAME], how="anti", nulls_equal=True, maintain_order="left")
    if kept.height == frame.height:
        raise InvalidInput(f"target must be somebody in the ratings, and there is no row of {names!r}.")
    if any(len(row) != len(columns.numbers) for row in instead):
        raise InvalidInput(
            f"instead must hold rows ({', '.join(columns.numbers)}), {len(columns.numbers)} numbers each."
        )
    rows = [(str(name), *map(float, row)) for name in names for row in instead]
    added = pl.DataFrame(rows, schema=types, orient="row")
    return pl.concat([kept.select(columns.all), added])
