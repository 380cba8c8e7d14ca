"""Which noise "auto" takes for a reward, judged by regret on random rewards that its rule was not made for.

Rewards come from four families, with a random budget, slope, number of people and reach of the walk. An agent plans on
the private reward, and its regret is what it loses under the true one, over what the best policy has more than random
actions. The rule was chosen on other families: tents, smooth rewards, polynomials and kinks. All kinds of noise have
the same protection: K-norm noise, which is pure, has the epsilon at which a guesser is right as often as with Gaussian
noise of the budget.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
from jaxtyping import Float

from benchmarks.study import ROOT, Case, Draws, Numbers, Study
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.candidates import choose
from quietq.mechanisms.release import simulate
from quietq.privacy import Budget, people
from quietq.privacy.budget import pure_epsilon
from quietq.worlds.planning import after
from quietq.worlds.walk import WalkWorld

KINDS = ("path", "knots", "k-norm")
SHOWN = ("auto", *KINDS, "best of them")
BANDS = {"20 to 100": (20, 100), "100 to 1,000": (100, 1_000), "1,000 to 10,000": (1_000, 10_000)}
NOISES = 12
"""Draws of noise for each reward."""
CELLS, FINE, STEPS = 160, 1921, 50
REACHES = (0.05, 0.1, 0.25)
STATES, POINTS = np.linspace(0, 1, CELLS + 1), np.linspace(0, 1, FINE)
Curve = Float[np.ndarray, " points"]
Family = Callable[[np.random.Generator], Curve]


def _raters(rng: np.random.Generator) -> Curve:
    """The mean of people who like what is near them: some are of one camp, some of another."""
    camps = rng.uniform(0, 1, rng.integers(1, 4))
    ideals = np.clip(rng.choice(camps, 200) + rng.normal(0, rng.uniform(0.03, 0.2), 200), 0, 1)
    return -np.abs(POINTS[:, None] - ideals).mean(axis=1)


def _hills(rng: np.random.Generator) -> Curve:
    parts = [(rng.uniform(0, 1), rng.uniform(0.05, 0.3), rng.uniform(-0.6, 1)) for _ in range(rng.integers(1, 4))]
    return np.sum([height * np.exp(-(((POINTS - at) / width) ** 2)) for at, width, height in parts], axis=0)


def _waves(rng: np.random.Generator) -> Curve:
    frequencies = rng.uniform(0.3, 4, 3)
    phases, heights = rng.uniform(0, 2 * np.pi, 3), rng.normal(size=3) / frequencies
    return np.sin(2 * np.pi * POINTS[:, None] * frequencies + phases) @ heights


def _steps(rng: np.random.Generator) -> Curve:
    """Plateaus, with ramps between them."""
    edges = np.sort(rng.uniform(0, 1, 2 * rng.integers(1, 4)))
    levels = rng.uniform(0, 1, len(edges) // 2 + 1)
    return np.interp(POINTS, edges, np.repeat(levels, 2)[1:-1])


JUDGED: dict[str, Family] = {"raters": _raters, "hills": _hills, "waves": _waves, "steps": _steps}


def study() -> Study:
    every: dict[tuple[str, str], Callable[[int], Numbers] | None] = {
        (family, band): partial(_random, JUDGED[family], BANDS[band]) for family in JUDGED for band in BANDS
    }
    every["all", "all"] = None
    made_of = (Path(__file__), ROOT / "src" / "quietq" / "mechanisms", ROOT / "src" / "quietq" / "noise")
    cases = [
        Case({"family": family, "people": band, "noise": noise}, measure if noise == SHOWN[0] else None, made_of)
        for (family, band), measure in every.items()
        for noise in SHOWN
    ]
    remarks = (
        'Mean regret, each reward released 12 times by each kind of noise; "best of them" is the best kind for each '
        "reward, which nobody can know beforehand.",
        "All kinds are at the same protection: `k-norm`, which is pure, has the smaller epsilon at which a guesser is "
        "right as often as with Gaussian noise of the budget, 0.23 in place of (0.9, 1e-4).",
        "The rule was chosen on other families: tents, smooth rewards, polynomials and kinks.",
    )
    return Study("auto", "noise", cases, remarks, "rewards", draws=17, compare=_spread_out)


def _spread_out(found: list[Draws]) -> list[Draws]:
    """Each reward was measured once with all kinds: one column for each, and all rewards together."""
    shown: list[Draws] = []
    groups = [found[first] for first in range(0, len(found) - len(SHOWN), len(SHOWN))]
    for measured in groups:
        shown += [{draw: {"regret": numbers[noise]} for draw, numbers in measured.items()} for noise in SHOWN]
    rewards = [numbers for group in groups for numbers in group.values()]
    best = float(np.mean([numbers[SHOWN[-1]] for numbers in rewards])) if rewards else 1.0
    for noise in SHOWN:
        over = "over the best kind of each reward"
        together = [{"regret": numbers[noise], over: numbers[noise] / best} for numbers in rewards]
        shown.append(dict(enumerate(together)))
    return shown


def _random(family: Family, band: tuple[int, int], draw: int) -> Numbers:
    rng = np.random.default_rng([draw, band[0], sum(map(ord, family.__name__))])
    number, slope = round(math.exp(rng.uniform(math.log(band[0]), math.log(band[1])))), 2 ** rng.uniform(0, 3)
    budget, reach = Budget(10 ** rng.uniform(-0.5, 0.5), 1e-5), REACHES[rng.integers(len(REACHES))]
    curve = family(rng)
    steepest = float(np.abs(np.diff(curve)).max()) * (FINE - 1)
    curve = curve * min(rng.uniform(0.2, 1) * slope / steepest, 1 / np.ptp(curve))
    curve -= (curve.min() + curve.max() - 1) / 2  # in the middle of [0, 1]
    return _regrets(lambda states: np.interp(states, POINTS, curve), number, slope, budget, reach, draw)


def _regrets(
    reward: Callable[[np.ndarray], np.ndarray], number: int, slope: float, budget: Budget, reach: float, seed: int
) -> Numbers:
    """Of each kind at the same protection, of the one that "auto" takes, and of the best."""
    feedback = OwnFunction(reward, people(number, 0.0, 1.0, slope), slope=slope, largest=1.5)
    found = {}
    for kind in KINDS:
        pure = Budget(pure_epsilon(budget.mu), 0.0)
        mechanism = choose(kind, feedback, pure if kind == "k-norm" else budget)
        released = [simulate(mechanism, feedback, NOISES * seed + one)(STATES) for one in range(NOISES)]
        found[kind] = float(_lost(reward(STATES), np.column_stack(released), reach).mean())
    return {"auto": found[choose("auto", feedback, budget).name], **found, "best of them": min(found.values())}


def _lost(true: Curve, released: Float[np.ndarray, "points draws"], reach: float) -> Float[np.ndarray, " draws"]:
    """What planning on the released rewards loses, by backward induction for all of them at once."""
    moves, rewards = _moves(reach), np.column_stack([true, released])
    value, rights = np.zeros_like(rewards), []
    for _ in range(STEPS):
        left, right = (move @ (rewards + value) for move in moves)
        rights.append(right > left)
        value = np.maximum(left, right)
    value, random = np.zeros_like(rewards), np.zeros_like(true)
    for goes_right in rights:
        left, right = (move @ (true[:, None] + value) for move in moves)
        value = np.where(goes_right, right, left)
        random = sum(move @ (true + random) for move in moves) / len(moves)
    returns = np.trapezoid(value, dx=1 / CELLS, axis=0)
    return (returns[0] - returns[1:]) / (returns[0] - np.trapezoid(random, dx=1 / CELLS))


@cache
def _moves(reach: float) -> list[np.ndarray]:
    world = WalkWorld(reach=reach)
    return [after(world, world.reward_at, CELLS, STATES[:, None], action)[1].toarray() for action in range(2)]
