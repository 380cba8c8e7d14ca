"""Private worlds of sessions: what they learn, what leaves, and acting in them."""

from dataclasses import replace

import gymnasium
import msgspec
import numpy as np
import polars as pl
import pytest
from gymnasium.utils.env_checker import check_env
from linear_people import MATRIX, PUSH, read, rows_of

from quietq import (
    Accountant,
    Budget,
    BudgetExhausted,
    Fourier,
    InvalidInput,
    PrivateWorld,
    WorldModel,
    load,
    privatise,
    publish,
)
from quietq.mechanisms.moments import SETTINGS, Moments, _shrunk
from quietq.noise import Box
from quietq.released import world_model
from quietq.worlds.planning import plan_linear
from quietq.worlds.private_env import PrivateWorldEnv, Simulator, Step

BUDGET, PEOPLE = Budget(4.0, 1e-5), 300


@pytest.fixture(scope="module")
def world() -> PrivateWorld:
    return privatise(read(rows_of(PEOPLE), PEOPLE), BUDGET, simulate=0)


@pytest.fixture(scope="module")
def pushed() -> PrivateWorld:
    """Actions are numbers, reward, ends and starts are known, and so is how one coordinate moves."""
    known = WorldModel(
        reward=lambda states, actions, after: 1 - after[..., 0] ** 2,
        end=lambda after: abs(after[..., 0]) > 1.5,
        start=lambda draws: draws - 0.5,
        moves={0: lambda states, actions, after: states[..., 0] + 0.1 * states[..., 1]},
    )
    return privatise(read(rows_of(PEOPLE, numbers=True), PEOPLE, numbers=True), BUDGET, world=known, simulate=1)


def test_the_dynamics_are_learned(world):
    states = np.random.default_rng(1).uniform(-1, 1, (100, 2))
    expected = [states @ MATRIX.T + PUSH * push for push in (-1, 1)]
    assert np.abs(world(states) - np.hstack(expected)).max() < 0.02
    assert np.sqrt(np.diag(world.residual)) == pytest.approx(0.005, rel=0.5)  # 0.01, in halves of the box


def test_a_higher_degree_has_more_noise_and_the_certificate_says_so(monkeypatch):
    """Where nothing bends, of people who are too few for the second degree: it is not taken, though asked for."""
    people, states, off = read(rows_of(100), 100), np.random.default_rng(1).uniform(-1, 1, (100, 2)), []
    expected = np.hstack([states @ MATRIX.T + PUSH * push for push in (-1, 1)])
    for degree, needed in ((1, 7.0), (2, 7.0), (2, 0.0)):
        monkeypatch.setattr(world_model, "ENOUGH_PER_NUMBER", needed)
        worlds = [privatise(people, Budget(1, 1e-5), world=WorldModel(degree), simulate=seed) for seed in range(5)]
        off.append(np.sqrt(np.mean([(world(states) - expected) ** 2 for world in worlds])))
        remarks = " ".join(Moments(people, Budget(1, 1e-5), WorldModel(degree)).remarks)
        assert ("degree 1, where 2 was asked for" in remarks) == (degree == 2 and needed > 0)
    assert off[1] == off[0]
    assert off[2] > 1.5 * off[0]
    (remark,) = [one for one in privatise(people, BUDGET).certificate.remarks if "linear in state and action" in one]
    assert "A higher degree has more features, and all of them more noise" in remark


def test_the_highest_affordable_degree_follows_from_public_numbers():
    """Seven times as many people times mu as numbers of a step: 8 or 15 features, a constant and 2 changes."""
    spaces = read(rows_of(30, 3), 30).spaces
    of = WorldModel(3).affordable_degree
    assert [of(spaces, number) for number in (1, 76, 77, 125, 126, 1e6)] == [1, 1, 2, 2, 3, 3]
    map_of_ones_own = WorldModel(features=Fourier.draw(3, 10, 1.5))
    assert map_of_ones_own.affordable_degree(spaces, 1) == map_of_ones_own.degree


