"""The law of states that two answers tell, and features that are orthonormal under it."""

import numpy as np
import pytest

from quietq.feedback.row_statistics import Chosen, Marginals, SecondMoments, Squared
from quietq.mechanisms.basis import Basis, StateLaw
from quietq.noise.feature_maps import Polynomials

BINS, QUIET = 8, 1e-9
BASIS = Basis.of(None, 3, Squared(3, (0.0, 1.0))).first(40)
FEATURES: Polynomials = BASIS.feature_map  # type: ignore[assignment]


def law_of(*states: np.ndarray) -> StateLaw:
    """By answers almost without noise, from one person who gave all rows."""
    names = ("x",) if len(states) == 1 else ("option0_", "option1_")
    columns = {f"{name}{i}": x[:, i] for name, x in zip(names, states, strict=True) for i in range(x.shape[1])}
    d, first = states[0].shape[1], np.array([0])
    loss = Squared(d, (0.0, 1.0)) if len(states) == 1 else Chosen(d, 2)
    law = StateLaw.from_marginals(Marginals(loss, d, BINS).of_people(first, columns)[0], QUIET, BINS)
    moments = SecondMoments(loss, law.centred, d).of_people(first, columns)[0]
    return law.tied(moments, QUIET, len(states))


def states(n: int = 20_000) -> np.ndarray:
    """The first two go together, and the third is an indicator that goes with them."""
    rng = np.random.default_rng(0)
    x = rng.random(n)
    near = np.clip(x + 0.1 * rng.normal(size=n), 0, 1)
    return np.stack([x**2, near, (x + rng.random(n) > 1.3).astype(float)], axis=-1)


def test_drawn_states_are_like_those_that_were_told():
    x = states()
    law = law_of(x)
    (drawn,) = law.draw(np.random.default_rng(1).standard_normal((20_000, 3)))
    assert np.corrcoef(law.centred(drawn).T) == pytest.approx(np.corrcoef(law.centred(x).T), abs=0.1)
    assert drawn.mean(axis=0) == pytest.approx(x.mean(axis=0), abs=0.02)
    assert np.isin(drawn[:, 2], [0, 1]).mean() > 0.999


def test_features_are_made_orthonormal_where_states_lie():
    x = states()
    law = law_of(x)
    gram = law.gram(BASIS.alone, 1)
    assert gram is not None
    turned = BASIS.turned(gram)
    assert turned.size < BASIS.size  # powers of an indicator say nothing new
    assert (np.diff(turned.variances) <= 0).all()
    assert turned.matrix is not None
    assert turned.matrix.T @ gram @ turned.matrix == pytest.approx(np.eye(turned.size), abs=1e-6)
    here = FEATURES(law.centred(x) / 12**0.5 + 0.5) @ turned.matrix[:, :5]
    assert np.abs(here.T @ here / len(x) - np.eye(5)).max() < 0.25


def test_two_states_of_a_row_may_be_tied_to_each_other():
    """All pairs have the same first coordinate, so nothing can be learnt from it."""
    rng = np.random.default_rng(2)
    left, right = rng.random((2, 20_000, 3))
    right[:, 0] = left[:, 0]
    gram = law_of(left, right).gram(BASIS.alone, 2)
    assert gram is not None
    alone = [i for i, term in enumerate(FEATURES.terms) if term == ((0, 1),)]
    other = [i for i, term in enumerate(FEATURES.terms) if term == ((1, 1),)]
    assert gram[alone[0], alone[0]] < 0.1
    assert gram[other[0], other[0]] == pytest.approx(1, abs=0.1)


def test_noise_is_taken_for_nothing():
    rng, sigma = np.random.default_rng(3), 0.05
    even = np.tile(np.r_[0, np.full(BINS, 1 / BINS), 0], 3)
    plain = 0
    for _ in range(20):
        law = StateLaw.from_marginals(even + sigma * rng.normal(size=even.size), sigma, BINS)
        law = law.tied(np.array([1, 0, 0, 1, 0, 1]) / 3**0.5 + sigma * rng.normal(size=6), sigma, 1)
        plain += law.ties is None and bool((law.shares == even.reshape(3, -1)).all())
    assert plain > 10
