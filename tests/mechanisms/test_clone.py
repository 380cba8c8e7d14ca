"""A private policy that imitates the people who did best."""

import json
import math
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest
from skilled_people import RETURNS, logged, read_listed, read_numbers

import quietq as qq
from quietq.feedback.imitation_statistics import OwnReturns
from quietq.mechanisms.clone import ENOUGH, CloneSettings, Cloning, clone, network_size
from quietq.mechanisms.release import simulate
from quietq.privacy import Code
from quietq.released.private_network import PrivatePolicy
from quietq.released.release_file import pack, unpack

AMPLE = qq.Budget(60, 1e-5)
PEOPLE = 300
SHORT = CloneSettings(state_rounds=2, threshold_rounds=3, steps=4, hidden=3)


@pytest.fixture(scope="module")
def listed() -> PrivatePolicy:
    return clone(read_listed(logged(PEOPLE), people=PEOPLE), AMPLE, returns=RETURNS)


@pytest.fixture(scope="module")
def numbers() -> PrivatePolicy:
    return clone(read_numbers(logged(PEOPLE), people=PEOPLE), AMPLE, returns=RETURNS)


# What it learns


def test_it_does_what_the_best_do(listed: PrivatePolicy, numbers: PrivatePolicy) -> None:
    states = np.array([[-0.9], [-0.4], [0.4], [0.9]])
    assert listed.predict(states)[0].tolist() == [1, 1, 0, 0]
    forces = numbers.predict(states)[0]
    assert (forces.shape, forces.dtype) == ((4, 1), np.float32)
    assert np.sign(forces[:, 0]).tolist() == [1, 1, -1, -1]
    assert np.abs(forces).max() <= 2
    drawn = np.array([listed.predict(np.array([-0.4]), deterministic=False)[0] for _ in range(200)])
    assert 0.8 < drawn.mean() <= 1  # probabilities, which noise and few steps leave below 1


def test_actions_are_imitated_as_they_are_and_not_exaggerated() -> None:
    """Far from the ends of their range, and about a mean that people only scatter about."""
    rng = np.random.default_rng(0)
    who, x = np.repeat(np.arange(PEOPLE), 20), rng.uniform(-1, 1, 20 * PEOPLE)
    done = {"force": 0.6 * x + 0.2 * rng.standard_normal(len(x)), "reward": np.zeros(len(x))}
    frame = pl.DataFrame({"who": who, "visit": 0 * who, "step": np.tile(np.arange(20), PEOPLE), "x": x, **done})
    policy = clone(read_numbers(frame, people=PEOPLE), AMPLE, best=1, simulate=0)
    states = np.linspace(-0.9, 0.9, 19)[:, None]
    forces = policy.predict(states)[0]
    slope = float((forces * states).sum() / (states**2).sum())
    assert 0.54 < slope < 0.66


def test_the_best_are_about_as_many_as_were_asked_for(listed: PrivatePolicy) -> None:
    frame = logged(PEOPLE).with_columns(pl.col("reward").clip(0, 1))
    sums = frame.group_by("who", "visit").agg(pl.col("reward").sum()).group_by("who").agg(pl.col("reward").mean())
    assert listed.threshold is not None
    share = (sums["reward"] >= listed.threshold).mean()
    assert 0.18 < share < 0.26  # type: ignore[operator]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_noise_alone_never_leaves_nobody(epsilon: float) -> None:
    """In 20 draws each, at people times mu from 12 to 500, at least a tenth of the people are left."""
    sessions = read_listed(logged(PEOPLE), people=PEOPLE)
    own = OwnReturns((0.0, 1.0), RETURNS)
    starts, columns = sessions.rows.buckets[0]  # type: ignore[attr-defined]
    returns = own(starts, columns)
    settings = CloneSettings(state_rounds=1, steps=1, hidden=1)
    mechanism = Cloning(sessions, qq.Budget(epsilon, 1e-5), RETURNS, 0.2, settings)
    for seed in range(20):
        threshold = simulate(mechanism, sessions, seed).threshold
        assert (returns >= threshold).mean() >= 0.1


