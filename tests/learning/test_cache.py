"""What is kept on disk of compiled programs: none that may hold a private number."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from jax._src.compilation_cache import decompress_executable

SECRETS = [0.1234567 + 0.0111111 * i for i in range(9)]
PROGRAM = """
import functools, sys
import jax, jax.numpy as jnp, numpy as np
from quietq import Agent, Budget, SupBall
from quietq.learning.output import OutputNoise

SECRETS = {secrets}
a, b, c, d, e, f, g, h, i = SECRETS
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

relation, budget = SupBall(0.1), Budget(0.9, 1e-4)

def train(reward):
    agent = Agent("walk", OutputNoise(relation=relation, budget=budget, knots=2), reward=reward)
    agent.learn(2, callback=lambda event: None)
    if reward is not None:
        agent.evaluate()

kind = sys.argv[1]
if kind == "public":
    train(None)
elif kind == "own":
    train(own)
else:
    train(None)
    train(own)
    jax.jit(own)(jnp.ones(3)).block_until_ready()
"""


def kept(folder: Path, kind: str, **environment: str) -> list[bytes]:
    """All bytes of programs that were kept, each as it was before it was compressed."""
    settings = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "QUIETQ_CACHE": str(folder), **environment}
    command = [sys.executable, "-c", PROGRAM.format(secrets=SECRETS), kind]
    subprocess.run(command, check=True, env=os.environ | settings, timeout=240, capture_output=True)
    return [
        decompress_executable(file.read_bytes()) if file.name.endswith("-cache") else file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    ]


def secrets_in(blobs: list[bytes]) -> list[float]:
    forms = {
        secret: [np.float32(secret).tobytes(), np.float64(secret).tobytes(), str(secret).encode()] for secret in SECRETS
    }
    return [secret for secret, looks in forms.items() if any(look in blob for look in looks for blob in blobs)]


def test_a_reward_of_ones_own_is_in_no_program_on_disk(tmp_path: Path) -> None:
    blobs = kept(tmp_path, "both")
    assert blobs  # of the public world
    assert secrets_in(blobs) == []


@pytest.mark.slow
def test_nor_in_a_cache_that_the_caller_set_up(tmp_path: Path) -> None:
    assert kept(tmp_path, "public", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "own"))
    assert secrets_in(kept(tmp_path / "other", "own", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "other" / "own"))) == []