@pytest.mark.parametrize("rounding", [-1e-16, 0.0, 1e-16])
def test_directions_that_features_never_take_have_no_slope(rounding):
    """Their moment is 0 but for rounding, whose sign is luck, and what seems to be found there is enormous."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    gram = (turn * [rounding, 0.1, 1.0]) @ turn.T
    found = turn @ np.array([[1e8], [0.5], [-0.2]])
    weights, spread = _shrunk(found, gram, np.array([[0.01]]), 1e-4, np.ones(4))
    assert np.abs(turn.T @ weights - [[0.0], [0.5], [-0.2]]).max() < 0.01
    assert np.isfinite(spread).all()


@pytest.mark.slow
def test_so_they_are_from_other_features():
    """Within a few times the scatter, where people were."""
    model = WorldModel(features=Fourier.draw(3, 10, 1.5))
    world = privatise(read(rows_of(2000), 2000), BUDGET, world=model, simulate=0)
    states = np.random.default_rng(1).uniform(-0.6, 0.6, (100, 2))
    expected = [states @ MATRIX.T + PUSH * push for push in (-1, 1)]
    assert np.sqrt(np.mean((world(states) - np.hstack(expected)) ** 2)) < 0.04
    assert plan_linear(world, steps=20, iterations=2, candidates=16).weights[0].shape == (2, 2)


@pytest.mark.slow
def test_residuals_with_heavy_tails_do_not_spoil_the_dynamics():
    """Student's t with two degrees of freedom, of which squares have no mean; and one person in fifty is far off."""
    rng = np.random.default_rng(5)
    rows = rows_of(1000)
    noise = 0.03 * rng.standard_t(2, (len(rows), 2)) * np.where(rows["who"].to_numpy() % 50 == 0, 20, 1)[:, None]
    moved = {name: np.clip(rows[name].to_numpy() + noise[:, i], -2, 2) for i, name in enumerate(("next x", "next y"))}
    world = privatise(read(rows.with_columns(**moved), 1000), BUDGET, simulate=0)
    states = rng.uniform(-1, 1, (100, 2))
    expected = [states @ MATRIX.T + PUSH * push for push in (-1, 1)]
    assert np.abs(world(states) - np.hstack(expected)).max() < 0.05


def test_rewards_ends_and_starts_are_learned(world):
    states = np.random.default_rng(1).uniform(0.3, 0.7, (100, 2))
    simulator = Simulator(world)
    found = simulator.step(states, np.zeros(100, int), np.full((100, simulator.draws), 0.5))
    assert np.abs(found.rewards - (4 * states[:, 0] - 1) / 3).mean() < 0.1
    edge = simulator.ends(np.array([[0.02, 0.5], [0.5, 0.5], [0.98, 0.5]]))
    assert min(edge[0], edge[2]) > 10 * edge[1]
    begin = 4 * simulator.start(np.random.default_rng(2).random((4000, simulator.draws))) - 2
    assert np.abs(begin.mean(axis=0)).max() < 0.2
    assert begin.std(axis=0) == pytest.approx(0.5, abs=0.2)


def crashes(people: int = 600, seed: int = 0) -> pl.DataFrame:
    """Rows whose steps are worth -1 to 1, and 50 less where they end an episode."""
    rows = rows_of(people, seed=seed)
    rows = rows.with_columns(end=(pl.col("next x").abs() > 0.8).cast(pl.Int64))
    return rows.with_columns(reward=pl.col("x") - 50 * pl.col("end"))


