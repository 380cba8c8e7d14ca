"""From numbers to verdicts, by one rule for both figures.

`holds` where all of them clearly agree with what is printed, `fails` where one clearly contradicts and none agrees, and
`in part` for the rest: some of it, or nothing clear. "The same" is never what merely could not be told apart: it has to
lie within a stated margin.
"""

from collections.abc import Sequence

from paper.experiment import Verdict
from paper.figures.curves import Measure

MARGIN = 0.1
"""Scores that differ by no more than this are called similar, and a gain of no more is called none."""
CLEARLY = "Clearly: by a 95 % interval of Student's t."


def judged(agree: Sequence[bool], contrary: Sequence[bool]) -> Verdict:
    """The verdict on numbers that clearly agree, clearly contradict, or neither.

    >>> judged([True, True], [False, False]), judged([False], [False]), judged([False], [True])
    ('holds', 'in part', 'fails')
    """
    if agree and all(agree):
        return "holds"
    return "fails" if any(contrary) and not any(agree) else "in part"


def similar(difference: Measure) -> bool:
    """Whether the whole interval lies within the margin."""
    return difference.low >= -MARGIN and difference.high <= MARGIN


def different(difference: Measure) -> bool:
    """Whether the whole interval lies outside the margin."""
    return difference.low > MARGIN or difference.high < -MARGIN
