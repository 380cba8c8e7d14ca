"""Landers whose logs are cut at the first contact, and what a plan of the private world reaches in the real one.

A thousand synthetic pilots fly Gymnasium's LunarLander, from no skill to much. A contact is not smooth, so rows are cut
where a leg touches, and what is public about it is declared: that it ends an episode, and what it is worth. Positions
follow speeds by the time of a step, so only speeds are learned.

    pip install 'gymnasium[box2d]'
    python -m examples.lander
"""

from collections.abc import Callable

import gymnasium
import numpy as np
import polars as pl
from gymnasium.envs.box2d.lunar_lander import heuristic

import quietq as qq
from quietq.released.private_network import PrivatePolicy

NAMES = ["x", "y", "speed x", "speed y", "angle", "turn"]
AFTER = [f"next {name}" for name in NAMES]


def flights(pilots: int = 1000, seed: int = 0) -> pl.DataFrame:
    """What pilots logged, up to the first contact: this stands for your own rows."""
    lander, rng, rows = gymnasium.make("LunarLander-v3"), np.random.default_rng(seed), []
    for pilot in range(pilots):
        state, skill = lander.reset(seed=pilots * seed + pilot)[0], rng.random()
        for step in range(400):
            action = heuristic(lander.unwrapped, state) if rng.random() < skill else int(rng.integers(4))
            after, _, over, _, _ = lander.step(action)
            if over or after[6:].any():  # a leg touches
                break
            rows.append((pilot, step, *state[:6], *after[:6], action))
            state = after
    return pl.DataFrame(rows, ["pilot", "step", *NAMES, *AFTER, "engine"], orient="row")


def closeness(state: np.ndarray) -> np.ndarray:
    """Gymnasium's own formula, whose differences are the reward of a step."""
    place, speed = np.hypot(state[..., 0], state[..., 1]), np.hypot(state[..., 2], state[..., 3])
    return -100 * (place + speed + abs(state[..., 4]))


def down(after: np.ndarray) -> np.ndarray:
    """The lander touches the ground, or has left the picture."""
    return (after[..., 1] <= 0) | (abs(after[..., 0]) >= 1)


def reward(state: np.ndarray, action: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The change of closeness, less fuel; touching the ground is worth 120 if it is soft, else -100."""
    soft = (abs(after[..., [0, 2, 3, 4]]) < [0.3, 0.4, 0.4, 0.35]).all(axis=-1)
    fuel = np.array([0, 0.03, 0.3, 0.03])[action]
    return closeness(after) - closeness(state) - fuel + down(after) * np.where(soft, 120, -100)


def place_by_speed(place: int, speed: int, factor: float) -> Callable[..., np.ndarray]:
    """A position after a step of 1/50 s, in the environment's units."""
    return lambda state, action, after: state[..., place] + factor * after[..., speed]


def declared() -> qq.WorldModel:
    """What is public about landing."""
    moves = {0: place_by_speed(0, 2, 0.01), 1: place_by_speed(1, 3, 0.0225), 4: place_by_speed(4, 5, 0.05)}
    return qq.WorldModel(reward=reward, end=down, moves=moves)


def read(rows: pl.DataFrame, pilots: int = 1000) -> qq.Sessions:
    """What so many pilots logged, as sessions."""
    return qq.Sessions.read(
        rows, person="pilot", step="step", state=NAMES, next_state=AFTER, action="engine", actions=range(4),
        box=[(-1, 1), (-0.1, 1.6), (-2, 2), (-2, 1), (-3.2, 3.2), (-5, 5)], people=pilots,
    )  # fmt: skip


def plan(simulate: int | None = None) -> PrivatePolicy:
    """The plan of one private world of these pilots."""
    budget = qq.Budget(epsilon=1, delta=1e-5)
    return qq.plan_linear(qq.privatise(read(flights()), budget, world=declared(), simulate=simulate))


def returns(act: Callable[[np.ndarray], np.ndarray], episodes: int = 50) -> list[float]:
    """What it reaches in the real environment, which is not private."""
    lander, found = gymnasium.make("LunarLander-v3"), []
    for episode in range(episodes):
        state, over, total = lander.reset(seed=10_000 + episode)[0], False, 0.0
        while not over:
            state, gained, ended, cut, _ = lander.step(int(act(state[None, :6])[0]))
            total, over = total + float(gained), ended or cut
        found.append(total)
    return found


if __name__ == "__main__":
    policy = plan()
    print(f"Mean return: {np.mean(returns(lambda states: policy.predict(states)[0])):.0f}")
