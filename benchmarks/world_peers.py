"""Private worlds of people's sessions, and peers: true return of the plans made in them, epsilon = 1, delta = 1e-5.

Each way takes steps in the unit box, with the features and the known parts that quietq is given, for the same unit: all
sessions of one person are replaced. None is a library's own: a library's accounting of a person who is added or removed
would allow them half the noise, or 1/sqrt(2) of it for matrices.

Settings of peers were chosen on seven development systems with 500 people each, one of which, a heavier cart-pole, is
no longer kept: of 32 points of wide grids at random, and 16 points around the best four, the best mean of three draws
of (return - behaviour)/(twin - behaviour), clipped to [-1, 1.1].
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import t

import quietq as qq
from benchmarks.planners import Released, plan
from benchmarks.study import PACKAGE_ROOMS, ROOT, Case, Entry, Numbers, Results, Study, Table, own_files
from benchmarks.systems import REPORTED, Array, Policy, Rng, Steps
from benchmarks.world_twin import all_terms, linear_model, twin, with_constant, world_of
from quietq.cli.report.pictures import new_figure, save
from quietq.released.private_world import PrivateWorld
from quietq.worlds.private_env import HALT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BUDGET = qq.Budget(1, 1e-5)
BEHAVIOUR, OURS, TWIN = "people's own behaviour", "quietq", "no privacy"
PEERS = ("one-shot moments", "DP-SGD, networks")
PEOPLE: dict[str, tuple[int, ...]] = {
    "CartPole-v1": (350, 500, 1000),
    "Pendulum-v1": (500, 1000),
    "glucose": (300, 1000),
    "Acrobot-v1": (300, 1000),
    "MountainCarContinuous-v0": (100, 300, 1000),
    "rare harm": (1000, 4000),
}
EPISODES = {"CartPole-v1": 20, "Pendulum-v1": 10, "Acrobot-v1": 20, "MountainCarContinuous-v0": 10}
"""Of each true return; 200 of other systems."""


def study() -> Study:
    files = own_files("systems", "planners", "world_twin", "world_peers", "world_sgd", "dp_sgd")
    made_of = (*PACKAGE_ROOMS, ROOT / "src" / "quietq" / "worlds", *files)
    cases = []
    for name, numbers in PEOPLE.items():
        labels = {"system": name, "method": BEHAVIOUR, "people": numbers[-1]}
        cases.append(Case(labels, partial(_behaviour, name), own_files("systems")))
        for method in METHODS:
            for people in numbers:
                labels = {"system": name, "method": method, "people": people}
                cases.append(Case(labels, partial(_measure, method, name, people), made_of))
    remark = (
        "quietq has nothing to set here, but CartPole and Pendulum were in sight when its estimator was made; its twin "
        "has the same features and known parts. Settings of peers were tried on seven development systems, with 500 "
        "people (one-shot moments: 48 of them, mean of the best 0.49; DP-SGD, networks: 49 of them, mean of the best "
        "0.57; 1 is the twin there, and 0 people's own behaviour), and the best is used for all numbers "
        "(`benchmarks/world_peers.py`, `benchmarks/world_sgd.py`). A wider search may do better. One person is "
        "replaced, for all of them, and all see the same people. Laws: `benchmarks/systems.py`."
    )
    return Study("world-peers", "people", cases, (remark,), draws=10, more=more_tables)


def _behaviour(name: str, draw: int) -> Numbers:
    return {"return": REPORTED[name].value_of_behaviour(draw)}


def _measure(method: str, name: str, people: int, draw: int) -> Numbers:
    policy = METHODS[method](sessions(name, people, draw), draw)
    return {"return": REPORTED[name].value(policy, draw, EPISODES.get(name, 200))}


@lru_cache(maxsize=4)
def sessions(name: str, people: int, draw: int) -> Steps:
    """Every method sees the same people."""
    return REPORTED[name].sessions(people, draw)


def quietq(steps: Steps, seed: int) -> Policy:
    world = qq.privatise(steps.read(), BUDGET, world=steps.system.model, simulate=seed)
    return plan(Released(world, HALT), steps.system, seed)


def non_private(steps: Steps, seed: int) -> Policy:
    return plan(Released(twin(steps), halt=None), steps.system, seed)


@dataclass(frozen=True)
class OneShot:
    """All second moments at once, each person's over its Frobenius norm, and ridge regressions from them."""

    ridge: float = 0.3
    """The least eigenvalue of a matrix of moments, over the noise's own size."""
    larger: float = 30.0
    """What changes of states are multiplied by, so that they weigh more among the moments."""
    steep: float = 30.0
    """What the regression of ends is multiplied by, to be taken for log-odds."""
    dynamics: float = 0.7
    """The share of mu squared for the dynamics; rewards, ends and starts have the rest, evenly."""

    def __call__(self, steps: Steps, seed: int, budget: qq.Budget = BUDGET) -> Policy:
        return plan(Released(self.world(steps, seed, budget.mu), halt=10.0, ensemble=False), steps.system, seed)

    def world(self, steps: Steps, seed: int, mu: float = BUDGET.mu) -> PrivateWorld:
        system, unit, rng = steps.system, steps.unit(), np.random.default_rng([seed, 6])
        spaces, model, there = system.spaces, system.model, steps.there.astype(float)
        rest = (1 - self.dynamics) / 3
        shares = {"dynamics": self.dynamics, "reward": rest, "end": rest, "start": rest}
        shares = {name: share for name, share in shares.items() if name not in model.known}
        if not system.ends:
            shares.pop("end", None)
        of = {name: mu * math.sqrt(share / sum(shares.values())) for name, share in shares.items()}

        feature_map, moved = model.feature_map(spaces), model.learned(spaces.states)
        change = 2 * (unit.after - unit.states)[..., moved]
        points = with_constant(feature_map(spaces.join(unit.states, unit.actions)))
        found = regress(points, self.larger * change, there, of["dynamics"], self.ridge, rng)
        reward = ends = begin = None
        if "reward" in of:
            number, features = spaces.actions or 1, all_terms(spaces.states + spaces.numbers, 2)
            seen = np.concatenate([unit.states, unit.actions], axis=-1) if spaces.numbers else unit.states
            acted = np.eye(number)[unit.actions.astype(int)] if number > 1 else np.ones((*there.shape, 1))
            terms = (with_constant(features(seen))[..., None] * acted[..., None, :]).reshape(*there.shape, -1)
            rewards = (unit.rewards - 0.5)[..., None]
            table = regress(terms, rewards, there, of["reward"], self.ridge, rng).slopes.reshape(-1, number)
            weights = table[1:] if number > 1 else table[1:, 0]
            reward = linear_model(features, table[0], weights, (spaces.low, spaces.high))
        if "end" in of:
            features, ended = all_terms(spaces.states, 2), steps.ended & steps.there
            balanced = shares_of(ended) + shares_of(~steps.ended & steps.there)
            labels = np.where(steps.ended, 1.0, -1.0)[..., None]
            after = with_constant(features(unit.after))
            table = self.steep * regress(after, labels, balanced, of["end"], self.ridge, rng).slopes[:, 0]
            ends = linear_model(features, table[:1], table[1:])
        if "start" in of:
            begin = first_states(unit, of["start"], self.ridge, rng)
        return world_of(
            system, found.slopes / self.larger, found.gram, found.left / self.larger**2, begin, reward, ends
        )