def test_a_box_that_is_far_too_wide_costs_little() -> None:
    """States in [-1, 1] of a box that is thirty times as wide, and off its middle."""
    frame = logged(PEOPLE)
    sessions = read_listed(frame, people=PEOPLE, box=(-20, 40))
    policy = clone(sessions, AMPLE, returns=RETURNS, simulate=0)
    assert policy.normal is not None
    middle, deviation = policy.normal[:, 0]
    assert abs(middle - frame["x"].mean()) < 0.1  # type: ignore[operator]
    assert 0.5 < deviation / frame["x"].std() < 2  # type: ignore[operator]
    assert policy.predict(np.array([[-0.9], [0.9]]))[0].tolist() == [1, 0]


def test_everybody_can_be_imitated_without_rewards() -> None:
    sessions = read_listed(logged(PEOPLE), people=PEOPLE, reward=None)
    policy = clone(sessions, AMPLE, best=1, simulate=0)
    assert policy.threshold is None
    assert policy.predict(np.array([[-0.9], [0.9]]))[0].tolist() == [1, 0]
    assert policy.in_words()[0].startswith("This policy imitates people: states x [-1, 1]; actions 0 left, 1 right")


def test_a_seed_gives_the_same_policy_and_protects_nobody() -> None:
    sessions = read_listed(logged(20), people=20)
    mechanism = Cloning(sessions, AMPLE, RETURNS, 0.2, SHORT)
    first, again, other = (simulate(mechanism, sessions, seed) for seed in (0, 0, 1))
    assert np.array_equal(first.weights[0], again.weights[0])
    assert not np.array_equal(first.weights[0], other.weights[0])
    assert (first.certificate.standing, first.certificate.reproducible) == ("none", True)
    assert str(first).startswith("NOT PRIVATE: ")


def test_nothing_depends_on_the_order_of_rows_or_people() -> None:
    frame = logged(60)
    both = [read_listed(rows, people=60) for rows in (frame, frame.sample(fraction=1.0, shuffle=True, seed=5))]
    one, other = (simulate(Cloning(each, AMPLE, RETURNS, 0.2, SHORT), each, 3) for each in both)
    assert all(np.array_equal(a, b) for a, b in zip(one.weights, other.weights, strict=True))


# What it promises


def test_its_certificate(listed: PrivatePolicy) -> None:
    certificate = listed.certificate
    assert (certificate.method, certificate.standing) == ("policy/clone", "certified")
    assert certificate.mu == pytest.approx(AMPLE.mu)
    for one in (Code.POLICY_CLONED(), Code.MEANS_OF_PEOPLE(), Code.RETURNS_CLIPPED(*RETURNS)):
        assert one in certificate.assumptions
    assert any("it cannot do better than good people do" in remark for remark in certificate.remarks)
    assert qq.explain(certificate, "everybody")


def test_the_shares_of_mu_squared() -> None:
    sessions = read_listed(logged(20), people=20)
    settings = CloneSettings()
    policy = simulate(Cloning(sessions, AMPLE, RETURNS, 0.2, settings), sessions, 0)
    spent = [(one.sensitivity / one.size / AMPLE.mu) ** 2 for one in policy.certificate.queries]
    begin, end = settings.state_rounds, settings.state_rounds + settings.threshold_rounds
    assert math.fsum(spent[:begin]) == pytest.approx(0.05)
    assert math.fsum(spent[begin:end]) == pytest.approx(0.05)
    assert math.fsum(spent[end:]) == pytest.approx(0.9)


