"""Real people for bandits: travellers who come by, and a sample of the Open Bandit data.

Travellers: each of Swissmetro's 1,191 people comes by once, with one of their nine choices, drawn at random. A policy
shows them one of the alternatives that they were offered, by journey time, fare, headway and kind, and the answer is 1
if it is the one that they chose. People are drawn anew, with replacement, for more arrivals than there were people: a
simulation with real answers, in which everybody who comes counts as another person.

Open Bandit (Saito, Aihara, Matsutani & Narita 2021; CC BY 4.0): 10,000 impressions of a fashion shop, shown at random,
of which 38 were clicked. They are read from the package obp. With so few clicks a replay shows that everything fits
together, and nothing about which policy is the better one.
"""

import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import quietq as qq
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


def open_bandit() -> pl.DataFrame:
    """`item` (0 to 79), `click` and four hashed features of a user, of the impressions that were shown at random."""
    spec = importlib.util.find_spec("obp")
    if spec is None or spec.origin is None:
        raise qq.MissingExtra(
            "The Open Bandit sample is in the package obp, of which nothing else is used, so that it is installed "
            "without what it depends on: pip install --no-deps obp==0.4.1"
        )
    path = Path(spec.origin).parent / "dataset" / "obd" / "random" / "all" / "all.csv"
    return pl.read_csv(path, columns=["item_id", "click", *(f"user_feature_{i}" for i in range(4))]).rename(
        {"item_id": "item"}
    )


def replay(policy: Any, rows: pl.DataFrame) -> tuple[int, int]:
    """Impressions at which the policy would have shown what was shown, and their clicks (Li et al. 2011).

    All others are left out: whether a row counts depends on what was shown at random, and not on anybody's answer.
    """
    matched = clicks = 0
    for item, click in zip(rows["item"].to_list(), rows["click"].to_list(), strict=True):
        if policy.choose() == item:
            policy.learn(None, item, click)
            matched, clicks = matched + 1, clicks + click
    return matched, clicks
