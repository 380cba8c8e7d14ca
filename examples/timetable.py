"""A railway's day, in which an agent sets fare and headway: the world of `travellers.ipynb`.

It earns the fares of those who come and find a seat, and pays for running trains. Which share of travellers comes at a
fare and a headway is an array that is handed in; it may come from a private reward. The day, its travellers and its
costs are synthetic, so what is earned shows how it goes and is no benchmark.
"""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from quietq.paper.agents import Agent, NoNoise

FARES = np.arange(40.0, 181.0, 20.0)
HEADWAYS = np.array([10.0, 12.0, 15.0, 20.0, 30.0])
MINUTES = 75.0
RIVALS = ((160.0, 90.0, 30.0, 1.0, 0.0), (110.0, 80.0, 0.0, 0.0, 0.0))
"""The train and the car: minutes, francs, headway, and which of the two railways it is."""
HOURS = np.arange(5, 24)
TRAVELLERS = np.array([2, 9, 20, 18, 10, 7, 7, 8, 8, 7, 9, 15, 20, 18, 11, 7, 5, 4, 2]) * 100.0
"""How many set out in each hour, by any means."""
BUSY = (0.8, 1.0, 1.2)
"""Days differ: the number of travellers is that of the hour, times up to so much."""
SEATS, RUN = 150, 6_000.0
"""Of a train; and what running one costs, in francs."""
MOVES = [(fare, headway) for fare in (-1, 0, 1) for headway in (-1, 0, 1)]
"""An action: the fare and the headway each go one notch down or up, or stay."""
START = (3, 3)
UNIT = 1e5
"""Rewards are in units of so many francs."""

Timetable = list[tuple[int, int]]
"""Notches of fare and headway, hour by hour."""
Policy = Callable[[np.ndarray], int]
"""From an observation to an action."""


def shares(reward: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """(fares, headways): which share of travellers takes the Swissmetro, by differences of the reward in log-odds."""
    offers = np.array([[(MINUTES, fare, headway, 0.0, 1.0) for headway in HEADWAYS] for fare in FARES])
    odds = np.exp(reward(offers))
    return odds / (odds + np.exp(reward(np.array(RIVALS))).sum())


def earned(share: np.ndarray, hour: int, busy: float, fare: int, headway: int) -> float:
    """Fares of those who come and find a seat, less the cost of running trains; in units."""
    trains = 60 / HEADWAYS[headway]
    seated = min(busy * TRAVELLERS[hour] * share[fare, headway], SEATS * trains)
    return (seated * FARES[fare] - RUN * trains) / UNIT


class Day(gymnasium.Env):
    """One day from 5 to 24 o'clock. An observation is the hour, the notches of fare and headway, and how busy it is."""

    def __init__(self, share: np.ndarray) -> None:
        low, high = (0, 0, 0, BUSY[0]), (len(HOURS), len(FARES) - 1, len(HEADWAYS) - 1, BUSY[-1])
        self.observation_space = gymnasium.spaces.Box(np.array(low, np.float32), np.array(high, np.float32))
        self.action_space = gymnasium.spaces.Discrete(len(MOVES))
        self._share = share

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._hour, self._set = 0, START
        self._busy = float((options or {}).get("busy", self.np_random.uniform(BUSY[0], BUSY[-1])))
        return self._observation(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._set = move(self._set, int(action))
        reward = earned(self._share, self._hour, self._busy, *self._set)
        self._hour += 1
        return self._observation(), reward, self._hour == len(HOURS), False, {}

    def _observation(self) -> np.ndarray:
        return np.array([self._hour, *self._set, self._busy], np.float32)


def move(at: tuple[int, int], action: int) -> tuple[int, int]:
    fare, headway = at[0] + MOVES[action][0], at[1] + MOVES[action][1]
    return min(max(fare, 0), len(FARES) - 1), min(max(headway, 0), len(HEADWAYS) - 1)


def trained(share: np.ndarray, steps: int) -> Policy:
    """A deep Q-learner in the day of such travellers. Whatever it does is post-processing of the shares."""
    method = NoNoise(gamma=0.98, explore_decay=steps / 8, widths=(64, 64))
    agent = Agent(Day(share), method, seed=0).learn(steps)
    return lambda observation: int(np.asarray(agent.predict(observation)[0]))


def planned(share: np.ndarray, busy: float) -> Timetable:
    """The best timetable there is for such travellers, by going backwards through the day."""
    places = [(fare, headway) for fare in range(len(FARES)) for headway in range(len(HEADWAYS))]
    after, choices = dict.fromkeys(places, 0.0), []
    for hour in reversed(range(len(HOURS))):
        worth = {at: earned(share, hour, busy, *at) + after[at] for at in places}
        choice = {at: max((move(at, action) for action in range(len(MOVES))), key=worth.__getitem__) for at in places}
        after = {at: worth[choice[at]] for at in places}
        choices.append(choice)
    at, table = START, []
    for choice in reversed(choices):
        at = choice[at]
        table.append(at)
    return table


def followed(policy: Policy, busy: float) -> Timetable:
    """What a policy sets through a day; it needs no reward for that."""
    observation, table, at = np.array([0, *START, busy], np.float32), [], START
    for hour in range(len(HOURS)):
        at = move(at, policy(observation))
        table.append(at)
        observation = np.array([hour + 1, *at, busy], np.float32)
    return table


def constant(share: np.ndarray) -> Timetable:
    """The best fare and headway that stay the same all day, for such travellers on a usual day."""
    places = [(fare, headway) for fare in range(len(FARES)) for headway in range(len(HEADWAYS))]
    best = max(places, key=lambda at: sum(earned(share, hour, 1.0, *at) for hour in range(len(HOURS))))
    return [best] * len(HOURS)


def income(share: np.ndarray, table: Callable[[float], Timetable]) -> float:
    """Francs a day, the mean over busy days and others."""
    days = [sum(earned(share, hour, busy, *at) for hour, at in enumerate(table(busy))) for busy in BUSY]
    return UNIT * float(np.mean(days))
