"""Rounds that each ask a random part of the people: what they cost together.

Theorem. Let everybody take part in a round with probability q, drawn in secret and anew, and let one person's part move
the numbers by at most half of mu times the noise's deviation. Then the round is dominated by the pair

    (1 - q) N(0, 1) + q N(mu/2, 1)   and   (1 - q) N(0, 1) + q N(-mu/2, 1),

whoever is replaced by whom, in any number of dimensions; it is attained, so no smaller promise holds. Rounds with pairs
fixed beforehand are together dominated by the product of their pairs (Zhu, Dong & Wang 2022). See `docs/theory.md`,
section 11. The product is computed by dp-accounting's privacy loss distributions, for the replacement of one person,
which round towards more loss.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from quietq.privacy.budget import Budget
from quietq.privacy.checks import Checked, count, positive, real, shown
from quietq.privacy.errors import InvalidInput, MissingExtra
from quietq.privacy.kinds import Record, thaw
from quietq.privacy.norms import NORMS, Norm, largest_difference, queries
from quietq.privacy.roots import root
from quietq.privacy.words import plural

if TYPE_CHECKING:
    import dp_accounting

_LEAST_FRACTION, _MOST_ROUNDS, _MOST_MU = 1e-3, 1000, 20.0
_LEAST_DELTA = 1e-10  # what discretised losses are exact enough for
_FINENESS = 2e-3  # of losses, in units of the largest mu
_KEPT_BACK = 0.01  # of delta, for what another version of dp-accounting may find
_STEP = 1e-4  # relative, to which noise is calibrated
_ROUNDING = 1e-9


def fraction(name: str, value: object) -> float:
    number = real(name, value)
    if _LEAST_FRACTION <= number < 1:
        return number
    raise InvalidInput(
        f"{name} must be at least {_LEAST_FRACTION:g} and below 1, the part of the people that a round looks at, "
        f"not {shown(value)}."
    )


def _mu(name: str, value: object) -> float:
    number = real(name, value)
    if 0 <= number <= _MOST_MU:
        return number
    raise InvalidInput(f"{name} must be a mu from 0 to {_MOST_MU:g}, not {shown(value)}.")


@dataclass(frozen=True)
class SampledRounds(Checked):
    """What is asked, fixed beforehand: so many rounds of a part of the people, besides what everybody is asked.

    >>> SampledRounds(fraction=0.05, rounds=24, each=1.0, looks=0.05).epsilon(1e-5) < 1
    True
    """

    fields: ClassVar = {
        "fraction": fraction,
        "rounds": lambda name, value: count(name, value, most=_MOST_ROUNDS),
        "each": lambda name, value: _mu(name, positive(name, value)),
        "looks": _mu,
    }
    fraction: float
    """With which probability a person takes part in a round."""
    rounds: int
    each: float
    """The mu of a round in which everybody were drawn."""
    looks: float
    """The mu of what everybody is asked, together; 0 if that is nothing."""

    @classmethod
    @functools.lru_cache(maxsize=64)
    def for_budget(cls, budget: Budget, fraction: float, rounds: int, looks: float) -> "SampledRounds":
        """The least noise for which all of it meets the budget."""
        least = 0.5 * math.sqrt((budget.mu**2 - looks**2) / rounds)  # twice as much noise as without sampling
        target = math.log(_enough(budget.delta) * (1 - _KEPT_BACK))

        def plan(log_each: float) -> "SampledRounds":
            return cls(fraction, rounds, math.exp(log_each), looks)

        def excess(log_each: float) -> float:
            return math.log(max(plan(log_each).delta(budget.epsilon), 1e-300)) - target

        high = math.log(_MOST_MU)
        found = high if excess(high) <= 0 else root(excess, math.log(least), high, _STEP)
        while excess(found) > 0 or plan(found).epsilon(budget.delta) > budget.epsilon:
            found -= _STEP
        return plan(found)

    def to_event(self) -> "dp_accounting.DpEvent":
        """For dp-accounting's PLD accountant with REPLACE_ONE, which takes 2 for the sensitivity."""
        dpa = _dp_accounting()
        drawn = dpa.PoissonSampledDpEvent(self.fraction, dpa.GaussianDpEvent(2 / self.each))
        everybody = [dpa.GaussianDpEvent(2 / self.looks)] if self.looks else []
        return dpa.ComposedDpEvent([dpa.SelfComposedDpEvent(drawn, self.rounds), *everybody])

    def epsilon(self, delta: float) -> float:
        return float(_composed(self).get_epsilon(_enough(delta)))

    def delta(self, epsilon: float) -> float:
        return float(_composed(self).get_delta(epsilon))

    def covers(self, asked: Sequence[tuple[float, float]]) -> bool:
        """Whether queries, of which fraction of the people and with which mu each, are no more than this."""
        looks = math.hypot(*(mu for part, mu in asked if part == 1))
        drawn = [(part, mu) for part, mu in asked if part != 1]
        each = all(part == self.fraction and mu <= self.each * (1 + _ROUNDING) for part, mu in drawn)
        return each and len(drawn) <= self.rounds and looks <= self.looks * (1 + _ROUNDING)


