"""Policies that imitate the best: true returns of private clones of 5,000 people, epsilon = 1, delta = 1e-5."""

from functools import partial

import numpy as np

import quietq as qq
from benchmarks.cloning_systems import SKILLED, Skilled, skilled
from benchmarks.study import PACKAGE_ROOMS, Case, Draws, Numbers, Study, own_files
from quietq.mechanisms.clone import CloneSettings, Cloning
from quietq.mechanisms.release import simulate
from quietq.released.private_network import PrivatePolicy

PEOPLE = 5000
DELTA = 1e-5
MORE = (3.0, 10.0)
"""Larger epsilons: these, and a clone of everybody, are in every fourth draw only."""
NOT_PRIVATE = qq.Budget.from_mu(50.0, DELTA)
"""So large that the noise does not matter."""


def study() -> Study:
    made_of = (*PACKAGE_ROOMS, *own_files("systems", "cloning_systems", "cloning"))
    cases = []
    for task in SKILLED:
        for people_are in SKILLED[task].kinds:
            labels = {"task": task, "people are": people_are}
            cases.append(Case(labels, partial(cloned, task, people_are), made_of, 0.6))
    remarks = (
        f"{PEOPLE:,} synthetic people of one episode each; 400 episodes for returns, 25 in MuJoCo. Recovered is (clone "
        "- behaviour)/(non-private clone - behaviour), the second on average over draws, where behaviour is people's "
        "mean return, and the non-private clone is made the same way, with as large a network as at epsilon = 1 and "
        "noise that does not matter; of a list the most probable action is taken. Larger epsilons, and a clone of "
        "everybody at epsilon = 1, are in every fourth draw only.",
        "Settings were chosen on other tasks. Two versions were measured here on the way and replaced by what was "
        "better there: one with larger steps and outputs 1.5 times as large (worse on Reacher, better on Walker2d), "
        "after which a point that glides to a target joined those tasks, and one that imitated means.",
        "In MuJoCo people are drawn with replacement from a pool of 2,000. Sessions and returns are of whole episodes "
        "of 1,000 steps (Reacher: 50), or less where people fall; a row is every tenth state and action, and what ten "
        "steps were worth (Reacher: every one). Each of the policies of ages was trained in one run by Stable- "
        "Baselines3 on part of a shared core and stored on the way. HalfCheetah's and Reacher's: SAC, for 18 and 7 "
        "minutes, after a tenth, a quarter, half and all of that. Swimmer's, Hopper's and Walker2d's: PPO with "
        "normalised observations (gamma 0.9999 for Swimmer), for 5, 5 and 15 minutes, after 3, 10, 30 and 100 % of "
        "that; longer runs were nearly as good after a tenth as in the end, which leaves nobody who is bad.",
    )
    return Study("cloning", "people are", cases, remarks, draws=10, compare=with_recovered)


def cloned(task: str, people_are: str, draw: int) -> Numbers:
    """What a private clone reaches, beside people themselves, a clone of everybody and a non-private clone."""
    system = skilled(task, people_are)
    steps = system.sessions(PEOPLE, draw)
    behaviour = float((steps.rewards * steps.there).sum(axis=1).mean())
    sessions = steps.read()
    private = Cloning(sessions, qq.Budget(1.0, DELTA), system.returns, 0.2)
    same = CloneSettings(hidden=private.hidden, steps=private.steps)
    clones = {"return": private, "non-private clone": Cloning(sessions, NOT_PRIVATE, system.returns, 0.2, same)}
    if draw % 4 == 0:
        clones["clone of everybody"] = Cloning(sessions, qq.Budget(1.0, DELTA), None, 1.0, same)
        for epsilon in MORE:
            larger = Cloning(sessions, qq.Budget(epsilon, DELTA), system.returns, 0.2)
            clones[f"return at epsilon {epsilon:g}"] = larger
    reached = {name: value(system, simulate(clone, sessions, draw), draw) for name, clone in clones.items()}
    below = float(reached["return"] < behaviour)
    return reached | {"behaviour": behaviour, "below behaviour": below}


def with_recovered(found: list[Draws]) -> list[Draws]:
    """Returns, and their shares of what non-private clones gain on average: one of these may gain next to nothing."""
    shown = []
    for draws in found:
        gained = np.mean([one["non-private clone"] - one["behaviour"] for one in draws.values()]) if draws else 1.0
        shares = {
            draw: {
                name.replace("return", "recovered"): float((return_ - one["behaviour"]) / gained)
                for name, return_ in one.items()
                if name.startswith("return")
            }
            for draw, one in draws.items()
        }
        shown.append({draw: shares[draw] | one for draw, one in draws.items()})
    return shown


def value(system: Skilled, policy: PrivatePolicy, draw: int) -> float:
    """The mean true return of episodes that are as long as people's."""
    returns = np.zeros(system.episodes)
    rng = np.random.default_rng([draw, 7])
    steps = system.recorded or system.steps
    for _, _, _, rewards, _, alive in system.roll(
        rng, system.episodes, steps, lambda _, __, states: policy.predict(states)[0]
    ):
        returns += alive * rewards
    return float(returns.mean())
