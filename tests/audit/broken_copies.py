"""What the audits of broken copies share: how sure they are, what was promised, and ways to break a copy."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from quietq import Budget
from quietq.audit.finding import Finding
from quietq.mechanisms.release import Mechanism
from quietq.noise.laws import Law
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


def altered(
    mechanism: Mechanism,
    law: Callable[[Law], Law] = lambda law: law,
    numbers: Callable[[Any, Any], np.ndarray] = lambda numbers, feedback: numbers(feedback),
) -> Any:
    """A copy of a mechanism whose queries have another law, or look at other numbers."""
    kind = type(mechanism)

    def run(self: Any) -> Any:
        steps = mechanism.run()
        query = next(steps)
        while True:
            seen = query.numbers
            answer = yield query._replace(
                law=law(query.law), numbers=lambda feedback, seen=seen: numbers(seen, feedback)
            )
            try:
                query = steps.send(answer)
            except StopIteration as last:
                return last.value

    one = copy.copy(mechanism)
    one.__class__ = type(
        f"Altered{kind.__name__}", (kind,), {"run": run, "result": lambda self, *rest: mechanism.result(*rest)}
    )
    return one


def halve_draws(law: Law) -> Law:
    """It says one size, and draws half of it."""
    kind = type(law)
    one = copy.copy(law)
    half = type(f"Half{kind.__name__}", (kind,), {"draw": lambda self, *arguments: kind.draw(self, *arguments) / 2})
    object.__setattr__(one, "__class__", half)
    return one


def swap_draws(law: Law, other: Law) -> Law:
    """It draws what another law does."""
    one = copy.copy(law)
    swapped = type("Swapped", (type(law),), {"draw": lambda self, *arguments: other.draw(*arguments)})
    object.__setattr__(one, "__class__", swapped)
    return one
