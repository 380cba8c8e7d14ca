"""Values of policies from others' sessions: what is computed, what one person can do to it, and what intervals hold."""

import dataclasses
import functools
import math
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from quietq import (
    Accountant,
    Budget,
    BudgetExhausted,
    Certificate,
    InvalidInput,
    Sessions,
    evaluate_policies,
    load,
    publish,
)
from quietq.audit.worst_rows import worst_rows
from quietq.feedback.cells import Cells
from quietq.feedback.returns import SQUARES, ActionShares, Returns
from quietq.mechanisms import policy_values
from quietq.noise.box import Box
from quietq.released.evaluated_policies import EvaluatedPolicies
from quietq.released.private_network import PrivatePolicy
from quietq.released.release_file import write_release

BUDGET = Budget(1.0, 1e-5)
DISCOUNT = 0.9
STEPS = 4


def behaviour(states):
    right = 0.3 + 0.4 * states[:, 0]
    return np.stack([1 - right, right], axis=-1)


def cautious(states):
    return np.tile([0.8, 0.2], (len(states), 1))


def bold(states):
    return np.where(states[:, :1] > 0.5, [0.1, 0.9], [0.4, 0.6])


def no_policy(states):
    return np.stack([0.5 + states[:, 0], 1 + states[:, 0]], axis=-1)


POLICIES = {"cautious": cautious, "bold": bold}


