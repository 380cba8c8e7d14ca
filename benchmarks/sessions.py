"""Private worlds on the tasks of PriMORL (Rio et al., arXiv 2402.05525): how many people it takes, delta = 1e-5.

PriMORL's own numbers are printed ones, with 30,000 trajectories for each task: it has no code to be run.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from scipy.stats import t

import quietq as qq
from benchmarks.cloning_systems import STEPS
from benchmarks.dm_cartpole import Balance, SwingUp
from benchmarks.planners import Released, plan
from benchmarks.study import PACKAGE_ROOMS, ROOT, Case, Draws, Entry, Label, Numbers, Results, Study, Table, own_files
from benchmarks.systems import Pendulum, Policy, Steps, System
from benchmarks.world_peers import METHODS, PEERS, cliff
from quietq.cli.report.pictures import new_figure, save
from quietq.worlds.planning import plan_linear
from quietq.worlds.private_env import HALT

DELTA, NO_NOISE = 1e-5, 1e5
"""At the second as epsilon, noise does not matter."""
POOL = 30_000
PEOPLE = (300, 1000, 3000, 10_000, POOL)
GOAL = 0.9
FEWEST_DRAWS = 3
"""Of which an interval or a number of people is said: two say next to nothing of how far others are from their mean."""
TWIN_PEOPLE = 3000


class ShortPendulum(Pendulum):
    recorded = 50


class LookedAhead(Balance):
    ahead = 25


TASKS: dict[str, System] = {one.name: one for one in (ShortPendulum(), Balance(), SwingUp())}
EPSILONS = {"Pendulum-v1": (5.1, 1.0), "cartpole-balance": (8.2, 1.0), "cartpole-swingup": (17.0, 5.0, 1.0)}
"""PriMORL's own comes first."""
PRIMORL = (0.77, 1.03)
"""Of the return of non-private MOPO, over these tasks: what the paper prints for its budgets."""
EPISODES = {"Pendulum-v1": 10, "cartpole-balance": 10, "cartpole-swingup": 5}
PEERS_PLAN_IN: dict[str, System] = {Balance.name: LookedAhead()}
"""Where another planner suits peers better than the one that quietq has."""
OURS, TWIN, BEHAVIOUR = "quietq", "no noise", "people's own behaviour"


def study() -> Study:
    files = own_files("systems", "planners", "dm_cartpole", "sessions", "world_peers", "world_sgd", "dp_sgd")
    made_of = (*PACKAGE_ROOMS, ROOT / "src" / "quietq" / "worlds", *files)
    cases = []
    for task, epsilons in EPSILONS.items():
        labels = {"task": task, "method": BEHAVIOUR, "epsilon": "none", "people": TWIN_PEOPLE}
        cases.append(Case(labels, partial(behaviour, task), own_files("systems", "dm_cartpole")))
        asked = [(TWIN, NO_NOISE, TWIN_PEOPLE), *((OURS, one, people) for people in PEOPLE for one in epsilons)]
        asked += [(name, epsilons[0], people) for people in PEOPLE[:4] for name in PEERS]
        for method, epsilon, people in sorted(asked, key=lambda one: one[2]):
            shown = epsilon if epsilon < NO_NOISE else "none"
            labels = {"task": task, "method": method, "epsilon": shown, "people": people}
            cases.append(Case(labels, partial(measure, task, method, epsilon, people), made_of))
    remarks = (
        f"People are drawn from one pool of {POOL:,} for each task. `share` is (return - behaviour)/(return without "
        f"noise - behaviour), where the second is quietq's at epsilon = {NO_NOISE:g} with {TWIN_PEOPLE:,} people. "
        "PriMORL's is the return over that of non-private MOPO, which is milder where returns are positive, because "
        "behaviour is worth something too.",
        "What differs from PriMORL: our people behave by laws of ours and record less (the first 50 of Pendulum's 200 "
        "steps; of the cart-poles' 1,000 steps of 0.01 s the first 200 to balance and 400 to swing up, with each "
        "action held for four). Here the coordinates that are cosine and sine of one angle of a cart-pole are "
        "declared, and to swing up the published reward, because with one that was learned plans without noise reached "
        "405 of 1,000 (one draw of 3,000 people); dynamics are polynomials of degree 2. PriMORL learns rewards and "
        "dynamics by ensembles of networks, and trains a policy by SAC. Here plans are linear policies to balance, and "
        "else look 25 or 30 actions ahead. Here one person is replaced by another, which takes twice the "
        "noise of one who is added or removed, for whom accountants of sampled gradients are.",
        "Peers have the same people and known parts. To balance the cart-pole, linear policies fail in their worlds "
        "even without noise (191 and 332 of 1,000, one draw of 3,000 people), so there they look 25 actions ahead (965 "
        "and 969), by which quietq has less than by linear policies.",
        "The less noise, the less sure linear plans balance the cart-pole: without noise four of ten draws stayed "
        "below 900 of 1,000, at epsilon = 8.2 two of ten with 10,000 people and none with 300. Worlds that are "
        "plausible by the noise alone are all alike there, so a plan meets no other. So shares of that task are above "
        "1.",
        "The planners' settings are those of the other systems (`benchmarks/planners.py`); 30 actions ahead was the "
        "only number tried. What people do on the cart-poles was changed twice before anything was measured, so that "
        "fewer run into the slider's end.",
    )
    return Study(
        "sessions",
        "people",
        cases,
        remarks,
        draws=10,
        compare=partial(with_shares, [case.labels for case in cases]),
        more=more_tables,
    )


