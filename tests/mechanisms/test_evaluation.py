"""Private policy evaluation: its noise by exact divergences, and its error."""

import math

import numpy as np
import pytest
from evaluation_chain import GAMMA, STATES, chain, divergence, error, evaluation

from quietq import Budget
from quietq.feedback.cells import Cells
from quietq.paper.baselines.balle import Admissible, Visits, smooth_bound
from quietq.privacy.budget import delta_from_mu
from quietq.privacy.relations import Trajectories
from quietq.privacy.smooth_sensitivity import delta_of_two_sizes


def worst_divergence(epsilon: float, d: int, alpha: float, beta: float) -> float:
    growths = [sign * beta * part for sign in (-1, 1) for part in np.linspace(0.1, 1, 10)]
    return max(divergence(epsilon, d, alpha * min(1, math.exp(growth)), growth) for growth in growths)


@pytest.mark.parametrize("d", [1, 4, 40])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 50.0])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_the_noise_is_private_by_its_exact_divergence(d, epsilon, share):
    for delta in (1e-2, 1e-6):
        pair = Admissible.for_budget(Budget(epsilon, delta), d, share)
        worst = worst_divergence(epsilon, d, pair.alpha, pair.beta)
        assert worst <= delta
        assert max(worst, delta_from_mu(pair.alpha, epsilon)) >= delta * (1 - 1e-6)  # and nothing less will do
        log = math.log(2 / delta)
        if share == 0.5 and epsilon <= 1:
            assert pair.alpha > 4 * epsilon / (5 * math.sqrt(2 * log))
            assert pair.beta > epsilon / (4 * (d + log))


@pytest.mark.parametrize(
    ("d", "epsilon", "alpha", "beta"), [(1, 0.1, 0.5, 0.3), (3, 0.9, 0.22, 0.03), (40, 5.0, 2, 0.2)]
)
def test_no_shift_and_no_change_of_size_is_worse_than_the_extremes(d, epsilon, alpha, beta):
    """Divergences grow with the shift; as functions of the size they fall first, if at all, and rise then."""
    worst = delta_of_two_sizes(alpha, beta, d, epsilon, 1e-30)
    sizes, shifts = np.linspace(0.02, 1, 25) * beta, np.linspace(0.1, 1, 6) * alpha
    for sign in (1, -1):
        found = np.array(
            [[divergence(epsilon, d, a * math.exp(min(sign * g, 0)), sign * g) for g in sizes] for a in shifts]
        )
        assert found.max() <= worst * (1 + 1e-9)
        assert (np.diff(found, axis=0) >= -1e-12).all()
        for row in np.diff(found, axis=1):
            rising = np.flatnonzero(row > 1e-12)
            assert not len(rising) or (row[rising[0] :] > -1e-12).all()
    ends = [divergence(epsilon, d, alpha * math.exp(min(g, 0)), g) for g in (beta, -beta)]
    assert worst == pytest.approx(max(*ends, delta_from_mu(alpha, epsilon)), rel=1e-7)


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


@pytest.mark.slow
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


def test_the_noise_has_the_size_of_the_smooth_bound():
    data, method = chain(60), evaluation(60)
    visits, fit = Visits.of(data, method.cells, GAMMA, method.relation), method._fit()
    pair = Admissible.for_budget(method.budget, STATES)
    sigma = smooth_bound(lambda k: fit.reach(visits.counts, k, 60), 60, pair.beta) / pair.alpha
    noise = [method.release(data, simulate=seed).weights - fit.estimate(visits) for seed in range(60)]
    total = float(np.sum(np.square(noise))) / sigma**2  # chi-squared with 300 degrees of freedom
    assert 300 - 6 * math.sqrt(600) < total < 300 + 6 * math.sqrt(600)
