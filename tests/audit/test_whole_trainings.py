"""Trainings with the noise that protects: exact, in whole numbers, by the branch of compiled code that adds those.

Other audits simulate, with seeds and in float32. Here each run draws as a release does, by `SystemEntropy`; its random
bytes alone come from a seed, so that a test fails only when something broke.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from broken_copies import SURE, check
from test_broken_trainings import ROUNDS, TRAINED, Conveyor, half

from quietq.noise import exact_gaussian
from quietq.noise.entropy import SystemEntropy
from quietq.noise.exact_gaussian import Chance
from quietq.paper.agents import InLoopMethod
from quietq.paper.agents.protect import STEPS
from quietq.paper.attacks.on_trainings import audit_training


def as_it_is(noise: Any) -> Any:
    return noise


def fewer_steps(noise: Any) -> Any:
    """Half as many as the scale says."""
    return noise._replace(normals=noise.normals // 2)


def few_bits(noise: Any) -> Any:
    """Of all but the last eighteen bits nothing is left: noise that is uniform, at most half of its size."""
    return noise._replace(normals=(noise.normals + 2 ** (STEPS - 1)) % 2**STEPS - 2 ** (STEPS - 1))


def protecting(sound: InLoopMethod, change: Callable[[Any], Any]) -> InLoopMethod:
    """A copy that draws as for a release, whatever an audit would have it draw from, and may then be broken."""
    kind = type(sound)

    def draw(self: Any, spaces: Any, steps: int, entropy: Any) -> Any:
        return change(kind.draw(self, spaces, steps, SystemEntropy()))

    copy = type(f"Protecting{kind.__name__}", (kind,), {"draw": draw, "core": lambda self: sound.core()})
    return copy(**{field.name: getattr(sound, field.name) for field in dataclasses.fields(sound) if field.init})


@pytest.mark.parametrize(
    "change", [as_it_is, fewer_steps, *(pytest.param(one, marks=pytest.mark.slow) for one in (half, few_bits))]
)
@pytest.mark.parametrize("name", ["input", *(pytest.param(one, marks=pytest.mark.slow) for one in ("value", "output"))])
def test_too_little_of_the_noise_that_protects_is_caught(
    name: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with simulated noise: 14 mistakes of 384 refute the promise, and half the noise makes 2.4."""
    monkeypatch.setattr(exact_gaussian, "Chance", partial(Chance, np.random.default_rng(0).bytes))
    drawn, world = [], Conveyor()

    def noted(noise: Any) -> Any:
        drawn.append(noise.normals)
        return change(noise)

    finding = audit_training(
        protecting(TRAINED[name], noted), world, 256, move="shift", view=ROUNDS, score="learned", steps=world.steps,
        confidence=SURE,
    )  # fmt: skip
    check(finding, broken=change is not as_it_is)
    every = np.stack(drawn)
    assert every.dtype == np.int32
    assert every.std() / 2**STEPS == pytest.approx(1, rel=0.1)