def _enough(delta: float) -> float:
    if _LEAST_DELTA <= delta < 1:
        return delta
    raise InvalidInput(f"delta must be at least {_LEAST_DELTA:g} where people are sampled, not {delta!r}.")


def _dp_accounting() -> Any:
    try:
        import dp_accounting
        import dp_accounting.pld
    except ImportError as error:
        raise MissingExtra.of("accounting", "A sample of people needs dp-accounting") from error
    return dp_accounting


@functools.lru_cache(maxsize=16)
def _composed(rounds: SampledRounds) -> "dp_accounting.PrivacyAccountant":
    dpa, fineness = _dp_accounting(), _FINENESS * max(rounds.each, rounds.looks)
    return dpa.pld.PLDAccountant(dpa.NeighboringRelation.REPLACE_ONE, fineness).compose(rounds.to_event())


def _schedule(norm: Record, scale: float = 1.0) -> SampledRounds:
    return SampledRounds(norm["fraction"], norm["rounds"], norm["each"] / scale, norm["looks"] / scale)


def _difference(norm: Record, relation: Record) -> float | None:
    """The largest of what neighbours come to in the queries, in units of what they were to come to.

    Whoever is drawn counts as one of fraction x people, and two people's vectors may be opposite.
    """
    if relation["kind"] != "one-person" or len(norm["drawn"]) > norm["rounds"]:
        return None
    looks = math.hypot(*(largest_difference(query["norm"], relation) / query["size"] for query in norm["of"]))
    if looks and not norm["looks"]:
        return None
    whole = norm["fraction"] * relation["people"]
    drawn = [2 * query["bound"] / whole / query["size"] / norm["each"] for query in norm["drawn"]]
    return max(*drawn, looks / norm["looks"] if looks else 0.0, 0.0)


def _drawn(name: str, value: object) -> None:
    if not isinstance(value, list | tuple) or len(value) > _MOST_ROUNDS:
        raise InvalidInput(f"{name} must be a list of at most {_MOST_ROUNDS} queries, not {shown(thaw(value))}.")
    for query in value:
        if not isinstance(query, Mapping) or set(query) != {"bound", "size"}:
            raise InvalidInput(f"{name} must have a bound and a size for each query, not {shown(thaw(query))}.")
        positive(name, query["bound"])
        positive(name, query["size"])


NORMS["sampled-queries"] = Norm(
    fields={**SampledRounds.fields, "of": queries("gaussian", least=0), "drawn": _drawn},
    difference=_difference,
    words=lambda norm: (
        f"units of the noise of {plural(norm['rounds'], 'round')} that each asked a random {norm['fraction']:g} of the "
        f"people, and of {plural(len(norm['of']), 'query', 'queries')} that asked everybody"
    ),
    epsilon=lambda norm, scale, delta: _schedule(norm, scale).epsilon(delta),
)
