"""What audits measured of each method, beside what it promises.

Audits of a private reward draw it many times, in seconds, and are tasks like others. Audits of what is trained take
thousands of trainings and minutes: they are `quietq audit all`, which keeps them. Here they are only looked up, every
time anew, because whether somebody has run it is no matter of configuration and code; what is not there says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import quietq as qq
from paper.comparison.scores import PIECES, budget, name_of
from paper.task import Row, Task
from quietq.audit import Finding, Trainings, View, audit_observed, audit_reward, audit_training, neighbours
from quietq.audit.everything import TRAINED
from quietq.audit.training import ScoreKind, relation_of
from quietq.learning import METHODS
from quietq.learning.cache import cache_folder
from quietq.learning.method import Method
from quietq.learning.published import Published
from quietq.worlds import WALK

PEOPLE, RUNS = 50, 1000
"""As `quietq audit all` has them by default."""
TOGETHER = 11
"""Audits that are shown side by side: four private rewards, five trained methods, the paper's at two sigmas."""
CONFIDENCE = 1 - 0.05 / TOGETHER
"""Of each, so that all bounds hold together at 95 %."""
NOT_HERE = "not audited here (quietq audit all)"


@dataclass(frozen=True)
class DrawAudit(Task):
    """Draws of a private reward and of its worst neighbour's, told apart as well as can be."""

    table: ClassVar[str] = "audit_draws"

    noise: str
    people: int
    runs: int

    @property
    def title(self) -> str:
        """Noise."""
        return f"audit of {name_of('reward', self.noise)}"

    def rows(self) -> list[Row]:
        """One row."""
        relation = WALK.relation(self.people)
        if self.noise == "observed":
            found = audit_observed(
                WALK, qq.SupBall(relation.radius), budget(), self.runs, confidence=CONFIDENCE
            )  # fmt: skip
        else:
            pieces = None if self.noise == "path" else PIECES["walk"]
            found = audit_reward(
                WALK, relation, budget(), self.runs, noise=self.noise, pieces=pieces, confidence=CONFIDENCE
            )  # fmt: skip
        return [row_of(name_of("reward", self.noise), found)]


class Audited(NamedTuple):
    """One audit of `quietq audit all` that trains: all that names it."""

    name: str
    method: Method
    runs: int
    view: View
    score: ScoreKind

    @property
    def trainings(self) -> Trainings:
        """What is trained, and kept under that name."""
        public = not isinstance(self.method, Published)
        return Trainings(
            self.method, neighbours(WALK, relation_of(self.method), "shift"), self.view, public_walk=public
        )

    def kept(self, folder: Path) -> bool:
        """Whether all of its trainings are there."""
        return self.trainings.kept(self.runs, folder)

    def finding(self, folder: Path) -> Finding:
        """What it found."""
        return audit_training(
            self.method, WALK, self.runs, view=self.view, score=self.score, folder=folder, confidence=CONFIDENCE
        )


def trained() -> Iterator[Audited]:
    """The paper's program, which claims, and the methods that noise as they go, which certify."""
    for sigma in (0.32, 0.74):
        yield Audited(f"published, sigma {sigma:g}", Published.code(sigma), RUNS, View(), "mean")
    for name, (times, view, score) in TRAINED.items():
        method = METHODS[name](relation=WALK.relation(PEOPLE), budget=budget())  # pyright: ignore[reportCallIssue]
        yield Audited(name, method, times * RUNS, view, score)


def audited() -> list[Row]:
    """One row a trained method: what was measured if all its trainings are kept, and otherwise that they are not."""
    place, rows = cache_folder(), list[Row]()
    for audit in trained():
        if place is not None and audit.kept(place / "audit"):
            rows.append(row_of(audit.name, audit.finding(place / "audit")))
        else:
            rows.append({"name": audit.name, "verdict": NOT_HERE})
    return rows


def row_of(name: str, found: Finding) -> Row:
    """What was promised, what was measured, and with which confidence."""
    promise = found.promise
    return {
        "name": name, "standing": promise.standing, "epsilon": promise.epsilon, "delta": promise.delta,
        "mu": promise.mu, "epsilon_at_least": found.epsilon_lower, "mu_at_least": found.mu_lower, "runs": found.runs,
        "confidence": found.confidence, "verdict": found.verdict,
    }  # fmt: skip
