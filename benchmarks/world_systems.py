"""A system that settings of private worlds were fixed on, and that is not reported with targets.

A cart with a pole of other masses, lengths, forces and ends than Gymnasium's, simulated for many people at once.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

import quietq as qq


@dataclass(frozen=True)
class Cart:
    """Another cart with a pole, which ends where the pole leans too far or the cart is too far out."""

    gravity: float = 7.5
    cart: float = 1.4
    pole: float = 0.2
    half_length: float = 0.7
    force: float = 9.0
    tick: float = 0.025
    lean: float = 0.3
    side: float = 3.0
    box = ((-3.2, 3.2), (-5.0, 5.0), (-0.42, 0.42), (-4.5, 4.5))
    steps: int = 400

    def move(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        x, speed, angle, turn = states.T
        push, total = np.where(actions > 0, self.force, -self.force), self.cart + self.pole
        cos, sin = np.cos(angle), np.sin(angle)
        middle = (push + self.pole * self.half_length * turn**2 * sin) / total
        bend = (self.gravity * sin - cos * middle) / (self.half_length * (4 / 3 - self.pole * cos**2 / total))
        faster = middle - self.pole * self.half_length * bend * cos / total
        return np.stack([x + self.tick * speed, speed + self.tick * faster, angle + self.tick * turn,
                         turn + self.tick * bend], axis=1)  # fmt: skip

    def ended(self, states: np.ndarray) -> np.ndarray:
        return (abs(states[:, 0]) > self.side) | (abs(states[:, 2]) > self.lean)

    def collect(self, people: int, seed: int, most: int = 100) -> pl.DataFrame:
        rng = np.random.default_rng(seed)
        states, alive, frames = rng.uniform(-0.08, 0.08, (people, 4)), np.ones(people, bool), []
        for step in range(most):
            who = np.flatnonzero(alive)
            actions = rng.integers(0, 2, len(who))
            after = self.move(states[who], actions)
            ended = self.ended(after)
            columns = {
                f"{side}{i}": values[:, i] for side, values in (("s", states[who]), ("n", after)) for i in range(4)
            }
            frames.append(pl.DataFrame({"who": who, "step": np.full(len(who), step), **columns, "a0": actions,
                                        "reward": np.ones(len(who)), "end": ended.astype(int)}))  # fmt: skip
            states[who], alive[who] = after, ~ended
            if not alive.any():
                break
        return pl.concat(frames)

    def read(self, rows: pl.DataFrame, people: int) -> qq.Sessions:
        return qq.Sessions.read(
            rows, person="who", step="step", state=[f"s{i}" for i in range(4)], next_state=[f"n{i}" for i in range(4)],
            action="a0", actions=[0, 1], reward="reward", end="end", box=self.box, people=people,
        )  # fmt: skip

    def play(self, policy, episodes: int, seed: int) -> float:
        states = np.random.default_rng(seed).uniform(-0.08, 0.08, (episodes, 4))
        alive, returns = np.ones(episodes, bool), np.zeros(episodes)
        for _ in range(self.steps):
            states = self.move(states, policy(states))
            returns += alive
            alive &= ~self.ended(states)
        return float(returns.mean())