def first_states(unit: Steps, mu: float, ridge: float, rng: Rng) -> tuple[Array, Array]:
    """Their mean and covariance, in the unit box."""
    each = np.ones((unit.people, 1))
    found = regress(each[..., None], 2 * unit.states[:, :1] - 1, each, mu, ridge, rng)
    return (found.slopes[0] + 1) / 2, found.left / 4


def some_rows(steps: Steps, number: int, rng: Rng) -> Steps:
    """As many steps of each person, drawn from theirs; who has fewer has some that do not count."""
    order = np.argsort(np.where(steps.there, rng.random(steps.there.shape), 2.0), axis=1)[:, :number]

    def of(values: Array) -> Array:
        return np.take_along_axis(values, order[..., None] if values.ndim == 3 else order, axis=1)

    return Steps(
        steps.system,
        of(steps.states),
        of(steps.actions),
        of(steps.after),
        of(steps.rewards),
        of(steps.ended),
        of(steps.there),
    )


def shares_of(chosen: Array) -> Array:
    """Of each person's steps that count, as shares of 1."""
    return chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1)


class Regression(NamedTuple):
    slopes: Array
    gram: Array
    """Mean products of features, of which the first is 1."""
    left: Array
    """Mean products of what is left of the targets."""


def regress(phi: Array, targets: Array, weights: Array, mu: float, ridge: float, rng: Rng) -> Regression:
    """By one noisy look."""
    size = phi.shape[-1]
    moments, noise = noisy_moments(np.concatenate([phi, targets], axis=-1), weights, mu, rng)
    a, b, c = moments[:size, :size], moments[:size, size:], moments[size:, size:]
    values, vectors = np.linalg.eigh(a)
    values = np.maximum(values, ridge * noise * math.sqrt(2 * size))
    slopes = (vectors / values) @ vectors.T @ b
    gram = (vectors * values) @ vectors.T
    left = c - b.T @ slopes - slopes.T @ b + slopes.T @ gram @ slopes
    values, vectors = np.linalg.eigh(left)
    left = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return Regression(slopes, gram / gram[0, 0], left / gram[0, 0])


