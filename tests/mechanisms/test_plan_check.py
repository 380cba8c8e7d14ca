"""A private check of a plan: what it says, what it costs, and that each person counts for themselves."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from linear_people import read, rows_of

from quietq import (
    Accountant,
    Budget,
    InvalidInput,
    PrivateWorld,
    Sessions,
    WorldModel,
    check_plan,
    plan_linear,
    privatise,
)
from quietq.feedback.statistic import Columns, Starts
from quietq.feedback.trajectories import Cells
from quietq.feedback.transition_statistics import EndRates
from quietq.mechanisms.moments import log_odds
from quietq.mechanisms.policy_values import learned_probabilities
from quietq.worlds.plan_check import OwnWorlds, Played
from quietq.worlds.planning import LinearPolicy

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
def plan(world) -> LinearPolicy:
    return plan_linear(world, steps=STEPS, iterations=5, candidates=40)


def test_people_speak_for_a_plan_that_reaches_what_is_wanted(world, people, plan):
    """The most is 1 for each step, and pushing to the right is worth about half of it in the released world."""
    enough, too_much = (
        check_plan(world, people, plan, wanted, BUDGET, steps=STEPS, go=0.5, simulate=1) for wanted in (3, 29)
    )
    assert enough.go
    assert enough.interval == pytest.approx((enough.share - 1.96 * enough.error, enough.share + 1.96 * enough.error))
    assert (enough.is_close, replace(enough, threshold=enough.share + enough.error).is_close) == (False, True)
    assert enough.share > 0.7 > 0.2 > too_much.share
    assert not too_much.go
    assert enough.error == pytest.approx(1 / (PEOPLE * BUDGET.mu), rel=1e-3)
    other = replace(plan, weights=-10 * np.abs(plan.weights) - 10)  # always to the left
    assert check_plan(world, people, other, enough.promised, BUDGET, steps=STEPS, simulate=1).share < enough.share - 0.5
    assert enough.to_dict()["wanted"] == 3


def test_from_which_share_on_it_is_a_go_is_for_the_user_to_say(world, people, plan):
    found = check_plan(world, people, plan, 3, BUDGET, steps=STEPS, simulate=1)
    with pytest.raises(InvalidInput, match=r"give it beforehand: check_plan\(..., go=0.5\)"):
        _ = found.go
    assert (found.to_dict()["go"], found.is_close) == (None, False)
    for wrong in (0.0, 1.1, float("nan")):
        with pytest.raises(InvalidInput, match="go"):
            check_plan(world, people, plan, 3, BUDGET, steps=STEPS, go=wrong, simulate=1)


def test_it_is_paid_for_and_certified(world, plan):
    account = Accountant(BUDGET)
    found = check_plan(world, read(rows_of(PEOPLE), PEOPLE), plan, 3, Budget(1.0, 1e-5), steps=STEPS, account=account)
    assert account.spent_mu == pytest.approx(Budget(1.0, 1e-5).mu)
    assert (found.certificate.standing, found.certificate.method) == ("certified", "plan/check")
    trusted = [one.text for one in found.certificate.assumptions if not one.enforced]
    assert any("plan and what is wanted were not made from these people's data" in one for one in trusted)


def test_what_does_not_fit_is_refused_before_it_is_paid_for(people, plan, world):
    account, sessions = Accountant(BUDGET), read(rows_of(20), 20)
    known = privatise(
        sessions, BUDGET, world=WorldModel(reward=lambda states, actions, after: after[..., 0]), simulate=0
    )
    bare = replace(known, model=WorldModel())  # as it is read from a file

    class Own(LinearPolicy):
        pass

    for made, policy in (
        (bare, plan), (world, replace(plan, weights=np.zeros((4, 1)))),
        (world, Own(plan.spaces, plan.weights, plan.middle, plan.deviation)),
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            check_plan(made, sessions, policy, 1.0, Budget(1.0, 1e-5), account=account)
    assert account.spent_mu == 0


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"budget": Budget(1.0, 0.0)}, "delta must be above 0"),
        ({"wanted": float("nan")}, "wanted"),
        ({"wanted": 300.1}, "wanted must be at most 300, the best reward in 300 steps"),
        ({"sessions": read(rows_of(20), 20, low=-1)}, "that this world was made with"),
        ({"sessions": read(rows_of(20), 20, end=None)}, "what this world learned: end"),
    ],
)
def test_what_cannot_be_checked_is_refused(changed, refusal, world, people, plan):
    given = {"world": world, "sessions": people, "plan": plan, "wanted": 1.0, "budget": BUDGET} | changed
    with pytest.raises(InvalidInput, match=refusal):
        check_plan(**given)


def crowd(sizes: list[int], numbers: bool) -> tuple[Starts, Columns]:
    rng, rows = np.random.default_rng(1), sum(sizes)
    columns = {name: rng.random(rows) for name in ("s0", "s1", "n0", "n1", "reward")}
    acted = {"a0": rng.random(rows)} if numbers else {"action": rng.integers(0, 2, rows)}
    return np.append(0, np.cumsum(sizes))[:-1], columns | acted | {"end": rng.integers(0, 2, rows)}


@pytest.mark.parametrize("which", ["own worlds", "known", "end rates"])
def test_company_changes_no_bit(which, world, plan):
    """Of returns themselves, not only of who says yes."""
    sizes = [1, 2, 3, 40, 1, 30, 7]
    starts, columns = crowd(sizes, which == "known")
    if which == "known":
        world = privatise(read(rows_of(50, numbers=True), 50, numbers=True), BUDGET, world=KNOWN, simulate=1)
        plan = plan_linear(world, steps=STEPS, iterations=1, candidates=16)
    if which == "end rates":
        statistic = EndRates(partial(log_odds, world.ends, world.rate), 2, 0.1)  # type: ignore[arg-type]
    else:
        statistic = _Returns(Played(world, plan, STEPS), 0.0)
    together = statistic.of_people(starts, columns)
    assert np.isfinite(together).all()
    assert len(np.unique(together, axis=0)) == len(sizes)  # numbers of their own, and not votes
    for i, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        alone = {name: column[start : start + size] for name, column in columns.items()}
        assert np.array_equal(statistic.of_people(np.array([0]), alone)[0], together[i])


def test_nobody_who_is_over_hears_of_how_long_others_go_on(world, plan):
    """A known reward that is no number, where only those are who are over, must not make theirs none."""
    known = WorldModel(
        reward=lambda states, actions, after: np.where(abs(states[..., 0]) > 0.5, np.nan, 1.0),
        end=lambda after: abs(after[..., 0]) > 0.5,
    )
    world = replace(world, reward=None, ends=None, known=known.known, model=known)
    right = replace(plan, weights=np.array([[10.0], [0.0], [0.0]]))
    statistic, weights = Played(world, right, 60), np.stack([world.weights, 0 * world.weights])
    first = np.array([[0.55, 0.6], [0.5, 0.5]])  # one moves and ends, the other stays where they are
    alone = statistic.returns(first[:1], weights[:1])
    assert np.isfinite(alone).all()
    assert statistic.returns(first, weights)[0] == alone[0]
    assert statistic.returns(first, weights)[1] == 60


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_what_overflows(world, plan):
    starts, columns = crowd([3, 5], numbers=False)
    with np.errstate(all="raise"):
        huge = replace(world, left=1e200 * world.left, weights=1e200 * world.weights)
        said = OwnWorlds(Played(huge, plan, STEPS), 0.0).of_people(starts, columns)
    assert (np.abs(said) <= 0.5).all()


@dataclass(frozen=True, eq=False)
class _Returns(OwnWorlds):
    """The returns themselves, in the place of who says yes."""

    size: int = 1

    def says(self, returns: np.ndarray) -> np.ndarray:
        return returns[:, None]


def test_functions_that_fail_say_nothing_of_people(people):
    """They are asked of one person at a time, and their own words are not passed on."""
    seen = []

    def fails(states, actions, after):
        seen.append(np.shape(states))
        raise RuntimeError(f"at {states}")

    world = privatise(read(rows_of(20), 20), BUDGET, world=WorldModel(reward=fails), simulate=0)
    policy = LinearPolicy(world.spaces, np.zeros((3, 1)), *world.typical())
    with pytest.raises(InvalidInput, match="declared as known failed with RuntimeError") as refusal:
        check_plan(world, people, policy, 1.0, BUDGET, simulate=0)
    assert set(seen) == {(1, 2)}
    assert refusal.value.__cause__ is refusal.value.__context__ is None


def test_probabilities_of_many_actions_are_not_below_0():
    table = learned_probabilities(np.full(300, 1e-3), Cells.states(1).count, 300)
    assert (table > 0).all()
    assert table.sum(axis=1) == pytest.approx(1)


@pytest.mark.filterwarnings("error", "ignore:No whole step comes to an end")
def test_steps_as_far_apart_as_numbers_go_are_read_quietly():
    rows = rows_of(5, 3).with_columns(step=np.tile([-1.7e308, 0.0, 1.7e308], 5))
    found = read(rows, 5)
    assert privatise(found, BUDGET, simulate=0).weights.shape == (4, 2)
