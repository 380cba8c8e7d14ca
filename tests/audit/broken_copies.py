"""What the audits of broken copies share: how sure they are, what was promised, and the verdict."""

import pytest

from quietq import Budget
from quietq.audit.finding import Finding
from quietq.worlds import WALK

SURE = 1 - 1e-6
DELTA = 1e-4
MU = 2.5
"""Sound tests err in Phi(-1.25) = 10.6 % of the runs, at the least; with half the noise, in Phi(-2.5) = 0.6 %."""
STRONG = Budget.from_mu(MU, DELTA)
PURE = 1.5
"""Epsilon of pure noise: a likelihood ratio of 4.5, and of 20 with half the noise."""
BALL = WALK.relation(50)
both = pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])


def check(finding: Finding, broken: bool) -> None:
    sure = finding.at(SURE)
    assert sure.verdict == ("refuted" if broken else "consistent")
