"""Who preferred what to what: pairs of states, of which each row says which one a person chose."""

from collections.abc import Sequence
from dataclasses import dataclass

from quietq.feedback.feedback import NAMED, Engine, Feedback, Progress, read_people
from quietq.feedback.loss import CHOICES, Logistic
from quietq.feedback.row_statistics import Marginals
from quietq.noise.box import Box, Domain
from quietq.privacy.certificate import Assumption
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import OnePerson


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparisons(Feedback):
    """People's choices between two states. It is the secret itself: make it private with `privatise`.

    What is released is a reward in log-odds: where it differs by 1 between two states, 73 % choose the better one. A
    constant cannot be told from comparisons; over uniform states its mean is 0.

    >>> import polars
    >>> rows = polars.DataFrame({"person": ["a", "b"], "x": [0.1, 0.2], "other": [0.9, 0.8], "choice": ["left", "tie"]})
    >>> Comparisons.read(rows, left="x", right="other", box=(0, 1), count=2)
    Comparisons(count=2, box=[0, 1])
    """

    gives: str = "rows"

    @classmethod
    def read(
        cls,
        source: object,
        *,
        left: str | Sequence[str],
        right: str | Sequence[str],
        choice: str = "choice",
        person: str = "person",
        box: Domain,
        count: int,
        engine: Engine = "local",
        progress: Progress | None = None,
    ) -> "Comparisons":
        """From a data frame (pandas or Polars), CSV or Parquet files, or several of them.

        `left` and `right` name the columns of the two states, in the order of the box's coordinates; `choice` is the
        column that says "left", "right" or "tie". `box` and `count` are public and declared by you.
        With `engine="ray"` rows are read, and stay, on a Ray cluster.
        """
        from quietq.feedback.schema import Category, Number, Schema

        region = Box.of(box)
        fields: dict[str, Number | Category] = {}
        for side, given in (("left", left), ("right", right)):
            names = (given,) if isinstance(given, str) else tuple(given)
            if len(names) != region.dimension:
                raise InvalidInput(f"box has {region.dimension} dimensions, but {side} has {len(names)} columns.")
            for i, name in enumerate(names):
                fields[f"{side}{i}"] = Number(name, "state", region.low[i], region.high[i], scales=True)
        fields["choice"] = Category(choice, "choice", CHOICES)
        loss = Logistic(region.dimension)
        first = Marginals(loss, region.dimension, 1)
        schema = Schema("comparisons", person, fields)
        read = read_people(source, schema, first, count, engine=engine, keep=True, progress=progress)
        return cls(box=region, loss=loss, **read)

    @property
    def relation(self) -> OnePerson:
        return OnePerson(self.count)

    @property
    def largest(self) -> float:
        return 1.0

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        one = f"One person's rows, all of them, count as one of {self.count} people: their means were held to bounds."
        return (Assumption(one, True), NAMED)

    def __repr__(self) -> str:
        return f"Comparisons(count={self.count}, box={self.box})"
