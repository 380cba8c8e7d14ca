"""Paths as their users meet them: consistency, replicas, two forms of one tree, refusals, secrets."""

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import ndtr
from scipy.stats import kstest

from paper.feature_path import FeaturePath
from quietq import BudgetExhausted, InvalidInput
from quietq.noise import (
    Additive,
    BandLimited,
    Box,
    Exponential,
    GridPath,
    Product,
    SeededEntropy,
    SortedPath,
    SystemEntropy,
    TreePath,
)
from quietq.noise.entropy import threefry
from quietq.noise.grid_path import check_grid

KEY = bytes(range(16))
ONE_DIMENSIONAL = {
    "sorted": lambda **kwargs: SortedPath(Exponential(4.0), **kwargs),
    "grid": lambda **kwargs: GridPath(Exponential(4.0), **kwargs),
    "tree": lambda **kwargs: TreePath(Exponential(4.0), **kwargs),
    "band-limited": lambda **kwargs: FeaturePath(BandLimited(3.0), **kwargs),
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
        GridPath(Product((1.0, 2.0)), levels=4, domain=[(0, 1), (5, 9)]),
        TreePath(Product((1.0, 2.0)), levels=4, domain=[(0, 1), (5, 9)]),
        GridPath(Additive((Exponential(1.0), Exponential(2.0))), levels=4, domain=[(0, 1), (5, 9)]),
    ):
        assert path([0.5, 7.0]).shape == ()
        assert path(np.full((3, 2, 2), [0.5, 7.0])).shape == (3, 2)
        with pytest.raises(InvalidInput, match="2 coordinates"):
            path([0.5])
        with pytest.raises(InvalidInput, match="within"):
            path([0.5, 4.0])
    with pytest.raises(InvalidInput, match=r"domain has 1 dimension, \[0, 1\], but the kernel has 2"):
        GridPath(Product((1.0, 2.0)), domain=(0, 1))
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


@pytest.mark.parametrize("levels", [1, pytest.param(30, marks=pytest.mark.slow), 52])
@pytest.mark.parametrize("beta", [1e-3, 4.0, 1.6e4])
def test_numpy_and_jax_agree(levels, beta):
    path = TreePath(Exponential(beta), levels=levels, sigma=1.0, key=KEY)
    states = np.random.default_rng(1).random(3000)
    states[:4] = 0, 1, 0.5, 2.0**-levels
    np.testing.assert_allclose(path.compiled()(states), path(states), rtol=0, atol=1e-12)
    assert path.compiled()(0.25).shape == ()


def test_jax_precision_is_left_as_it_was():
    TreePath(Exponential(1.0), levels=1).compiled()(0.1)
    assert jax.numpy.zeros(1).dtype == np.float32


def test_replicas_agree_and_other_keys_do_not():
    states = np.linspace(0, 1, 50)
    path = TreePath(Exponential(4.0), key=KEY)
    np.testing.assert_array_equal(path(states), TreePath(Exponential(4.0), key=KEY)(states))
    for other in (
        TreePath(Exponential(4.0), key=KEY[::-1]),
        TreePath(Exponential(4.0), key=KEY + b"\0"),
        TreePath(Exponential(4.0), key=KEY, stream="action 1"),
        TreePath(Exponential(4.0)),
    ):
        assert np.abs(other(states) - path(states)).max() > 0.1


def test_tree_of_a_one_dimensional_product_is_the_tree():
    states = np.linspace(0, 1, 9)
    np.testing.assert_allclose(
        TreePath(Product((4.0,)), levels=20, key=KEY)(states), TreePath(Exponential(4.0), levels=20, key=KEY)(states)
    )


@pytest.mark.parametrize("key", [b"", bytes(15), bytes(65)])
def test_weak_keys_are_refused(key):
    with pytest.raises(InvalidInput, match="key must be"):
        TreePath(Exponential(1.0), key=key)


def test_the_key_is_not_shown_copied_or_pickled():
    path = TreePath(Exponential(1.0), key=b"0123456789abcdef")
    assert "0123" not in repr(path)
    assert "hidden" in repr(path)
    for leak in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="secret key"):
            leak(path)


@pytest.mark.parametrize("levels", [0, 53])
def test_levels_out_of_range(levels):
    with pytest.raises(InvalidInput, match="levels"):
        TreePath(Exponential(1.0), levels=levels)


def test_tables_too_large_for_a_machine_are_refused():
    with pytest.raises(InvalidInput, match="use fewer levels"):
        GridPath(Exponential(1.0), levels=40)
    with pytest.raises(InvalidInput, match="use fewer levels"):
        GridPath(Exponential(1.0), levels=10**9)  # at once: 2^levels is never computed
    with pytest.raises(InvalidInput, match="use fewer levels"):
        GridPath(Product((1.0, 1.0, 1.0)), levels=10)
    assert check_grid(Exponential(1.0), 26) == (2**26 + 1,)
    assert check_grid(Product((1.0, 1.0)), 12, outputs=4) == (4097, 4097)
    for levels, outputs in ((27, 1), (26, 2)):
        with pytest.raises(InvalidInput, match="use fewer levels"):
            check_grid(Exponential(1.0), levels, outputs)