def test_rewards_at_ends_do_not_smear_over_all_states(tmp_path):
    """Their mean is learned separately, and rewards of other steps have the noise of their own range."""
    people = read(crashes(), 600, low=-60, high=10)
    smeared, apart = (
        privatise(people, BUDGET, world=WorldModel(step_rewards=given), simulate=0) for given in (None, (-2, 2))
    )
    first = crashes().filter(pl.col("end") > 0).group_by("who").first()  # what is behind an end is not read
    at_ends = first["reward"].mean()
    assert smeared.end_reward is None
    assert apart.end_reward == pytest.approx(at_ends, abs=3 * apart.errors.end_reward_noise)
    assert apart.errors.end_reward_noise < 5  # of 70
    assert "learned separately" in str(apart)
    states, off = np.random.default_rng(1).uniform(-1, 1, (100, 2)), []
    for world in (smeared, apart):
        simulator = Simulator(world)
        found = simulator.step(world.box.to_unit(states), np.zeros(100, int), np.full((100, simulator.draws), 0.5))
        off.append(np.abs(found.rewards - states[:, 0]).mean())
    assert off[1] < 0.25
    assert off[1] < 0.3 * off[0]
    publish(apart, tmp_path / "world.qq", not_private=True)
    found = load(tmp_path / "world.qq")
    assert isinstance(found, PrivateWorld)
    assert found.end_reward == apart.end_reward


def test_a_step_that_ends_an_episode_is_worth_what_was_learned_of_ends(world):
    """In environments by chance, and in plans in expectation; other steps as before."""
    apart = replace(world, end_reward=0.5, errors=msgspec.structs.replace(world.errors, end_reward_noise=0.1))
    simulator, here = Simulator(apart), np.full((2, 2), 0.5)
    found = Step(here, np.array([0.2, 0.2]), np.array([0.0, 1.0]), np.zeros(2, bool))
    assert simulator.settle(found, 0.5, 3)[0].tolist() == [0.2, 0.5]
    assert simulator.worth(found.rewards, np.array([0.5, 0.25])) == pytest.approx([0.35, 0.275])
    assert Simulator(world).settle(found, 0.5, 3)[0].tolist() == [0.2, 0.2]


@pytest.mark.parametrize(
    ("given", "columns", "sentence"),
    [
        ((-2, 2), {"end": None}, "step_rewards needs to know which steps end an episode"),
        ((-2, 2), {}, r"step_rewards must lie in the range of all rewards, 0 to 1, not -2 to 2"),
    ],
)
def test_a_range_for_steps_must_fit_the_sessions(given, columns, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        privatise(read(rows_of(30, 3), 30, **columns), BUDGET, world=WorldModel(step_rewards=given), simulate=0)


def test_step_rewards_must_be_a_range_of_rewards_that_are_learned():
    with pytest.raises(InvalidInput, match=r"step_rewards must be a range, low below high, not \(1, 0\)"):
        WorldModel(step_rewards=(1, 0))
    with pytest.raises(InvalidInput, match="step_rewards is for rewards that are learned"):
        WorldModel(step_rewards=(0, 1), reward=np.zeros_like)


def test_it_is_released_once_charged_for_everything_and_certified(tmp_path):
    people, account = read(rows_of(30, 3), 30), Accountant(BUDGET)
    private = privatise(people, BUDGET, account=account)
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)
    certificate = private.certificate
    assert (certificate.standing, certificate.method, certificate.epsilon) == ("certified", "world/moments", 4.0)
    assert certificate.mu == pytest.approx(BUDGET.mu)
    assert len(certificate.queries) >= SETTINGS.rounds + SETTINGS.first_rounds + SETTINGS.rate_rounds
    assert "linear" in certificate.remarks[0]
    publish(private, tmp_path / "world.qq")
    assert load(tmp_path / "world.qq").certificate == certificate
    people = read(rows_of(30, 3), 30)
    privatise(people, BUDGET)
    with pytest.raises(BudgetExhausted, match="released already"):
        privatise(people, BUDGET)


def test_what_is_known_is_not_paid_for(pushed):
    assert (pushed.first, pushed.reward, pushed.ends, pushed.moved) == (None, None, None, (1,))
    simulator = Simulator(pushed)
    found = simulator.step(np.full((1, 2), 0.75), np.full((1, 1), 0.5), np.full((1, simulator.draws), 0.5))
    assert float(found.states[0, 0]) == pytest.approx((1.1 + 2) / 4)
    assert float(found.rewards[0]) == pytest.approx(1 - 1.1**2)


