"""Returns of any size in any number of cells: visits are counted exactly, and one person moves nothing too far."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from evaluation_chain import divergence

from quietq import Accountant, Budget, InvalidInput
from quietq.feedback.cells import Cells
from quietq.noise import SeededEntropy
from quietq.paper.baselines.balle import Evaluation, Visits, largest_return
from quietq.privacy.budget import delta_from_mu
from quietq.privacy.relations import Trajectories

Person = tuple[np.ndarray, np.ndarray]
"""The cells that somebody came by, and the rewards there."""
NOBODY: Person = np.zeros(0, np.int64), np.zeros(0)
ROUNDING = 1 + 1e-12
DISCOUNTS = [(0.0, None), (0.9, None), (1 - 2.0**-40, 5), (1.0, 7)]
"""With their horizons. At 0 a return is a reward, so that one person can have the largest everywhere."""
_ROWS = 10_000
_TRIES = 24


def anyone(rng: np.random.Generator, cells: int, largest: float) -> Person:
    """In all cells or in some; with the largest rewards, hardly any, or something between."""
    states = rng.permutation(cells)[: cells if rng.random() < 0.5 else rng.integers(1, cells + 1)]
    rewards = largest * rng.choice([1.0, 1e-13, rng.random()]) * rng.choice([-1.0, 1.0], len(states))
    return states, np.abs(rewards) if rng.random() < 0.5 else rewards


def same(cells: int, reward: float) -> Person:
    return np.arange(cells), np.full(cells, reward)


class Tried(NamedTuple):
    worst: float
    """By how many times what is stated one person moved a count, a sum or a mean."""
    size: float
    """Of the largest return."""
    cells: int


def tried(rng: np.random.Generator, size: float, cells: int) -> Tried:
    """The farthest that one of some people moves anything, be they alike or not, who all count as they should."""
    gamma, horizon = DISCOUNTS[rng.integers(len(DISCOUNTS))]
    reward = size / largest_return(Trajectories(1, 1.0, horizon), gamma)
    number = int(np.clip(_ROWS // (4 * cells), 2, 100))
    crowd = [same(cells, reward)] * number
    if rng.random() < 0.5:
        crowd = [anyone(rng, cells, reward) for _ in range(number)]
    last = same(cells, -reward), same(cells, reward), NOBODY, anyone(rng, cells, reward)
    relation = Trajectories(number + 1, reward, horizon)
    largest, found = largest_return(relation, gamma), []
    for people in ([*crowd, one] for one in last):
        found.append(Visits.of(people, Cells.states(cells), gamma, relation))
        counted = np.bincount(np.concatenate([states[:horizon] for states, _ in people]), minlength=cells)
        assert found[-1].counts.tolist() == counted.tolist(), (size, cells)
    means = [visits.sums / np.maximum(visits.counts, 1) for visits in found]
    worst = 0.0
    for i in range(len(found)):
        for j in range(i):
            stated = 2 * largest / np.maximum(np.maximum(found[i].counts, found[j].counts), 1)
            worst = max(
                worst,
                float(np.abs(found[i].counts - found[j].counts).max()),
                float(np.abs(found[i].sums - found[j].sums).max() / (2 * largest)),
                float((np.abs(means[i] - means[j]) / stated).max()),
            )
    return Tried(worst, size, cells)


def test_a_search_finds_nobody_who_moves_anything_farther_than_stated():
    """From returns of 1e-12 to 1e12 and 1 to 10,000 cells; around the worst that was found it goes on searching."""
    rng = np.random.default_rng(0)
    corners = [(size, cells) for size in (1e-12, 1.0, 1e12) for cells in (1, 10_000)]
    found = [tried(rng, size, cells) for size, cells in corners]
    for number in range(_TRIES):
        size, cells = rng.uniform(-12, 12), 10 ** rng.uniform(0, 4)
        if number >= _TRIES // 2:
            worst = max(found)
            size = np.clip(math.log10(worst.size) + rng.normal(), -12, 12)
            cells = np.clip(worst.cells * 10 ** rng.normal(0, 0.3), 1, 10_000)
        found.append(tried(rng, 10.0**size, int(cells)))
    assert max(found).worst <= ROUNDING, max(found)
    assert max(found).worst >= 1 - 1e-9  # attained: the search can find what there is


def law(evaluation: Evaluation, people: list[Person]) -> tuple[np.ndarray, float]:
    """Mean and deviation of what is released, read off two simulated releases, whose normals are known."""
    one, two = (evaluation.release(people, simulate=seed).weights for seed in (1, 2))
    first, second = (SeededEntropy(seed).normals((len(one),)) for seed in (1, 2))
    size = float((one - two) @ (first - second)) / float(np.sum((first - second) ** 2))
    return one - size * first, size


def exact_delta(epsilon: float, here: tuple[np.ndarray, float], there: tuple[np.ndarray, float]) -> float:
    """Of two Gaussians of whatever sizes, in the worse direction."""
    shift, growth = float(np.linalg.norm(there[0] - here[0])), math.log(there[1] / here[1])
    if abs(growth) < 1e-5:  # the same size, but for the rounding of what was released
        return 0.0 if shift == 0 else delta_from_mu(shift / min(here[1], there[1]), epsilon)
    ways = ((shift / here[1], growth), (shift / there[1], -growth))
    return max(divergence(epsilon, len(here[0]), *way) for way in ways)


@pytest.mark.parametrize("options", [{}, {"kind": "lsl", "ridge": 1.0}], ids=["lsw", "lsl"])
@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize("largest", [1e-12, 1.0, 2**40 / 1.99 / 2**0.5, 2**40 / 1.99 / 6**0.5, 1e11, 1e12])
def test_the_exact_delta_of_neighbouring_trajectories_is_not_above_the_certified_one(largest, cells, options):
    budget, people = Budget(1.0, 1e-6), 200
    evaluation = Evaluation(
        budget=budget, relation=Trajectories(people, largest), gamma=0.0, cells=Cells.states(cells), **options
    )
    gained, lost = same(cells, largest), same(cells, -largest)
    for others in (people - 1, 10):  # everywhere, or where few came by, so that the size of the noise changes
        crowd = [gained] * others + [NOBODY] * (people - 1 - others)
        laws = [law(evaluation, [*crowd, one]) for one in (gained, lost, NOBODY)]
        for i in range(3):
            for j in range(i):
                assert exact_delta(budget.epsilon, laws[i], laws[j]) <= budget.delta
        assert laws[0][0] == pytest.approx(np.full(cells, largest), rel=0.1, abs=0)  # all gained the most there is


def test_returns_that_floating_point_lacks_are_refused_before_anything_is_spent():
    """So is everything else that would make noise too large or too small a number."""
    cells, budget = Cells.states(2), Budget(1.0, 1e-6)
    wrong = [
        ({"relation": Trajectories(9, 1e100, 1000), "gamma": 1.0}, "The largest return .* at most 1e\\+100 in size"),
        ({"relation": Trajectories(9_000, 1e-100), "gamma": 0.0}, "Noise would be from .* largest_reward"),
        ({"relation": Trajectories(9, 1e100), "gamma": 0.0}, "Noise would be from .* largest_reward"),
        ({"features": np.full((2, 1), 1e-99), "relation": Trajectories(9, 1e9), "gamma": 0.0}, "Noise would be from"),
        ({"features": np.full((2, 1), 1e101)}, "features must be a matrix of numbers up to 1e\\+100"),
        ({"importance": np.array([1.0, 1e101])}, "importance must be 2 numbers above 0 and up to 1e\\+100"),
        ({"features": np.full((2, 2), 1e100), "kind": "lsl", "ridge": 1.0}, "Noise would be from"),
    ]
    for given, sentence in wrong:
        with pytest.raises(InvalidInput, match=sentence):
            Evaluation(**{"budget": budget, "relation": Trajectories(9, 1.0), "gamma": 0.5, "cells": cells, **given})


def test_fewer_people_than_declared_are_not_said_to_have_been_there():
    """What is enforced is over how many trajectories visits and returns were summed."""
    evaluation = Evaluation(
        budget=Budget(1.0, 1e-6), relation=Trajectories(3000, 1.0), gamma=0.0, cells=Cells.states(2)
    )
    few = [same(2, 1.0)] * 10 + [NOBODY] * 2990
    released = evaluation.release(few, account=Accountant(None, apart=Budget(2.0, 1e-5)))
    enforced = [one.text for one in released.certificate.assumptions if one.enforced]
    assert not any("There were" in text for text in enforced)
    assert sum("summed over 3000 trajectories, as declared: whoever gave none counts as" in t for t in enforced) == 1
    trusted = [one.text for one in released.certificate.assumptions if not one.enforced]
    assert any("gave one trajectory" in text for text in trusted)