def noisy_moments(rows: Array, weights: Array, mu: float, rng: Rng) -> tuple[Array, float]:
    """The mean of everybody's sum of z z^T over its own norm: replacing one moves it by at most sqrt(2)/N."""
    total, people, size = 0.0, len(rows), rows.shape[-1]
    for block in np.array_split(np.arange(people), max(1, rows.size // 2**22)):
        own = np.matmul((rows[block] * weights[block][..., None]).transpose(0, 2, 1), rows[block])
        length = np.sqrt((own**2).sum(axis=(1, 2), keepdims=True))
        total = total + (own / np.where(length > 0, length, 1)).sum(axis=0)
    noise = math.sqrt(2) / (people * mu)
    normal = noise * rng.standard_normal((size, size))
    # Beside the diagonal 1/sqrt(2) of it is enough: lengths are Frobenius norms.
    return total / people + (normal + normal.T) / 2, noise


def network(steps: Steps, seed: int, budget: qq.Budget = BUDGET) -> Policy:
    from benchmarks.world_sgd import train  # jax-privacy only where it is needed

    return plan(train(steps, seed, budget), steps.system, seed)


METHODS: dict[str, Callable[..., Policy]] = {
    OURS: quietq,
    TWIN: non_private,
    "one-shot moments": OneShot(),
    "DP-SGD, networks": network,
}
"""From sessions and a seed to a plan; peers take another budget, too."""


# Tables and the picture.

Curves = dict[str, dict[int, tuple[float, float]]]
"""By method and people: mean, and half of its 95 % interval by Student's t; of one draw there is none."""


def more_tables(entries: list[Entry]) -> dict[str, Table]:
    return {
        "What 95 % intervals show: quietq's mean return less that of a peer": differences(entries),
        "The fewest people from whom on mean returns are 0.9 of the way from behaviour to the twin": cliffs(entries),
    }


def cliffs(entries: list[Entry]) -> Table:
    """Of each method, among the numbers of people that were measured in three draws or more."""
    entries, lines = [entry for entry in entries if entry.draws >= 3], [["system", OURS, *PEERS]]
    for system in dict.fromkeys(str(entry.labels["system"]) for entry in entries):
        curves = _curves(entries, system)
        low, best = _last(curves.get(BEHAVIOUR)), _last(curves.get(TWIN))
        if low is not None and best is not None:
            goal = low + 0.9 * (best - low)
            lines.append([system, *(cliff(curves.get(name), goal) for name in (OURS, *PEERS))])
    return lines


def differences(entries: list[Entry]) -> Table:
    """With 95 % intervals by Welch's t, and a star where one lies on one side of 0."""
    lines = [["system", "people", *PEERS]]
    found = {tuple(entry.labels[label] for label in ("system", "people", "method")): entry for entry in entries}
    for (system, people, method), own in found.items():
        if method == OURS:
            beside = (_apart(own, found.get((system, people, name))) for name in PEERS)
            lines.append([str(system), f"{people:,}", *beside])
    return lines


def _apart(one: Entry, other: Entry | None) -> str:
    """Nothing is said of fewer than three draws."""
    if other is None or min(one.draws, other.draws) < 3:
        return ""
    both = [(entry.numbers["return"], entry.draws) for entry in (one, other)]
    variances = [(number.error or 0.0) ** 2 for number, _ in both]
    gap = both[0][0].mean - both[1][0].mean
    if sum(variances) == 0:
        return f"{gap:+.1f}, draws alike"
    freedom = sum(variances) ** 2 / sum(
        variance**2 / (draws - 1) for variance, (_, draws) in zip(variances, both, strict=True)
    )
    half = float(t.ppf(0.975, freedom)) * math.sqrt(sum(variances))
    digits = 1 if half >= 1 else 2
    return f"{gap:+.{digits}f} ± {half:.{digits}f}{' *' if abs(gap) > half else ''}"


def _curves(entries: list[Entry], system: str) -> Curves:
    found: Curves = {}
    for entry in entries:
        if entry.labels["system"] == system:
            number, draws = entry.numbers["return"], entry.draws
            half = math.nan if number.error is None else float(t.ppf(0.975, draws - 1)) * number.error
            found.setdefault(str(entry.labels["method"]), {})[int(entry.labels["people"])] = (number.mean, half)
    return found


def _last(curve: dict[int, tuple[float, float]] | None) -> float | None:
    return None if not curve else curve[max(curve)][0]


def cliff(curve: dict[int, tuple[float, float]] | None, goal: float) -> str:
    if not curve:
        return "not measured"
    enough = None
    for people in sorted(curve, reverse=True):
        if curve[people][0] < goal:
            break
        enough = people
    if enough is None:
        return f"> {max(curve):,}"
    return f"≤ {enough:,}" if enough == min(curve) else f"{enough:,}"


def write_picture(target: Path) -> None:
    """Return against people for every system and method, from the stored results."""
    entries = Results.load("world-peers").entries
    figure: Figure = new_figure(3.3 * 4, 6.4)
    axes: list[Axes] = list(figure.subplots(2, 4).ravel())
    for axis, system in zip(axes, PEOPLE, strict=False):
        _panel(axis, _curves(entries, system), system)
    for axis in axes[::4]:
        axis.set_ylabel("true return, mean and 95 % interval")
    handles, labels = axes[0].get_legend_handles_labels()
    for axis in axes[len(PEOPLE) :]:
        axis.axis("off")
    axes[len(PEOPLE)].legend(handles, labels, loc="center", frameon=False)
    save(figure, target)


def _panel(axis: "Axes", curves: Curves, system: str) -> None:
    for i, (name, curve) in enumerate((name, curve) for name, curve in curves.items() if name != BEHAVIOUR):
        people = sorted(curve)
        middle, half = zip(*(curve[number] for number in people), strict=True)
        color, line = ("black", "--") if name == TWIN else (f"C{i}", "-")
        beside = [number * 1.03 ** (i - 2) for number in people]  # so that intervals do not hide each other
        axis.errorbar(beside, middle, half, marker="o", markersize=4, capsize=3, label=name, color=color, ls=line)
    if (low := _last(curves.get(BEHAVIOUR))) is not None:
        axis.axhline(low, color="grey", linestyle=":", label=BEHAVIOUR)
    numbers = PEOPLE[system]
    axis.set(title=system, xlabel="people", xscale="log", xlim=(0.8 * numbers[0], 1.25 * numbers[-1]))
    axis.set_xticks(numbers, [f"{number:,}" for number in numbers])
    axis.minorticks_off()
    means = [one[0] for curve in curves.values() for one in curve.values()]
    room = 0.25 * (max(means) - min(means))
    axis.set_ylim(min(means) - room, max(means) + room)


def write_front_picture(target: Path) -> None:
    """CartPole alone, as bars with their values, for somebody who has not read anything yet."""
    curves = _curves(Results.load("world-peers").entries, "CartPole-v1")
    names = {
        TWIN: "without privacy",
        OURS: "quietq, ε = 1",
        "one-shot moments": "one-shot moments, ε = 1",
        "DP-SGD, networks": "DP-SGD, ε = 1",
    }
    colours = ("#999999", "#0072B2", "#56B4E9", "#D55E00")
    figure = new_figure(7.8, 2.7)
    axis = figure.subplots()
    numbers = PEOPLE["CartPole-v1"]
    for place, ((name, label), colour) in enumerate(zip(names.items(), colours, strict=True)):
        at = np.arange(len(numbers)) + 0.2 * (place - 1.5)
        means, halves = zip(*(curves[name][number] for number in numbers), strict=True)
        # An interval may not leave the range of returns, which is 0 to 500.
        reach = [np.minimum(halves, means), np.minimum(halves, 500 - np.array(means))]
        axis.bar(at, means, 0.18, color=colour, label=label, yerr=reach, capsize=3, ecolor="#333333")
        for x, mean, high in zip(at, means, reach[1], strict=True):
            axis.annotate(f"{mean:.0f}", (x, mean + high), (0, 3), textcoords="offset points", ha="center", fontsize=9)
    behaviour = _last(curves[BEHAVIOUR])
    assert behaviour is not None
    axis.axhline(behaviour, color="black", ls=":", lw=1.2, label=f"people: {behaviour:.0f}")
    axis.set_xticks(range(len(numbers)), [f"{number:,} people" for number in numbers], fontsize=11)
    axis.set_ylim(0, 580)
    axis.set_ylabel("steps, of 500", fontsize=11)
    title = "Steps balanced in the real CartPole, learned from people's random pushes"
    axis.set_title(title, fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(ncols=5, loc="upper center", bbox_to_anchor=(0.47, -0.12), frameon=False, fontsize=9, columnspacing=1)
    save(figure, target)