@pytest.mark.parametrize("name", ["world", "pushed"])
def test_it_can_leave_and_come_back(name, request, tmp_path):
    world = request.getfixturevalue(name)
    publish(world, tmp_path / "world.qq", not_private=True)
    again = load(tmp_path / "world.qq")
    assert isinstance(again, PrivateWorld)
    states = np.random.default_rng(1).uniform(-2, 2, (50, 2))
    assert np.array_equal(again(states), world(states))
    for field in ("weights", "gram", "residual", "left", "right"):
        assert np.array_equal(getattr(again, field), getattr(world, field))
    if name == "pushed":
        with pytest.raises(InvalidInput, match="reward, end, start, moves"):
            again.env()
        with pytest.raises(InvalidInput, match="reward, end, start, moves"):
            again.with_known(WorldModel())
        again = again.with_known(world.model)
    first, second = (one.env().reset(seed=3)[0] for one in (world, again))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("options", [{}, {"ensemble": 3}, {"halt": None, "noise": False, "steps": 7}])
@pytest.mark.parametrize("name", ["world", "pushed"])
def test_it_is_an_environment(name, options, request):
    env = request.getfixturevalue(name).env(**options)
    assert isinstance(env, PrivateWorldEnv)
    check_env(env, skip_render_check=True)
    env.reset(seed=0)
    with pytest.raises(InvalidInput, match="action"):
        env.step(np.array([7.0], np.float32))


def test_episodes_are_cut_off_in_time(pushed):
    env = gymnasium.wrappers.TimeLimit(pushed.env(steps=5, halt=None), 50)
    env.reset(seed=0)
    ends = [env.step(np.zeros(1, np.float32))[2:4] for _ in range(5)]
    assert ends == [(False, False)] * 4 + [(False, True)]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1, np.float32))


def test_leaving_does_not_pay(pushed):
    """Where people's steps say nothing, every step that is left costs what a poor step of people's does."""
    costly = replace(pushed, model=replace(pushed.model, reward=lambda states, actions, after: -2 - after[..., 0] ** 2))
    env = PrivateWorldEnv(costly, steps=100, halt=1e-9)
    env.reset(seed=0)
    _, reward, ended, cut, info = env.step(np.zeros(1, np.float32))
    assert (ended, cut, info) == (True, False, {"halt": True})
    assert 99 * 2.0 - 1e-9 <= -reward - 2 <= 99 * 3.0 + 3
    assert env.halted_share == 1.0
    assert Simulator(pushed).halt_penalty == 0.0  # its rewards are above 0


def test_a_large_loss_that_is_rare_does_not_make_halts_dear(pushed):
    """Declared rewards may be as low as -100; what a halt costs follows from rewards where people's states lie."""
    rare = replace(
        pushed,
        low=-100.0,
        model=replace(pushed.model, reward=lambda states, actions, after: np.where(after[..., 0] > 1.5, -100.0, -0.1)),
    )
    assert Simulator(rare).halt_penalty == pytest.approx(0.1)


def test_environments_tell_the_share_of_halted_episodes(pushed):
    for env in (pushed.env(copies=20, steps=5, halt=0.5), pushed.env(copies=20, steps=5, halt=None)):
        env.reset(seed=0)
        assert env.halted_share == 0.0
        over = halted = 0
        for _ in range(12):
            _, _, ended, cut, info = env.step(env.action_space.sample())
            over, halted = over + (ended | cut).sum(), halted + (info["halt"] & (ended | cut)).sum()
        assert env.halted_share == pytest.approx(halted / over)
        assert (env.halted_share > 0.1) == (env.one.simulator.halt is not None)


def test_doing_nothing_is_a_plan_where_all_else_costs(pushed):
    """Of actions from 0 to 3 it is 0 and not the middle of the box."""
    for low, high in ((-1.0, 1.0), (0.0, 3.0)):
        costly = replace(pushed.model, reward=lambda states, actions, after: -10 * np.abs(actions[..., 0]), end=None)
        world = replace(pushed, action_box=Box.of([(low, high)]), model=costly, known=("reward", "start"))
        plan = plan_linear(world, steps=10, iterations=1, candidates=16)
        assert np.abs(plan.predict(np.random.default_rng(0).uniform(-1, 1, (50, 2)))[0]).max() == 0.0


