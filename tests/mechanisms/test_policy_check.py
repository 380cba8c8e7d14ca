"""A private check of a policy: what it says, what it costs, and that each person counts for themselves."""

import warnings
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from linear_people import read, rows_of

from quietq import (
    Accountant,
    Budget,
    InvalidInput,
    PrivateWorld,
    Sessions,
    WorldModel,
    check,
    clone,
    load,
    plan_linear,
    privatise,
    publish,
)
from quietq.feedback.cells import Cells
from quietq.feedback.imitation_statistics import OwnReturns
from quietq.feedback.row_statistics import EndRates
from quietq.feedback.statistic import Columns, Starts
from quietq.mechanisms.moments import log_odds
from quietq.mechanisms.policy_values import learned_probabilities
from quietq.privacy import Certificate
from quietq.released.private_network import PrivatePolicy
from quietq.worlds.planning import linear_policy
from quietq.worlds.policy_check import (
    CLEARLY,
    ENOUGH,
    MEDIAN_ROUNDS,
    MEDIANS_SHARE,
    Opinions,
    OwnWorlds,
    PolicyOnRows,
)

CERTIFIED = Certificate(method="policy/clone", standing="none")
BUDGET, PEOPLE, STEPS = Budget(4.0, 1e-5), 200, 30
KNOWN = WorldModel(
    reward=lambda states, actions, after: 1 - after[..., 0] ** 2,
    end=lambda after: abs(after[..., 0]) > 1.5,
    start=lambda draws: draws - 0.5,
    moves={0: lambda states, actions, after: states[..., 0] + 0.1 * states[..., 1]},
)


@pytest.fixture(scope="module")
def people() -> Sessions:
    return read(rows_of(PEOPLE, seed=3), PEOPLE)


@pytest.fixture(scope="module")
def world(people) -> PrivateWorld:
    return privatise(people, BUDGET, simulate=0)


@pytest.fixture(scope="module")
def plan(world) -> PrivatePolicy:
    return plan_linear(world, steps=STEPS, iterations=5, candidates=40)


def own_worlds(world: PrivateWorld, plan: PrivatePolicy, steps: int = STEPS) -> OwnWorlds:
    return OwnWorlds(world, PolicyOnRows(plan, world.spaces), steps)


def always(world: PrivateWorld, weight: float) -> PrivatePolicy:
    """One action whatever the state, of no world."""
    policy = linear_policy(world, np.array([[weight], [0.0], [0.0]]))
    return replace(policy, certificate=CERTIFIED, made_in=None)


def ask(*given: Any, **options: Any) -> Any:
    """A check, of which share and agreement are known to be there."""
    return check(*given, **options)


def test_people_speak_for_a_plan_that_reaches_what_is_wanted(world, people, plan):
    """The most is 1 for each step, and pushing to the right is worth about half of it in the released world."""
    enough, too_much = (ask(plan, people, BUDGET, wanted, steps=STEPS, go=0.5, simulate=1) for wanted in (3, 29))
    assert enough.go
    assert enough.interval == pytest.approx((enough.share - 1.96 * enough.error, enough.share + 1.96 * enough.error))
    assert enough.share > 0.7 > 0.2 > too_much.share
    assert not too_much.go
    left = 1 - MEDIANS_SHARE
    assert enough.error == pytest.approx(5**0.5 / (PEOPLE * BUDGET.mu * left**0.5), rel=1e-3)
    weights = np.append(plan.biases[0][1], plan.weights[0][1])[:, None]
    other = linear_policy(world, -10 * np.abs(weights) - 10)  # always to the left
    assert ask(other, people, BUDGET, enough.promised, steps=STEPS, simulate=1).share < enough.share - 0.5
    assert enough.to_dict()["wanted"] == 3


def test_a_go_needs_votes_and_signs_that_are_not_clearly_against(world, people, plan):
    found = replace(ask(plan, people, BUDGET, 3, steps=STEPS, simulate=1), share=0.6, agreement=0.0, threshold=0.5)
    deviation = (found.error**2 + 1 / PEOPLE) ** 0.5
    against = replace(found, agreement=-1.1 * CLEARLY * deviation)
    for one, go in ((found, True), (against, False), (replace(found, share=0.4), False)):
        assert one.go == go
    assert replace(found, share=None).go is None  # played in no world, signs are no verdict
    assert against.z_score == pytest.approx(-1.1 * CLEARLY)
    assert replace(found, agreement=None).go
    for wrong in (0.0, 1.1, float("nan")):
        with pytest.raises(InvalidInput, match="go"):
            ask(plan, people, BUDGET, 3, steps=STEPS, go=wrong, simulate=1)


