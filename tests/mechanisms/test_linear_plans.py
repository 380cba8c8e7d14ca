"""Plans of private worlds leave as policies, act as they did, and promise what world and check come to together."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from linear_people import read, rows_of
from msgspec import structs

from quietq import Accountant, Budget, InvalidInput, PrivacyWarning, check as ask, load, plan_linear, privatise, publish
from quietq.mechanisms import moments, rounds
from quietq.privacy import Code
from quietq.privacy.budget import epsilon_from_mu
from quietq.privacy.certificate import certifying
from quietq.privacy.relations import OnePerson
from quietq.publishing.publish import NO_GO, certificate_of, with_checks
from quietq.released import open_release
from quietq.released.private_network import PrivatePolicy
from quietq.released.private_world import PrivateWorld
from quietq.released.release_file import digest_of
from quietq.worlds.planning import linear_actions, linear_policy

WHOLE, PEOPLE, STEPS = Budget(2, 1e-5), 40, 5


def released(numbers: bool):
    """A world, a plan in it and its check, all paid for by one account."""
    people, account = read(rows_of(PEOPLE, 4, numbers=numbers), PEOPLE, numbers), Accountant(WHOLE)
    most, some = WHOLE.split(0.9, 0.1)
    with (
        mock.patch.object(moments, "SETTINGS", moments.MomentSettings(rounds=2)),
        mock.patch.object(rounds, "SETTINGS", rounds.RoundSettings(rounds=2)),
    ):
        world = privatise(people, most, account=account)
    plan = plan_linear(world, steps=STEPS, iterations=2, candidates=16)
    check = ask(plan, people, some, 1, steps=STEPS, account=account)
    return world, plan, replace(check, share=1.0, agreement=0.0).issued()  # noise would decide on what is said


@pytest.fixture(scope="module")
def listed():
    return released(False)


@pytest.mark.parametrize("numbers", [False, True])
def test_a_plan_comes_back_as_it_acted(numbers, listed, tmp_path):
    world, *_ = released(True) if numbers else listed
    weights = np.array([[0.1], [0.02], [-0.03]])  # whatever noise made of it
    plan = linear_policy(world, weights)
    publish(plan, tmp_path / "policy.qq")
    policy = load(tmp_path / "policy.qq")
    assert isinstance(policy, PrivatePolicy)
    states = np.random.default_rng(0).uniform(-2, 2, (500, 2))
    found = policy.predict(states)[0]
    middle, deviation = world.typical()
    expected = linear_actions(world.spaces, weights, middle, deviation, states / 4 + 0.5)
    assert np.array_equal(found, plan.predict(states)[0])
    assert np.array_equal(policy.predict(3 * states)[0], plan.predict(np.clip(3 * states, -2, 2))[0])
    if numbers:
        assert found == pytest.approx(2 * expected - 1, abs=1e-6)  # as it was tried in the unit box
        assert np.ptp(expected) > 1e-3
    else:
        assert (found == expected).mean() > 0.99  # but for rounding where two are as good
        assert set(expected.tolist()) <= {0, 1}
    assert policy.certificate.mu == world.certificate.mu
    assert policy.certificate.epsilon == world.certificate.epsilon
    assert Code.TRAINED() in policy.certificate.assumptions
    assert "trained on a private world" in open_release(tmp_path / "policy.qq").function.in_words()[0]


def certificate_in(path: Path) -> Any:
    return load(path).certificate


def test_a_plan_that_a_check_spoke_for_promises_both(listed, tmp_path):
    world, plan, check = listed
    publish(plan, tmp_path / "policy.qq", check=check)
    found = certificate_in(tmp_path / "policy.qq")
    assert found.mu == pytest.approx(WHOLE.mu, rel=1e-9)
    assert found.mu <= WHOLE.mu
    assert found.epsilon == pytest.approx(epsilon_from_mu(found.mu, 1e-5))
    assert WHOLE.epsilon * (1 - 1e-6) < found.epsilon <= WHOLE.epsilon * (1 + 1e-9)
    assert len(found.queries) == len(world.certificate.queries) + 1
    ratios = [query.sensitivity / query.size for query in found.queries]
    assert math.hypot(*ratios) == pytest.approx(found.mu, rel=1e-6)
    assert any("published because of what they said" in one.text for one in found.assumptions)
    assert any("what is wanted) was not made from these" in one.text for one in found.assumptions)


def test_a_policy_that_people_spoke_against_leaves_with_a_warning_and_a_remark(listed, tmp_path):
    _, plan, check = listed
    against, spoken_for = (
        replace(check, agreement=0.0, threshold=check.share + moved).issued() for moved in (1e-9, -1e-9)
    )
    with pytest.warns(UserWarning, match="NO GO: the people who were asked did not speak for this policy"):
        publish(plan, tmp_path / "policy.qq", check=against)
    found = certificate_in(tmp_path / "policy.qq")
    assert NO_GO in found.remarks
    assert NO_GO in str(found)
    publish(plan, tmp_path / "policy.qq", check=spoken_for)  # warnings are errors
    assert NO_GO not in certificate_in(tmp_path / "policy.qq").remarks


def test_a_policy_is_named_by_its_numbers(listed):
    _, plan, check = listed
    assert digest_of(plan) == check.policy == digest_of(replace(plan, certificate=check.certificate))
    for other in (
        replace(plan, weights=(plan.weights[0] + 1e-12,)),
        replace(plan, biases=(plan.biases[0] + 1e-12,)),
        replace(plan, normal=plan.normal + np.array([[1e-12], [0.0]])),
        replace(plan, normal=plan.normal * [[1.0], [1 + 1e-12]]),
        replace(plan, clip=9.0),
    ):
        assert digest_of(other) != check.policy


def test_the_best_of_several_checked_plans_promises_all_checks(tmp_path):
    people, account, path = (
        read(rows_of(PEOPLE, 4, numbers=False), PEOPLE, False),
        Accountant(WHOLE),
        tmp_path / "policy.qq",
    )
    most, *some = WHOLE.split(0.7, 0.1, 0.1, 0.1)
    with (
        mock.patch.object(moments, "SETTINGS", moments.MomentSettings(rounds=2)),
        mock.patch.object(rounds, "SETTINGS", rounds.RoundSettings(rounds=2)),
    ):
        world = privatise(people, most, account=account)
    plan = plan_linear(world, steps=STEPS, iterations=2, candidates=16)
    plans = [replace(plan, weights=(plan.weights[0] + 0.1 * i,)).issued() for i in range(3)]
    pairs = list(zip(plans, some, strict=True))
    checks = [
        replace(ask(one, people, part, 1, steps=STEPS, account=account), share=1.0, agreement=0.0).issued()
        for one, part in pairs
    ]
    for given in (checks[0], checks[:2]):
        with pytest.raises(InvalidInput, match=r"of the policy that is published; .* all of their checks"):
            publish(plans[2], path, check=given)
    assert not path.exists()
    publish(plans[2], path, check=[*checks, checks[0]])  # each is counted once
    found = certificate_in(path)
    assert found.mu == pytest.approx(account.spending.spent_mu)
    assert found.epsilon == pytest.approx(account.spending.get_epsilon(1e-5))
    assert len(found.queries) == len(world.certificate.queries) + 3
    assert Code.CHECKS_COUNTED(3) in found.assumptions
    publish(plans[1], path, check=checks[1])
    assert certificate_in(path).mu == pytest.approx((most.mu**2 + some[1].mu ** 2) ** 0.5)


def test_a_check_is_not_dropped_where_nothing_is_certified(listed):
    world, plan, check = listed
    claimed = structs.replace(world.certificate, standing="claimed", remarks=("Nobody proved it.",))
    for one in (claimed, replace_standing(world.certificate)):
        with pytest.raises(InvalidInput, match=f"of the policy's is {one.standing!r}: leave check out"):
            with_checks(replace(plan, certificate=one), [check], world)


def test_what_does_not_belong_together_is_refused(listed, tmp_path):
    world, plan, check = listed
    path = tmp_path / "policy.qq"
    simulated = replace(check, certificate=replace_standing(check.certificate))
    with certifying():
        stated = [one for one in check.certificate.assumptions if one.code is not Code.ONE_OF_DECLARED]
        more = (*stated, Code.ONE_OF_DECLARED(PEOPLE + 1))
        others = structs.replace(check.certificate, relation=OnePerson(PEOPLE + 1), assumptions=more)
    elsewhere = replace(world, weights=world.weights + 1e-9)
    cases: Any = (
        ({"check": replace(check, world=elsewhere).issued()}, "what another world cost would not"),
        ({"check": replace(check, world=None).issued()}, "what another world cost would not"),
        ({"check": [check, 3]}, "check must be what qq.check"),
        ({"box": [(0, 1), (0, 1)]}, "box are for models"),
        ({"check": simulated}, "check is a simulation"),
        ({"check": replace(check, certificate=others).issued()}, "check must be of the people"),
        ({"check": 3}, "check must be what qq.check"),
        ({"trained_on": world, "check": check}, "trained_on and box are for models"),
    )
    for options, words in cases:
        with pytest.raises(InvalidInput, match=words):
            publish(plan, path, **options)
    with pytest.raises(InvalidInput, match="thing must be a policy, where there is a check of it"):
        publish(world, path, check=check)
    assert not path.exists()


def test_a_plan_has_the_promise_of_the_world_it_was_made_in_and_no_other(listed, tmp_path):
    world, plan, _ = listed
    another = replace(world, weights=world.weights + 1e-9).issued()  # as if drawn again
    people, account = read(rows_of(PEOPLE, 4, numbers=False), PEOPLE, False), Accountant(Budget(20, 1e-5))
    with pytest.raises(InvalidInput, match="must be the world that the policy was made in"):
        ask(plan, people, WHOLE, 1, trained_on=another, steps=STEPS, account=account)
    assert account.spending.spent_mu == 0
    moved = replace(plan, made_in=another)
    with pytest.raises(InvalidInput, match="is not what was released under its certificate"):
        publish(moved, tmp_path / "policy.qq", check=ask(moved, people, WHOLE, 1, steps=STEPS, account=account))
    assert not (tmp_path / "policy.qq").exists()
    publish(world, tmp_path / "world.qq")
    same = load(tmp_path / "world.qq")
    assert isinstance(same, PrivateWorld)
    found = ask(plan, people, WHOLE, 1, trained_on=same, steps=STEPS, account=account)
    publish(plan, tmp_path / "policy.qq", check=replace(found, share=1.0, agreement=0.0).issued())
    assert plan_linear(same, steps=STEPS, iterations=2, candidates=16).seal == plan.seal


def a_ball():
    from quietq import people

    return people(50, low=0, high=0.5, slope=1)


def replace_standing(certificate):
    from quietq import Certificate

    return Certificate(method=certificate.method, standing="none", reproducible=True)


def test_plans_are_served_as_other_policies(listed, tmp_path):
    _, plan, _ = listed
    publish(plan, tmp_path / "policy.qq")
    opened: Any = open_release(tmp_path / "policy.qq")
    states = np.random.default_rng(0).uniform(-2, 2, (20, 2))
    assert opened.policy(states).tolist() == opened.function.predict(states)[0].tolist()


def test_environments_of_one_release_say_which(listed):
    from gymnasium.vector import SyncVectorEnv
    from gymnasium.wrappers import RecordEpisodeStatistics

    world, *_ = listed
    own = world.certificate
    wrapped = SyncVectorEnv([lambda: RecordEpisodeStatistics(world.env(steps=3)) for _ in range(2)])
    for env in (world, world.env(), world.env(copies=2), RecordEpisodeStatistics(world.env()), wrapped):
        assert certificate_of(env) == own
    again = replace(world, weights=world.weights.copy())  # as a worker's copy of it
    assert certificate_of(SyncVectorEnv([world.env, again.env])) == own
    another = replace(world, weights=world.weights + 1e-9)
    with pytest.raises(InvalidInput, match="environments of several releases, whose promises add up"):
        certificate_of(SyncVectorEnv([world.env, another.env]))


def test_wrappers_of_stable_baselines_are_seen_through(listed, tmp_path):
    sb3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

    from quietq import PrivateReward, people
    from quietq.publishing.stable_baselines import policy_of
    from quietq.worlds.world_vec_env import WorldVecEnv

    world, _, check = listed
    single, several = Monitor(world.env(steps=3)), VecNormalize(VecMonitor(WorldVecEnv(world, 2, steps=3)))
    for env in (single, several, DummyVecEnv([lambda: Monitor(world.env(steps=3))])):
        assert certificate_of(env) == world.certificate
    model = sb3.PPO("MlpPolicy", several, n_steps=2, batch_size=2, device="cpu", policy_kwargs={"net_arch": [4]})
    with pytest.raises(InvalidInput, match="check must be of the policy that is published"):
        publish(model, tmp_path / "policy.qq", trained_on=several, check=check)
    assert not (tmp_path / "policy.qq").exists()
    of_model = replace(check, policy=digest_of(policy_of(model, several))).issued()
    publish(model, tmp_path / "policy.qq", trained_on=several, check=[check, of_model])
    found = certificate_in(tmp_path / "policy.qq")
    assert found.mu == pytest.approx(math.hypot(WHOLE.mu, check.certificate.mu))
    gymnasium = pytest.importorskip("gymnasium")
    first, second = (
        privatise(lambda s: s, Budget(1, 1e-5), relation=people(50, low=0, high=1, slope=1)) for _ in range(2)
    )

    def walk(private):
        return lambda: Monitor(PrivateReward(gymnasium.make("quietq.worlds:quietq/Walk-v0"), private))

    assert certificate_of(DummyVecEnv([walk(first), walk(first)])).mu == first.certificate.mu
    with pytest.raises(InvalidInput, match="several releases"):
        certificate_of(DummyVecEnv([walk(first), walk(second)]))
    with pytest.raises(InvalidInput, match="trained_on must be"):
        certificate_of(Monitor(gymnasium.make("quietq.worlds:quietq/Walk-v0")))
    with pytest.warns(PrivacyWarning, match="your word alone"):
        publish(model, tmp_path / "policy.qq", trained_on=first)


@pytest.mark.parametrize("numbers", [False, True])
def test_a_model_of_stable_baselines_is_checked_as_it_is_published(numbers, listed, tmp_path):
    sb3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import VecNormalize

    world, *_ = released(True) if numbers else listed
    people = read(rows_of(PEOPLE, 4, numbers=numbers), PEOPLE, numbers)
    env = VecNormalize(world.env(steps=STEPS, copies=2, stable_baselines=True))
    model = sb3.PPO("MlpPolicy", env, n_steps=8, batch_size=16, policy_kwargs={"net_arch": [4]}, device="cpu")
    model.learn(32)
    found = ask(model, people, Budget(1, 1e-5), 1, trained_on=env, steps=STEPS, account=Accountant(WHOLE))
    spoken_for = replace(found, share=1.0, agreement=None).issued()
    publish(model, tmp_path / "policy.qq", trained_on=env, check=spoken_for)
    assert digest_of(load(tmp_path / "policy.qq")) == found.policy
    model.learn(32)  # another policy by now
    with pytest.raises(InvalidInput, match="check must be of the policy that is published"):
        publish(model, tmp_path / "policy.qq", trained_on=env, check=spoken_for)


def test_another_reward_in_a_private_world_would_hide_what_the_world_promises(listed):
    from gymnasium.vector import SyncVectorEnv
    from gymnasium.wrappers import TimeLimit

    from quietq import PrivateReward

    world, *_ = listed
    private = privatise(lambda s: s, Budget(0.1, 1e-5), relation=a_ball())
    for env in (
        world.env(steps=3),
        TimeLimit(world.env(steps=3), 2),
        world.env(copies=2),
        SyncVectorEnv([world.env]),
    ):
        with pytest.raises(InvalidInput, match="a private world, which is a release of its own"):
            PrivateReward(env, private, state=lambda seen: seen[..., 0], outside="clip")


def test_no_agent_is_certified_for_its_reward_alone_in_a_private_world(listed):
    pytest.importorskip("jax")
    from quietq.paper import OutputNoise
    from quietq.paper.agents import Agent
    from quietq.privacy import SupBall

    world, *_ = listed
    method = OutputNoise(budget=Budget(1, 1e-5), relation=SupBall(0.1, people=7))
    agent = Agent(world.env(steps=3), method)
    with pytest.raises(InvalidInput, match="a private world, which is a release of its own"):
        agent.learn(200)