def test_plausible_worlds_scatter_as_the_noise_does(world):
    drawn = world.plausible(500, np.random.default_rng(0))
    assert drawn.mean(axis=0) == pytest.approx(world.weights, abs=0.01)
    assert (drawn.std(axis=0) > 0).all()


def test_a_plan_in_it_is_a_plan_outside(pushed):
    """Holding x near 0 by pushes, in the system itself."""
    policy = plan_linear(pushed, steps=40, iterations=8, candidates=40, seed=0)
    state, lost = np.array([0.4, 0.0]), []
    for _ in range(60):
        state = MATRIX @ state + PUSH * np.clip(policy.predict(state)[0][0], -1, 1)
        lost.append(state[0] ** 2)
    assert np.mean(lost[30:]) < 0.01


@pytest.mark.parametrize(
    ("options", "model", "refusal"),
    [
        ({"next_state": []}, None, "next states"),
        ({"reward": None}, None, "rewards"),
        ({}, WorldModel(moves={2: abs}), "coordinates 0 to 1"),
        ({}, WorldModel(moves={0: abs, 1: abs}), "leave a coordinate"),
        ({}, WorldModel(circles=((1, 2),)), "coordinates 0 to 1, not of 2"),
        ({"box": [(-2, 2), (-0.9, 2)]}, WorldModel(circles=((0, 1),)), "box holds -1 to 1; that of coordinate 1"),
    ],
)
def test_what_cannot_be_learned_is_refused(options, model, refusal):
    with pytest.raises(InvalidInput, match=refusal):
        privatise(read(rows_of(30, 3), 30, **options), BUDGET, world=model)


@pytest.mark.parametrize("circles", [((0, 1),), ((1, 0),)])
def test_cosine_and_sine_stay_on_their_circle(circles, tmp_path):
    """At the start and after each step, in memory and from a file, whatever the release's own states are."""
    world = privatise(read(rows_of(PEOPLE, 4), PEOPLE), BUDGET, world=WorldModel(circles=circles), simulate=0)
    publish(world, tmp_path / "world.qq", not_private=True)
    again = load(tmp_path / "world.qq")
    assert isinstance(again, PrivateWorld)
    assert again.circles == circles
    assert f"circles={circles}" in str(again)
    declared = Moments(read(rows_of(2, 2), 2), BUDGET, world.model).conditions
    assert any("on a circle" in str(one.values) for one in declared)
    rng = np.random.default_rng(0)
    for one in (world, again):
        simulator = Simulator(one)
        begin = simulator.start(rng.random((500, simulator.draws)))
        after = simulator.step(begin, rng.integers(0, 2, 500), rng.random((500, simulator.draws))).states
        for states in (begin, after):
            assert np.linalg.norm(simulator.raw(states), axis=1) == pytest.approx(np.ones(500), abs=1e-12)
    free = Simulator(replace(world, circles=(), model=WorldModel()))
    assert np.linalg.norm(free.raw(free.start(rng.random((500, free.draws)))), axis=1).std() > 0.1
    with pytest.raises(InvalidInput, match="circles"):
        again.with_known(WorldModel())


def test_known_starts_and_an_angle_that_nothing_tells_are_on_the_circle_too(pushed):
    model = replace(pushed.model, start=lambda draws: 0 * draws)
    simulator = Simulator(replace(pushed, model=model, circles=((0, 1),)))
    begin = simulator.start(np.full((3, simulator.draws), 0.5))
    assert simulator.raw(begin) == pytest.approx(np.array([[1.0, 0.0]] * 3))


@pytest.mark.parametrize(
    ("circles", "refusal"),
    [
        (((0, -1),), "circles must be pairs"),
        (((0, True),), "circles must be pairs"),
        (((0, 0),), "each coordinate once"),
        (((0, 1), (1, 2)), "each coordinate once"),
    ],
)
def test_circles_are_pairs_of_different_coordinates(circles, refusal):
    with pytest.raises(InvalidInput, match=refusal):
        WorldModel(circles=circles)


