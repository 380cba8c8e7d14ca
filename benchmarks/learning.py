"""Training, against Stable-Baselines3 (PyTorch) with the same network, batch, replay and update frequency."""

import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import stable_baselines3
import torch

import quietq as qq
from benchmarks.measuring import Row
from quietq import paper
from quietq.noise.entropy import SeededEntropy
from quietq.paper.agents import Method, trainer
from quietq.paper.agents.gymnasium_loop import loop
from quietq.paper.agents.jax_world import as_jax, stack, world_reward
from quietq.worlds import WALK, walk_reward

LEVELS, SEEDS, STEPS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), 10, 5000
SPACES = trainer.spaces_of(WALK)
BUDGET, FIFTY = qq.Budget(0.9, 1e-4), qq.people(50, low=0, high=0.5, slope=1)


def rows() -> list[Row]:
    """Everything in one run: first the peer, then ours, then the peer again, and the mean of the two."""
    peer = _peer(1500)
    compilation, sixty = _sixty_runs()
    looped = _loop_seconds_a_step()
    again = _peer(1500)
    peer = (peer + again) / 2
    return [
        Row(
            "60 runs of the code preset, time a run over Stable-Baselines3's DQN",
            sixty / 60 / (peer * STEPS),
            "x",
            limit=1 / 25,
            aim=1 / 60,
        ),
        Row("  the same, times faster (informative)", peer * STEPS / (sixty / 60), "x"),
        Row("  all 60 runs", sixty, "s", aim=5),
        Row("  its compilation", compilation, "s", limit=20),
        Row("one run in the Gymnasium loop, time a step over Stable-Baselines3's", looped / peer, "x", limit=1 / 2),
        _reward_over_none(),
    ]


def _peer(steps: int) -> float:
    """Seconds a step of a DQN with a gradient step of 128 at every step, after a warm-up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = stable_baselines3.DQN(
            "MlpPolicy",
            gymnasium.make("quietq.worlds:quietq/Walk-v0"),
            learning_rate=1e-2,
            buffer_size=10_000,
            learning_starts=128,
            batch_size=128,
            gamma=0.999,
            train_freq=1,
            gradient_steps=1,
            target_update_interval=500,
            policy_kwargs={"net_arch": [16, 16], "optimizer_class": torch.optim.RMSprop},
            device="cpu",
        )
        model.learn(300)
        start = time.perf_counter()
        model.learn(steps, reset_num_timesteps=False)
    return (time.perf_counter() - start) / steps


def _runs() -> trainer.Runs:
    made = [paper.Published.code(sigma) for sigma in LEVELS for _ in range(SEEDS)]
    with ThreadPoolExecutor() as pool:  # as a training does
        noise = list(pool.map(lambda i: made[i].draw(SPACES, STEPS, SeededEntropy(i)), range(len(made))))
    stacked = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *noise)
    return trainer.Runs(
        jax.random.split(jax.random.key(0), len(made)), stack([world_reward(WALK)] * len(made)), stacked
    )


def _sixty_runs() -> tuple[float, float]:
    """Seconds to compile, and then to draw the noise of and train all runs."""
    method = paper.Published.code().core()

    def train() -> float:
        start = time.perf_counter()
        runs = _runs()
        carry, _ = trainer.advance(method, WALK, runs, trainer.begin(method, WALK, runs), 0, STEPS)
        jax.block_until_ready(trainer.release(method, runs, carry))
        return time.perf_counter() - start

    first, second, third = train(), train(), train()
    return first - second, min(second, third)


def _loop_seconds_a_step() -> float:
    method = paper.NoNoise(widths=(16, 16), optimiser="rmsprop-pytorch", learning_rate=1e-2, clamp=1.0, gamma=0.999)
    env = gymnasium.make("quietq.worlds:quietq/Walk-v0")
    steps = loop(method, env, 3300, trainer.Runs(jax.random.key(0), None, None))
    for _ in range(301):
        next(steps)
    start = time.perf_counter()
    for learner, _, _ in steps:
        jax.block_until_ready(learner)
    return (time.perf_counter() - start) / 3000


def _reward_over_none() -> Row:
    """Time of ten runs side by side, over that of `none` with the same learner."""
    private = [qq.privatise(walk_reward, BUDGET, relation=FIFTY, simulate=i) for i in range(10)]
    none = _seconds(paper.NoNoise(), stack([world_reward(WALK)] * 10))
    reward = _seconds(paper.RewardNoise().core(), stack([as_jax(one) for one in private]))
    return Row("reward over its non-private twin, ten runs", reward / none, "x", limit=1.1)


def _seconds(method: Method, reward: object) -> float:
    runs = trainer.Runs(jax.random.split(jax.random.key(0), 10), reward, None)

    def train() -> float:
        start = time.perf_counter()
        carry, _ = trainer.advance(method, WALK, runs, trainer.begin(method, WALK, runs), 0, STEPS)
        jax.block_until_ready(trainer.release(method, runs, carry))
        return time.perf_counter() - start

    train()
    return min(train() for _ in range(3))
