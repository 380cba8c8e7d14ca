"""Private policy evaluation: its sensitivity by brute force, its noise by exact divergences, its error."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import ncx2

from quietq import Budget, Certificate, InvalidInput, PrivacyWarning
from quietq.learning.evaluation import Evaluation
from quietq.learning.least_squares import LeastSquares, Ridge, Weighted
from quietq.learning.smooth_sensitivity import Admissible, smooth_bound
from quietq.learning.trajectories import Cells, Visits, largest_return
from quietq.privacy.relations import Trajectories

LARGEST = 1.7  # the largest return in the brute-force tests
ANYONE = np.array(list(itertools.product([np.nan, -LARGEST, LARGEST], repeat=3)))
"""All that somebody can bring to 3 cells, up to convexity: the weights are affine in each return."""


def fits() -> dict[str, LeastSquares]:
    mixed = np.array([[1.0, 0.2], [-0.5, 1.0], [0.3, 0.8]])
    weights = np.array([0.5, 2.0, 1.0])
    skew = np.diag([1.0, 2.0, 0.5])
    return {
        "lsw, a weight a cell": Weighted(np.eye(3), weights, LARGEST),
        "lsw, mixed": Weighted(mixed, weights, LARGEST),
        "lsw, one feature": Weighted(np.ones((3, 1)), weights, LARGEST),
        "lsw, a feature too many": Weighted(np.ones((3, 2)), weights, LARGEST),
        "lsl, a weight a cell": Ridge(skew, weights, LARGEST, 0.3),
        "lsl, mixed": Ridge(mixed, weights, LARGEST, 0.3),
        "lsl, hardly a ridge": Ridge(mixed, weights, LARGEST, 1e-4),
        "lsl, one feature": Ridge(np.ones((3, 1)), weights, LARGEST, 5.0),
    }


def visits_of(people: np.ndarray) -> Visits:
    return Visits(np.sum(~np.isnan(people), axis=0), np.nansum(people, axis=0))


def replaced(people: np.ndarray, one: int, by: np.ndarray) -> np.ndarray:
    return np.concatenate([people[:one], by[None], people[one + 1 :]])


def local_sensitivity(fit: LeastSquares, people: np.ndarray) -> float:
    """The exact one: everybody is replaced by all that could be."""
    here = fit.estimate(visits_of(people))
    there = [fit.estimate(visits_of(replaced(people, i, by))) for i in range(len(people)) for by in ANYONE]
    return float(np.linalg.norm(np.array(there) - here, axis=1).max())


def some_people(rng: np.random.Generator, n: int) -> np.ndarray:
    returns = LARGEST * np.where(rng.random((n, 3)) < 0.7, rng.choice([-1, 1], (n, 3)), rng.uniform(-1, 1, (n, 3)))
    return np.where(rng.random((n, 3)) < rng.uniform(0.1, 1, 3), returns, np.nan)


def reaches(fit: LeastSquares, people: np.ndarray, distances: range) -> np.ndarray:
    return fit.reach(visits_of(people).counts, np.array(distances), len(people))


@pytest.mark.parametrize("name", fits())
def test_no_data_within_a_distance_exceeds_the_bound_there(name):
    fit, rng = fits()[name], np.random.default_rng(1)
    for _ in range(6):
        people = some_people(rng, int(rng.integers(1, 7)))
        bounds, moved = reaches(fit, people, range(5)), people
        assert (np.diff(bounds) >= 0).all()
        assert bounds[0] >= fit.least(len(people)) * (1 - 1e-12)
        for k in range(5):  # one more is replaced each time, by whoever makes things worse, or anybody
            assert local_sensitivity(fit, moved) <= bounds[k] * (1 + 1e-9)
            moved = replaced(moved, k % len(moved), ANYONE[0] if rng.random() < 0.5 else rng.choice(ANYONE))


@pytest.mark.parametrize("name", fits())
def test_a_search_for_the_worst_data_stays_below_the_bound(name):
    fit, rng = fits()[name], np.random.default_rng(2)

    def ratio(data: np.ndarray) -> float:
        return local_sensitivity(fit, data) / float(reaches(fit, data, range(1))[0])

    people = some_people(rng, 3)
    worst = ratio(people)
    for _ in range(25):
        other = replaced(people, int(rng.integers(3)), rng.choice(ANYONE))
        if (new := ratio(other)) >= worst:
            people, worst = other, new
    assert worst <= 1 + 1e-9
    if name in ("lsw, a weight a cell", "lsw, one feature"):
        assert worst == pytest.approx(1)  # attained: no smaller bound would do


@pytest.mark.parametrize("name", fits())
@pytest.mark.parametrize("beta", [0.02, 0.5])
def test_neighbours_have_bounds_within_a_factor(name, beta):
    fit, rng = fits()[name], np.random.default_rng(3)
    for _ in range(12):
        n = int(rng.integers(1, 60))
        people = some_people(rng, n)
        other = replaced(people, 0, rng.choice(ANYONE))
        counts = [visits_of(data).counts for data in (people, other)]
        smooth = [smooth_bound(lambda k, c=c, m=n: fit.reach(c, k, m), n, beta) for c in counts]
        assert abs(math.log(smooth[0] / smooth[1])) <= beta * (1 + 1e-9)
        every = np.exp(-beta * np.arange(n + 1)) * reaches(fit, people, range(n + 1))
        assert smooth[0] == pytest.approx(every.max(), rel=1e-12)  # stopping early misses nothing
        assert reaches(fit, people, range(n, n + 2)) == pytest.approx(every[-1] * math.exp(beta * n))


def test_the_published_form_of_lsw_is_never_smaller():
    """It puts e^(-k beta) on the square of the bound, as if beta were half of what it is: right, but wasteful."""
    rng, beta, weights = np.random.default_rng(4), 0.02, np.array([0.5, 2.0, 1.0])
    fit = Weighted(np.eye(3), weights, LARGEST)
    for _ in range(50):
        counts = rng.integers(0, 400, 3)
        k = np.arange(401)
        squares = np.sum(weights / np.maximum(counts - k[:, None], 1) ** 2, axis=1)
        published = 2 * LARGEST / math.sqrt(weights.min()) * math.sqrt(np.max(np.exp(-k * beta) * squares))
        ours = smooth_bound(lambda d, c=counts: fit.reach(c, d, 400), 400, beta)
        assert ours <= published * (1 + 1e-12)


def divergence(epsilon: float, d: int, shift: float, growth: float) -> float:
    """The exact delta of N(0, I) against N(a, e^(2 growth) I): what lies inside or outside a sphere."""
    variance = math.exp(2 * growth)
    centre, bend = shift / (1 - variance), 1 / variance - 1
    square = (2 * (epsilon - d * growth) + shift**2 / (1 - variance)) / bend
    if square <= 0:
        return 0.0 if bend < 0 else 1 - math.exp(epsilon)
    side = ncx2.sf if bend > 0 else ncx2.cdf
    other = math.exp(epsilon) * float(side(square / variance, d, (shift - centre) ** 2 / variance))
    return float(side(square, d, centre**2)) - other


def worst_divergence(epsilon: float, d: int, alpha: float, beta: float) -> float:
    growths = [sign * beta * part for sign in (-1, 1) for part in np.linspace(0.1, 1, 10)]
    return max(divergence(epsilon, d, alpha * min(1, math.exp(growth)), growth) for growth in growths)


@pytest.mark.parametrize("d", [1, 4, 40])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 50.0])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_the_noise_is_private_by_its_exact_divergence(d, epsilon, share):
    for delta in (1e-2, 1e-6):
        pair = Admissible.for_budget(Budget(epsilon, delta), d, share)
        assert worst_divergence(epsilon, d, pair.alpha, pair.beta) <= delta
        log = math.log(2 / delta)
        if share == 0.5 and epsilon <= 1:
            assert pair.alpha > 2.5 * epsilon / (5 * math.sqrt(2 * log))
            assert pair.beta > epsilon / (4 * (d + log))


def test_the_divergence_agrees_with_sampling():
    rng, d, epsilon, shift, growth = np.random.default_rng(5), 3, 0.2, 0.8, -0.3
    x = rng.standard_normal((400_000, d))
    far = np.sum((x - [shift, 0, 0]) ** 2, axis=1) / math.exp(2 * growth)
    loss = d * growth - np.sum(x**2, axis=1) / 2 + far / 2
    terms = np.maximum(0, 1 - np.exp(epsilon - loss))
    assert abs(terms.mean() - divergence(epsilon, d, shift, growth)) < 6 * terms.std() / math.sqrt(len(terms))


def test_the_published_noise_is_too_small_at_a_large_epsilon():
    for epsilon, holds in ((1.0, True), (50.0, False)):
        log = math.log(2e4)
        delta = worst_divergence(epsilon, 1, epsilon / (5 * math.sqrt(2 * log)), epsilon / (4 * (1 + log)))
        assert (delta <= 1e-4) is holds


def test_first_visits_clipped_and_cut():
    relation = Trajectories(count=4, largest_reward=1.0, horizon=3)
    data = [
        ([0, 1, 0], [5.0, -0.5, 1.0]),  # clipped to 1: returns 1 - 0.25 + 0.25 and -0.5 + 0.5
        (np.array([[1.0], [7.0], [2.0], [0.0]]), [1.0, 1.0, 1.0, 9.0]),  # cell 7 is none; cut before 0
        ([], []),
        ([-1], [1.0]),
    ]
    visits = Visits.of(data, Cells.states(3), 0.5, relation)
    assert visits.counts.tolist() == [1, 2, 1]
    assert visits.sums.tolist() == [1.0, 1.75, 1.0]
    assert largest_return(relation, 0.5) == 1.75
    assert largest_return(relation, 1.0) == 3.0
    assert Cells.between([0, 1, 2]).index(np.array([-3.0, 0.999, 1.0, 9.0])).tolist() == [0, 0, 1, 1]


def test_trajectories_move_the_weights_no_further_than_their_returns_allow():
    """From raw numbers, wild ones too, to the weights."""
    rng, relation = np.random.default_rng(6), Trajectories(count=5, largest_reward=1.0, horizon=4)
    fit = Weighted(np.eye(3), np.ones(3), largest_return(relation, 0.9))

    def one() -> tuple[np.ndarray, np.ndarray]:
        n = int(rng.integers(0, 8))
        return rng.integers(-1, 4, n), rng.choice([-1e9, -1.0, 1.0, 1e9], n)

    for _ in range(150):
        data = [one() for _ in range(5)]
        here, there = (Visits.of([*data[:4], x], Cells.states(3), 0.9, relation) for x in (data[4], one()))
        assert np.abs(here.counts - there.counts).max() <= 1
        bound = fit.reach(here.counts, np.array([0]), 5)[0]
        assert np.linalg.norm(fit.estimate(here) - fit.estimate(there)) <= bound * (1 + 1e-12)


STATES, GAMMA, STEPS = 5, 0.8, 30


def chain(people: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """A ring of 5 states: one step on with probability 0.7; state 4 pays 1."""
    rng = np.random.default_rng(people)
    path = np.cumsum(np.c_[rng.integers(0, STATES, people), rng.random((people, STEPS - 1)) < 0.7], axis=1) % STATES
    return list(zip(path, (path == STATES - 1).astype(float), strict=True))


def chain_values() -> np.ndarray:
    step = 0.3 * np.eye(STATES) + 0.7 * np.roll(np.eye(STATES), 1, axis=1)
    return np.linalg.solve(np.eye(STATES) - GAMMA * step, np.arange(STATES) == STATES - 1)


def evaluation(people: int, **options) -> Evaluation:
    settings = {"budget": Budget(1.0, 1e-6), "gamma": GAMMA, "cells": Cells.states(STATES)}
    return Evaluation(**{**settings, "relation": Trajectories(people, 1.0, STEPS), **options})


def error(value) -> float:
    return float(np.sqrt(np.mean((value(np.arange(STATES)) - chain_values()) ** 2)))


@pytest.mark.parametrize("options", [{}, {"kind": "lsl", "ridge": 5.0}], ids=["lsw", "lsl"])
def test_the_error_falls_with_the_number_of_people(options):
    errors = []
    for people in (500, 20_000 if not options else 8000):
        data, method = chain(people), evaluation(people, **options)
        errors.append(error(method.release(data, simulate=0)))  # the same normals, scaled
    assert errors[1] < 0.04  # of values between 0.5 and 1.7, whose bound is 5
    assert errors[0] > 5 * errors[1]  # about 1/m


def test_a_ridge_helps_where_people_are_few():
    data = chain(200)
    lsw, lsl = (evaluation(200, **o) for o in ({}, {"kind": "lsl", "ridge": 20.0}))
    plain, ridged = (np.mean([error(e.release(data, simulate=seed)) for seed in range(6)]) for e in (lsw, lsl))
    assert plain > 3 * ridged


@pytest.mark.parametrize("options", [{}, {"kind": "lsl", "ridge": 1.0}], ids=["lsw", "lsl"])
def test_shared_features_on_a_real_state(options):
    """Every step leads anywhere, so that a state is worth its own reward and a constant."""
    rng, people, edges = np.random.default_rng(7), 5000, np.linspace(0, 1, 9)
    middles = (edges[1:] + edges[:-1]) / 2
    data = [(s, 1 - 2 * np.abs(s - 0.5)) for s in rng.random((people, 6))]
    features = np.stack([np.ones(8), 1 - 2 * np.abs(middles - 0.5)], axis=1)
    settings = {"cells": Cells.between(edges), "features": features, "relation": Trajectories(people, 1.0, 6)}
    value = evaluation(people, gamma=0.9, **settings, **options).release(data, simulate=1)
    assert value.weights[1] == pytest.approx(1, abs=0.35)
    assert 0 < value.weights[0] < 0.5 * 0.9 * (1 - 0.9**5) / 0.1 + 0.35  # first visits may come late
    assert value(np.array([[0.01], [0.02]])).tolist() == [float((features @ value.weights)[0])] * 2


def test_a_release_is_certified_and_says_nothing_of_its_noise():
    data, method = chain(300), evaluation(300)
    value = method.release(data)
    certificate = value.certificate
    assert (certificate.standing, certificate.epsilon, certificate.delta) == ("certified", 1.0, 1e-6)
    assert (certificate.mu, certificate.sigma, certificate.sensitivity) == (None, None, None)
    assert certificate.relation == method.relation.describe()
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert "differ in one" in str(certificate)
    assert "mu =" not in str(certificate)
    assert method.release(data).weights.tolist() != value.weights.tolist()
    with pytest.raises(InvalidInput, match="Only a certified Gaussian release"):
        certificate.to_event()
    with pytest.raises(ValueError, match="read-only"):
        value.weights[0] = 0.0


def test_nothing_but_the_weights_depends_on_the_data():
    """Neither the certificate nor the grid of the released numbers does, however the data vary the noise."""
    nobody = [([], [])] * 300
    method = evaluation(300)
    full, empty = method.release(chain(300)), method.release(nobody)
    assert full.certificate == empty.certificate
    least = method._fit().least(300) / Admissible.for_budget(method.budget, STATES).alpha
    step = 2.0 ** (math.floor(math.log2(least)) - 20)
    assert f"multiples of {step:g}" in str(full.certificate)
    for value in (full, empty):
        assert (value.weights % step == 0).all()


def test_a_seed_protects_nobody():
    data, method = chain(300), evaluation(300)
    one, two = (method.release(data, simulate=4) for _ in range(2))
    assert one.weights.tolist() == two.weights.tolist()
    assert (one.certificate.standing, one.certificate.reproducible) == ("none", True)
    assert one.certificate.sigma is None


def test_the_noise_has_the_size_of_the_smooth_bound():
    data, method = chain(60), evaluation(60)
    visits, fit = Visits.of(data, method.cells, GAMMA, method.relation), method._fit()
    pair = Admissible.for_budget(method.budget, STATES)
    sigma = smooth_bound(lambda k: fit.reach(visits.counts, k, 60), 60, pair.beta) / pair.alpha
    noise = [method.release(data, simulate=seed).weights - fit.estimate(visits) for seed in range(60)]
    total = float(np.sum(np.square(noise))) / sigma**2  # chi-squared with 300 degrees of freedom
    assert 300 - 6 * math.sqrt(600) < total < 300 + 6 * math.sqrt(600)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": Budget(1.0, 0)}, "delta must be above 0"),
        ({"kind": "lsl"}, "ridge must be given"),
        ({"ridge": 1.0}, "ridge must be given"),
        ({"kind": "lsl", "ridge": 0.0}, "ridge must be above 0"),
        ({"gamma": 1.5}, "gamma must lie between"),
        ({"gamma": 1.0, "relation": Trajectories(9, 1.0)}, "unless a horizon"),
        ({"features": np.zeros((5, 2))}, "features must be"),
        ({"features": np.ones((4, 2))}, "features must be"),
        ({"features": np.full((5, 2), np.nan)}, "features must be"),
        ({"importance": np.zeros(5)}, "importance must be"),
        ({"share": 1.0}, "share must lie"),
    ],
)
def test_wrong_declarations_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        evaluation(10, **options)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (([0], [math.nan]), "finite"),
        (([0], [math.inf]), "finite"),
        (([math.nan], [1.0]), "finite"),
        (([0, 1], [1.0]), "one reward for each"),
        ((["a"], [1.0]), "real numbers"),
        ((np.zeros((1, 2)), [1.0]), "one number for each state"),
    ],
)
def test_bad_trajectories_are_refused_before_anything_is_drawn(bad, message, monkeypatch):
    def drawn(*_):
        raise AssertionError("something was drawn")

    monkeypatch.setattr("quietq.noise.entropy.SystemEntropy.normals", drawn)
    with pytest.raises(InvalidInput, match=message):
        evaluation(10).release([*chain(9), bad])
    with pytest.raises(InvalidInput, match="10 trajectories were declared, but 9 given"):
        evaluation(10).release(chain(9))


def test_a_failing_rule_does_not_show_the_states():
    def rule(states):
        raise KeyError(float(states[0]))

    with pytest.raises(InvalidInput, match="failed with KeyError") as caught:
        evaluation(1, cells=Cells(5, rule)).release([([0.123], [1.0])])
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_large_delta_is_warned_of():
    with pytest.warns(PrivacyWarning, match="not below 1/people"):
        evaluation(10, budget=Budget(1.0, 0.1))