def skilled(people: int, steps: int = 20) -> Sessions:
    """Some push to the right, which is rewarded, more often than others."""
    rng, rows = np.random.default_rng(0), []
    for person in range(people):
        skill = rng.random()
        for step in range(steps):
            push = int(rng.random() < skill)
            rows.append((person, step, *rng.uniform(-1, 1, 2), push, (push + rng.random()) / 2))
    frame = pl.DataFrame(rows, schema=["who", "step", "x", "y", "push", "reward"], orient="row")
    return read(frame, people, next_state=[], end=None)


def test_who_acts_as_a_good_policy_does_better_and_no_world_is_needed(world):
    sessions = skilled(PEOPLE)
    right, left = (always(world, size) for size in (10.0, -10.0))
    good, bad = (ask(one, sessions, BUDGET, returns=(0, 20), simulate=1) for one in (right, left))
    assert good.agreement > 0.6
    assert bad.agreement < -0.6
    assert (good.share, good.promised, good.go) == (None, None, None)
    assert good.z_score > 5 > -5 > bad.z_score
    assert good.error == pytest.approx(2 / (PEOPLE * BUDGET.mu * (1 - MEDIANS_SHARE) ** 0.5), rel=1e-3)
    assert good.medians == (pytest.approx(10, abs=2), pytest.approx(0.5, abs=0.1))


