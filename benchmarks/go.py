"""A private go or no-go: does it tell policies that are good from those that are not? epsilon 1, delta 1e-5."""

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

import quietq as qq
from benchmarks.study import PACKAGE_ROOMS, ROOT, Case, Numbers, Study, own_files
from benchmarks.systems import DEVELOPMENT, REPORTED, Array, System
from benchmarks.world_twin import twin
from quietq.worlds.planning import LinearPolicy, plan_linear, policy_shape

SYSTEMS: dict[str, System] = DEVELOPMENT | REPORTED
PEOPLE = {
    "random linear 0": 150,
    "tanks": 300,
    "spring": 150,
    "bowl": 180,
    "boiler": 300,
    "rare find": 3000,
    "CartPole-v1": 350,
    "glucose": 500,
    "MountainCarContinuous-v0": 180,
    "rare harm": 4000,
}
"""About where half of the plans are good."""
MANY = 5
"""So many times as many people have signs beside votes, where these are few."""
PART = 0.9
"""A policy is good if it is worth this part of what twins are, on average."""
POLICIES = ("plan", "random", "clone")
MADE_OF = (*PACKAGE_ROOMS, ROOT / "src" / "quietq" / "worlds", *own_files("systems", "world_twin", "go"))


def study() -> Study:
    cases = []
    for name, people in PEOPLE.items():
        for number in (people,) if people >= 1000 else (people, MANY * people):
            for kind in POLICIES:
                system = {"system": name, "kind": "development" if name in DEVELOPMENT else "reported"}
                labels = system | {"people": number, "policy": kind}
                cases.append(Case(labels, partial(_measure, SYSTEMS[name], number, kind), MADE_OF))
    remarks = (
        "'good' is the part of policies whose true return is at least 0.9 of the twin's (1.1, below 0), which is what "
        "is wanted; 'right' is how often the rule was; 'share' and 'z-score' are the two opinions, the second where it "
        "was asked for. 'false go' is how often the rule was for a policy that is not good, 'refused' how often "
        "against one that is; 'false go of votes' and 'refused by votes' are by the share alone. Random policies have "
        "standard normal weights. A tenth of mu squared goes into the check, the rest into the world. The rule was "
        "chosen on the development systems, but what votes are made of had been tried on the reported ones too (4 to "
        "10 draws each).",
    )
    return Study("go", "policy", cases, remarks)


def _measure(system: System, people: int, kind: str, draw: int) -> Numbers:
    """Whether the check of a policy is right; CartPole's twin is known to balance for all of its steps."""
    cartpole = system.name == "CartPole-v1"
    steps = system.steps if cartpole else system.planning or system.steps
    wanted = PART * system.steps if cartpole else wanted_of(system.name, PEOPLE[system.name])
    sessions, world, of_check = _released(system, people, draw)
    policy, act = _policy(system, sessions, world, steps, kind, draw)
    check = qq.check(policy, sessions, of_check, wanted, trained_on=world, steps=steps, simulate=draw)
    assert check.share is not None
    good = system.value(act, draw, _episodes(system)) >= wanted
    found = {"good": float(good), "right": float(bool(check.go) == good), "share": check.share, "noise": check.error}
    found |= {} if check.z_score is None else {"agreement": check.agreement or 0.0, "z-score": check.z_score}
    votes = check.share >= check.threshold
    if good:
        return found | {"refused": float(not check.go), "refused by votes": float(not votes)}
    return found | {"false go": float(bool(check.go)), "false go of votes": float(votes)}


@lru_cache(maxsize=1)
def _released(system: System, people: int, draw: int) -> tuple[qq.Sessions, qq.PrivateWorld, qq.Budget]:
    """Sessions and their world, the same for all policies, and what a check may cost."""
    sessions = system.sessions(people, 500 + draw).read()
    of_world, of_check = qq.Budget(1, 1e-5).split(0.9, 0.1)
    return sessions, qq.privatise(sessions, of_world, world=system.model, simulate=draw), of_check


def _policy(
    system: System, sessions: qq.Sessions, world: qq.PrivateWorld, steps: int, kind: str, draw: int
) -> tuple[object, Callable[[Array], Array]]:
    """What is checked, and how it acts."""
    if kind == "clone":
        ends = min(system.low * system.steps, system.low), max(system.high * system.steps, system.high)
        clone = qq.clone(sessions, qq.Budget(1, 1e-5).split(0.9, 0.1)[0], returns=ends, simulate=draw)
        return clone, lambda states: np.asarray(clone.predict(states)[0])
    if kind == "random":
        weights = np.random.default_rng(draw).standard_normal(policy_shape(world.spaces))
        random = LinearPolicy(world.spaces, weights, *world.typical(), world)
        return random, random
    plan = plan_linear(world, steps=steps, seed=draw)
    return plan, plan


@lru_cache
def wanted_of(name: str, people: int) -> float:
    """Nine tenths of what five twins reach, of other people."""
    system, found = SYSTEMS[name], []
    for draw in range(1000, 1005):
        policy = plan_linear(twin(system.sessions(people, draw)), steps=system.planning or system.steps, seed=draw)
        found.append(system.value(policy, draw, _episodes(system)))
    return float(np.mean(found) - (1 - PART) * abs(np.mean(found)))


def _episodes(system: System) -> int:
    return 20 if system.in_gymnasium else 1000