def behaviour(task: str, draw: int) -> Numbers:
    return {"return": TASKS[task].value_of_behaviour(draw)}


def measure(task: str, method: str, epsilon: float, people: int, draw: int) -> Numbers:
    system, steps = TASKS[task], people_of(task, people, draw)
    budget = qq.Budget(epsilon, DELTA)
    if method in PEERS:
        policy = METHODS[method](replace(steps, system=PEERS_PLAN_IN.get(task, system)), draw, budget)
    else:
        policy = quietq(steps, budget, draw)
    return {"return": system.value(policy, draw, EPISODES[task])}


@lru_cache(maxsize=1)
def pool(task: str) -> Steps:
    return TASKS[task].sessions(POOL, 0)


@lru_cache(maxsize=1)
def people_of(task: str, people: int, draw: int) -> Steps:
    """So many of the pool; every method sees the same."""
    everybody = pool(task)
    chosen = np.random.default_rng([draw, people]).choice(POOL, people, replace=False)
    columns = (getattr(everybody, name)[chosen] for name in STEPS)
    return Steps(everybody.system, *columns)


def quietq(steps: Steps, budget: qq.Budget, seed: int) -> Policy:
    system = steps.system
    world = qq.privatise(steps.read(), budget, world=system.model, simulate=seed)
    if system.ahead is None:
        policy = plan_linear(world, steps=system.steps, seed=seed)
        return lambda states: policy.predict(states)[0]
    return plan(Released(world, HALT), system, seed)


# Shares, the table and the picture.


def with_shares(labels: list[Mapping[str, Label]], found: list[Draws]) -> list[Draws]:
    """Returns beside their shares of the way from behaviour to what is reached without noise."""
    ends = {
        (one["task"], one["method"]): float(np.mean([numbers["return"] for numbers in draws.values()]))
        for one, draws in zip(labels, found, strict=True)
        if draws and one["method"] in (BEHAVIOUR, TWIN)
    }

    def share(task: Label, reached: float) -> Numbers:
        low, best = ends.get((task, BEHAVIOUR)), ends.get((task, TWIN))
        return {} if low is None or best is None else {"share": (reached - low) / (best - low)}

    return [
        {draw: numbers | share(one["task"], numbers["return"]) for draw, numbers in draws.items()}
        for one, draws in zip(labels, found, strict=True)
    ]


def more_tables(entries: list[Entry]) -> dict[str, Table]:
    lines = [["task", "method", "epsilon", "people"]]
    often = [entry for entry in entries if entry.draws >= FEWEST_DRAWS]
    lines += [[*key, cliff(curve, GOAL)] for key, curve in curves_of(often).items()]
    return {"The fewest people from whom on mean shares are 0.9 or more": lines}


def curves_of(entries: list[Entry]) -> dict[tuple[str, str, str], dict[int, tuple[float, float]]]:
    """By task, method and epsilon: for each number of people a mean share and half of its 95 % interval."""
    found: dict[tuple[str, str, str], dict[int, tuple[float, float]]] = {}
    for entry in entries:
        task, method, epsilon, people = (entry.labels[name] for name in ("task", "method", "epsilon", "people"))
        if method in (OURS, *PEERS) and (share := entry.numbers.get("share")) is not None:
            half = (
                math.nan if entry.draws < FEWEST_DRAWS else float(t.ppf(0.975, entry.draws - 1)) * (share.error or 0.0)
            )
            found.setdefault((str(task), str(method), str(epsilon)), {})[int(people)] = (share.mean, half)
    return found


def write_picture(target: Path) -> None:
    """Shares against people, a panel for each task, from the stored results."""
    curves = curves_of(Results.load("sessions").entries)
    figure = new_figure(4.4 * len(TASKS), 4.4)
    for axis, (task, epsilons) in zip(figure.subplots(1, len(TASKS), sharey=True), EPSILONS.items(), strict=True):
        for i, ((_, method, epsilon), curve) in enumerate(one for one in curves.items() if one[0][0] == task):
            people, line = sorted(curve), "-" if method == OURS else "--"
            beside = [number * 1.04 ** (i - 1) for number in people]  # so that intervals do not hide each other
            means, halves = zip(*(curve[number] for number in people), strict=True)
            label = f"{method}, ε = {epsilon}"
            axis.errorbar(beside, means, halves, marker="o", markersize=4, capsize=3, ls=line, label=label)
        low, high = PRIMORL
        label = f"PriMORL, ε = {epsilons[0]:g} (range of its tasks)"
        axis.errorbar(
            POOL, (low + high) / 2, (high - low) / 2, color="black", marker="s", capsize=5, ls="", label=label
        )
        axis.axhline(GOAL, color="grey", linestyle=":", linewidth=1)
        axis.set(title=task, xlabel="people", xscale="log", ylim=(-0.7, 1.9))
        axis.set_xticks(PEOPLE, [f"{number:,}" for number in PEOPLE])
        axis.minorticks_off()
        axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)
    figure.axes[0].set_ylabel("share of the way from behaviour\nto what is reached without noise")
    save(figure, target)
