"""The reward model: against dense Gaussian processes, its calibration, and what it is worth on the walk."""

import math

import numpy as np
import pytest

from quietq import (
    Budget,
    Certificate,
    Exponential,
    GaussianProcessMechanism,
    InvalidInput,
    LipschitzBall,
    RkhsBall,
    people,
)
from quietq.mechanisms import PrivateTable
from quietq.mechanisms.model import FittedReward, RewardModel, denoise
from quietq.noise.grid_path import grid_points
from quietq.noise.kernels.exponential import whiten
from quietq.worlds import WALK, plan, score, walk_reward

BUDGET = Budget(0.9, 1e-4)
MODELS = [
    RewardModel(low=0.0, high=0.5),
    RewardModel(low=-1.0, high=3.0, hats=9, smoothness="matern"),
    RewardModel(low=0.0, high=0.5, hats=17, length=0.5, deviation=0.1),
]


def two_peaks(states):
    return 0.25 - 0.15 * np.cos(4 * np.pi * states)


def hats_at(model, points):
    knots = np.linspace(0, 1, model.hats)
    return np.stack([np.interp(points, knots, row) for row in np.eye(model.hats)], axis=1)


def dense_posterior(model, points, values, noise_covariance, queries):
    """The textbook: condition a Gaussian process whose covariance is the hats' on noisy values."""
    prior, middle = model.prior_covariance(), (model.low + model.high) / 2
    h, q = hats_at(model, points), hats_at(model, queries)
    gain = np.linalg.solve(h @ prior @ h.T + noise_covariance, h @ prior @ q.T).T
    mean = middle + gain @ (values - middle)
    return mean, np.sqrt(np.diag(q @ prior @ q.T - gain @ h @ prior @ q.T))


def released(mechanism, f=walk_reward, seed=0):
    private = mechanism.simulate(f, seed)
    assert isinstance(private, PrivateTable)
    return private


def of_people(n, levels=10):
    return GaussianProcessMechanism.for_relation(people(n, low=0, high=0.5, slope=1), BUDGET, levels=levels)


def test_the_prior_is_the_textbooks():
    model = RewardModel(low=0, high=1, hats=11, deviation=2.0)
    assert model.prior_covariance()[3, 5] == pytest.approx(4 * math.exp(-1 / 2))  # knots 0.2 apart
    rough = RewardModel(low=0, high=1, hats=11, smoothness="matern", deviation=1.0)
    assert rough.prior_covariance()[0, 3] == pytest.approx((1 + math.sqrt(3)) * math.exp(-math.sqrt(3)))
    assert np.diag(RewardModel(low=0, high=1).prior_covariance()) == pytest.approx(0.25)


@pytest.mark.parametrize("model", MODELS)
def test_fit_is_the_dense_posterior(model):
    rng = np.random.default_rng(1)
    points, values, noise = rng.uniform(0, 1, 7), rng.normal(size=7), rng.uniform(0.05, 0.5, 7)
    queries = np.linspace(0, 1, 101)
    fitted = model.fit(points, values, noise)
    mean, std = dense_posterior(model, points, values, np.diag(noise**2), queries)
    assert fitted(queries) == pytest.approx(mean, abs=1e-9)
    assert fitted.std(queries) == pytest.approx(std, abs=1e-8)


def test_weights_count_samples():
    model, points, values = MODELS[0], np.array([0.1, 0.6]), np.array([0.2, 0.4])
    once = model.fit([*points, points[1]], [*values, values[1]], 0.1)
    weighted = model.fit(points, values, 0.1, weights=[1, 2])
    assert once(points) == pytest.approx(weighted(points))
    assert model.fit(points, values, [0.1, 0.1 / math.sqrt(2)]).std(0.3) == pytest.approx(weighted.std(0.3))


def test_without_samples_it_is_the_prior():
    fitted = MODELS[0].fit([], [], 1.0)
    assert fitted([0.0, 0.3, 1.0]) == pytest.approx(0.25)
    assert fitted.std([0.0, 0.5, 1.0]) == pytest.approx(0.25)


def test_any_box_and_any_shape_of_states():
    unit = MODELS[0].fit([0.1, 0.6], [0.2, 0.4], 0.1)
    wide = RewardModel(low=0.0, high=0.5, domain=(-10, 10)).fit([-8, 2], [0.2, 0.4], 0.1)
    assert wide([[-8, 2]]) == pytest.approx(unit([[0.1, 0.6]]))
    assert wide(0).shape == wide.std(0).shape == ()
    assert wide.std(np.zeros((2, 3))).shape == (2, 3)


def test_the_fitted_model_cannot_be_changed():
    fitted = MODELS[0].fit([0.1], [0.2], 0.1)
    with pytest.raises(ValueError, match="read-only"):
        fitted.mean[0] = 1
    with pytest.raises(AttributeError):
        fitted.certificate = None  # pyright: ignore