def test_an_account_is_charged_once_and_covers_what_is_asked() -> None:
    sessions = read_listed(logged(PEOPLE), people=PEOPLE)
    account = qq.Accountant(AMPLE)
    clone(sessions, AMPLE, returns=RETURNS, account=account)
    assert account.spending.spent_mu == pytest.approx(AMPLE.mu)
    with pytest.raises(qq.BudgetExhausted, match="is more than what is left"):
        clone(sessions, AMPLE, returns=RETURNS, account=account)
    with pytest.raises(qq.BudgetExhausted, match="was released already"):
        clone(sessions, AMPLE, returns=RETURNS)


def test_too_few_people_are_warned_of() -> None:
    few = read_listed(logged(40), people=40)
    assert 40 * qq.Budget(1, 1e-5).mu < ENOUGH
    with pytest.warns(
        UserWarning, match=r"40 people times mu = 0\.\d+ is 1\d.*, and below 1000 a clone is good by luck"
    ):
        clone(few, qq.Budget(1, 1e-5), returns=RETURNS, simulate=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=qq.PrivacyWarning)
        clone(read_listed(logged(PEOPLE), people=PEOPLE), AMPLE, returns=RETURNS, simulate=0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"best": 0}, "best must be a share of the people, above 0 and at most 1, not 0.0"),
        ({"best": 1.5}, "best must be a share"),
        ({"returns": None}, r"returns must be a range, low below high, not None"),
        ({"returns": (3, 3)}, r"returns must be a range, low below high, not \(3, 3\)"),
        ({"returns": (0, math.inf)}, "returns must be"),
        ({"budget": qq.Budget(1, 0)}, "delta must be above 0"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_wrong_is_said_before_anything_is_spent(options: dict[str, Any], sentence: str) -> None:
    sessions = read_listed(logged(20), people=20)
    given: dict[str, Any] = {"sessions": sessions, "budget": AMPLE, "returns": RETURNS} | options
    with pytest.raises(qq.InvalidInput, match=sentence):
        clone(given.pop("sessions"), given.pop("budget"), **given)
    clone(sessions, qq.Budget(1, 1e-5), returns=RETURNS)  # is still to be had


def test_sessions_without_rewards_have_no_best() -> None:
    sessions = read_listed(logged(20), people=20, reward=None)
    with pytest.raises(qq.InvalidInput, match="These sessions have no rewards, by which the best would be found"):
        clone(sessions, AMPLE, returns=RETURNS)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_people_said_is_no_reason_to_fail() -> None:
    """Nobody with a usable row, one person, and rows that are no numbers: all are released."""
    frame = logged(3)
    nobody = frame.with_columns(pl.lit(None, pl.String).alias("push"))
    odd = frame.with_columns(pl.lit(math.nan).alias("x"))
    for rows in (nobody, odd, frame.head(1), frame.head(0)):
        policy = clone(read_listed(rows, people=3), qq.Budget(1, 1e-5), returns=RETURNS)
        assert np.isfinite(policy(np.array([0.3]))).all()


# What becomes of it


def test_it_is_published_and_loaded(listed: PrivatePolicy, numbers: PrivatePolicy, tmp_path: Path) -> None:
    for policy, names in ((listed, ("left", "right")), (numbers, ("force",))):
        qq.publish(policy, tmp_path / "policy.qq")
        loaded = qq.load(tmp_path / "policy.qq")
        assert isinstance(loaded, PrivatePolicy)
        assert (loaded.labels.states, loaded.labels.actions) == (("x",), names)
        assert (loaded.threshold, str(loaded)) == (policy.threshold, str(policy))
        states = np.linspace(-1, 1, 9)[:, None]
        assert np.array_equal(loaded.predict(states)[0], policy.predict(states)[0])
        assert loaded.imitates


def test_it_says_what_it_is(listed: PrivatePolicy) -> None:
    said = str(listed)
    assert f"imitates the people whose returns reached {listed.threshold:.4g}: states x [-1, 1]" in said
    assert "actions 0 left, 1 right." in said
    assert "policy/clone: is certified to be (60, 1e-05)-differentially private" in said


def test_states_outside_the_box_are_taken_for_the_nearest(listed: PrivatePolicy) -> None:
    assert listed.predict(np.array([7.0]))[0] == listed.predict(np.array([1.0]))[0]
    with pytest.raises(qq.InvalidInput):
        listed.predict(np.array([np.nan]))
    with pytest.raises(qq.InvalidInput):
        listed(np.array([7.0]))


def test_stable_baselines_evaluates_it(listed: PrivatePolicy) -> None:
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    monitor = pytest.importorskip("stable_baselines3.common.monitor")

    class Point(gymnasium.Env[np.ndarray, Any]):
        observation_space = gymnasium.spaces.Box(-1.5, 1.5, (1,))
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
            super().reset(seed=seed)
            self.x, self.left = np.array([1.2], np.float32), 12
            return self.x, {}

        def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
            self.x = self.x + np.float32(0.2 * (2 * int(action) - 1))
            self.left -= 1
            return self.x, float(1 - abs(self.x[0])), False, not self.left, {}

    mean, _ = evaluation.evaluate_policy(listed, monitor.Monitor(Point()), n_eval_episodes=2)  # type: ignore[arg-type]
    assert mean > 7


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"threshold": "high"}, "details.threshold: Expected"),
        ({"threshold": True}, "details.threshold: Expected"),
        ({"threshold": 1e400}, "is not a release"),
        ({"states": ["x", "y"]}, "1 different names of states"),
        ({"actions": ["left", "left"]}, "2 different names of actions"),
        ({"actions": "left"}, "labels"),
        ({"states": [3]}, "labels"),
        ({"states": [" "]}, "printable"),
    ],
)
def test_a_file_that_says_otherwise_is_refused(
    listed: PrivatePolicy, tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    qq.publish(listed, tmp_path / "policy.qq")
    unpacked = unpack((tmp_path / "policy.qq").read_bytes())
    part = "details" if "threshold" in change else "labels"
    record = {**unpacked.record, part: {**unpacked.record[part], **change}}
    (tmp_path / "forged.qq").write_bytes(pack(json.dumps(record), unpacked.arrays))
    with pytest.raises(qq.InvalidInput, match=why):
        qq.load(tmp_path / "forged.qq")


def test_a_clones_certificate_is_for_its_box_and_its_method(listed: PrivatePolicy, tmp_path: Path) -> None:
    qq.publish(listed, tmp_path / "policy.qq")
    unpacked = unpack((tmp_path / "policy.qq").read_bytes())
    certificate = unpacked.record["certificate"]
    moved = {**unpacked.record, "box": [[-2.0, 2.0]]}
    nowhere = {**unpacked.record, "certificate": {**certificate, "domain": None}}
    elsewhere = {**unpacked.record, "certificate": {**certificate, "domain": [[-1.0, 1.0], [0.0, 1.0]]}}
    renamed = {**unpacked.record, "certificate": {**certificate, "method": "world/moments"}}
    box = "must name its box"
    for record, why in ((moved, box), (nowhere, box), (elsewhere, box), (renamed, "what it trusts training for")):
        (tmp_path / "forged.qq").write_bytes(pack(json.dumps(record), unpacked.arrays))
        with pytest.raises(qq.InvalidInput, match=why):
            qq.load(tmp_path / "forged.qq")


def test_a_public_rule_says_how_large_the_network_is() -> None:
    """It grows with people times mu, is smaller where states have many coordinates, and never large."""
    found = [network_size(10.0**power, 10) for power in range(1, 8)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == ((8, 100), (64, 400))
    assert network_size(1340, 23) == (32, 198)
    assert network_size(1340, 400)[0] == 8
    sessions = read_listed(logged(20), people=20)
    mechanism = Cloning(sessions, AMPLE, RETURNS, 0.2)
    assert (mechanism.hidden, mechanism.steps) == network_size(20 * AMPLE.mu, 3)