def test_signs_by_hand(world):
    """Ties count as the middle: neither for nor against."""
    policy = always(world, 10.0)
    sessions = skilled(5)
    columns = {name: np.full(8, 0.5) for name in ("s0", "s1")}
    columns |= {"action": np.array([1, 1, 0, 0, 1, 0, 1, 0]), "reward": np.array([1, 1, 0, 0, 1, 0, 0, 0.0])}
    columns |= {"episode": np.arange(8) // 2, "step": np.arange(8) % 2}
    distances = PolicyOnRows(policy, sessions.spaces)
    starts = np.array([0, 2, 4, 6])
    assert distances(starts, columns).tolist() == [0.0, 1.0, 0.5, 0.5]
    returns = OwnReturns((0.0, 1.0), (0.0, 2.0))
    for medians, signs in (((0.5, 0.4), [1, 1, -1, 1]), ((1.0, 0.5), [1, 1, 0, 0])):
        opinions = Opinions(None, 0.0, returns, distances, medians)
        assert (opinions.size, opinions.bound) == (1, 1.0)
        assert opinions.of_people(starts, columns)[:, 0].tolist() == signs


@pytest.mark.filterwarnings("ignore:.* people times mu", "ignore:NO GO")
def test_a_clone_that_was_checked_promises_both(tmp_path):
    sessions, account = skilled(PEOPLE), Accountant(BUDGET)
    for_clone, for_check = BUDGET.split(0.9, 0.1)
    policy = clone(sessions, for_clone, returns=(0, 20), account=account)
    found = ask(policy, sessions, for_check, returns=(0, 20), go=0.5, account=account)
    spoken_for = replace(found, agreement=1.0).issued()
    publish(policy, tmp_path / "policy.qq", check=spoken_for)
    assert load(tmp_path / "policy.qq").certificate.mu == pytest.approx(BUDGET.mu)
    with pytest.raises(InvalidInput, match="check must be of the policy that is published"):
        publish(policy, tmp_path / "other.qq", check=replace(spoken_for, policy="that of another policy").issued())
    with pytest.raises(InvalidInput, match="what another world cost would not be counted"):
        publish(policy, tmp_path / "other.qq", check=replace(spoken_for, share=0.9).issued())


def test_signs_are_asked_for_where_there_are_people_enough(world, people, plan):
    """By public numbers alone; below, votes have all of the budget."""
    few = Budget.from_mu(0.99 * ENOUGH / PEOPLE, 1e-5)
    found = ask(plan, people, few, 3, steps=STEPS, simulate=1)
    assert (found.agreement, found.z_score, found.medians) == (None, None, None)
    assert len(found.certificate.queries) == 1
    assert found.error == pytest.approx(1 / (PEOPLE * few.mu), rel=1e-3)
    enough = Budget.from_mu(1.01 * ENOUGH / PEOPLE, 1e-5)
    assert len(ask(plan, people, enough, 3, steps=STEPS, simulate=1).certificate.queries) == 2 * MEDIAN_ROUNDS + 1
    policy = replace(plan, made_in=None)
    with pytest.warns(UserWarning, match="medians, and so signs, are mostly noise"):
        assert ask(policy, people, few, simulate=1).share is None


def test_it_is_paid_for_and_certified():
    plan = plan_linear(privatise(read(rows_of(PEOPLE), PEOPLE), BUDGET), steps=STEPS, iterations=5, candidates=40)
    account = Accountant(BUDGET)
    found = ask(plan, read(rows_of(PEOPLE), PEOPLE), Budget(1.0, 1e-5), 3, steps=STEPS, account=account)
    assert account.spending.spent_mu == pytest.approx(Budget(1.0, 1e-5).mu)
    assert (found.certificate.standing, found.certificate.method) == ("certified", "policy/check")
    trusted = [one.text for one in found.certificate.assumptions if not one.enforced]
    assert any("what is wanted) was not made from these people's data" in one for one in trusted)


def test_what_is_not_private_is_checked_by_simulation_alone(plan, people):
    """Its noise is known, so what people say of it would tell what it was made of."""
    account = Accountant(BUDGET)
    with pytest.raises(InvalidInput, match="A PrivateWorld that is not private cannot be checked"):
        ask(plan, people, Budget(1.0, 1e-5), 3, steps=STEPS, account=account)
    assert account.spending.spent_mu == 0
    assert ask(plan, people, Budget(1.0, 1e-5), 3, steps=STEPS, simulate=0).certificate.standing == "none"


def test_a_check_that_says_other_numbers_than_were_drawn_is_not_published_with(people, tmp_path):
    account = Accountant(Budget(20.0, 1e-5))
    made = privatise(people, BUDGET, account=account)
    plan = plan_linear(made, steps=STEPS, iterations=5, candidates=40)
    each = [Budget(epsilon, 1e-5) for epsilon in (2.0, 0.5)]
    large, small = (ask(plan, people, budget, 3, steps=STEPS, account=account) for budget in each)
    elsewhere = copy(large)
    object.__setattr__(elsewhere, "world", replace(made, rate=1.0))
    for forged in (
        elsewhere,
        replace(large, certificate=small.certificate),
        replace(large, share=0.99),
        replace(large, policy="another"),
        replace(large),
    ):
        with pytest.raises(InvalidInput, match="unchanged: this one says other numbers"):
            publish(plan, tmp_path / "plan.qq", check=forged)
    assert not (tmp_path / "plan.qq").exists()


def test_what_does_not_fit_is_refused_before_it_is_paid_for(people, plan, world):
    account, sessions = Accountant(BUDGET), read(rows_of(20), 20)
    known = privatise(
        sessions, BUDGET, world=WorldModel(reward=lambda states, actions, after: after[..., 0]), simulate=0
    )
    bare = replace(known, model=WorldModel())  # as it is read from a file

    class Own(PrivatePolicy):
        pass

    for made, policy in (
        (bare, plan), (bare, linear_policy(bare, np.zeros((3, 1)))),
        (world, replace(plan, weights=(np.zeros((2, 3)),))),
        (world, Own(plan.activation, plan.output, plan.weights, plan.biases, plan.box, plan.certificate)),
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            ask(policy, sessions, Budget(1.0, 1e-5), 1.0, trained_on=made, account=account)
    assert account.spending.spent_mu == 0


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"budget": Budget(1.0, 0.0)}, "delta must be above 0"),
        ({"wanted": float("nan")}, "wanted"),
        ({"wanted": None}, "wanted must say what the policy must be worth"),
        ({"returns": (3, 3)}, "returns must be a range, low below high"),
        ({"released": lambda states: 0}, "released must be a policy that can be published"),
        (
            {"feedback": read(rows_of(20, numbers=True), 20, numbers=True)},
            "policy must take states, and choose actions",
        ),
        ({"wanted": 300.1}, "wanted must be at most 300, the best reward in 300 steps"),
        ({"feedback": read(rows_of(20), 20, low=-1)}, "that this world was made with"),
        ({"feedback": read(rows_of(20), 20, end=None)}, "what this world learned: end"),
    ],
)
def test_what_cannot_be_checked_is_refused(changed, refusal, world, people, plan):
    given = {"released": plan, "feedback": people, "wanted": 1.0, "budget": BUDGET} | changed
    with pytest.raises(InvalidInput, match=refusal):
        ask(**given)