@pytest.mark.parametrize("model", MODELS)
def test_the_posterior_is_as_sure_as_it_should_be(model):
    """Rewards drawn from the prior lie within z standard deviations as often as a normal does."""
    rng, draws, where = np.random.default_rng(2), 400, np.array([0.03, 0.4, 0.77])
    scales, directions = np.linalg.eigh(model.prior_covariance())
    errors = np.empty((draws, 3))
    for i in range(draws):
        weights = directions @ (np.sqrt(np.maximum(scales, 0)) * rng.normal(size=model.hats))
        points = rng.uniform(0, 1, 30)
        values = (model.low + model.high) / 2 + hats_at(model, points) @ weights + 0.1 * rng.normal(size=30)
        fitted = model.fit(points, values, 0.1)
        errors[i] = (fitted(where) - (model.low + model.high) / 2 - hats_at(model, where) @ weights) / fitted.std(where)
    for z, share in ((1, 0.6827), (2, 0.9545)):
        inside = (np.abs(errors) < z).mean(axis=0)
        assert inside == pytest.approx(share, abs=5.5 * math.sqrt(share * (1 - share) / draws))


def visited(rng, n):
    """States after each move of uniformly random walks, n in all."""
    states, seen = rng.uniform(0, 1, n // WALK.steps), []
    for _ in range(WALK.steps):
        moves = rng.uniform(0, WALK.reach, len(states)) * rng.choice([-1, 1], len(states))
        states = np.clip(states + moves, 0, 1)
        seen.append(states)
    return np.concatenate(seen)


@pytest.mark.parametrize(("radius", "least"), [(0.01, 0.96), (0.02, 0.83)])
def test_planning_on_noised_rewards(radius, least):
    """Independent noise rho sqrt(n)/mu on each of n = 5,000 rewards; 0.98 and 0.91 in the mean of many."""
    n = 5000
    noise, scores = radius * math.sqrt(n) / BUDGET.mu, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        states = visited(rng, n)
        fitted = MODELS[0].fit(states, walk_reward(states) + noise * rng.standard_normal(n), noise)
        scores.append(score(plan(fitted, cells=256), cells=256))
    assert np.mean(scores) > least


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2]])
def test_denoise_is_the_dense_posterior(model):
    mechanism = of_people(20, levels=5)
    private = released(mechanism)
    points, queries = grid_points(mechanism.box, 5), np.linspace(0, 1, 101)
    covariance = mechanism.sigma**2 * mechanism.kernel.covariance(points, points)
    mean, std = dense_posterior(model, points, private.values, covariance, queries)
    smooth = denoise(private, model, Exponential(4.0))
    assert smooth(queries) == pytest.approx(mean, abs=1e-8)
    assert smooth.std(queries) == pytest.approx(std, abs=1e-7)


def test_denoise_of_a_large_table_in_chunks():
    mechanism = of_people(20, levels=17)
    private = released(mechanism)
    points = grid_points(mechanism.box, 17)
    h = whiten(4.0, points, hats_at(MODELS[0], points).T) / mechanism.sigma
    y = whiten(4.0, points, private.values - 0.25) / mechanism.sigma
    smooth, prior = denoise(private, MODELS[0], Exponential(4.0)), MODELS[0].prior_covariance()
    weights = prior @ np.linalg.solve(np.eye(13) + h @ h.T @ prior, h @ y)
    assert smooth.mean == pytest.approx(0.25 + weights, abs=1e-8)


def test_denoise_of_several_outputs_is_denoise_of_each():
    relation = people(20, low=0, high=0.5, slope=1, actions=2)
    mechanism = GaussianProcessMechanism.for_relation(relation, BUDGET, levels=6)
    private = mechanism.apply(lambda s: np.stack([walk_reward(s), two_peaks(s)], axis=1))
    assert isinstance(private, PrivateTable)
    smooth = denoise(private, MODELS[0])
    assert smooth([0.1, 0.2, 0.3]).shape == (3, 2)
    for i in range(2):
        column = PrivateTable(private.values[:, i].copy(), 6, private.box, private.certificate)
        assert denoise(column, MODELS[0])([0.3, 0.9]) == pytest.approx(smooth([0.3, 0.9])[:, i])


def test_denoise_lessens_the_error_for_the_walk():
    mechanism = of_people(20)
    states = grid_points(mechanism.box, 10)
    errors = np.empty((30, 2))
    for seed in range(30):
        private = released(mechanism, seed=seed)
        for i, reward in enumerate((private, denoise(private, MODELS[0], Exponential(4.0)))):
            errors[seed, i] = np.mean((reward(states) - walk_reward(states)) ** 2)
    raw, smooth = errors.mean(axis=0)
    assert smooth < 0.6 * raw  # 0.39 in the mean of many


