"""States outside the reward's box, and observations that are no places at all."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector import SyncVectorEnv

from quietq import Budget, GaussianProcessMechanism, InvalidInput, LipschitzBall, SupBall, people
from quietq.worlds import PrivateReward

BUDGET = Budget(0.9, 1e-4)
PRIVATE = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), BUDGET).apply(lambda s: 0.5 - abs(s - 0.5))
ADVICE = r"outside the reward's box \[0, 1\]: give outside='clip' to take the nearest state of the box, or release"


class Rows(gymnasium.Env):
    """Shows these observations one after the other."""

    action_space = Discrete(2)

    def __init__(self, rows: Any, space: Any = None) -> None:
        self.rows, self.t = rows, 0
        self.observation_space = Box(-np.inf, np.inf, np.shape(rows[0]), np.float64) if space is None else space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return np.asarray(self.rows[0], self.observation_space.dtype), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return np.asarray(self.rows[self.t % len(self.rows)], self.observation_space.dtype), 9.0, False, False, {}


WAY = [[0.5], [1.25], [-7.0], [np.inf], [0.25]]
ENDS = [1.0, 0.0, 1.0, 0.25, 0.5]
"""Where the states after the first are, by the nearest state of the box."""


def test_the_first_state_outside_is_refused_with_advice_that_works() -> None:
    env = PrivateReward(Rows(WAY), PRIVATE)
    env.reset()
    with pytest.raises(InvalidInput, match=rf"A state has the value 1\.25, {ADVICE}"):
        env.step(0)
    clipped = PrivateReward(Rows(WAY), PRIVATE, outside="clip")
    clipped.reset()
    assert [clipped.step(0)[1] for _ in ENDS] == [PRIVATE(end) for end in ENDS]
    wide = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), BUDGET, domain=(-10, 10)).apply(lambda s: 0 * s)
    larger = PrivateReward(Rows([[0.5], [1.25], [-7.0]]), wide)
    larger.reset()
    assert [larger.step(0)[1] for _ in range(3)] == [wide(s) for s in (1.25, -7.0, 0.5)]


def test_on_the_state_before_too() -> None:
    env = PrivateReward(Rows(WAY[1:]), PRIVATE, on="state")
    env.reset()
    with pytest.raises(InvalidInput, match=ADVICE):
        env.step(0)
    env = PrivateReward(Rows(WAY[1:]), PRIVATE, on="state", outside="clip")
    env.reset()
    assert env.step(0)[1] == PRIVATE(1.0)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1000.1, 1000.7)])
def test_the_ends_of_a_box_in_float32(low: float, high: float) -> None:
    """1000.7 in float32 lies outside by far more than a millionth of the width."""
    mechanism = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), BUDGET, domain=(low, high))
    private = mechanism.apply(lambda s: 0 * s)
    ends = [np.nextafter(np.float32(low), np.float32(-1)), np.nextafter(np.float32(high), np.float32(2000))]
    rows = Rows([[end] for end in ends], Box(ends[0], ends[1], (1,), np.float32))
    for one in (rows, SyncVectorEnv([lambda: rows])):
        env: Any = PrivateReward(one, private)
        env.reset()
        assert [np.ravel(env.step(env.action_space.sample())[1])[0] for _ in ends] == [private(high), private(low)]


@pytest.mark.parametrize(
    ("space", "state", "sentence"),
    [
        (Box(0, 1, (3,)), None, "A state has 3 numbers, but the reward's box has 1"),
        (Box(0, 1, (3,)), (0, 1), "A state has 2 numbers"),
        (Box(0, 1, (3,)), 3, "state 3 does not give one state"),
        (Box(0, 1, (3,)), lambda batch: batch[:, :2], "A state has 2 numbers"),
        (Dict({"a": Box(0, 1, (1,))}), None, "The observations have parts"),
        (Dict({"a": Box(0, 1, (2,))}), lambda batch: batch["a"], "A state has 2 numbers"),
    ],
)
def test_states_that_do_not_fit_are_found_before_the_first_step(space: Any, state: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        PrivateReward(Rows([[0.5]], space), PRIVATE, state=state)


def test_a_function_that_takes_no_blank_observation_is_asked_later() -> None:
    places = {0.5: 0.25, 0.75: 1.0}
    env = PrivateReward(Rows([[0.5], [0.75]]), PRIVATE, state=lambda batch: [places[float(one[0])] for one in batch])
    env.reset()
    assert env.step(0)[1] == PRIVATE(1.0)


def test_vector_environments() -> None:
    for outside in ("refuse", "clip"):
        env = PrivateReward(SyncVectorEnv([lambda: Rows(WAY), lambda: Rows([[0.5]])]), PRIVATE, outside=outside)  # type: ignore[arg-type]
        env.reset()
        if outside == "refuse":
            with pytest.raises(InvalidInput, match=ADVICE):
                env.step(np.array([0, 0]))
            continue
        for end in ENDS:
            assert env.step(np.array([0, 0]))[1].tolist() == [PRIVATE(end), PRIVATE(0.5)]


def test_what_is_no_number_is_refused_either_way() -> None:
    for outside in ("refuse", "clip"):
        env = PrivateReward(Rows([[0.5], [np.nan]]), PRIVATE, outside=outside)  # type: ignore[arg-type]
        env.reset()
        with pytest.raises(InvalidInput, match="value nan, outside the reward's box"):
            env.step(0)


def test_an_environment_can_be_made_again_with_its_choice() -> None:
    env = PrivateReward(gymnasium.make("quietq.worlds:quietq/Walk-v0"), PRIVATE, outside="clip")
    assert env.spec is not None
    assert env.spec.additional_wrappers[-1].kwargs["outside"] == "clip"  # type: ignore[index]


def test_an_environment_s_own_reward_is_never_moved_into_the_box() -> None:
    """The reward of a state outside, taken for that of the end of the box, could be as steep as one likes there."""
    ball = LipschitzBall(0.01, 0.04)
    env = PrivateReward.of(Rows([[0.5], [1.25]]), ball, BUDGET, box=(0, 1))
    env.reset()
    with pytest.raises(InvalidInput, match=r"value 1\.25.*: give a `box` that all states lie in, and a relation whose"):
        env.step(0)
    with pytest.raises(TypeError):
        PrivateReward.of(Rows([[0.5]]), ball, BUDGET, box=(0, 1), outside="clip")  # type: ignore[call-arg]
    wide = PrivateReward.of(Rows([[0.5], [1.25]]), LipschitzBall(0.01, 0.08), BUDGET, box=(0, 2))
    wide.reset()
    assert np.isfinite(wide.step(0)[1])


@pytest.mark.parametrize(
    ("space", "rows"),
    [
        (Discrete(16), [0, 15, 3]),
        (MultiDiscrete([4, 4]), [[0, 3], [3, 1], [2, 2]]),
        (MultiBinary(2), [[0, 1], [1, 1], [1, 0]]),
    ],
    ids=["Discrete", "MultiDiscrete", "MultiBinary"],
)
def test_categories_are_refused_unless_a_function_says_where_they_lie(space: Any, rows: Any) -> None:
    places = np.linspace(0, 1, 16)
    make = lambda: Rows(rows, space)  # noqa: E731
    for state in (None, 0, [0]):
        for wrap in (
            lambda state=state: PrivateReward(make(), PRIVATE, state=state),
            lambda state=state: PrivateReward(SyncVectorEnv([make]), PRIVATE, state=state),
            lambda state=state: PrivateReward.of(make(), LipschitzBall(0.01, 0.04), BUDGET, box=(0, 1), state=state),
        ):
            with pytest.raises(InvalidInput, match="names of categories and not places in the reward's box: give as"):
                wrap()

    def place(batch: Any) -> Any:
        return places[batch.reshape(len(batch), -1)[:, 0]]

    for env, action in (
        (PrivateReward(make(), PRIVATE, state=place), 0),
        (PrivateReward(SyncVectorEnv([make]), PRIVATE, state=place), np.array([0])),
    ):
        env.reset()
        assert env.step(action)[1] == PRIVATE(places[np.ravel(rows[1])[0]])
    own = PrivateReward.of(make(), LipschitzBall(0.01, 0.04), BUDGET, box=(0, 1), state=place)
    own.reset()
    assert np.isfinite(own.step(0)[1])
    PrivateReward.of(make(), SupBall(0.01), BUDGET, rewards=9)  # which does not ask where


def test_the_advice_for_categories_as_it_stands() -> None:
    places = np.arange(16) / 15
    env = PrivateReward(gymnasium.make("FrozenLake-v1"), PRIVATE, state=lambda batch: places[batch])
    env.reset(seed=0)
    observation, reward, *_ = env.step(1)
    assert reward == PRIVATE(observation / 15)


def test_the_choice_is_one_of_two() -> None:
    for outside in ("Clip", None, 1, True):
        with pytest.raises(Exception, match="outside"):
            PrivateReward(Rows(WAY), PRIVATE, outside=outside)  # type: ignore[arg-type]
