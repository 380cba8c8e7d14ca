"""All experiments, and what they found together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paper.claims import Claims
from paper.comparison import Comparing
from paper.experiment import Claim, Experiment, tables_of
from paper.extensions import Extensions
from paper.figures import Figure1, Figure2
from paper.task import Row, Task

EXPERIMENTS: dict[str, Experiment] = {
    kind.name: kind() for kind in (Figure1, Figure2, Claims, Comparing, Extensions)
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """Everything that was found."""

    experiments: Sequence[Experiment]
    tables: Mapping[str, Sequence[Row]]
    claims: list[Claim]


def gather(experiments: Sequence[Experiment], done: Mapping[Task, list[Row]]) -> Outcome:
    """Puts the rows of all tasks together, and asks what they say."""
    tables = tables_of(done)
    for experiment in experiments:
        tables |= experiment.further(tables)
    claims = [claim for experiment in experiments for claim in experiment.claims(tables)]
    return Outcome(experiments, tables, claims)
