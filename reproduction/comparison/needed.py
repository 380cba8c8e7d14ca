"""How many people each method needs for a score of 0.9, read off its curve on a logarithmic axis.

That is where the mean score crosses 0.9 for the last time: from there on it stays above. Between two measured numbers
of people the curve is taken for straight. The interval is by resampling the draws: a draw has the same normals for all
numbers of people, so they are resampled together; eight of ten such samples cross within it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from reproduction.comparison.scores import fewest_people, name_of
from reproduction.experiment import Decision, Row, Tables, Verdict

TARGET = 0.9


class Curve(NamedTuple):
    """Scores of one method in one world, by the number of people, fewest first."""

    world: str
    method: str
    noise: str | None
    people: Float[np.ndarray, " counts"]
    scores: Float[np.ndarray, "counts draws"]
    """NaN where there are fewer draws than elsewhere."""

    @property
    def name(self) -> str:
        return name_of(self.method, self.noise)

    @property
    def mean(self) -> Float[np.ndarray, " counts"]:
        return np.nanmean(self.scores, axis=1)

    @property
    def draws(self) -> Int[np.ndarray, " counts"]:
        return np.isfinite(self.scores).sum(axis=1)


class Crossing(NamedTuple):
    """Where a curve reaches the target for good."""

    people: float
    """Interpolated; infinite if it is not reached."""
    below: int | None
    """The largest number tried that is not enough; None if all are."""
    above: int | None
    """The next one, which is; None if none is."""
    low: float
    high: float
    """The interval; infinite where resampled draws did not reach it."""

    def __str__(self) -> str:
        """How many people, with the interval; `at most` where the smallest number tried is enough."""
        if self.above is None:
            return f"more than {self.below} people"
        if self.below is None:
            return f"at most {self.above} people"
        upper = f"{self.high:.0f}" if self.high < math.inf else "more"
        return f"about {self.people:.0f} people (80 % interval {self.low:.0f} to {upper})"

    def needs_more_than(self, other: "Crossing") -> Verdict:
        """`holds` if clearly more people are needed here, `fails` if clearly fewer.

        >>> Crossing(35.0, 30, 40, 29.0, 40.0).needs_more_than(Crossing(36.0, 30, 40, 25.0, 51.0))
        'in part'
        """
        return "holds" if self.low > other.high else "fails" if self.high < other.low else "in part"


def curves(rows: Sequence[Row]) -> list[Curve]:
    """All curves of a table of scores, in its order; rows without people belong to none."""
    found: dict[tuple[str, str, str | None], dict[int, dict[int, float]]] = {}
    for row in rows:
        if row["people"] is not None:
            by = found.setdefault((row["world"], row["method"], row["noise"]), {})
            by.setdefault(row["people"], {})[row["draw"]] = row["score"]
    listed = []
    for key, by in found.items():
        scores = np.full((len(by), 1 + max(max(draws) for draws in by.values())), np.nan)
        for index, number in enumerate(sorted(by)):
            scores[index, list(by[number])] = list(by[number].values())
        listed.append(Curve(*key, np.array(sorted(by), np.float64), scores))
    return listed


def crossing(curve: Curve, target: float = TARGET) -> Crossing:
    """Where the curve reaches the target for good.

    >>> curve = Curve("walk", "input", None, np.array([10.0, 100.0]), np.array([[0.8, 0.8], [1.0, 1.0]]))
    >>> round(crossing(curve).people, 2), crossing(curve).below
    (31.62, 10)
    """
    draws = curve.scores.shape[1]
    times = np.random.default_rng(0).multinomial(draws, np.full(draws, 1 / draws), size=1000).T
    there = np.isfinite(curve.scores)
    means = np.where(there, curve.scores, 0.0) @ times / np.maximum(there @ times, 1)
    resampled, _ = _reached(curve.people, means, target)
    # The ends of the interval.
    low, high = (float(np.quantile(resampled, share, method="nearest")) for share in (0.1, 0.9))
    places, indices = _reached(curve.people, curve.mean[:, None], target)
    index = int(indices[0])
    below = None if index == 0 else int(curve.people[index - 1])
    above = None if index == len(curve.people) else int(curve.people[index])
    return Crossing(float(places[0]), below, above, low, high)


def _reached(
    people: Float[np.ndarray, " counts"], means: Float[np.ndarray, "counts samples"], target: float
) -> tuple[Float[np.ndarray, " samples"], Int[np.ndarray, " samples"]]:
    """For each sample the place, and the number of the first point from which on the target is reached."""
    numbers = np.arange(1, len(people) + 1)[:, None]
    index = np.where(means < target, numbers, 0).max(axis=0)
    before, after = np.maximum(index - 1, 0), np.minimum(index, len(people) - 1)
    low, high = (np.take_along_axis(means, at[None], axis=0)[0] for at in (before, after))
    between = (index > 0) & (index < len(people))
    share = np.where(between, (target - low) / np.where(between, high - low, 1.0), 0.0)
    logs = np.log(people)
    place = np.where(between, np.exp(logs[before] + share * (logs[after] - logs[before])), people[0])
    return np.where(index == len(people), np.inf, place), index


def needed(tables: Tables) -> list[Row]:
    """The table: people for 0.9 by method, beside the fewest possible.

    `fewest_gaussian` and `fewest_any` are the fewest people with whom Gaussian noise, and any method at all, can score
    0.9 under both of two opposite rewards. If `below` is None, `people` is the smallest number tried: at most so many.
    """
    rows: list[Row] = []
    for curve in curves(tables["comparison_scores"]):
        place = crossing(curve)
        people, low, high = (
            number if math.isfinite(number) else None for number in (place.people, place.low, place.high)
        )
        rows.append(
            {
                "world": curve.world,
                "name": curve.name,
                "standing": "certified",
                "people": people,
                "below": place.below,
                "above": place.above,
                "low": low,
                "high": high,
                "draws": int(curve.draws.max()),
                "fewest_gaussian": fewest_people(TARGET, gaussian=True),
                "fewest_any": fewest_people(TARGET, gaussian=False),
                "pure": curve.noise == "k-norm",
            }
        )
    return rows


def compare(method: str, on_walk: Mapping[str, Curve]) -> Decision:
    """Whether a method needs more people than Algorithm 1 made sound: one verdict only if it is the same for both ways.

    Holds if clearly more people are needed than by both, fails if clearly fewer, and is `in part` otherwise.
    """
    curve, verdicts, words = on_walk[method], list[Verdict](), list[str]()
    here = crossing(curve)
    # Algorithm 1 made sound, on a grid of knots or for a network: the paper does not choose between them.
    for repaired in ("value", "value-network"):
        if repaired not in on_walk:
            verdicts.append("in part")
            words.append(f"`{repaired}` was not run")
            continue
        there = crossing(on_walk[repaired])
        verdicts.append(here.needs_more_than(there))
        words.append(f"`{repaired}` {there} ({_scores(curve, on_walk[repaired])})")
    verdict = verdicts[0] if len(set(verdicts)) == 1 else "in part"
    return verdict, {"target": TARGET, "name": curve.name, "here": here, "words": "; ".join(words)}


def _scores(curve: Curve, repaired: Curve) -> str:
    """Mean scores of both, with three numbers of people between too few for anybody and enough for everybody."""
    here, there = (dict(zip(one.people.astype(int).tolist(), one.mean, strict=True)) for one in (curve, repaired))
    shared = [people for people in here if people in there]
    middle = len(shared) // 2
    telling = shared[max(middle - 2, 0) : middle + 1]
    return f"mean scores {', '.join(f'{here[n]:.3f} against {there[n]:.3f} with {n}' for n in telling)}"
