import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import Autoreset, NormalizeReward, RecordEpisodeStatistics, TimeLimit, vector as vector_wrappers

import quietq.worlds
from quietq.mechanisms import GaussianProcessMechanism
from quietq.privacy import Budget, Exponential, InvalidInput, people
from quietq.released import PrivateFunction
from quietq.worlds.private_reward import PrivateEnv, PrivateReward, PrivateVectorEnv
from quietq.worlds.reader import Reader

SENTINEL = 12345.678
BUDGET = Budget(0.9, 1e-4)


def private_function(actions: int = 1, seed: int = 0) -> PrivateFunction:
    mechanism = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1, actions), BUDGET, levels=10)
    one = lambda s: 0.5 - abs(s - 0.5)  # noqa: E731
    return mechanism.simulate(one if actions == 1 else lambda s: np.stack([one(s), 1 - one(s)], axis=-1), seed)


class Spy(gymnasium.Env):
    """Moves by known steps through [0, 1], ends after `length`, and tells its own reward wherever it can."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, length: int = 3, start: float = 0.1) -> None:
        self.observation_space = Box(0.0, 1.0, (1,), np.float32)
        self.action_space = Discrete(2)
        self.length, self.start, self.t = length, start, 0

    def _observation(self) -> np.ndarray:
        return np.array([self.start + 0.05 * self.t], np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.t = 0
        return self._observation(), {"reward": SENTINEL, "note": "public"}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.t += 1
        told = {"raw_reward": SENTINEL, "episode": {"r": SENTINEL}, "final_info": {"r": SENTINEL}, "note": "public"}
        return self._observation(), SENTINEL, self.t >= self.length, False, told


PRIVATE = private_function()


def value(state: object) -> np.ndarray:
    return PRIVATE(np.asarray(state, dtype=np.float64))


def test_reward_of_the_next_state_the_state_and_the_action() -> None:
    both = private_function(actions=2)
    for on, private in (("next-state", PRIVATE), ("state", PRIVATE), ("state-action", both)):
        env = PrivateReward(Spy(), private, on=on)
        before, _ = env.reset()
        for action in (1, 0, 1):
            after, reward, *_ = env.step(action)
            at = (after if on == "next-state" else before).astype(np.float64)[0]
            assert reward == (both(at)[action] if on == "state-action" else value(at))
            assert isinstance(reward, float)
            before = after
    assert env.certificate is both.certificate
    assert isinstance(env, PrivateReward)
    assert isinstance(env, PrivateEnv)


def contents(thing: object, seen: set[int]) -> list[object]:
    """Everything reachable from a thing without entering an environment."""
    if id(thing) in seen or (isinstance(thing, gymnasium.Env) and not isinstance(thing, PrivateReward)):
        return []
    seen.add(id(thing))
    inner: list[object] = list(getattr(thing, "__dict__", {}).values())
    if isinstance(thing, dict):
        inner += [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        inner += list(thing)
    elif isinstance(thing, np.ndarray):
        inner += thing.ravel().tolist()
    return [thing, *(item for part in inner for item in contents(part, seen))]


def test_the_own_reward_is_nowhere() -> None:
    env = PrivateReward(Spy(), PRIVATE)
    outputs: list[object] = [env.reset()]
    for _ in range(3):
        outputs.append(env.step(0))
        assert SENTINEL not in [x for x in contents([outputs, env], set()) if isinstance(x, float)]
    assert outputs[-1][-1] == {"final_info": {}}  # pyright: ignore[reportIndexIssue]
    bytes_of_sentinel = np.float64(SENTINEL).tobytes()
    env.env = None  # pyright: ignore[reportAttributeAccessIssue]
    data = pickle.dumps(env)
    assert bytes_of_sentinel not in data
    assert bytes_of_sentinel[::-1] not in data


def test_no_info_of_the_environment_passes() -> None:
    env = PrivateReward(Spy(), PRIVATE)
    assert env.reset()[1] == {}
    assert env.step(0)[4] == {"final_info": {}}


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("on", ["next-state", "state"])
def test_vector_environments_in_each_mode(mode: AutoresetMode, on: str) -> None:
    lengths, starts = (2, 3), (0.1, 0.5)
    spies = [lambda n=n, s=s: Spy(n, s) for n, s in zip(lengths, starts, strict=True)]
    env = PrivateReward(SyncVectorEnv(spies, autoreset_mode=mode, copy=False), PRIVATE, on=on)
    assert isinstance(env, PrivateVectorEnv)
    single = [PrivateReward(spy(), PRIVATE, on=on) for spy in spies]
    first, info = env.reset(seed=1)
    assert info == {}
    for one, observation in zip(single, first, strict=True):
        assert one.reset()[0] == observation
    over = [False, False]
    for _ in range(9):
        observations, rewards, terminated, _, info = env.step(np.array([0, 1]))
        assert SENTINEL not in [x for x in contents([rewards, info], set()) if isinstance(x, float)]
        for i, one in enumerate(single):
            if over[i] and mode is AutoresetMode.NEXT_STEP:
                observation, reward, over[i] = one.reset()[0], 0.0, False
            else:
                observation, reward, over[i], _, _ = one.step(0)
                if over[i] and mode is AutoresetMode.SAME_STEP:
                    assert info["final_obs"][i] == observation
                    observation = one.reset()[0]
            assert (observations[i], rewards[i]) == (observation, reward)
            assert terminated[i] == (over[i])
        if any(over) and mode is AutoresetMode.DISABLED:
            mask = np.array(over)
            env.reset(options={"reset_mask": mask})
            for i in np.flatnonzero(mask):
                single[i].reset()
                over[i] = False


def test_a_masked_reset_keeps_the_others_pending() -> None:
    env = PrivateReward(SyncVectorEnv([lambda: Spy(1, 0.1), lambda: Spy(1, 0.5)]), PRIVATE)
    env.reset()
    env.step(np.array([0, 0]))
    env.reset(options={"reset_mask": np.array([True, False])})
    _, rewards, *_ = env.step(np.array([0, 0]))
    assert rewards[1] == 0.0
    assert rewards[0] == value(np.float32(0.15))


def test_resets_by_themselves_are_refused_underneath_and_fine_on_top() -> None:
    with pytest.raises(InvalidInput, match="Autoreset lies underneath PrivateReward, where it hides"):
        PrivateReward(Autoreset(Spy(1)), PRIVATE)
    env = Autoreset(PrivateReward(Spy(1), PRIVATE))
    env.reset()
    rewards = [env.step(0)[1] for _ in range(4)]
    assert rewards == [value(np.float32(0.15)), 0.0] * 2


def test_recorders_underneath_are_refused_and_on_top_are_fine() -> None:
    for recorder in (RecordEpisodeStatistics, NormalizeReward):
        for below in (recorder(Spy()), TimeLimit(recorder(Spy()), 5)):
            with pytest.raises(InvalidInput, match=f"put it on top, as {recorder.__name__}"):
                PrivateReward(below, PRIVATE)
        with pytest.raises(InvalidInput, match="put it on top"):
            PrivateReward(SyncVectorEnv([lambda r=recorder: r(Spy())]), PRIVATE)
    for recorder in (vector_wrappers.RecordEpisodeStatistics, vector_wrappers.NormalizeReward):
        with pytest.raises(InvalidInput, match="put it on top"):
            PrivateReward(recorder(SyncVectorEnv([Spy])), PRIVATE)

    class Mine(RecordEpisodeStatistics):
        pass

    with pytest.raises(InvalidInput, match="RecordEpisodeStatistics lies underneath"):
        PrivateReward(Mine(Spy()), PRIVATE)
    env = RecordEpisodeStatistics(PrivateReward(Spy(), PRIVATE))
    PrivateReward(env, PRIVATE)  # what it records is private already
    env.reset()
    total = sum(float(env.step(0)[1]) for _ in range(2))
    *_, info = env.step(0)
    assert info["episode"]["r"] == pytest.approx(total + value(np.float32(0.25)))


def test_states_by_index_function_and_shape() -> None:
    class Wide(Spy):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = Box(-9.0, 9.0, (2, 2), np.float32)

        def _observation(self) -> np.ndarray:
            return np.array([[7, 0.25], [0.5, -7]], np.float32)

    class Parts(Spy):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = Dict({"at": Box(0.0, 1.0, (1,), np.float32), "kind": Discrete(3)})

        def _observation(self) -> Any:
            return {"at": np.array([0.25], np.float32), "kind": 1}

    for env, state, expected in (
        (Wide(), 1, 0.25),
        (Wide(), [2], 0.5),
        (Wide(), lambda batch: batch[:, 1, 0], 0.5),
        (Parts(), lambda batch: batch["at"], 0.25),
    ):
        wrapped = PrivateReward(env, PRIVATE, state=state)
        wrapped.reset()
        assert wrapped.step(0)[1] == value(expected)
    parts = PrivateReward(
        SyncVectorEnv([Parts, Parts], autoreset_mode="SameStep"), PRIVATE, state=lambda batch: batch["at"]
    )
    parts.reset()
    assert [parts.step(np.array([0, 0]))[1].tolist() for _ in range(3)] == [[value(0.25)] * 2] * 3

    mechanism = GaussianProcessMechanism(Exponential((1.0, 1.0)), 1.0, BUDGET, domain=[(0, 1), (0, 1)], levels=4)
    plane = mechanism.simulate(lambda s: s.sum(axis=-1), seed=1)
    wrapped = PrivateReward(Wide(), plane, state=(1, 2))
    wrapped.reset()
    assert wrapped.step(0)[1] == plane([0.25, 0.5])

    for env, state, sentence in (
        (Wide(), None, "A state has 4 numbers, but the reward's box has 1"),
        (Wide(), 9, "does not give one state"),
        (Parts(), None, "The observations have parts"),
        (Wide(), lambda batch: [1, 2, 3], "A state has 3 numbers"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            PrivateReward(env, PRIVATE, state=state).reset()


def test_a_hair_outside_the_box_is_clipped_and_more_is_refused() -> None:
    for start, fine in ((0.95 + 9e-7, True), (0.95 + 5e-6, False), (-0.05 - 9e-7, True), (float("nan"), False)):
        env = PrivateReward(Spy(start=start), PRIVATE)
        env.reset()
        if fine:
            assert env.step(0)[1] == value(np.clip(start + 0.05, 0, 1))
        else:
            with pytest.raises(InvalidInput, match=r"A state has the value (1\.00000|nan).*, outside the reward's box"):
                env.step(0)


def test_what_does_not_fit_is_refused() -> None:
    both = private_function(actions=2)
    with pytest.raises(InvalidInput, match="on must be one of"):
        PrivateReward(Spy(), PRIVATE, on="reward")
    with pytest.raises(InvalidInput, match="use on='state-action'"):
        PrivateReward(Spy(), both)
    with pytest.raises(InvalidInput, match="one output per action"):
        PrivateReward(Spy(), PRIVATE, on="state-action")
    three = Spy()
    three.action_space = Discrete(3)
    with pytest.raises(InvalidInput, match="2 outputs must be one for each"):
        PrivateReward(three, both, on="state-action")
    with pytest.raises(InvalidInput, match="env must be a Gymnasium environment"):
        PrivateReward("CartPole-v1", PRIVATE)  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(gymnasium.error.ResetNeeded):
        PrivateReward(Spy(), PRIVATE, on="state").step(0)
    vector = SyncVectorEnv([Spy])
    del vector.metadata["autoreset_mode"]
    with pytest.raises(InvalidInput, match="autoreset_mode"):
        PrivateReward(vector, PRIVATE)


def test_actions_that_do_not_start_at_zero() -> None:
    both, spy = private_function(actions=2), Spy()
    spy.action_space = Discrete(2, start=5)
    env = PrivateReward(spy, both, on="state-action")
    env.reset()
    assert env.step(6)[1] == both(float(np.float32(0.1)))[1]


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_passes_the_environment_checker_and_can_be_made_again() -> None:
    assert quietq.worlds
    env = PrivateReward(gymnasium.make("quietq.worlds:quietq/Walk-v0"), PRIVATE)
    check_env(env)
    assert env.spec is not None
    again = gymnasium.make(env.spec)
    assert isinstance(again, PrivateEnv)
    assert again.reset(seed=3)[0] == env.reset(seed=3)[0]
    assert again.step(1)[1] == env.step(1)[1]


def test_pickles_and_copies() -> None:
    env = PrivateReward(gymnasium.make("quietq.worlds:quietq/Walk-v0"), PRIVATE)
    env.reset(seed=3)
    copies = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]  # cloudpickle: see test_libraries
    rewards = [other.step(1)[1] for other in [env, *copies]]
    assert rewards == rewards[:1] * 3


def test_actions_that_are_none_are_refused() -> None:
    both, states = private_function(actions=2), np.random.default_rng(0).uniform(size=(10, 1))
    reader = Reader(both, "state-action", None, "refuse", Discrete(2), Box(0.0, 1.0, (1,)))
    actions = np.arange(10) % 2
    assert np.array_equal(reader.rewards(states, None, actions), both(states[:, 0])[np.arange(10), actions])
    for wrong in (actions + 1, actions[:-1]):
        with pytest.raises(InvalidInput, match="actions must be one of 2"):
            reader.rewards(states, None, wrong)
