"""Who preferred what to what: states, items or segments, of which each row says which one a person chose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quietq.feedback.feedback import (
    Engine,
    EngineName,
    Feedback,
    Items,
    columns_of,
    domain_of,
    read_people,
    state_fields,
)
from quietq.feedback.row_statistics import Chosen, Marginals
from quietq.noise.box import Domain
from quietq.noise.feature_maps import FeatureMap
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput

_TIE = "tie"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparisons(Feedback):
    """People's choices between two states. It is the secret itself: make it private with `privatise`.

    What is released is a reward in log-odds: where it differs by 1 between two states, 73 % choose the better one. A
    constant is not identified by comparisons; over uniform states its mean is 0.

    >>> import polars
    >>> rows = polars.DataFrame({"person": ["a", "b"], "x": [0.1, 0.2], "other": [0.9, 0.8], "choice": ["left", "tie"]})
    >>> Comparisons.read(rows, left="x", right="other", box=(0, 1), people=2)
    Comparisons(people=2, box=[0, 1])
    """

    @classmethod
    def read(
        cls,
        source: object,
        *,
        person: str = "person",
        left: str | Sequence[str] | None = None,
        right: str | Sequence[str] | None = None,
        options: Mapping[str, str | Sequence[str]] | None = None,
        choice: str = "choice",
        box: Domain | Items,
        people: int,
        segment: str | None = None,
        length: int | None = None,
        features: FeatureMap | None = None,
        engine: EngineName | Engine = "local",
    ) -> "Comparisons":
        """Reads comparisons. Columns are named; all else is public and declared by you, never taken from the rows.

        Args:
            source: A data frame (pandas or Polars), a CSV or Parquet file, or several of them.
            person: The column that says who.
            left: The columns of the first state, in the order of the box's coordinates.
            right: The columns of the second state.
            options: For a choice among several, the columns of each instead, such as {"train": ["train_time",
                "train_cost"], "car": ["car_time", "car_cost"]}. An option with a blank or impossible cell was not
                offered in that row.
            choice: The column that says "left", "right" or "tie", or which option was chosen.
            box: A pair (low, high) for each coordinate, or one for all of them. Where states are items, their public
                list instead, or a file with a name in each line; then each side is one column.
            people: How many people there are. Those without a usable row are neutral.
            segment: A column: rows of a person with the same name in it are the steps of one comparison, of which the
                sums of rewards are compared.
            length: About how many rows a segment has.
            features: A public map that the model is made of. Leave it out unless you know better.
            engine: Where people are added up: "local" or "ray".

        """
        from quietq.feedback.schema import Category, Field, Group, Schema

        sides = _sides(left, right, options)
        columns = {name: columns_of(name, given, None, source) for name, given in sides.items()}
        sizes = {name: len(given) for name, given in columns.items()}
        dimension = next(iter(sizes.values()))
        for name, size in sizes.items():
            if size != dimension:
                raise InvalidInput(f"{name} has {size} columns, but {next(iter(sizes))} has {dimension}.")
        region, used = domain_of(box, features, dimension)
        if (segment is None) != (length is None):
            raise InvalidInput("segment and length, about how many rows a segment has, belong together.")
        fields: dict[str, Field] = {} if segment is None else {"segment": Group(segment, "segment")}
        for j, given in enumerate(columns.values()):
            fields |= state_fields(f"option{j}_", given, region, used, optional=options is not None)
        fields["choice"] = Category(choice, "choice", tuple(sides) if options else (*sides, _TIE))
        loss = Chosen(dimension, len(sides), None if length is None else count("length", length))
        first = Marginals(loss, dimension, 1)
        schema = Schema("comparisons", person, fields, states=("options",) if options else ("left", "right"))
        read = read_people(source, schema, first, people, keep=True, engine=engine)
        return cls(box=region, features=used, loss=loss, **read)

    def __repr__(self) -> str:
        return f"Comparisons(people={self.people}, box={self.box})"


def _sides(
    left: str | Sequence[str] | None,
    right: str | Sequence[str] | None,
    options: Mapping[str, str | Sequence[str]] | None,
) -> Mapping[str, str | Sequence[str]]:
    if options is None:
        if left is None or right is None:
            raise InvalidInput("left and right must name the columns of the two states, or options those of several.")
        return {"left": left, "right": right}
    if left is not None or right is not None:
        raise InvalidInput("options name all states that are compared: leave left and right out.")
    if not isinstance(options, Mapping) or len(options) < 2:
        raise InvalidInput(
            "options must name the columns of at least two states, such as {'train': [...], 'car': [...]}."
        )
    return options