def test_denoise_keeps_the_certificate_and_finds_the_kernel_there():
    private = of_people(20).apply(walk_reward)
    assert isinstance(private, PrivateTable)
    smooth = denoise(private, MODELS[0])
    assert isinstance(smooth, FittedReward)
    assert smooth.certificate is private.certificate
    assert private.certificate.standing == "certified"
    assert (smooth.mean == denoise(private, MODELS[0], Exponential(4.0)).mean).all()
    assert MODELS[0].fit([0.1], [0.2], 0.1).certificate is None


def test_denoise_finds_the_kernel_of_an_rkhs_ball():
    kernel = Exponential(7.0)
    private = GaussianProcessMechanism(kernel, 0.01, BUDGET, relation=RkhsBall(0.01, kernel), levels=6).apply(np.sin)
    assert isinstance(private, PrivateTable)
    assert (denoise(private, MODELS[0]).mean == denoise(private, MODELS[0], kernel).mean).all()


def test_denoise_asks_where_the_certificate_does_not_tell():
    ball, kernel = LipschitzBall(0.01, 0.04), Exponential(9.0)
    simulated = released(of_people(20))
    assert isinstance(simulated, PrivateTable)
    with pytest.raises(InvalidInput, match="does not tell the noise's kernel: give it as `kernel`"):
        denoise(simulated, MODELS[0])
    assert np.isfinite(denoise(simulated, MODELS[0], kernel).mean).all()
    other = GaussianProcessMechanism(kernel, ball.rkhs_radius(kernel), BUDGET, relation=ball, levels=6)
    private = other.apply(walk_reward)
    assert isinstance(private, PrivateTable)
    assert np.array_equal(denoise(private, MODELS[0]).mean, denoise(private, MODELS[0], kernel).mean)


def test_denoise_needs_a_known_noise():
    bare = Certificate(method="gaussian-process", standing="none")
    with pytest.raises(InvalidInput, match="does not state sigma"):
        denoise(PrivateTable(np.zeros(17), 4, MODELS[0].box, bare), MODELS[0], Exponential(4.0))


def test_seeded_noise_is_not_made_private():
    certificate = denoise(released(of_people(20)), MODELS[0], Exponential(4.0)).certificate
    assert certificate is not None
    assert certificate.standing == "none"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: RewardModel(low=1, high=1), "high must be above low"),
        (lambda: RewardModel(low=0, high=math.inf), "high must be a finite number"),
        (lambda: RewardModel(low=0, high=1, hats=1), "hats must be a whole number of at least 2"),
        (lambda: RewardModel(low=0, high=1, length=0.0), "length must be above 0"),
        (lambda: RewardModel(low=0, high=1, deviation=-1.0), "deviation must be above 0"),
        (lambda: RewardModel(low=0, high=1, domain=((0, 1), (0, 1))), "domain has 2 dimensions"),
        (lambda: MODELS[0].fit([0.1], [0.1, 0.2], 1.0), "states and rewards must be equally many"),
        (lambda: MODELS[0].fit([[0.1]], [[0.1]], 1.0), "states and rewards must be equally many"),
        (lambda: MODELS[0].fit([1.1], [0.1], 1.0), "states must lie within"),
        (lambda: MODELS[0].fit([0.1], [math.nan], 1.0), "rewards must be finite"),
        (lambda: MODELS[0].fit([0.1], ["good"], 1.0), "rewards must be real numbers"),
        (lambda: MODELS[0].fit([0.1], [0.1], 0.0), "noise must be above 0"),
        (lambda: MODELS[0].fit([0.1], [0.1], 1e-200), "noise must be at least 1e-08 of the reward's range"),
        (lambda: MODELS[0].fit([0.1], [0.1], [1.0, 2.0]), "noise must be one number or one a sample"),
        (lambda: MODELS[0].fit([0.1], [0.1], 1.0, weights=-1), "weights must be above 0"),
        (
            lambda: denoise(released(of_people(20)), RewardModel(low=0, high=1, domain=(0, 2))),
            r"on \[0, 1\], but the model's domain is \[0, 2\]",
        ),
    ],
)
def test_wrong_arguments_get_one_clear_sentence(wrong, sentence):
    with pytest.raises(InvalidInput, match=sentence) as caught:
        wrong()
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_a_reward_made_private_from_ratings_tells_its_own_kernel():
    import polars

    from quietq.feedback import Ratings
    from quietq.mechanisms import privatise

    ratings = polars.DataFrame({"person": range(30), "state": [0.5] * 30, "rating": [0.5] * 30})
    people = Ratings.read(ratings, box=(0, 1), low=0, high=0.5, slope=1, people=30)
    private = privatise(people, Budget(0.9, 1e-4), noise="path")
    assert isinstance(private, PrivateTable)
    assert denoise(private, RewardModel(low=0, high=0.5)).certificate == private.certificate
