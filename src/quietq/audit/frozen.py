"""The frozen-noise check: nobody moves a private step farther than its noise was made for.

A certificate says that neighbours are at most so far apart before noise. With the noise held fixed, that can be looked
at: the method's own code runs again and again on rewards that an adversary chooses within the relation. What it moves
the farthest is a lower bound of the sensitivity; the noise that goes on it says which one was stated. A movement above
that refutes the certificate, whatever the theory says; one close to it says that no noise is wasted.

How far rewards move a step is looked at in one round, from public beginnings. Through all rounds of a short training,
nothing but the noise may stand between rewards and what is released, and no normal may be used twice. What released
numbers look like is for the distinguishers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from quietq.audit.frozen_people import frozen_people
from quietq.audit.frozen_rewards import frozen_knots, frozen_path
from quietq.audit.frozen_trajectories import frozen_trajectories
from quietq.audit.frozen_vectors import frozen_observed, frozen_weights
from quietq.audit.movement import Movement
from quietq.audit.private_steps import private_step
from quietq.audit.search import check_ways, farthest
from quietq.feedback.trajectories import Cells
from quietq.learning.gradient import GradientNoise
from quietq.learning.in_loop_method import InLoopMethod
from quietq.learning.input import InputNoise
from quietq.learning.method import Spaces
from quietq.learning.output import OutputNoise
from quietq.learning.trainer import spaces_of
from quietq.learning.value import ValueNoise
from quietq.learning.value_network import NetworkValueNoise
from quietq.mechanisms.evaluation import Evaluation
from quietq.mechanisms.gaussian_process import GaussianProcessMechanism
from quietq.noise.kernels import Features
from quietq.privacy.budget import Budget
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import RkhsBall, SupBall, Trajectories, people
from quietq.worlds.walk import WALK
from quietq.worlds.world import World

_PEOPLE = 50
_TRAJECTORIES = 150
_AMPLE = Budget(10.0, 1e-6)  # so that so few trajectories are enough for a smooth bound that is also the local one


def frozen_sensitivity(
    method: InLoopMethod,
    spaces: Spaces | World,
    *,
    rewards: int = 24,
    same: bool = False,
    name: str | None = None,
    climb: bool = True,
    seed: int = 0,
) -> Movement:
    """How far an adversary moves a method's private step, beside what its noise is enough for.

    `spaces` are a world, or what is public about an environment. `method` may be any method that noises as it goes, or
    a copy of one that may be broken; see `private_step` for `rewards` and `same`, and `farthest` for `climb`. Raises
    Unprotected if rewards reach what is released by another way than through the noise, or if a normal is used twice.

    >>> method = InputNoise(relation=SupBall(0.1), budget=Budget(0.9, 1e-4))
    >>> move = frozen_sensitivity(method, WALK, rewards=9)
    >>> round(move.stated, 3), round(move.found, 3)  # 0.1 times the root of 9
    (0.3, 0.3)
    """
    spaces = spaces_of(spaces) if isinstance(spaces, World) else spaces
    try:
        step = private_step(method, spaces, rewards=rewards, same=same, name=name, seed=seed)
        best = farthest(step, climb=climb, seed=seed)
        move = Movement(step.name, stated=best.scale * step.mu, found=best.found, by=best.by)
        if not move.exceeds:
            check_ways(step, seed)
    except jax.errors.UnexpectedTracerError as error:
        raise InvalidInput(
            f"{name or method.name} cannot be looked into: it noises inside compiled code of its own (jit, scan or "
            "cond). Give the audit a private step that is not compiled yet."
        ) from error
    return move


def checks(budget: Budget | None = None, seed: int = 0) -> dict[str, Callable[[], Movement]]:
    """The check of each certified method in its usual forms, by name, to be run one by one."""
    budget = Budget(0.9, 1e-4) if budget is None else budget
    ball, sup = people(_PEOPLE, low=0, high=0.5, slope=1), SupBall(0.5 / _PEOPLE, people=_PEOPLE)
    features = RkhsBall(0.02, Features(_polynomials, 3), people=_PEOPLE)
    promise: dict[str, Any] = {"relation": sup, "budget": budget}
    spaces = spaces_of(WALK)
    small = {"network": "mlp", "widths": (16, 16)}
    methods: dict[str, tuple[InLoopMethod, bool]] = {
        "value": (ValueNoise(**promise), False),
        "value-network, splines": (NetworkValueNoise(**promise), False),
        "value-network, mlp": (NetworkValueNoise(**promise, **small), False),
        "value-network, fourier": (NetworkValueNoise(**promise, network="fourier"), False),
        "gradient": (GradientNoise(**promise), False),
        "gradient, one state": (GradientNoise(**promise), True),
        "gradient, clipped": (GradientNoise(**promise, **small, clip=0.002), False),
        "input": (InputNoise(**promise), False),
        "output": (OutputNoise(**promise), False),
    }

    def path() -> Movement:
        return frozen_path(GaussianProcessMechanism.for_relation(ball, budget, levels=6), seed=seed)

    found: dict[str, Callable[[], Movement]] = {
        "reward, path": path,
        "reward, one of many people": partial(frozen_people, budget, count=_PEOPLE, seed=seed),
        "reward, k-norm": partial(frozen_knots, ball, budget, "k-norm", seed=seed),
        "reward, knots": partial(frozen_knots, ball, budget, "knots", seed=seed),
        "reward, k-norm on weights": partial(frozen_weights, features, budget, "ball", seed=seed),
        "reward, gaussian on weights": partial(frozen_weights, features, budget, "weights", seed=seed),
        "reward, observed": partial(frozen_observed, WALK, sup, budget, seed=seed),
    }
    for name, (method, same) in methods.items():
        found[name] = partial(frozen_sensitivity, method, spaces, same=same, name=name, seed=seed)
    for kind in ("lsw", "lsl"):
        found[f"evaluation, {kind}"] = partial(_evaluation, kind, seed)
    return found


def sensitivities(
    budget: Budget | None = None, seed: int = 0, progress: Callable[[Movement], None] | None = None
) -> list[Movement]:
    """The whole table, one movement for each certified method in its usual forms; `progress` is told each at once."""
    table = []
    for check in checks(budget, seed).values():
        table.append(check())
        if progress is not None:
            progress(table[-1])
    return table


def _evaluation(kind: Any, seed: int) -> Movement:
    """Everybody was everywhere and was paid the most."""
    relation, cells = Trajectories(_TRAJECTORIES, largest_reward=1.0), Cells.states(3)
    evaluation = Evaluation(
        budget=_AMPLE, relation=relation, gamma=0.5, cells=cells, kind=kind, ridge=1.0 if kind == "lsl" else None
    )
    one = (np.append(np.arange(3), np.zeros(40)), np.ones(43))
    return frozen_trajectories(evaluation, [one] * _TRAJECTORIES, seed=seed)


def _polynomials(x: np.ndarray) -> np.ndarray:
    return np.stack([np.ones_like(x), x, x**2], axis=-1)
