"""First-visit returns of sessions, one episode of each person: what evaluation after Balle et al. looks at.

Theorem. Let each return be clipped to [-V, V] and rounded towards zero to a whole number of steps V/2^40. Then counts
and sums are whole numbers, added without rounding: replacing one person moves each count by at most 1 and each sum by
at most 2V, whatever V, the number of cells and that of people are. Counts and sums have steps of their own: in one
vector with one step, a large V would leave nothing of a visit. See `docs/theory.md`, section 4.6.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.feedback.returns import WeightedEpisodes, states_of
from quietq.feedback.sessions import Sessions
from quietq.feedback.statistic import Columns, Starts, Statistic, Tally
from quietq.feedback.trajectories import Cells, Visits, first_visits, largest_return
from quietq.noise.box import Box
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import Trajectories

_STEPS = 2**40


@dataclass(frozen=True, eq=False)
class FirstVisits(Statistic):
    """By cell, how many people's first episodes came by, and the sum of their returns from there on, in steps."""

    cells: Cells
    gamma: float
    relation: Trajectories
    box: Box
    rewards: tuple[float, float]

    def empty(self) -> Tally:
        return Tally(0, [np.zeros(self.cells.count, np.int64), np.zeros(self.cells.count, object)])

    def add(self, tally: Tally, starts: Starts, columns: Columns) -> None:
        (low, high), largest = self.rewards, self.relation.largest_reward
        states = states_of(columns, self.box)
        rewards = np.clip(low + (high - low) * columns["reward"], -largest, largest)
        most, (counts, sums) = largest_return(self.relation, self.gamma), tally.sums
        episodes = WeightedEpisodes.of(starts, columns)
        _, first = np.unique(episodes.person, return_index=True)
        for begin, length in zip(episodes.first[first], episodes.length[first], strict=True):
            steps = slice(begin, begin + min(length, self.relation.horizon or length))
            for cell, later in first_visits(states[steps], rewards[steps], self.cells, self.gamma, most):
                counts[cell] += 1
                sums[cell] += int(later / most * _STEPS)
        tally.people += len(starts)

    def mean(self, tally: Tally, count: int) -> Float[np.ndarray, "counts_and_sums cells"]:
        counts, sums = tally.sums
        most = largest_return(self.relation, self.gamma)
        return np.array([counts / count, [total / (_STEPS * count) * most for total in sums]])


def check_sessions(sessions: Sessions, relation: Trajectories) -> None:
    """Refuses sessions of another number of people than was declared, and those without rewards."""
    if sessions.people != relation.count or "reward" not in sessions.columns:
        raise InvalidInput(f"There must be sessions of {relation.count} people, with rewards; nothing was drawn.")


def visits_of(sessions: Sessions, cells: Cells, gamma: float, relation: Trajectories) -> Visits:
    """Counts and sums over all people."""
    check_sessions(sessions, relation)
    statistic = FirstVisits(cells, gamma, relation, sessions.box, (sessions.low, sessions.high))
    counts, sums = sessions.mean(statistic) * sessions.people
    return Visits(np.rint(counts).astype(np.int64), sums)
