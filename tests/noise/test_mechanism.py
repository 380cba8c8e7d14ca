"""The mechanism: its law against an optimal adversary, its budget, what it looks at and what it leaves behind."""

import copy
import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import kstest

from quietq import (
    Accountant,
    Additive,
    Assumption,
    BandLimited,
    Budget,
    BudgetExhausted,
    Certificate,
    Exponential,
    Features,
    GaussianProcessMechanism,
    InvalidInput,
    LipschitzBall,
    NoRkhsRadius,
    PrivacyWarning,
    Product,
    RkhsBall,
    SupBall,
    people,
)
from quietq.noise import Box, PrivateKnots, PrivateTable
from quietq.noise.grid_path import grid_points
from quietq.noise.rounding import largest_value, round_release, rounding_step
from quietq.privacy.checks import numbers

BUDGET = Budget(0.9, 1e-4)
PEOPLE = people(50, low=0, high=0.5, slope=1)


def walk_reward(s):
    return 0.5 - np.abs(s - 0.5)


def table(private):
    assert isinstance(private, PrivateTable)
    return private.values


def test_calibration_is_the_theorys():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
    assert mechanism.kernel == Exponential(4.0)
    assert mechanism.sensitivity == pytest.approx(0.01 * math.sqrt(5))
    assert mechanism.sigma == pytest.approx(0.0782, abs=5e-5)


@pytest.mark.parametrize("mu", [0.286, 1.0, 3.0])
def test_the_optimal_test_sees_exactly_mu(mu):
    """Projection on K^-1 (f - f') is N(0, 1) under f' and N(d', 1) under f, with d' = |f - f'|_K/sigma <= mu."""
    kernel, levels, draws = Exponential(4.0), 6, 1500
    budget = Budget.from_mu(mu, 1e-4)
    points = np.arange(2**levels + 1) / 2**levels
    difference = np.sin(7 * points) * 0.2 + 0.3
    distance = kernel.norm_on(points, difference)
    mechanism = GaussianProcessMechanism(kernel, distance, budget, levels=levels)
    direction = np.linalg.solve(kernel.covariance(points, points), difference) / distance
    base = walk_reward(points)
    scores = {
        name: np.array([(mechanism.simulate(f, seed=offset + i)(points) - base) @ direction for i in range(draws)])
        / mechanism.sigma
        for name, f, offset in (
            ("without", walk_reward, 0),
            ("with", lambda s: walk_reward(s) + np.interp(s, points, difference), draws),
        )
    }
    assert kstest(scores["without"], "norm").pvalue > 1e-6
    assert kstest(scores["with"] - distance / mechanism.sigma, "norm").pvalue > 1e-6
    assert distance / mechanism.sigma == pytest.approx(mu, rel=1e-9)
    separation = scores["with"].mean() - scores["without"].mean()
    assert separation == pytest.approx(mu, abs=6 * math.sqrt(2 / draws))


def test_a_real_release_has_the_same_law():
    """`apply` itself, with the operating system's noise: whitened, it is standard normal."""
    kernel = Exponential(4.0)
    mechanism = GaussianProcessMechanism(kernel, 0.1, BUDGET, levels=15)
    points = grid_points(mechanism.box, 15)
    noise = (mechanism.apply(walk_reward)(points) - walk_reward(points)) / mechanism.sigma
    from quietq.noise.kernels.exponential import whiten

    # rounding adds a step of sigma 2^-20 to increments of size sigma sqrt(2 beta h): invisible
    assert kstest(whiten(4.0, points, noise), "norm").pvalue > 1e-9


def test_one_release_and_no_more():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
    mechanism.apply(walk_reward)
    with pytest.raises(BudgetExhausted, match="one release"):
        mechanism.apply(walk_reward)