def live(policy, people, rng, episodes=1):
    """States move right with the action; reward is a coin that is better at the right, less a cost of going there."""
    rows = []
    state = rng.random(people * episodes)
    for t in range(STEPS):
        probable = policy(state[:, None])
        action = (rng.random(len(state)) < probable[:, 1]).astype(int)
        reward = (rng.random(len(state)) < 0.2 + 0.6 * state).astype(float) - 0.3 * action
        columns = {"person": np.arange(len(state)) // episodes, "visit": np.arange(len(state)) % episodes, "t": t}
        rows.append(pl.DataFrame({**columns, "x": state, "go": action, "r": reward}))
        state = np.clip(state + 0.3 * action - 0.1 + 0.2 * (rng.random(len(state)) - 0.5), 0, 1)
    return pl.concat(rows)


@functools.cache
def truth(policy):
    frame = live(policy, 200_000, np.random.default_rng(99))
    weighted = frame["r"] * DISCOUNT ** frame["t"]
    return float(weighted.sum()) / 200_000


def read(frame, people, **change) -> Any:
    declared: dict[str, Any] = {"episode": "visit", "step": "t", "state": "x", "next_state": [], "box": (0, 1)}
    declared |= {"action": "go", "actions": [0, 1], "reward": "r", "low": -1, "high": 1, "people": people}
    return Sessions.read(frame, **declared | change)


def by_hand(frame, policy):
    """Each person's mean return over their episodes, step by step."""
    found = {}
    for (person, _), rows in frame.sort("t").group_by("person", "visit", maintain_order=True):
        value = 0.0
        for row in rows.reverse().iter_rows(named=True):
            at = np.array([[row["x"]]])
            ratio = policy(at)[0, row["go"]] / behaviour(at)[0, row["go"]]
            value = ratio * (row["r"] + DISCOUNT * value)
        found.setdefault(person, []).append(value)
    return np.array([np.mean(found[person]) for person in sorted(found)])


def statistic(policies=(cautious, bold), returns=(-50.0, 50.0), **change):
    given = {"behaviour": behaviour, "box": Box.of((0, 1)), "actions": 2, "rewards": (-1.0, 1.0)}
    return Returns(policies, returns=returns, discount=DISCOUNT, per_step=False, **given | change)


def test_returns_are_those_by_hand():
    frame = live(behaviour, 20, np.random.default_rng(0), episodes=3)
    found = read(frame, 20).mean(statistic())
    wanted = np.stack([by_hand(frame, policy) for policy in (cautious, bold)]) / 50
    assert found == pytest.approx(np.concatenate([wanted.mean(axis=1), SQUARES * (wanted**2).mean(axis=1)]), abs=1e-9)
    less = read(frame, 20).mean(statistic((bold,), against=cautious))
    assert less[0] == pytest.approx((wanted[1] - wanted[0]).mean(), abs=1e-9)


def test_steps_after_a_gap_are_left_out():
    frame = live(behaviour, 10, np.random.default_rng(0))
    gap, cut = frame.filter(pl.col("t") != 2), frame.filter(pl.col("t") < 2)
    assert np.array_equal(read(gap, 10).mean(statistic()), read(cut, 10).mean(statistic()))
    late = read(pl.concat([cut, frame.filter(pl.col("t") == 3), cut.filter(pl.col("t") == 0)]), 10)
    assert late.mean(statistic()).shape == (4,)  # the same step twice is no reason to fail


def test_propensities_may_stand_in_a_column():
    frame = live(behaviour, 10, np.random.default_rng(0))
    chosen = behaviour(frame["x"].to_numpy()[:, None])[np.arange(len(frame)), frame["go"].to_numpy()]
    told = read(frame.with_columns(p=pl.Series(chosen)), 10, propensity="p")
    assert told.mean(statistic(behaviour=None)) == pytest.approx(read(frame, 10).mean(statistic()), abs=1e-9)
    impossible = read(frame.with_columns(p=0.0), 10, propensity="p")
    assert not impossible.mean(statistic(behaviour=None)).any()


@pytest.mark.parametrize("draws", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_values_are_right_and_intervals_hold_them(draws):
    """Over draws of people and noise: intervals are for the worst case, and miss far less often than stated."""
    true = {name: truth(policy) for name, policy in POLICIES.items()}
    found = []
    for seed in range(draws):
        sessions = read(live(behaviour, 400, np.random.default_rng(seed)), 400)
        found.append(evaluate_policies(
            sessions, POLICIES, BUDGET, returns=(-8, 12), discount=DISCOUNT, behaviour=behaviour, simulate=seed,
        ))  # fmt: skip
    held = [all(one[name].low <= true[name] <= one[name].high for name in true) for one in found]
    assert sum(held) >= binom.ppf(1e-6, draws, 0.95)
    for name in true:
        values = np.array([one[name].value for one in found])
        assert values.mean() == pytest.approx(true[name], abs=6 * values.std() / math.sqrt(draws) + 0.01)
        assert np.mean([one[name].high - one[name].low for one in found]) < 5


def test_advantages_are_differences_of_values():
    first = live(behaviour, 2000, np.random.default_rng(0)).filter(pl.col("t") == 0)
    first = first.with_columns(r=0.4 + 0.6 * pl.col("x") - 0.3 * pl.col("go") + 0.2 * (pl.col("r") - 0.35))
    ask = partial(evaluate_policies, read(first, 2000), POLICIES, Budget(100, 1e-5), returns=(-4, 4),
                  behaviour=behaviour, simulate=1)  # fmt: skip
    plain, gain = ask(), ask(against="cautious")
    assert list(gain.values) == ["bold"]
    assert gain([0.1, 0.9]).shape == (2, 1)
    assert gain["bold"].value == pytest.approx(plain.difference("bold", "cautious").value, abs=0.02)


def test_behaviour_can_be_learnt_and_is_paid_for():
    def coarse(states):
        return np.where(states[:, :1] > 0.5, [0.3, 0.7], [0.6, 0.4])

    cells = Cells.between([0, 0.5, 1])
    sessions = read(live(coarse, 4000, np.random.default_rng(0)), 4000)
    ask = partial(evaluate_policies, sessions, POLICIES, BUDGET, returns=(-8, 12), discount=DISCOUNT)
    known, learnt = ask(behaviour=coarse, simulate=1), ask(behaviour=cells, simulate=1)
    for name in POLICIES:
        assert learnt[name].value == pytest.approx(known[name].value, abs=0.1)
    assert learnt.noise == pytest.approx(known.noise / math.sqrt(0.9))
    certificate = ask(behaviour=cells).certificate
    assert (certificate.standing, len(certificate.queries)) == ("certified", 2)  # type: ignore[arg-type]
    assert "nor errors of estimated propensities" in str(certificate)


# What one person can do


def people_and_reader(policies, returns=(-1.0, 1.0), **change):
    """Rows of synthetic people with room for two more, who reads them, and what makes the mechanism."""
    rows = live(behaviour, 18, np.random.default_rng(0), episodes=2)
    reader = partial(read, people=20, **change)
    mechanism = partial(
        policy_values.PolicyValues, reader(rows), policies, BUDGET, returns=returns, discount=DISCOUNT,
        behaviour=lambda s: np.tile([0.1, 0.9], (len(s), 1)),
    )  # fmt: skip
    return rows, reader, mechanism


def test_the_worst_person_comes_as_far_as_stated_and_no_farther():
    rows, reader, make = people_and_reader(POLICIES | {"left": "0"})
    mechanism = make()
    move = worst_rows(reader, rows, BUDGET, mechanism=mechanism, tries=8).movement
    assert not move.exceeds
    assert move.share > 0.99
    assert move.norm.endswith("further apart than 3.4641")  # 2 sqrt(3), for three policies


def test_the_worst_person_for_what_is_learnt():
    shares = ActionShares(Cells.states(2), Box.of((0, 1)), 2)
    cells = {"person": 1, "visit": "v", "t": range(4), "x": 0.0, "r": 0.0}
    one, other = (pl.DataFrame(cells | {"go": [go] * 4}) for go in (0, 1))
    apart = np.linalg.norm(read(one, 10).mean(shares) - read(other, 10).mean(shares))
    assert apart == pytest.approx(math.sqrt(2) / 10)
    rng = np.random.default_rng(0)
    for _ in range(10):
        frames = [one.with_columns(x=pl.Series(rng.integers(0, 2, 4) * 1.0), go=pl.Series(rng.integers(0, 2, 4)))
                  for _ in range(2)]  # fmt: skip
        found = [read(frame, 10).mean(shares) for frame in frames]
        assert np.linalg.norm(found[0] - found[1]) <= math.sqrt(2) / 10 * (1 + 1e-9)


def test_squares_cost_nothing_and_not_more_of_them():
    """Over all pairs of numbers from -1 to 1; with squares that count a hundredth more, some pair is too far apart."""
    u = np.linspace(-1, 1, 1001)

    def farthest(factor):
        return float(((u[:, None] - u) ** 2 + (factor * SQUARES) ** 2 * (u[:, None] ** 2 - u**2) ** 2).max())

    assert farthest(1.0) == pytest.approx(4, abs=1e-12)
    assert farthest(1.01) > 4.001


class EpisodesApart(Returns):
    """Broken: every episode is clipped to the range, but they are added up, so that many count more."""

    def of_people(self, starts, columns):
        found = super().of_people(starts, columns)
        return found * np.diff(starts, append=len(columns["action"]))[:, None]

    def _hold(self, vectors, people):
        return vectors


def test_broken_copies_are_caught(monkeypatch):
    rows, reader, make = people_and_reader(POLICIES)
    search = partial(worst_rows, reader, rows, BUDGET, tries=4)
    with monkeypatch.context() as patch:
        patch.setattr(policy_values, "Returns", EpisodesApart)
        assert search(mechanism=make()).movement.exceeds
    monkeypatch.setattr("quietq.feedback.returns.SQUARES", 2 * SQUARES)
    assert search(mechanism=make()).movement.exceeds


# The release


def test_it_is_released_once_certified_and_charged():
    sessions = read(live(behaviour, 400, np.random.default_rng(0)), 400)
    account = Accountant(BUDGET)
    ask = partial(evaluate_policies, sessions, POLICIES, returns=(-8, 12), behaviour=behaviour, account=account)
    found = ask(BUDGET)
    certificate = found.certificate
    assert (certificate.standing, certificate.method) == ("certified", "policies/values")
    (query,) = certificate.queries
    assert query.sensitivity == pytest.approx(2 * math.sqrt(2) / 400, rel=1e-5)
    assert found.noise == pytest.approx(10 * 2 * math.sqrt(2) / 400 / BUDGET.mu, rel=1e-5)
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)
    record = certificate.to_dict()
    more = {"norm": {"kind": "returns", "policies": 8}}  # whose sensitivity is twice as large
    for change in ({"size": query.size / 2}, more):
        with pytest.raises(InvalidInput):
            Certificate.from_dict({**record, "queries": [{**record["queries"][0], **change}]})
    with pytest.raises(InvalidInput):
        Certificate.from_dict({**record, "budget": {**record["budget"], "epsilon": BUDGET.epsilon / 2}})
    text = str(certificate)
    assert "clipped to [-8, 12], once over all of their episodes" in text
    assert "but not the bias of clipping returns to [-8, 12]" in text
    with pytest.raises(BudgetExhausted):
        ask(BUDGET)


def test_values_can_be_published_and_files_that_are_none_are_refused(tmp_path):
    sessions = read(live(behaviour, 400, np.random.default_rng(0)), 400)
    ask = partial(evaluate_policies, sessions, POLICIES, BUDGET, returns=(-8, 12))
    found = ask(behaviour=Cells.between([0, 0.5, 1]))
    publish(found, tmp_path / "values.qq")
    loaded = load(tmp_path / "values.qq")
    assert isinstance(loaded, EvaluatedPolicies)
    assert (loaded.values, loaded.noise, loaded.confidence) == (found.values, found.noise, found.confidence)
    assert np.array_equal(loaded([0.2, 0.7]), np.tile(found.table[:, 0], (2, 1)))
    with pytest.raises(InvalidInput, match="Only a certified release can be published"):
        publish(ask(behaviour=behaviour, simulate=1), tmp_path / "simulated.qq")
    for change in (
        {"names": ("one",)}, {"names": ("one", "one")}, {"table": found.table[:, ::-1].copy()}, {"noise": -1.0},
        {"confidence": 1.5}, {"names": ("a", "b", "c"), "table": np.vstack([found.table, found.table[:1]])},
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=r"not a release|noise must be above 0|confidence is of another type"):
            write_release(dataclasses.replace(found, **change), tmp_path / "forged.qq")


def test_a_published_agent_is_a_policy(tmp_path):
    weights = (np.array([[1.0], [-1.0]]),)
    certificate = evaluate_policies(
        read(live(behaviour, 40, np.random.default_rng(0)), 40), POLICIES, Budget(1, 1e-5), returns=(-8, 12),
        behaviour=behaviour, simulate=1,
    ).certificate  # fmt: skip
    agent = PrivatePolicy("tanh", "values", weights, (np.array([-0.5, 0.5]),), Box.of((0, 1)), certificate)
    sessions = read(live(behaviour, 400, np.random.default_rng(0)), 400)
    ask = partial(evaluate_policies, sessions, budget=BUDGET, returns=(-8, 12), behaviour=behaviour, simulate=1)
    by_hand = ask({"agent": lambda states: np.where(states > 0.5, [1.0, 0.0], [0.0, 1.0])})
    assert ask({"agent": agent}).values == by_hand.values
    for wrong, sentence in (
        (dataclasses.replace(agent, box=Box.of((0, 0.5))), "an agent for states in"),
        (dataclasses.replace(agent, weights=(np.ones((3, 1)),), biases=(np.zeros(3),)), "chooses among 2 actions"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            ask({"agent": wrong})


def wrong_shape(states):
    return np.ones(len(states))


def in_company(states):
    share = states[:, 0] / (states[:, 0].sum() + 1)
    return np.stack([share, 1 - share], axis=-1)


def failing(states):
    raise ValueError(f"secret {states}")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"policies": {}}, "policies must name at least one"),
        ({"policies": {"a": "2"}}, "Policy 'a' must name one of the actions"),
        ({"policies": {"a": wrong_shape}}, "must give 2 numbers for each state"),
        ({"policies": {"a": in_company}}, "must be a function of one state at a time"),
        ({"policies": {"a": failing}}, "^Policy 'a' failed with ValueError on public states; nothing was spent.$"),
        ({"policies": {"a": no_policy}}, "must give probabilities of 2 actions, which add up to 1"),
        ({"behaviour": None}, "There must be a behaviour"),
        ({"behaviour": no_policy}, "behaviour must give probabilities"),
        ({"behaviour": wrong_shape}, "behaviour must give 2 numbers"),
        ({"behaviour": lambda states: np.full((len(states), 2), np.nan)}, "behaviour must give finite numbers"),
        ({"returns": (1, 1)}, "returns must be a range"),
        ({"discount": 1.5}, "discount must lie between 0 and 1"),
        ({"confidence": 1.0}, "confidence must lie between 0 and 1"),
        ({"against": "nobody"}, "against must be one of at least two policies"),
        ({"against": "bold"}, "returns must be a range around 0"),
        ({"policies": {"a\n": "0"}}, "Names of policies must be printable"),
        ({"budget": Budget(1, 0)}, "delta must be above 0"),
    ],
)
def test_refusals(change, sentence):
    sessions = read(live(behaviour, 5, np.random.default_rng(0)), 2000)
    given: dict[str, Any] = {"sessions": sessions, "policies": POLICIES, "budget": BUDGET, "returns": (-8, 12),
                             "behaviour": behaviour}  # fmt: skip
    with pytest.raises(InvalidInput, match=sentence):
        evaluate_policies(**given | change)


