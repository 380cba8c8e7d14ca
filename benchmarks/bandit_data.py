"""Real people for bandits: travellers who come by.

Each of Swissmetro's 1,191 people comes by once, with one of their nine choices, drawn at random. A policy
shows them one of the alternatives that they were offered, by journey time, fare, headway and kind, and the answer is 1
if it is the one that they chose. People are drawn anew, with replacement, for more arrivals than there were people: a
simulation with real answers, in which everybody who comes counts as another person.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.real_data import swissmetro

ARMS = 3


class Traveller(NamedTuple):
    """One who came by."""

    context: np.ndarray
    """A row of features for each alternative; all 0 where it was not offered."""
    chosen: int


def travellers(arrivals: int, seed: int) -> list[Traveller]:
    """Features are a constant for each kind, and for each kind its minutes and francs, from 0 to 1."""
    data, generator = swissmetro(), np.random.default_rng(seed)
    ends = np.array(list(data.box.values()), float)
    part = (data.states - ends[:, 0]) / (ends[:, 1] - ends[:, 0])
    kinds = np.broadcast_to(np.eye(ARMS), (len(part), ARMS, ARMS))
    rows = np.concatenate([kinds, 2 * part[..., :1], 2 * part[..., 1:2], part[..., 2:3]], axis=2)
    rows = rows / np.linalg.norm(rows, axis=2, keepdims=True) * data.offered[..., None]
    places = {person: np.flatnonzero(data.person == person) for person in data.people}
    who = generator.choice(data.people, arrivals)
    tasks = [int(generator.choice(places[person])) for person in who]
    return [Traveller(rows[task], int(data.chosen[task])) for task in tasks]
