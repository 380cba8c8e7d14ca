"""Many people's ratings in: their mean as a bounded and smooth function, or rows that one model is fitted to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from quietq.feedback.extension import Extension
from quietq.feedback.feedback import (
    Engine,
    EngineName,
    Feedback,
    Items,
    columns_of,
    domain_of,
    is_list,
    named,
    read_people,
    state_fields,
)
from quietq.feedback.row_statistics import Marginals, Squared
from quietq.feedback.statistic import Statistic
from quietq.noise.box import Box, Domain
from quietq.noise.feature_maps import FeatureMap
from quietq.privacy.assumptions import Assumption, Code
from quietq.privacy.checks import ends
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import OnePerson, Relation, people as people_relation


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ratings(Feedback):
    """People's ratings of states. It is the secret itself: make it private with `privatise`.

    In one dimension each person is a function, the midpoint of the two extreme Lipschitz extensions of their ratings,
    and what is released is the mean of these. In several, one model is fitted to everybody's rows, and each person is
    clipped to a bound in every round of that.

    >>> import polars
    >>> ratings = polars.DataFrame({"person": ["a", "a", "b"], "state": [0.0, 1.0, 0.5], "rating": [0.0, 1.0, 1.0]})
    >>> people = Ratings.read(ratings, box=(0, 1), low=0, high=1, slope=1, people=2)
    >>> people
    Ratings(people=2, box=[0, 1], range=[0, 1])
    """

    low: float
    high: float

    @cached_property
    def asked(self) -> Extension | None:
        """The statistic that is queried once; None where a model is fitted to all rows."""
        return self.first if isinstance(self.first, Extension) else None

    @classmethod
    def read(
        cls,
        source: object,
        *,
        person: str = "person",
        state: str | Sequence[str] = "state",
        rating: str = "rating",
        box: Domain | Items,
        low: float,
        high: float,
        slope: float | None = None,
        people: int,
        action: str | None = None,
        actions: Items | None = None,
        features: FeatureMap | None = None,
        engine: EngineName | Engine = "local",
    ) -> "Ratings":
        """Reads ratings. Columns are named; all else is public and declared by you, never taken from the rows.

        Args:
            source: A data frame (pandas or Polars), a CSV or Parquet file, or several of them.
            person: The column that says who.
            state: The column that says what is rated, or one for each coordinate.
            rating: The column that says how good it is.
            box: A pair (low, high) for each coordinate, or one for all of them. Where states are items, their public
                list instead, or a file with a name in each line.
            low: The smallest rating; what is below counts as this.
            high: The largest rating.
            slope: The most that one person's reward changes over the whole width of the box. Needed in one
                dimension, where each person is a function.
            people: How many people there are. Those without a usable row are neutral.
            action: The column that says which action is rated, if ratings depend on one.
            actions: The public list of actions; the reward has a value for each.
            features: A public map that the model is made of. Leave it out unless you know better, or have embeddings:
                `features=Columns(prefix="e")`.
            engine: Where people are added up: "local" or "ray".

        """
        from quietq.feedback.schema import Category, Field, Number, Schema

        columns = columns_of("state", state, features, source)
        region, used = domain_of(box, features, len(columns))
        low, high = ends(low, high)
        if (action is None) != (actions is None):
            raise InvalidInput("action, a column, and actions, the public list of them, belong together.")
        loss = None
        fields: dict[str, Field] = dict(state_fields("x", columns, region, used))
        if action is not None or is_list(box) or features is not None or len(columns) > 1:
            if slope is not None:
                raise InvalidInput(
                    "slope is for one coordinate, and a model of everybody's rows has no use for it: leave it out."
                )
            loss = Squared(len(columns), (low, high))
            if action is not None and actions is not None:
                names = named("actions", actions)
                fields["action"], loss = Category(action, "action", names), replace(loss, actions=len(names))
            first: Statistic = Marginals(loss, len(columns), 1)
        else:
            if slope is None:
                raise InvalidInput(
                    "slope must be declared: the most that one person's reward changes over the whole box."
                )
            first = Extension(low, high, slope)
        fields["rating"] = Number(rating, "rating", low, high, clips=True)
        schema = Schema("ratings", person, fields)
        read = read_people(source, schema, first, people, engine=engine, keep=loss is not None)
        return cls(
            box=region, low=low, high=high, slope=slope, loss=loss, features=None if loss is None else used, **read
        )

    @cached_property
    def kind(self) -> str:
        return "rows" if self.asked is None else "function"

    @cached_property
    def relation(self) -> Relation:
        if self.asked is None:
            return OnePerson(self.people)
        return people_relation(self.people, self.asked.low, self.asked.high, self.asked.slope)

    @cached_property
    def largest(self) -> float:
        return max(abs(self.low), abs(self.high)) + (self.asked.beyond if self.asked is not None else 0.0)

    @cached_property
    def clipped(self) -> tuple[Assumption, ...]:
        if self.asked is None:
            return super().clipped
        return (Code.RATINGS_CLIPPED(self.low, self.high, self.asked.slope),)

    def functions(self) -> list[Callable[[np.ndarray], np.ndarray]]:
        if self.asked is None:
            return super().functions()
        return [_interpolator(self.mean(self.asked), self.box)]

    def __repr__(self) -> str:
        return f"Ratings(people={self.people}, box={self.box}, range=[{self.low:g}, {self.high:g}])"


def _interpolator(mean: np.ndarray, box: Box) -> Callable[[np.ndarray], np.ndarray]:
    """The mean between its grid points. Straight lines keep the range and the slope of every person's function."""
    grid = np.linspace(0, 1, len(mean))
    return lambda states: np.interp(box.to_unit(states), grid, mean)
