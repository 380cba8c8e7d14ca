"""Paths as their users meet them: consistency, refusals, what is not copied."""

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st
from laws import grid_path
from scipy.stats import kstest

from quietq import BudgetExhausted, InvalidInput
from quietq.noise import Box, SeededEntropy, SystemEntropy
from quietq.noise.grid_path import check_grid, draw_grid
from quietq.paper.sampler import SortedPath
from quietq.privacy import Exponential

ONE_DIMENSIONAL = {
    "sorted": lambda **kwargs: SortedPath(Exponential(4.0), **kwargs),
    "grid": lambda **kwargs: grid_path(Exponential(4.0), **kwargs),
}


@pytest.mark.parametrize("name", ONE_DIMENSIONAL)
def test_a_path_is_a_function(name):
    path = ONE_DIMENSIONAL[name](sigma=0.5, domain=(-1, 3))
    states = np.random.default_rng(0).uniform(-1, 3, (4, 5))
    first = path(states)
    assert first.shape == (4, 5)
    assert path(2.0).shape == ()
    np.testing.assert_allclose(path(states[::-1]), first[::-1], rtol=1e-12, atol=1e-14)
    assert path([]).shape == (0,)
    assert path(np.array([-1.0, 3.0])).shape == (2,)


@pytest.mark.parametrize("name", ONE_DIMENSIONAL)
@pytest.mark.parametrize(
    ("states", "message"),
    [
        (3.0001, r"within \[-1, 3\]"),
        ([0.0, -1.5], "within"),
        (np.nan, "within"),
        ([np.inf], "within"),
        ("left", "numbers"),
        (None, "numbers"),
        ("0.5", "numbers"),
        (["0.5"], "numbers"),
        (0.5j, "numbers"),
        ([[0.0], [0.0, 1.0]], "numbers"),
    ],
)
def test_queries_that_make_no_sense(name, states, message):
    with pytest.raises(InvalidInput, match=message):
        ONE_DIMENSIONAL[name](domain=(-1, 3))(states)


def test_more_dimensions():
    for path in (
        grid_path(Exponential((1.0, 2.0)), levels=4, domain=[(0, 1), (5, 9)]),
        grid_path(Exponential((1.0, 2.0), summed=True), levels=4, domain=[(0, 1), (5, 9)]),
    ):
        assert path([0.5, 7.0]).shape == ()
        assert path(np.full((3, 2, 2), [0.5, 7.0])).shape == (3, 2)
        with pytest.raises(InvalidInput, match="2 coordinates"):
            path([0.5])
        with pytest.raises(InvalidInput, match="within"):
            path([0.5, 4.0])
    with pytest.raises(InvalidInput, match=r"domain has 1 dimension, \[0, 1\], but the kernel has 2"):
        grid_path(Exponential((1.0, 2.0)), domain=(0, 1))
    with pytest.raises(InvalidInput, match="domain has 2 dimensions"):
        SortedPath(Exponential(1.0), domain=[(0, 1), (0, 1)])


@pytest.mark.parametrize(
    "domain",
    [(1, 1), (2, 1), (0, np.inf), (0, np.nan), (), (1, 2, 3), "box", [[0, 1], [3, 2]], ("0", "1"), (0, 1e-320)],
)
def test_domains_that_make_no_sense(domain):
    with pytest.raises(InvalidInput, match="domain"):
        Box.of(domain)


@pytest.mark.parametrize(
    ("low", "high"), [((0.0,), (0.0,)), ((0.0,), (np.nan,)), ((), ()), ((0.0,), (1.0, 2.0)), ((1e101,), (1e102,))]
)
def test_a_box_checks_itself(low, high):
    with pytest.raises(InvalidInput, match=r"domain|box"):
        Box(low, high)


def test_a_refusal_shows_a_plain_number():
    with pytest.raises(InvalidInput, match=r"but one has the value 1\.5\.$"):
        Box.of((0, 1)).to_unit(np.array([0.2, 1.5]))


def test_tables_too_large_for_a_machine_are_refused():
    with pytest.raises(InvalidInput, match="use fewer levels"):
        draw_grid(Exponential(1.0), 40, (), SystemEntropy())
    with pytest.raises(InvalidInput, match="use fewer levels"):
        draw_grid(Exponential(1.0), 10**9, (), SystemEntropy())  # at once: 2^levels is never computed
    with pytest.raises(InvalidInput, match="use fewer levels"):
        draw_grid(Exponential((1.0, 1.0, 1.0)), 10, (), SystemEntropy())
    assert check_grid(Exponential(1.0), 26) == (2**26 + 1,)
    assert check_grid(Exponential((1.0, 1.0)), 12, outputs=4) == (4097, 4097)
    for levels, outputs in ((27, 1), (26, 2)):
        with pytest.raises(InvalidInput, match="use fewer levels"):
            check_grid(Exponential(1.0), levels, outputs)


@given(st.lists(st.floats(0, 1), max_size=60))
def test_sorted_points_are_a_sorted_map(keys):
    from quietq.noise.exact_path import SortedPoints

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SortedPoints, "full", 4)  # many small buckets
        points, known = SortedPoints(), {}
        for i, x in enumerate(keys):
            assert points.get(x) == known.get(x)
            if x not in known:
                nearest = [
                    max(((k, v) for k, v in known.items() if k < x), default=None),
                    min(((k, v) for k, v in known.items() if k > x), default=None),
                ]
                assert points.neighbours(x) == [one for one in nearest if one is not None]
                points.insert(x, float(i))
                known[x] = float(i)
        assert len(points) == len(known)


def test_the_operating_systems_normals():
    z = SystemEntropy().normals((400_000,))
    assert kstest(z, "norm").pvalue > 1e-9
    assert not np.array_equal(z[:5], SystemEntropy().normals((5,)))
    assert not SystemEntropy().reproducible
    assert SeededEntropy(0).reproducible


def test_a_sorted_path_is_one_path(monkeypatch):
    path = SortedPath(Exponential(4.0))
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="not copied or pickled"):
            duplicate(path)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(BudgetExhausted, match="This SortedPath belongs to another process"):
        path(0.5)
    assert len(path) == 0


def test_threads_see_one_path():
    path, states = SortedPath(Exponential(4.0)), np.random.default_rng(0).random(2000)
    orders = [np.random.default_rng(i).permutation(len(states)) for i in range(8)]

    def ask(order):
        values = np.empty(len(states))
        for part in np.array_split(order, 200):
            values[part] = path(states[part])
        return values

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(ask, orders)
    for other in others:
        np.testing.assert_array_equal(first, other)
    assert len(path) == len(states)