def test_sessions_without_ends_never_end():
    world = privatise(read(rows_of(30, 3), 30, end=None), BUDGET, simulate=0)
    assert world.ends is None
    assert "end" not in world.known
    assert not Simulator(world).step(np.full((4, 2), 0.5), np.zeros(4, int), np.full((4, 4), 0.5)).ends.any()


def test_it_says_what_it_is_in_names_that_were_declared(world, pushed, tmp_path):
    said = str(world)
    assert said.startswith(
        "NOT PRIVATE: A private world of states x [-2, 2], y [-2, 2]; actions 0 0, 1 1.\nSteps of x: the expected next"
    )
    assert "Noise alone: about" in said
    assert "noise alone has a standard error of about" in said
    assert "Declared as known: reward, end, start, moves[0] (x)." in str(pushed)
    assert "Rewards" not in str(pushed)
    assert "Steps of y: the expected next value has a standard error from noise of about" in str(pushed)
    assert (
        "Steps of y: the expected next value has a standard error from noise of about" in pushed.certificate.remarks[-1]
    )
    publish(world, tmp_path / "world.qq", not_private=True)
    again = load(tmp_path / "world.qq")
    assert isinstance(again, PrivateWorld)
    assert str(again) == said
    for env in (again.env(), again.env(copies=2)):
        assert (env.metadata["state_names"], env.metadata["action_names"]) == (("x", "y"), ("0", "1"))
        assert "state_names" not in type(env).metadata
    env = again.env()
    env.reset(seed=0)
    with pytest.raises(InvalidInput, match=r"\(0 0, 1 1\), not 5"):
        env.step(5)


def test_errors_tell_more_than_noise(world, pushed):
    """With more people, less is noise, and more of the differences is left; what is known has none."""
    few, many = world.errors, privatise(read(rows_of(2000), 2000), BUDGET, simulate=0).errors
    steps = {"step_noise", "step_scatter"}
    assert {name for name, stated in pushed.errors.to_dict().items() if stated is not None} == steps
    assert many.step_noise[1] < few.step_noise[1] < few.step_scatter[1] == pytest.approx(0.01, rel=0.5)
    assert (len(few.step_noise), len(pushed.errors.step_noise)) == (2, 1)
    for one in (few, many):
        assert 0 < one.reward_noise < one.reward_error
        assert 0 < one.reward_kept <= 1
        assert one.ends_noise > 0
        assert not one.starts_unseen
    assert many.starts_seen > few.starts_seen > 3
    assert many.reward_noise < few.reward_noise
    assert many.reward_error < few.reward_error
    assert many.reward_kept > few.reward_kept


def test_first_states_that_nobody_showed_are_said_to_be_noise(world):
    """Where steps begin anew within a person, no first row is followed by the next step."""
    assert "Start states" not in str(world)
    rows = rows_of(PEOPLE, 4)
    people = read(rows.vstack(rows.filter(rows["step"] == 0)), PEOPLE, next_state=None)
    unseen = privatise(people, BUDGET, simulate=0)
    assert (people.not_private["starts"], unseen.errors.starts_unseen) == (0, True)
    assert "Start states may be noise alone" in str(unseen)
    with pytest.warns(UserWarning, match="Start states may be noise alone"):
        unseen.env()


@pytest.mark.slow
def test_noise_is_as_large_as_stated():
    """Of draws from the same people: that of rewards and of log-odds of ends, within a factor of 2.5."""
    rows = rows_of(1000, 8)
    people, states = read(rows, 1000), (rows.select("x", "y").to_numpy() + 2) / 4
    worlds = [privatise(people, BUDGET, simulate=seed) for seed in range(6)]
    for name, values in (
        ("reward_noise", [Simulator(one).rewards(states, np.zeros(len(states), int), states) for one in worlds]),
        ("ends_noise", [one.ends.read(states, one.ends.offset, one.ends.weights, one.ends.knots) + one.rate
                        for one in worlds]),
    ):  # fmt: skip
        found = float(np.sqrt(np.var(values, axis=0, ddof=1).mean()))
        stated = float(np.mean([getattr(one.errors, name) for one in worlds]))
        assert 0.4 < found / stated < 2.5, name
