"""First-visit returns of sessions, one episode of each person: what evaluation after Balle et al. looks at."""

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from quietq.feedback.returns import Episodes, states_of
from quietq.feedback.sessions import Sessions
from quietq.feedback.statistic import Columns, Starts, Vector
from quietq.feedback.trajectories import Cells, Visits, first_visits, largest_return
from quietq.noise.box import Box
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import Trajectories


@dataclass(frozen=True, eq=False)
class FirstVisits(Vector):
    """Whether a person's first episode came by each cell, and its return from there on; 0 where it did not."""

    cells: Cells
    gamma: float
    relation: Trajectories
    box: Box
    rewards: tuple[float, float]
    size: int = field(init=False)
    bound: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 2 * self.cells.count)
        most = max(1.0, largest_return(self.relation, self.gamma))  # so that nobody's vector is ever shortened
        object.__setattr__(self, "bound", most * math.sqrt(2 * self.cells.count))

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        (low, high), largest = self.rewards, self.relation.largest_reward
        states, rewards = (
            states_of(columns, self.box),
            np.clip(low + (high - low) * columns["reward"], -largest, largest),
        )
        episodes, found = Episodes.of(starts, columns), np.zeros((len(starts), self.size))
        people, first = np.unique(episodes.person, return_index=True)
        for person, begin, length in zip(people, episodes.first[first], episodes.length[first], strict=True):
            steps = slice(begin, begin + min(length, self.relation.horizon or length))
            for cell, later in first_visits(states[steps], rewards[steps], self.cells, self.gamma):
                found[person, [cell, self.cells.count + cell]] = 1.0, later
        return found


def visits_of(sessions: Sessions, cells: Cells, gamma: float, relation: Trajectories) -> Visits:
    """Counts and sums over all people."""
    if sessions.people != relation.count or "reward" not in sessions.columns:
        raise InvalidInput(f"There must be sessions of {relation.count} people, with rewards; nothing was drawn.")
    statistic = FirstVisits(cells, gamma, relation, sessions.box, (sessions.low, sessions.high))
    counts, sums = np.split(sessions.mean(statistic) * sessions.people, 2)
    return Visits(np.rint(counts).astype(np.int64), sums)
