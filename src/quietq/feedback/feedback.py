"""What people gave, as mechanisms see it: how one person can move it, and means of per-person statistics.

A kind of feedback is a file with a subclass of `Feedback` and a line in `quietq.feedback.FEEDBACK`. It states its
columns (a `Schema`), what is asked of each person (a `Statistic`, which holds everybody to a bound), and how far one
person can move the mean of that (a relation). Reading, grouping all rows of a person in one place, and summing, on one
machine or on Ray, are the same for all.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from quietq.feedback.doubts import FOR_YOU, warn_of_raw_data
from quietq.feedback.engines import Engine, EngineName, engine_called
from quietq.feedback.loss import Loss
from quietq.feedback.statistic import Statistic
from quietq.noise.box import Box
from quietq.noise.feature_maps import FeatureMap
from quietq.privacy.account import Once
from quietq.privacy.assumptions import Assumption
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import Relation

if TYPE_CHECKING:
    from quietq.feedback.buckets import Buckets
    from quietq.feedback.schema import Schema
    from quietq.feedback.spaces import Spaces


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Feedback:
    """What people gave. It is the secret itself: make it private with `privatise`.

    Without an account, `privatise` releases the same people once: releases add up.
    """

    accuracy: ClassVar[float | None] = None
    """How far off values are at the most, where they are less exact than float64: sums of people are not."""
    loss: Loss | None = None
    """What a model of everybody's rows is judged by, if it gives rows."""
    features: FeatureMap | None = None
    """A public map that the model is to be made of, if one was asked for."""
    spaces: "Spaces | None" = None
    """Where states, actions and rewards lie, if it gives sessions."""
    box: Box
    """Where states lie; public."""
    people: int
    """How many people there are; public and declared, never counted. Those without a usable row are neutral."""
    sums: "Buckets"
    not_private: dict[str, int]
    """counts for the operator; publishing them is not covered by any certificate"""
    schema: "Schema | None" = None
    """Which columns their rows had, if there were any; public. Audits make up rows by it."""
    once: Once = field(default_factory=lambda: Once("These people's reward"))
    """The mark by which `privatise` knows that they were released; copies and pickles carry it along."""

    @cached_property
    def relation(self) -> Relation:
        """Which two of what is released must look alike: replacing any one person's rows by any others, or by none."""
        raise NotImplementedError

    @cached_property
    def assumptions(self) -> tuple[Assumption, ...]:
        """How the relation is made sure of, and what no code can see."""
        raise NotImplementedError

    @cached_property
    def largest(self) -> float:
        """A public bound on the size of what is released, before noise."""
        raise NotImplementedError

    @cached_property
    def kind(self) -> str:
        """What it is to mechanisms: a "function" of states, "rows" that a model is fitted to, or its class's name."""
        return type(self).__name__.lower() if self.loss is None else "rows"

    @cached_property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the coordinates of states and the actions were called when they were declared; public.

        Columns that were found by a prefix have no such names: nobody declared them.
        """
        if self.spaces is not None:
            return self.spaces.state_names, self.spaces.action_names
        fields = {} if self.schema is None or getattr(self.features, "prefix", "") else self.schema.fields
        states = [one.column for name, one in fields.items() if re.fullmatch(r"(x|option0_)\d+", name)]
        actions = getattr(fields.get("action"), "values", ())
        return tuple(states), actions

    @cached_property
    def slope(self) -> float | None:
        """Of the mean, over the width of the box, if it is declared."""
        return None

    def functions(self) -> list[Callable[[np.ndarray], np.ndarray]]:
        """The mean reward, one function per coordinate, if it is one. THE SECRET: it must not be published."""
        raise InvalidInput("Only ratings in one dimension, or with additive splines, are functions.")

    def mean(self, statistic: Statistic) -> np.ndarray:
        """The mean of a statistic over all people, each clipped to its bound. THE SECRET: it must not be published."""
        return statistic.mean(self.sums.total(statistic), self.people)


def read_people(
    source: object,
    schema: "Schema",
    statistic: Statistic,
    people: int,
    *,
    engine: EngineName | Engine = "local",
    keep: bool = False,
) -> dict[str, Any]:
    """Reads a source, and adds up its rows: `people`, `sums`, `not_private` and `schema`, as `Feedback` takes them.

    The rows are gone then, unless they are to be kept for statistics besides this one.
    """
    from quietq.feedback.buckets import read_buckets

    people = count("people", people)
    sums, counts = read_buckets(source, schema, engine_called(engine), statistic, keep)
    tally = sums.first_sum
    if tally.people > people:
        declared = f"the {people} that were declared"
        raise InvalidInput(f"There are more people in the data than {declared}; nothing was spent.")
    present = {**counts, "people_present": tally.people, **statistic.told(tally)}
    doubts = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in schema.doubts(present, people)]
    if not tally.people:
        # No refusal, which would tell whether the one person with a usable row is there.
        nobody = f"No row of the {schema.kind} can be used, so all {people} people count as neutral."
        doubts = [" ".join([nobody, *doubts, "Numbers must have a decimal point, not a comma."])]
    for sentence in doubts:
        warn_of_raw_data(f"{sentence} {FOR_YOU}", stacklevel=3)
    return {"people": people, "sums": sums, "not_private": present, "schema": schema}