def test_a_second_release_does_not_look_at_the_function_nor_carry_it_along():
    looked = []

    def spy(states):
        looked.append(len(states))
        return walk_reward(states)

    spent = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=4)
    spent.apply(spy)
    broke = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=4, accountant=Accountant(Budget(0.1, 1e-4)))
    for mechanism, looks in ((spent, 1), (broke, 2)):
        with pytest.raises(BudgetExhausted) as caught:
            mechanism.apply(spy)
        assert len(looked) == looks
        frame = caught.value.__traceback__
        while frame := frame and frame.tb_next:
            assert not {"f", "values"} & set(frame.tb_frame.f_locals)


def test_threads_get_one_release_between_them():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=4)

    def release(_):
        try:
            mechanism.apply(walk_reward)
            return 1
        except BudgetExhausted:
            return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(release, range(64))) == 1


def test_it_cannot_be_copied_into_a_second_release():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="spends its budget once"):
            duplicate(mechanism)


def test_an_accountant_is_charged_before_the_draw():
    accountant = Accountant(BUDGET)
    half = Budget.from_mu(BUDGET.mu / math.sqrt(2), 1e-4)
    for _ in range(2):
        GaussianProcessMechanism.for_relation(PEOPLE, half, accountant=accountant).apply(walk_reward)
    third = GaussianProcessMechanism.for_relation(PEOPLE, half, accountant=accountant)
    with pytest.raises(BudgetExhausted, match="nothing was booked"):
        third.apply(walk_reward)


def test_an_accountant_adds_up_one_relation():
    accountant = Accountant(BUDGET)
    small = Budget.from_mu(0.05, 1e-6)
    GaussianProcessMechanism.for_relation(PEOPLE, small, accountant=accountant, levels=4).apply(walk_reward)
    assert accountant.relation == PEOPLE
    other = GaussianProcessMechanism.for_relation(people(9, 0, 1, 1), small, accountant=accountant, levels=4)
    with pytest.raises(InvalidInput, match="an Accountant of its own; nothing was booked"):
        other.apply(walk_reward)


def test_masked_values_are_not_released():
    hidden = np.ma.masked_array(np.array([3.0, 4.0]), np.array([True, False]))
    with pytest.raises(InvalidInput, match="weights must be real numbers"):
        GaussianProcessMechanism(Features(lambda x: np.stack([x, 1 - x], axis=-1), 2), 0.1, BUDGET).apply(hidden)
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=4)
    with pytest.raises(InvalidInput, match="values must be real numbers"):
        mechanism.apply(lambda s: np.ma.masked_array(s, s > 0.5))
    with pytest.raises(InvalidInput, match="rows must be real numbers"):
        numbers("rows", [[0.0, 0.0], hidden])


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda s: np.full(s.shape, np.nan), "finite"),
        (lambda s: np.where(s > 0.9, np.inf, 0.0), "finite"),
        (lambda s: np.full(s.shape, 1e9), "must stay below"),
        (lambda s: 1.0, "one value"),
        (lambda s: s[:-1], "one value"),
        (np.zeros(3), "function of states"),
        (lambda s: ["1000000000"] * len(s), "real numbers"),
        (lambda s: [[1e9], [1e9, 2]], "real numbers"),
        (lambda s: {"secret": 1e9}, "real numbers"),
        (lambda s: s * 1j, "real numbers"),
        (lambda s: None, "real numbers"),
        (lambda s: 0.0 if s > 0.5 else 1.0, "ValueError on an array .* numpy.vectorize"),
        (lambda s: float(s), "TypeError on an array .* numpy.vectorize"),
        (lambda s: float("secret 1000000000"), "ValueError"),
    ],
)
def test_wrong_functions_spend_nothing_and_are_not_quoted(f, message):
    accountant = Accountant(BUDGET)
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, accountant=accountant)
    with pytest.raises(InvalidInput, match=message) as caught:
        mechanism.apply(f)
    assert "1000000000" not in str(caught.value)
    assert "1e+09" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None  # an exception that comes along would show its text in a traceback
    assert accountant.spent_mu == 0
    mechanism.apply(walk_reward)  # still there to be used


