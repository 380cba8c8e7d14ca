"""An environment that shows its own reward: refused where it can be found out, and else named in the certificate."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from quietq import Accountant, Budget, GaussianProcessMechanism, InvalidInput, LipschitzBall, SupBall, people
from quietq.registry import WORLDS
from quietq.worlds import WALK, PrivateReward, WalkWorld, WorldEnv
from quietq.worlds.independence import independence

BUDGET = Budget(0.9, 1e-4)
PRIVATE = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), BUDGET).apply(lambda s: 0.5 - abs(s - 0.5))
SENTENCE = "The environment's observations, info and ends depend on its reward through the agent's actions only"


class Open(gymnasium.Env):
    """Walks about in [0, 1] under a reward of somebody's, shows it in one of several ways, or not."""

    observation_space, action_space = Box(0.0, 1.0, (1,), np.float32), Discrete(2)

    def __init__(self, shows: str = "nothing", reward: Any = lambda states: 0.5 - np.abs(states - 0.5)) -> None:
        self.shows, self._reward, self._last = shows, reward, 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at, self.t = self.np_random.random(), 0
        return np.array([self.at], np.float32), {}

    def step(self, action: Any) -> Any:
        self.at, self.t = float(np.clip(self.at + (2 * action - 1) * self.np_random.random() / 4, 0, 1)), self.t + 1
        reward = float(self._reward(np.array([self.at]))[0])
        over, at, info = False, np.float32(self.at), {}
        match self.shows:
            case "an end when it is high":
                over = reward > 0.4
            case "an end when it is large":
                over = abs(reward) > 0.4
            case "an end when it grows":
                over = reward > self._last
            case "the last bit of the observation":
                at = np.nextafter(at, np.float32(0.5)) if reward > 0.25 else at
            case "itself in the observation":
                at = np.float32(np.clip(reward, 0, 1))
            case "a key of info":
                info = {"mood": reward}
            case "a truncation":
                return np.array([at]), reward, False, reward > 0.4, info
        self._last = reward
        return np.array([at]), reward, over, self.t >= 20, info


class Offers(Open):
    """The same, and can be run with another reward."""

    def with_reward(self, reward: Any) -> "Offers":
        return Offers(self.shows, reward)


CHEATS = [
    "an end when it is high",
    "an end when it is large",
    "an end when it grows",
    "the last bit of the observation",
    "itself in the observation",
    "a key of info",
    "a truncation",
]


def said(certificate: Any) -> tuple[bool, str]:
    (one,) = [one for one in certificate.assumptions if SENTENCE in one.text]
    return one.enforced, one.text.removeprefix(SENTENCE)


@pytest.mark.parametrize("shows", CHEATS)
def test_a_cheat_that_can_be_run_with_another_reward_is_refused(shows: str) -> None:
    wraps = [
        lambda env: PrivateReward(env, PRIVATE, keep_info=("mood",)),
        lambda env: PrivateReward(TimeLimit(env, 10), PRIVATE, keep_info=("mood",)),
        lambda env: PrivateReward(SyncVectorEnv([lambda: env, Offers]), PRIVATE, keep_info=("mood",)),
    ]
    if shows != "a key of info":  # which never passes here
        wraps += [
            lambda env: PrivateReward.of(env, LipschitzBall(0.01, 0.04), BUDGET),
            lambda env: PrivateReward.of(env, SupBall(0.01), BUDGET, rewards=9),
        ]
    for wrap in wraps:
        with pytest.raises(InvalidInput, match="depend on its own reward, which would pass by the private one") as one:
            wrap(Offers(shows))
        assert "\n" not in str(one.value)


@pytest.mark.parametrize("shows", CHEATS)
def test_a_cheat_that_cannot_be_run_carries_the_sentence(shows: str) -> None:
    for env in (
        PrivateReward(Open(shows), PRIVATE),
        PrivateReward(SyncVectorEnv([lambda: Open(shows)]), PRIVATE),
        PrivateReward.of(Open(shows), SupBall(0.01), BUDGET, rewards=9),
    ):
        assert said(env.certificate) == (False, ", which could not be checked.")


def test_an_honest_environment_says_that_it_was_checked() -> None:
    for env in (
        PrivateReward(Offers(), PRIVATE),
        PrivateReward(TimeLimit(Offers(), 5), PRIVATE, on="state"),
        PrivateReward(SyncVectorEnv([Offers, Offers], autoreset_mode="SameStep"), PRIVATE),
        PrivateReward(SyncVectorEnv([Offers, Offers], autoreset_mode="Disabled"), PRIVATE),
        PrivateReward.of(Offers(), LipschitzBall(0.01, 0.04), BUDGET),
    ):
        assert said(env.certificate) == (False, ": checked on 300 steps under other rewards.")
    assert PRIVATE.certificate.assumptions == PrivateReward(Offers(), PRIVATE).certificate.assumptions[:-1]


def test_what_info_may_not_pass_need_not_be_the_same() -> None:
    assert "checked" in said(PrivateReward(Offers("a key of info"), PRIVATE).certificate)[1]


