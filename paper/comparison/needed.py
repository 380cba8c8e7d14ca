"""How many people each method needs for a score of 0.9, read off its curve on a logarithmic axis.

That is where the mean score crosses 0.9 for the last time: from there on it stays above. Between two measured numbers
of people the curve is taken for straight. The interval is by resampling the draws: a draw has the same normals for all
numbers of people, so they are resampled together; eight of ten such samples cross within it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from paper.comparison.limits import fewest_people
from paper.comparison.scores import name_of
from paper.experiment import Tables
from paper.task import Row
from quietq.worlds import find_world

TARGET = 0.9
COLUMNS = ("world", "method", "noise", "people", "draw", "score")
RESAMPLED = 1000
SHARES = (0.1, 0.9)
"""The ends of the interval."""


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
        """Method and noise."""
        return name_of(self.method, self.noise)

    @property
    def mean(self) -> Float[np.ndarray, " counts"]:
        """The mean over draws."""
        return np.nanmean(self.scores, axis=1)

    @property
    def error(self) -> Float[np.ndarray, " counts"]:
        """The standard error of that mean."""
        return np.nanstd(self.scores, axis=1, ddof=1) / np.sqrt(self.draws)

    @property
    def draws(self) -> Int[np.ndarray, " counts"]:
        """How many there are."""
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


def curves(rows: Sequence[Row]) -> list[Curve]:
    """All curves of a table of scores, in its order; rows without people belong to none."""
    found: dict[tuple[str, str, str | None], dict[int, dict[int, float]]] = {}
    for row in rows:
        world, method, noise, people, draw, score = (row[name] for name in COLUMNS)
        if people is None:
            continue
        assert isinstance(people, int)
        assert isinstance(draw, int)
        assert isinstance(score, float)
        key = (str(world), str(method), None if noise is None else str(noise))
        found.setdefault(key, {}).setdefault(people, {})[draw] = score
    return [_curve(key, by) for key, by in found.items()]


def _curve(key: tuple[str, str, str | None], by: dict[int, dict[int, float]]) -> Curve:
    people = sorted(by)
    scores = np.full((len(people), 1 + max(max(draws) for draws in by.values())), np.nan)
    for index, number in enumerate(people):
        for draw, score in by[number].items():
            scores[index, draw] = score
    return Curve(*key, np.array(people, np.float64), scores)


def crossing(curve: Curve, target: float = TARGET) -> Crossing:
    """Where the curve reaches the target for good.

    >>> curve = Curve("walk", "input", None, np.array([10.0, 100.0]), np.array([[0.8, 0.8], [1.0, 1.0]]))
    >>> round(crossing(curve).people, 2), crossing(curve).below
    (31.62, 10)
    """
    draws = curve.scores.shape[1]
    times = np.random.default_rng(0).multinomial(draws, np.full(draws, 1 / draws), size=RESAMPLED).T
    there = np.isfinite(curve.scores)
    means = np.where(there, curve.scores, 0.0) @ times / np.maximum(there @ times, 1)
    resampled, _ = _reached(curve.people, means, target)
    low, high = (float(np.quantile(resampled, share, method="nearest")) for share in SHARES)
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
    """The table: people for 0.9 by method, beside the fewest possible and what an audit measured.

    `fewest_gaussian` and `fewest_any` are the fewest people with whom Gaussian noise, and any method at all, can score
    0.9 under both of two opposite rewards. If `below` is None, `people` is the smallest number tried: at most so many.
    """
    audits = {str(row["name"]): row for name in ("audit_draws", "audit_trainings") for row in tables.get(name, ())}
    rows: list[Row] = []
    for curve in curves(tables["comparison_scores"]):
        place = crossing(curve)
        # What was audited is the walk's; elsewhere there is nothing to put beside it.
        audit = audits.get(curve.name, {}) if curve.world == "walk" else {}
        rows.append({
            "world": curve.world, "name": curve.name, "standing": "certified", "people": _or_none(place.people),
            "below": place.below, "above": place.above, "low": _or_none(place.low), "high": _or_none(place.high),
            "draws": int(curve.draws.max()),
            "fewest_gaussian": fewest_people(find_world(curve.world), TARGET, gaussian=True),
            "fewest_any": fewest_people(find_world(curve.world), TARGET, gaussian=False),
            "pure": curve.noise == "k-norm",
            "epsilon": audit.get("epsilon"), "epsilon_at_least": audit.get("epsilon_at_least"),
            "mu": audit.get("mu"), "mu_at_least": audit.get("mu_at_least"), "runs": audit.get("runs"),
            "verdict": audit.get("verdict"),
        })  # fmt: skip
    return rows


def _or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None