def test_f_is_looked_at_on_the_grid_only_and_then_let_go():
    seen = []

    def spy(states):
        seen.append(states)
        return walk_reward(states)

    private = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=6, domain=(-1, 1)).apply(spy)
    private(np.random.default_rng(0).uniform(-1, 1, 1000))
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], np.linspace(-1, 1, 65))


def test_a_private_function_is_consistent_shareable_and_read_only():
    private = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET).apply(walk_reward)
    states = np.random.default_rng(0).random(100)
    again = pickle.loads(pickle.dumps(private))
    np.testing.assert_array_equal(private(states), again(states[::-1])[::-1])
    np.testing.assert_array_equal(private(states), [float(private(s)) for s in states])
    with pytest.raises(ValueError, match="read-only"):
        table(private)[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        table(again)[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        table(copy.deepcopy(private))[0] = 0
    with pytest.raises(InvalidInput, match="within"):
        private(1.2)


def test_released_values_are_multiples_of_a_public_step():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
    step = rounding_step(mechanism.sigma)
    for constant in (0.0, 1.0, 1 / 3):
        again = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
        multiples = table(again.apply(lambda s, c=constant: np.full(s.shape, c))) / step
        np.testing.assert_array_equal(multiples, np.rint(multiples))
        assert np.abs(multiples).max() < 2**44  # so that the last place of a float is 256 times finer
    assert mechanism.sigma * 2**-21 < step <= mechanism.sigma * 2**-20
    assert largest_value(mechanism.sigma) == step * 2**44


def test_zero_is_released_without_a_sign():
    zeros = round_release(np.array([0.0, -0.0]), np.array([-1e-9, 1e-9]), sigma=1.0)
    np.testing.assert_array_equal(zeros, 0.0)
    assert not np.signbit(zeros).any()


def test_low_bits_do_not_tell_zero_from_one():
    """Without rounding they do: 1 + g is always a multiple of 2^-53, g near 0 almost never."""
    mechanism = GaussianProcessMechanism(Exponential(1.0), 1.0, Budget.from_mu(20.0, 1e-4), levels=10)

    def share_of_coarse(values, unit):
        return np.mean(np.mod(values / unit, 1) == 0)

    noise = mechanism.sigma * np.random.default_rng(0).standard_normal(1000)
    assert share_of_coarse(1 + noise, 2.0**-53) > 0.9
    assert share_of_coarse(noise, 2.0**-53) < 0.6
    for seed, constant in enumerate((0.0, 1.0)):
        released = mechanism.simulate(lambda s, c=constant: np.full(s.shape, c), seed)(np.linspace(0, 1, 1000))
        assert share_of_coarse(released, rounding_step(mechanism.sigma)) == 1


def test_several_outputs_share_one_release():
    relation = people(50, low=0, high=0.5, slope=1, actions=2)
    mechanism = GaussianProcessMechanism.for_relation(relation, BUDGET, levels=10)
    assert mechanism.sensitivity == pytest.approx(0.01 * math.sqrt(10))
    private = mechanism.apply(lambda s: np.stack([walk_reward(s), -walk_reward(s)], axis=-1))
    assert private([0.1, 0.2, 0.3]).shape == (3, 2)
    noise = private(0.5) - [0.5, -0.5]
    assert noise[0] != noise[1]


def test_more_outputs_than_the_relation_lets_change_are_refused():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=4)
    with pytest.raises(InvalidInput, match="2 outputs, but the relation lets 1 change"):
        mechanism.apply(lambda s: np.stack([s, s], axis=-1))


@pytest.mark.parametrize(
    ("kernel", "f"),
    [
        (Exponential(4.0), lambda s: np.stack([s, s], axis=-1)),
        (Product((1.0, 1.0)), lambda s: s**2),  # elementwise, where one value a row was meant
        (Features(lambda x: np.stack([x, 1 - x], axis=-1), rank=2), np.ones((2, 2))),
        (Features(lambda x: x, rank=2, dimension=2), np.ones((2, 2))),
        (BandLimited(2.0), lambda s: np.stack([s, s], axis=-1)),
        (Additive((Exponential(1.0),) * 2), [lambda s: np.stack([s, s], axis=-1)] * 2),
    ],
)
def test_an_rkhs_ball_is_for_as_many_outputs_as_it_declares(kernel, f):
    accountant = Accountant(BUDGET)
    mechanism = GaussianProcessMechanism(kernel, 0.1, BUDGET, levels=4, accountant=accountant)
    with pytest.raises(InvalidInput, match="2 outputs, but the relation lets 1 change: declare `actions=2`"):
        mechanism.apply(f)
    assert accountant.spent_mu == 0
    two = RkhsBall(0.1, kernel, actions=2)
    with pytest.raises(InvalidInput, match="below the relation's radius"):
        GaussianProcessMechanism(kernel, 0.1, BUDGET, relation=two)
    mechanism = GaussianProcessMechanism.for_relation(two, BUDGET, levels=4)
    assert mechanism.sensitivity == pytest.approx(0.1 * math.sqrt(2), rel=1e-4)
    state = np.full((3, kernel.dimension), 0.5) if kernel.dimension > 1 else np.full(3, 0.5)
    assert mechanism.apply(f)(state).shape == (3, 2)


def test_a_table_too_large_for_its_outputs_is_refused_before_anything_is_spent():
    accountant = Accountant(BUDGET)
    relation = people(50, low=0, high=0.5, slope=1, actions=2**13)
    mechanism = GaussianProcessMechanism.for_relation(relation, BUDGET, levels=14, accountant=accountant)
    with pytest.raises(InvalidInput, match="use fewer levels"):
        mechanism.apply(lambda s: np.zeros((len(s), 2**13)))
    assert accountant.spent_mu == 0


def test_parts_with_different_outputs_are_refused_before_anything_is_spent():
    kernel, accountant = Additive((Exponential(1.0),) * 2), Accountant(BUDGET)
    relation = RkhsBall(0.1, kernel, actions=2)
    mechanism = GaussianProcessMechanism.for_relation(relation, BUDGET, levels=4, accountant=accountant)
    for other in (lambda s: s[:, None], lambda s: np.stack([s, s], axis=-1)):
        with pytest.raises(InvalidInput, match="All parts must have the same outputs"):
            mechanism.apply([lambda s: s, other])
    assert accountant.spent_mu == 0


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
def test_additive_tables_are_fine_in_any_dimension(dimension):
    kernel = Additive((Exponential(1.0),) * dimension)
    assert GaussianProcessMechanism(kernel, 0.1, BUDGET).levels == 16


@pytest.mark.parametrize("weights", [np.array(["1", "2"]), np.array([1j, 2.0]), np.array([None, 1.0])])
def test_weights_that_are_no_numbers(weights):
    kernel = Features(lambda x: np.stack([x, 1 - x], axis=-1), rank=2)
    with pytest.raises(InvalidInput, match="weights must be real numbers") as caught:
        GaussianProcessMechanism(kernel, 0.1, BUDGET).simulate(weights, seed=0)
    assert caught.value.__context__ is None


def test_the_certificate_says_how_a_band_limited_function_was_read():
    kernel = BandLimited(2.0)
    projected = GaussianProcessMechanism(kernel, 0.1, BUDGET).apply(np.sin).certificate
    given = GaussianProcessMechanism(kernel, 0.1, BUDGET).apply(np.zeros(kernel.rank)).certificate
    assert any("only at public sample points and projected" in a.text for a in projected.assumptions)
    assert not any("given as weights" in a.text for a in projected.assumptions)
    assert any("given as weights" in a.text for a in given.assumptions)


def test_product_additive_features_and_band_limited():
    two = [(0, 1), (0, 2)]
    product = Product((1.0, 2.0))
    private = GaussianProcessMechanism(product, 0.1, BUDGET, domain=two).apply(lambda s: s[:, 0] * s[:, 1])
    assert private([[0.1, 0.2], [1, 2]]).shape == (2,)

    additive = Additive((Exponential(1.0), Exponential(2.0)))
    mechanism = GaussianProcessMechanism(additive, 0.1, BUDGET, domain=two)
    private = mechanism.apply([np.sin, np.cos])
    assert private([[0.1, 0.2], [1, 2]]).shape == (2,)
    with pytest.raises(InvalidInput, match="one function a coordinate"):
        GaussianProcessMechanism(additive, 0.1, BUDGET, domain=two).apply(lambda s: s)

    features = Features(lambda x: np.stack([np.ones_like(x), x, x**2], axis=-1), rank=3)
    private = GaussianProcessMechanism(features, 0.1, BUDGET).apply([1.0, 2.0, 3.0])
    assert private([0.0, 0.5]).shape == (2,)
    with pytest.raises(InvalidInput, match="takes the function's weights"):
        GaussianProcessMechanism(features, 0.1, BUDGET).apply(np.sin)
    with pytest.raises(InvalidInput, match="weights must have 3 rows"):
        GaussianProcessMechanism(features, 0.1, BUDGET).apply([1.0])

    band = GaussianProcessMechanism(BandLimited(2.0), 0.1, BUDGET, domain=(0, 10))
    private = band.apply(lambda s: np.sin(s))
    assert private([0.0, 10.0]).shape == (2,)
    assert band.sensitivity >= 0.1


def test_noise_of_every_kernel_has_the_scale_that_was_certified():
    """Means over many simulations: variance sigma^2 K(x, x) at a point, for every form of release."""
    features = Features(lambda x: np.stack([np.ones_like(x), x], axis=-1), rank=2)
    for kernel, zero, state in (
        (Exponential(2.0), lambda s: 0 * s, 0.3),
        (Product((1.0, 2.0)), lambda s: 0 * s[:, 0], [0.3, 0.9]),
        (Additive((Exponential(1.0), Exponential(2.0))), [lambda s: 0 * s] * 2, [0.3, 0.9]),
        (features, np.zeros(2), 0.3),
        (BandLimited(2.0), lambda s: 0 * s, 0.3),
    ):
        mechanism = GaussianProcessMechanism(kernel, 0.1, BUDGET, levels=4)
        values = np.array([float(mechanism.simulate(zero, seed)(state)) for seed in range(600)])
        point = (
            np.rint(np.atleast_2d(state) * 16) / 16
            if mechanism.kernel.describe()["kind"]
            in (
                "exponential",
                "product",
                "additive",
            )
            else np.atleast_2d(state)
        )
        point = point[0] if kernel.dimension == 1 else point
        expected = mechanism.sigma * math.sqrt(kernel.covariance(point, point)[0, 0])
        assert kstest(values / expected, "norm").pvalue > 1e-6


def test_simulation_is_marked_and_spends_nothing():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=8)
    one, same, other = (mechanism.simulate(walk_reward, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(table(one), table(same))
    assert not np.array_equal(table(one), table(other))
    assert one.certificate.standing == "none"
    assert one.certificate.reproducible
    assert one.certificate.epsilon is None
    mechanism.apply(walk_reward)


def test_the_certificate_names_the_box_and_the_relation_whoever_vouches_for_it():
    vouched = Assumption("Everybody was held to the range and the slope.", enforced=True)
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, domain=(-5, 10), levels=4, assumption=vouched)
    certificate = mechanism.apply(lambda s: 0 * s).certificate
    assert certificate.domain == ((-5.0, 10.0),)
    text = str(certificate)
    assert "The box: [-5, 10]." in text
    assert "slope at most 0.04 per width of the box (replacing any one of 50 people)" in text
    assert "- enforced: Everybody was held" in text


def test_the_certificate_says_which_norm_is_protected():
    additive = Additive((Exponential(1.0), Exponential(2.0)))
    mechanism = GaussianProcessMechanism(additive, 0.1, BUDGET, levels=4)
    text = str(mechanism.apply([np.sin, np.cos]).certificate)
    assert "norm at most 0.1 (the parts' own norms, squared and summed) in the additive kernel" in text
    twice = Features(lambda x: np.stack([x, x], axis=-1), rank=2)  # [1, 0] and [0, 1] are the same function
    text = str(GaussianProcessMechanism(twice, 0.1, BUDGET).apply([1.0, 0.0]).certificate)
    assert "norm at most 0.1 (the norm of the weights) in the kernel of 2 features" in text


def test_knots_come_out_of_a_pickle_read_only():
    bare = Certificate(method="x", standing="none")
    knots = PrivateKnots(np.array([0.0, 1.0]), Box.of((0, 1)), bare)
    for again in (knots, copy.copy(knots), copy.deepcopy(knots), pickle.loads(pickle.dumps(knots))):
        with pytest.raises(ValueError, match="read-only"):
            again.values[0] = 1


def test_certificate_of_a_release():
    private = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET).apply(walk_reward)
    certificate = private.certificate
    assert (certificate.standing, certificate.epsilon, certificate.delta) == ("certified", 0.9, 1e-4)
    assert certificate.sensitivity is not None
    assert certificate.sigma is not None
    assert certificate.mu == pytest.approx(certificate.sensitivity / certificate.sigma)
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert json.loads(certificate.to_json())["relation"]["people"] == 50
    assert not certificate.assumptions[0].enforced  # nobody has checked the relation yet
    assert certificate.remarks == ("The noise has the exponential kernel with beta 4.",)


