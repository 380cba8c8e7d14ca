"""Where the caller has set up JAX's cache on disk, no compiled program in it holds a private number."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import jax
import numpy as np
from jax._src.compilation_cache import decompress_executable

from quietq.paper.agents.training import programs_in_memory

KEPT_FROM = "jax_persistent_cache_min_compile_time_secs"
SECRETS = [0.1234567 + 0.0111111 * i for i in range(9)]
PROGRAM = """
import functools
import jax, jax.numpy as jnp, numpy as np
from quietq import Budget, SupBall
from quietq.paper import Agent, OutputNoise

a, b, c, d, e, f, g, h, i = {secrets}
GLOBAL = a

class Callable:
    def __init__(self, value, name):
        self.value, self.name = value, name
    def __call__(self, s):
        return self.value * jnp.tanh(s) + float(self.name) * jnp.cos(3 * s)

def defaulted(s, by=np.float64(b)):
    return by * jnp.sin(s)

def given(factor, s):
    return factor * jnp.exp(-s)

closed, scalar, array = c, np.float32(d), np.asarray(e)
attribute, part, compiled = Callable(f, str(g)), functools.partial(given, h), jax.jit(lambda s: i * jnp.log1p(s))

def own(s):
    parts = [GLOBAL * s**2, defaulted(s), closed * s**3, scalar * jnp.sqrt(s + 1), array * jnp.arctan(s)]
    return (sum(parts) + attribute(s) + part(s) + compiled(s)) / 10

agent = Agent("walk", OutputNoise(relation=SupBall(0.1), budget=Budget(0.9, 1e-4), knots=2), reward=own)
agent.learn(2)
agent.evaluate()
jax.jit(lambda x: 0.987654321 * x)(jnp.ones(3)).block_until_ready()
"""


def test_a_reward_of_ones_own_is_in_no_program_on_disk(tmp_path: Path) -> None:
    settings = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM.format(secrets=SECRETS)]
    subprocess.run(command, check=True, env=os.environ | settings, timeout=240, capture_output=True)
    blobs = [
        decompress_executable(file.read_bytes()) if file.name.endswith("-cache") else file.read_bytes()
        for file in tmp_path.rglob("*")
        if file.is_file()
    ]

    def is_kept(secret: float) -> bool:
        looks = np.float32(secret).tobytes(), np.float64(secret).tobytes(), str(secret).encode()
        return any(look in blob for look in looks for blob in blobs)

    assert is_kept(0.987654321)  # what is compiled afterwards is kept, as the caller wished
    assert not [secret for secret in SECRETS if is_kept(secret)]


def test_the_last_to_leave_puts_the_setting_back() -> None:
    usual, inside, leave = getattr(jax.config, KEPT_FROM), threading.Event(), threading.Event()

    def other() -> None:
        with programs_in_memory():
            inside.set()
            leave.wait(60)

    with programs_in_memory():
        thread = threading.Thread(target=other)
        thread.start()
        inside.wait(60)
    assert getattr(jax.config, KEPT_FROM) == 1e9  # for the other one is still there
    leave.set()
    thread.join()
    assert getattr(jax.config, KEPT_FROM) == usual