@given(st.lists(st.floats(0, 1), max_size=60))
def test_sorted_points_are_a_sorted_map(keys):
    from quietq.noise import sorted_path

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_path, "_FULL", 4)  # many small buckets
        points, known = sorted_path.SortedPoints(), {}
        for i, x in enumerate(keys):
            place, value, left, right = points.find(x)
            assert value == known.get(x)
            if value is None:
                assert left == max(((k, v) for k, v in known.items() if k < x), default=None)
                assert right == min(((k, v) for k, v in known.items() if k > x), default=None)
                points.insert(place, x, float(i))
                known[x] = float(i)
        assert len(points) == len(known)


def test_threefry_known_answers():
    """The reference vectors of Random123 (threefry2x64, 20 rounds)."""
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    zero = np.uint64(0)
    with np.errstate(over="ignore"):
        assert threefry((zero, zero), (zero, zero)) == (0xC2B6E3A8C2C69865, 0x6F81ED42F350084D)
        assert threefry((ones, ones), (ones, ones)) == (0xE02CB7C4D95D277A, 0xD06633D0893B8B68)


def test_normals_from_bits_agree_in_both_forms():
    from jax.scipy.special import ndtri

    from quietq.noise.entropy import normal_from_bits

    edges = [abs(2**power + by) for power in range(64) for by in (-1, 0, 1)]
    random = np.random.default_rng(0).integers(0, 2**64 - 1, 20_000, dtype=np.uint64, endpoint=True)
    bits = np.concatenate([np.array([*edges, 2**64 - 1], np.uint64), random, random >> np.uint64(30)])
    with jax.enable_x64(True):
        theirs = np.asarray(normal_from_bits(jax.numpy.asarray(bits), inverse=ndtri))
    np.testing.assert_allclose(theirs, normal_from_bits(bits), rtol=1e-13, atol=1e-15)


def test_extreme_bits_give_finite_normals():
    from quietq.noise.entropy import normal_from_bits

    extremes = normal_from_bits(np.array([0, 1, 2**64 - 1, 2**64 - 2], np.uint64))
    assert np.isfinite(extremes).all()
    assert extremes.max() > 8
    assert extremes.min() < -8


def test_the_operating_systems_normals():
    z = SystemEntropy().normals((400_000,))
    assert kstest(z, "norm").pvalue > 1e-9
    assert not np.array_equal(z[:5], SystemEntropy().normals((5,)))
    assert not SystemEntropy().reproducible
    assert SeededEntropy(0).reproducible


@pytest.mark.parametrize("first", [2**40, 1])
def test_the_tail_is_drawn_finely(monkeypatch, first):
    """Given its leading zeros, a tail probability is uniform, down to where 116 bits lead."""
    rng, size = np.random.default_rng(3), 50_000

    def urandom(n):
        asked.append(n)
        top = rng.integers(0, first, n // 8, dtype=np.uint64) << np.uint64(12)
        sign = rng.integers(0, 2, n // 8, dtype=np.uint64)
        return (top | sign).tobytes() if len(asked) % 2 else rng.bytes(n)

    asked = []
    monkeypatch.setattr("quietq.noise.entropy.os.urandom", urandom)
    z = SystemEntropy().normals((size,))
    assert len(asked) == 4  # two chunks, each with its second words
    tail = ndtr(-np.abs(z)) * 2.0**53 / first
    assert kstest(tail, "uniform").pvalue > 1e-6
    assert abs(np.mean(z > 0) - 0.5) < 0.02
    assert len(np.unique(np.abs(z))) > 0.999 * size
    assert np.abs(z).min() > (3.66 if first > 1 else 8.2)


def test_how_far_normals_reach():
    from quietq.noise.entropy import normal_from_bits

    words = np.array([0, 1], np.uint64)
    np.testing.assert_allclose(normal_from_bits(words, np.zeros(2, np.uint64)), [-12.5, 12.5], atol=0.05)
    near, next_to_it = normal_from_bits(words[[0, 0]], np.array([2**24, 2**24 + 1], np.uint64))
    assert near < -11
    assert 0 < next_to_it - near < 2.0**-20
    all_ones = np.full(2, 2**64 - 1, np.uint64)  # and where the second word ends, the first goes on
    below, above = normal_from_bits(words[:1], all_ones[:1])[0], normal_from_bits(words[:1] + 2**12, words[:1])[0]
    assert below == pytest.approx(above, rel=1e-12)


def test_only_the_tail_costs_a_second_word(monkeypatch):
    asked = []
    monkeypatch.setattr("quietq.noise.entropy.os.urandom", lambda n: asked.append(n) or np.full(n, 255, "u1").tobytes())
    SystemEntropy().normals((10,))
    assert asked == [80]


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


def test_a_grid_path_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        GridPath(Exponential(1.0), levels=3).values[0] = 0