def test_a_sensitivity_below_the_relations_radius_is_refused():
    with pytest.raises(InvalidInput, match="below the relation's radius"):
        GaussianProcessMechanism(Exponential(4.0), 0.02, BUDGET, relation=PEOPLE)


@pytest.mark.parametrize("sensitivity", [math.nan, math.inf, 0.0, -1.0])
def test_impossible_sensitivities(sensitivity):
    for relation in (None, PEOPLE):
        with pytest.raises(InvalidInput, match="sensitivity"):
            GaussianProcessMechanism(Exponential(4.0), sensitivity, BUDGET, relation=relation)


def test_relations_without_a_radius_are_refused():
    with pytest.raises(NoRkhsRadius):
        GaussianProcessMechanism.for_relation(SupBall(1.0), BUDGET)
    with pytest.raises(NoRkhsRadius):
        GaussianProcessMechanism(Product((1.0, 1.0)), 1.0, BUDGET, relation=LipschitzBall(1.0, 1.0))


def test_a_pure_budget_is_refused():
    with pytest.raises(InvalidInput, match="pure budget"):
        GaussianProcessMechanism(Exponential(1.0), 1.0, Budget(1.0, 0))


def test_rkhs_relation_brings_its_kernel():
    kernel = Features(lambda x: np.stack([x, 1 - x], axis=-1), rank=2)
    mechanism = GaussianProcessMechanism.for_relation(RkhsBall.of_people(100, kernel, norm=1.0), BUDGET)
    assert mechanism.sensitivity == pytest.approx(0.02)


def test_a_large_delta_warns():
    with pytest.warns(PrivacyWarning, match="not below 1/people"):
        GaussianProcessMechanism.for_relation(PEOPLE, Budget(0.9, 0.05))


def test_repr_holds_no_values():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
    private = mechanism.apply(lambda s: np.full(s.shape, 0.123456))
    assert "0.1234" not in repr(private) + repr(mechanism)