def cloned(numbers: bool) -> PrivatePolicy:
    """A network whose products of matrices round by how many rows there are, if they are taken together."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return clone(read(rows_of(50, numbers=numbers), 50, numbers=numbers), BUDGET, best=1, simulate=0)


def crowd(sizes: list[int], numbers: bool) -> tuple[Starts, Columns]:
    rng, rows = np.random.default_rng(1), sum(sizes)
    columns = {name: rng.random(rows) for name in ("s0", "s1", "n0", "n1", "reward")}
    acted = {"a0": rng.random(rows)} if numbers else {"action": rng.integers(0, 2, rows)}
    return np.append(0, np.cumsum(sizes))[:-1], columns | acted | {"end": rng.integers(0, 2, rows)}


@pytest.mark.parametrize("which", ["own worlds", "known", "end rates", "distances", "distances of numbers"])
def test_company_changes_no_bit(which, world, plan):
    """Of returns themselves, not only of who says yes."""
    sizes = [1, 2, 3, 40, 1, 30, 7]
    numbers = which in ("known", "distances of numbers")
    starts, columns = crowd(sizes, numbers)
    if which == "known":
        world = privatise(read(rows_of(50, numbers=True), 50, numbers=True), BUDGET, world=KNOWN, simulate=1)
        plan = plan_linear(world, steps=STEPS, iterations=1, candidates=16)
    if which == "end rates":
        said: Any = EndRates(partial(log_odds, world.ends, world.rate), 2, 0.1).of_people  # type: ignore[arg-type]
    elif which.startswith("distances"):
        policy = cloned(numbers)
        said = PolicyOnRows(policy, read(rows_of(9, numbers=numbers), 9, numbers=numbers).spaces)
    else:
        said = own_worlds(world, plan)
    together = said(starts, columns)
    assert np.isfinite(together).all()
    assert len(np.unique(together, axis=0)) >= len(sizes) - 2  # numbers of their own, and not votes
    for i, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        alone = {name: column[start : start + size] for name, column in columns.items()}
        assert np.array_equal(said(np.array([0]), alone)[0], together[i])


def test_nobody_who_is_over_hears_of_how_long_others_go_on(world, plan):
    """A known reward that is no number, where only those are who are over, must not make theirs none."""
    known = WorldModel(
        reward=lambda states, actions, after: np.where(abs(states[..., 0]) > 0.5, np.nan, 1.0),
        end=lambda after: abs(after[..., 0]) > 0.5,
    )
    world = replace(world, reward=None, ends=None, known=known.known, model=known)
    right = linear_policy(world, np.array([[10.0], [0.0], [0.0]]))
    statistic, weights = own_worlds(world, right, 60), np.stack([world.weights, 0 * world.weights])
    first = np.array([[0.55, 0.6], [0.5, 0.5]])  # one moves and ends, the other stays where they are
    alone = statistic.returns(first[:1], weights[:1])
    assert np.isfinite(alone).all()
    assert statistic.returns(first, weights)[0] == alone[0]
    assert statistic.returns(first, weights)[1] == 60


@pytest.mark.parametrize(("low", "each"), [(-1.0, -1.0), (0.0, 0.0)])
def test_leaving_where_people_were_costs_the_least_declared_reward(low, each, world, plan):
    known = WorldModel(
        reward=lambda states, actions, after: np.full(states.shape[:-1], -0.1),
        end=lambda after: np.zeros(after.shape[:-1], bool),
    )
    world = replace(world, low=low, reward=None, ends=None, known=known.known, model=known)
    statistic = own_worlds(world, plan, 10)
    vars(statistic)["simulator"] = replace(statistic.simulator, halt=0.0)  # everybody leaves with the first step
    assert statistic.returns(np.full((1, 2), 0.4), world.weights[None]) == pytest.approx(-0.1 + 9 * each)


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_what_overflows(world, plan):
    starts, columns = crowd([3, 5], numbers=False)
    with np.errstate(all="raise"):
        huge = replace(world, left=1e200 * world.left, weights=1e200 * world.weights)
        worlds = own_worlds(huge, plan)
        said = Opinions(worlds, 0.0, None, worlds.acting, None).of_people(starts, columns)
    assert (np.abs(said) <= 0.5).all()


def test_functions_that_fail_say_nothing_of_people(people):
    """They are asked of one person at a time, and their own words are not passed on."""
    seen = []

    def fails(states, actions, after):
        seen.append(np.shape(states))
        raise RuntimeError(f"at {states}")

    world = privatise(read(rows_of(20), 20), BUDGET, world=WorldModel(reward=fails), simulate=0)
    policy = linear_policy(world, np.zeros((3, 1)))
    with pytest.raises(InvalidInput, match="declared as known failed with RuntimeError") as refusal:
        ask(policy, people, BUDGET, 1.0, trained_on=world, simulate=0)
    assert set(seen) == {(1, 2)}
    assert refusal.value.__cause__ is refusal.value.__context__ is None


def test_probabilities_of_many_actions_are_not_below_0():
    table = learned_probabilities(np.full(300, 1e-3), Cells.states(1).count, 300)
    assert (table > 0).all()
    assert table.sum(axis=1) == pytest.approx(1)


@pytest.mark.filterwarnings("error", "ignore:No complete step is terminal")
def test_steps_as_far_apart_as_numbers_go_are_read_quietly():
    rows = rows_of(5, 3).with_columns(step=np.tile([-1.7e308, 0.0, 1.7e308], 5))
    found = read(rows, 5)
    assert privatise(found, BUDGET, simulate=0).weights.shape == (4, 2)
