"""What audits measured of each method, beside what it promises.

Audits of a private reward draw it many times, in seconds, and are tasks like others. Audits of what is trained take
thousands of trainings and minutes: they are `quietq paper audit all`, which keeps them. Here they are only looked up,
every time anew, because whether somebody has run it is no matter of configuration and code; what is not there says so.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import quietq as qq
from quietq.audit import Finding, audit_reward, neighbours
from quietq.mechanisms.mechanism import Task
from quietq.mechanisms.privatise import choose
from quietq.paper.agents.method import Method
from quietq.paper.algorithm import Published
from quietq.paper.attacks import Trainings, View, audit_training
from quietq.paper.attacks.attack_plan import EVERY, WORTH, noising_methods
from quietq.paper.attacks.on_trainings import ScoreKind, cache_folder, relation_of
from quietq.paper.observed import observed_mechanism
from quietq.worlds import WALK
from reproduction.comparison.scores import PIECES, budget, name_of
from reproduction.experiment import Row

PEOPLE, RUNS = 50, 1000
"""As `quietq paper audit all` has them by default."""
TOGETHER = 11
"""Audits that are shown side by side: four private rewards, five trained methods, the paper's at two sigmas."""
CONFIDENCE = 1 - 0.05 / TOGETHER
"""Of each, so that all bounds hold together at 95 %."""
NOT_HERE = "not audited here (quietq paper audit all)"


def measure_draws(noise: Any, people: int, runs: int) -> list[Row]:
    """Draws of a private reward and of its worst neighbour's, told apart as well as can be."""
    relation, pieces = WALK.relation(people), None if noise == "path" else PIECES["walk"]
    if noise == "observed":
        rough = qq.SupBall(relation.radius)
        mechanism = observed_mechanism(WALK, rough, budget())
    else:
        mechanism = choose(noise, Task(relation, budget(noise), WALK.box, pieces=pieces))
    found = audit_reward(WALK, mechanism, runs, confidence=CONFIDENCE)
    return [row_of(name_of("reward", noise), found)]


class Audit(NamedTuple):
    """One audit of `quietq paper audit all` that trains: all that names it."""

    name: str
    method: Method
    runs: int
    view: View
    score: ScoreKind

    @property
    def trainings(self) -> Trainings:
        pair = neighbours(WALK, relation_of(self.method), "shift")
        return Trainings(self.method, pair, self.view, public_walk=not isinstance(self.method, Published))

    def kept(self, folder: Path) -> bool:
        return self.trainings.kept(self.runs, folder)

    def finding(self, folder: Path) -> Finding:
        return audit_training(
            self.method, WALK, self.runs, view=self.view, score=self.score, folder=folder, confidence=CONFIDENCE
        )


def audits_of_trainings() -> Iterator[Audit]:
    """The paper's program, which claims, and the methods that noise as they go, which certify."""
    for sigma in (0.32, 0.74):
        yield Audit(f"published, sigma {sigma:g}", Published.code(sigma), RUNS, View(), "mean")
    promise: dict[str, Any] = {"relation": WALK.relation(PEOPLE), "budget": budget()}
    for name, kind in noising_methods().items():
        times, view, score = WORTH.get(name, (1, EVERY, "mean"))
        yield Audit(name, kind(**promise), times * RUNS, view, score)


def look_up() -> list[Row]:
    """One row a trained method: what was measured if all its trainings are kept, and otherwise that they are not."""
    place, rows = cache_folder(), list[Row]()
    for audit in audits_of_trainings():
        if place is not None and audit.kept(place / "audit"):
            rows.append(row_of(audit.name, audit.finding(place / "audit")))
        else:
            rows.append({"name": audit.name, "verdict": NOT_HERE})
    return rows


def row_of(name: str, found: Finding) -> Row:
    promise = found.promise
    return {
        "name": name,
        "standing": promise.standing,
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "mu": promise.mu,
        "epsilon_at_least": found.epsilon_lower,
        "mu_at_least": found.mu_lower,
        "runs": found.runs,
        "confidence": found.confidence,
        "verdict": found.verdict,
    }
