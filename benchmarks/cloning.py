"""Policies that imitate the best: true returns of private clones of 5,000 people, epsilon = 1, delta = 1e-5."""

from functools import partial

import numpy as np

import quietq as qq
from benchmarks.cloning_systems import SKILLED, Skilled, skilled
from benchmarks.study import PACKAGE_ROOMS, Case, Numbers, Study, own_files
from quietq.mechanisms.clone import CloneSettings, Cloning
from quietq.mechanisms.release import simulate
from quietq.released.private_network import PrivatePolicy

PEOPLE = 5000
BUDGET = qq.Budget(1.0, 1e-5)
NOT_PRIVATE = qq.Budget.from_mu(50.0, 1e-5)
"""So large that the noise does not matter."""


def study() -> Study:
    made_of = (*PACKAGE_ROOMS, *own_files("systems", "cloning_systems", "cloning"))
    cases = []
    for task in SKILLED:
        for people_are in SKILLED[task].kinds:
            labels = {"task": task, "people are": people_are}
            cases.append(Case(labels, partial(cloned, task, people_are), made_of, 0.6))
    remarks = (
        f"{PEOPLE:,} synthetic people of one episode each, 400 episodes of the same length for returns, 100 in MuJoCo. "
        "Recovered is (clone - behaviour)/(non-private clone - behaviour), where behaviour is people's mean return, "
        "and the non-private clone is made the same way with noise that does not matter; of a list the most probable "
        "action is taken. Settings were chosen on five other tasks, which are no longer kept. In MuJoCo people are "
        "drawn from a pool of 6,000, whose sessions are the first 100 steps (Reacher: 50); policies of ages were "
        "trained by Stable-Baselines3's SAC for 7 (Reacher) to 18 minutes (HalfCheetah) on one shared core, and stored "
        "after a tenth, a quarter, half and all of it.",
    )
    return Study("cloning", "people are", cases, remarks, draws=3)


def cloned(task: str, people_are: str, draw: int) -> Numbers:
    """What a private clone reaches, beside people themselves, a clone of everybody and a non-private clone."""
    system = skilled(task, people_are)
    steps = system.sessions(PEOPLE, draw)
    behaviour = float((steps.rewards * steps.there).sum(axis=1).mean())
    sessions = steps.read()
    mechanism = Cloning(sessions, BUDGET, system.returns, 0.2)
    policy = simulate(mechanism, sessions, draw)
    # The same network and the same number of steps.
    same = CloneSettings(hidden=mechanism.hidden, steps=mechanism.steps)
    everybody = simulate(Cloning(sessions, BUDGET, None, 1.0, same), sessions, draw)
    twin = simulate(Cloning(sessions, NOT_PRIVATE, system.returns, 0.2, same), sessions, draw)
    private, of_all, without = (value(system, one, draw) for one in (policy, everybody, twin))
    return {
        "recovered": (private - behaviour) / (without - behaviour),
        "return": private,
        "behaviour": behaviour,
        "clone of everybody": of_all,
        "non-private clone": without,
        "below behaviour": float(private < behaviour),
    }


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