def test_the_environment_is_left_as_it_was() -> None:
    env, twin = Offers(), Offers()
    for one in (env, twin):
        one.reset(seed=3)
    PrivateReward(env, PRIVATE)
    assert [env.step(1)[:2] for _ in range(5)] == [twin.step(1)[:2] for _ in range(5)]


def test_quietq_s_own_worlds_hold_by_construction() -> None:
    for world in WORLDS.values():
        env = gymnasium.make(world.gymnasium_id)
        one = independence(env)
        assert one.enforced, world
    walk = PrivateReward(gymnasium.make("quietq/Walk-v0"), PRIVATE)
    assert said(walk.certificate) == (True, ": a step of quietq's own worlds is not shown it.")
    assert said(PrivateReward(WorldEnv(WALK), PRIVATE).certificate)[0]
    assert said(PrivateReward(SyncVectorEnv([lambda: gymnasium.make("quietq/Walk-v0")] * 2), PRIVATE).certificate)[0]
    assert said(PrivateReward.of(gymnasium.make("quietq/Walk-v0"), SupBall(0.01), BUDGET, rewards=9).certificate)[0]


class Early(gymnasium.Wrapper):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated or float(reward) > 0.4, truncated, info


class EarlyEnv(WorldEnv):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or reward > 0.4, truncated, info


class EarlyWorld(WalkWorld):
    def move(self, state: Any, action: Any, draws: Any, xp: Any) -> Any:
        after, _ = super().move(state, action, draws, xp)
        return after, self.reward(after, xp) > 0.4


def test_what_is_put_around_or_made_of_a_world_of_quietq_is_not_taken_for_one() -> None:
    patched = WorldEnv(WALK)
    whole = patched.step
    patched.step = lambda action: (*(seen := whole(action))[:2], seen[1] > 0.4, *seen[3:])  # type: ignore[method-assign]
    for env in (Early(gymnasium.make("quietq/Walk-v0")), EarlyEnv(WALK), WorldEnv(EarlyWorld())):
        with pytest.raises(InvalidInput, match="ends of episodes depend on its own reward"):
            PrivateReward(env, PRIVATE)
    with pytest.raises(InvalidInput, match="With another reward, the environment failed"):
        PrivateReward(patched, PRIVATE)


def test_chance_that_no_seed_reaches_is_not_taken_for_a_cheat() -> None:
    class Chance(Offers):
        def step(self, action: Any) -> Any:
            self.at = float(np.random.default_rng().random())
            return super().step(action)

        def with_reward(self, reward: Any) -> "Chance":
            return Chance(self.shows, reward)

    assert said(PrivateReward(Chance(), PRIVATE).certificate) == (False, ", which could not be checked.")


def test_a_way_that_does_not_work_is_named_and_shows_nothing_private() -> None:
    class Broken(Offers):
        def with_reward(self, reward: Any) -> Any:
            raise KeyError(12345.678)

    class Itself(Offers):
        def with_reward(self, reward: Any) -> Any:
            self._reward = reward
            return self

    class Fails(Offers):
        def with_reward(self, reward: Any) -> Any:
            return Fails(self.shows, None)

    for env, sentence in (
        (Broken(), "failed with KeyError"),
        (Itself(), "must return another environment"),
        (Fails(), "With another reward, the environment failed with TypeError"),
    ):
        with pytest.raises(InvalidInput, match=sentence) as one:
            PrivateReward(env, PRIVATE)
        assert "12345" not in str(one.value)
        assert one.value.__cause__ is one.value.__context__ is None


def test_a_slow_environment_is_checked_for_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quietq.worlds.independence.PATIENCE", 0.0)
    assert said(PrivateReward(Offers(), PRIVATE).certificate) == (False, ", which could not be checked.")


def test_accounts_are_named_by_an_environment_s_own_reward() -> None:
    make = lambda **more: PrivateReward.of(Open(), SupBall(0.01), BUDGET, rewards=9, **more)  # noqa: E731
    assert make().certificate.assumptions[-1].text == "No account was given: other releases of the same data add up."
    last = make(account=Accountant(BUDGET)).certificate.assumptions[-1]
    assert (last.text, last.enforced) == ("The release was charged to an Accountant in memory before the draw.", True)


def test_a_reward_that_reaches_into_the_world_is_not_taken_for_one_of_quietq() -> None:
    """A step of quietq's own worlds is not shown the reward; but a function of the caller's own can write anywhere."""

    def reaching(states: np.ndarray) -> np.ndarray:
        env._state[:] = 0.1  # and with it what is observed next
        return np.full(len(states), 0.2)

    env = WorldEnv(WALK)
    env.reward = reaching
    assert not independence(env).enforced
    observed = WorldEnv(WALK)
    observed._observation = lambda: np.zeros(1, np.float32)  # type: ignore[method-assign]
    moved = WorldEnv(WalkWorld())
    object.__setattr__(moved.world, "move", WALK.move)
    for patched in (observed, moved):
        assert not independence(patched).enforced
    assert independence(WorldEnv(WALK)).enforced
    assert independence(WorldEnv(WALK, PRIVATE)).enforced
