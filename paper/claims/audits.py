"""Theorem 5 itself, measured: the authors' program trained many times under r and r + 1, and told apart.

Lower bounds at 95 %, as `quietq audit published` has them. Trainings that an audit has kept are taken from its folder,
if there is one; where a thousand of a world are there already, all of them count.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from paper.claims.statement import TABLE, Found, Statement
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.audit import View, audit_training
from quietq.audit.pairs import neighbours
from quietq.audit.runs import Trainings
from quietq.learning import Published
from quietq.learning.cache import cache_folder
from quietq.privacy import SupBall
from quietq.worlds import WALK

STEPS = 5000
MOST, USUAL = 1000, 200
"""Runs a world: if they are kept already, and if not."""
TINY = (64, 500)
"""Runs a world and steps a run at a glance: enough to refute the claims, far from all that is there to see."""
CLAIMED = {0.32: 0.9, 0.74: 0.45}


def _audited(found: Found) -> tuple[Verdict, str]:
    claimed, lower = found.one("epsilon claimed"), found.one("epsilon at least, 95 %")
    # Not to have been refuted is not to hold: an audit proves nothing.
    return "fails" if lower > claimed else "in part", (
        f"the authors' program, trained under r and under r + 1: epsilon is at least {lower:.2f} (95 %), by "
        f"{found.one('runs a world'):.0f} runs of {found.one('steps a run'):,.0f} steps a world, of which "
        f"{found.one('judged runs mistaken'):.0f} of {found.one('judged runs'):.0f} judged were mistaken"
    )


def _stated(sigma: float, epsilon: float) -> Statement:
    return Statement(
        f"Theorem 5: sigma = {sigma:g}",
        f"sigma = {sigma:g} is ({epsilon:g}, 1e-4)-DP for rewards up to 1 apart",
        "tests/audit/test_promises.py::test_the_papers_program_gives_away_far_more_than_it_claims",
        _audited,
        "10",
    )


STATED = {sigma: _stated(sigma, epsilon) for sigma, epsilon in CLAIMED.items()}
STATEMENTS = tuple(STATED.values())


@dataclass(frozen=True)
class Audited(Task):
    """One sigma; done here, where trainings are kept."""

    table: ClassVar[str] = TABLE
    at_home: ClassVar[bool] = True
    sigma: float
    runs: int
    steps: int = STEPS

    @property
    def title(self) -> str:
        """For the bar."""
        return f"claims: audit of the authors' program, sigma {self.sigma:g}"

    @property
    def program(self) -> str:
        """Both sigmas are one program."""
        return f"audit of {self.steps} steps"

    def rows(self) -> list[Row]:
        """Trains and tells apart."""
        statement, program = STATED[self.sigma], Published.code(self.sigma)
        finding = audit_training(program, WALK, self.runs, steps=self.steps, folder=folder())
        errors = finding.by_epsilon
        numbers = {
            "epsilon claimed": finding.promise.epsilon,
            "epsilon at least, 95 %": finding.epsilon_lower,
            "mu at least, 95 %": finding.mu_lower,
            "runs a world": self.runs,
            "steps a run": self.steps,
            "judged runs": errors.runs_without + errors.runs_with,
            "judged runs mistaken": errors.false_alarms + errors.misses,
        }
        return [statement.row(words, value, x=self.sigma) for words, value in numbers.items()]


def folder() -> Path | None:
    """Where audits keep their trainings; None if nothing may be kept, nor taken from there."""
    place = cache_folder()
    return None if place is None else place / "audit"


def kept(sigma: float, runs: int) -> bool:
    """Whether an audit has kept so many complete trainings a world."""
    place = folder()
    if place is None:
        return False
    pair = neighbours(WALK, SupBall(1.0), "shift")
    return Trainings(Published.code(sigma), pair, View(), STEPS).kept(runs, place)


def audit_of(sigma: float, quick: bool) -> Audited:
    """A thousand runs a world if they are kept, else as many as there is time for."""
    for runs in (MOST, USUAL):
        if kept(sigma, runs):
            return Audited(sigma, runs)
    return Audited(sigma, *TINY) if quick else Audited(sigma, USUAL)