def test_sessions_that_cannot_be_asked():
    rows = live(behaviour, 5, np.random.default_rng(0))
    for change, sentence in (
        ({"reward": None}, "no rewards"),
        ({"actions": [(0, 1)]}, "a declared list of actions"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            evaluate_policies(read(rows, 2000, **change), {"a": "0"}, BUDGET, returns=(0, 1), behaviour=behaviour)


def test_nobody_touches_what_is_said_of_others():
    """Functions are asked person by person, on copies; a failure says nothing of the state that it failed at."""
    sizes: list[int] = []

    def writes(states):
        sizes.append(len(states))
        states[:] = 0
        return np.tile([0.5, 0.5], (len(states), 1))

    def halves(states):
        sizes.append(len(states))
        return np.zeros(len(states), int)

    sessions = read(live(behaviour, 30, np.random.default_rng(0)), 30)
    alone, after = (sessions.mean(statistic((*before, bold))) for before in ((), (writes,)))
    assert after[1] == pytest.approx(alone[0], abs=1e-9)
    assert len(sizes) == 30
    sessions.mean(ActionShares(Cells(1, halves), Box.of((0, 1)), 2))
    assert len(sizes) == 60

    def sometimes(states):
        if len(states) != 32 and len(states) > 1:
            raise InvalidInput(f"secret {states}")
        return np.tile([0.5, 0.5], (len(states), 1))

    account = Accountant(BUDGET)
    with pytest.raises(InvalidInput, match="A policy failed with InvalidInput on an") as caught:
        evaluate_policies(sessions, {"a": sometimes}, BUDGET, returns=(-8, 12), behaviour=behaviour, account=account)
    assert caught.value.__context__ is None
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)  # or failures would answer questions for nothing
