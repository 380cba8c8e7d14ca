"""What does a thief learn of the reward, who has a release and knows the world?

Three attacks on an agent: turning the Bellman equation round (`bellman`), and inverse reinforcement learning from its
policy alone, by Ng & Russell's linear program (`inverse-rl`) and by Abbeel & Ng's projection (`apprenticeship`). A
private reward is simply read (`read`). They use the release and what is public; by post-processing they are covered by
the release's certificate, and may be as good as they like. Only the comparison with the true reward looks at it: it is
under `not_private`.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.paper.agents import ActorCritic, Agent
from quietq.paper.agents.places import find_place
from quietq.paper.attacks.inversion import (
    WRONG,
    Discretised,
    apprenticeship,
    best_actions,
    discretise,
    inverse_rl,
    invert,
    mixed,
)
from quietq.privacy import Certificate, InvalidInput, LipschitzBall
from quietq.privacy.checks import instance, real
from quietq.released import PrivateFunction, open_release
from quietq.released.private_network import PrivateNetwork
from quietq.worlds import RewardFunction, World, mean_return, plan_on_grid, rewards_at, uniform_policy

_FLAT = 1e-9  # a reward that varies by less, relative to its size, is a constant


@dataclass(frozen=True, eq=False)
class RecoveredReward:
    """One attack, and what it recovered."""

    name: str
    blind_to: tuple[str, ...]
    """Which of `scale` and `shift` this attack cannot identify, and are fitted to the truth before errors are taken."""
    rewards: Float[np.ndarray, " n"]  # at the grid's points, as recovered
    not_private: dict[str, float] | None = None  # against the true reward, if that was given: see `compare`


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """All attacks on one release."""

    grid: Discretised
    recovered: tuple[RecoveredReward, ...]
    truth: Float[np.ndarray, " n"] | None  # the true reward at the grid's points. NOT private.
    planned: float | None = None
    """For a private reward: the score under the truth of planning on it, 0 random actions, 1 the best. NOT private."""

    @property
    def constant_error(self) -> float | None:
        """Root mean squared error of the best constant guess: the true reward's deviation. NOT private."""
        return None if self.truth is None else float(self.truth.std())


def reconstruct(
    release: Callable[[np.ndarray], np.ndarray] | PrivateFunction,
    world: World,
    gamma: float | None = None,
    *,
    truth: RewardFunction | None = None,
    points: int | None = None,
    attacks: Sequence[str] | None = None,
) -> Reconstruction:
    """Recovers the reward from a release, on a grid of states.

    Args:
        release: A private reward; or values of all actions, (n, m), as a function of states, (n, d), like an agent's
            `q_values`.
        world: The world, which is public.
        gamma: The discount that values were learnt with (`discount` has it from an agent's settings).
        truth: The true reward, to compare with; that part of the result is not private.
        points: Points of the grid for each coordinate.
        attacks: The names of the attacks.

    >>> from quietq.worlds.walk import WALK, walk_reward
    >>> grid = discretise(WALK)
    >>> values = grid.best_values(walk_reward(grid.states[:, 0]), gamma=0.9)
    >>> found = reconstruct(lambda states: values, WALK, 0.9, truth=walk_reward)
    >>> round(found.recovered[0].not_private["correlation"], 3)
    1.0

    """
    grid = discretise(world, points)
    box = world.box
    true = None if truth is None else rewards_at(grid.states, truth)
    if isinstance(release, PrivateFunction):
        if release.box.low != box.low or release.box.high != box.high:
            raise InvalidInput(f"The private reward is defined on {release.box}, but states lie in {box}.")
        rewards = rewards_at(grid.states, release)
        # K-norm noise goes into increments: where the released reward starts means nothing.
        blind = ("shift",) if release.certificate.method.endswith("k-norm") else ()
        score = None if truth is None else _planned(world, release, truth)
        return Reconstruction(grid, (_judged("read", rewards, blind, true),), true, score)
    if gamma is None:
        raise InvalidInput("gamma must be the discount that the values were learnt with, and is missing.")
    values = np.asarray(release(grid.states), dtype=np.float64)
    if values.shape != grid.transitions.shape[:2] or not np.isfinite(values).all():
        raise InvalidInput(f"release must give {world.actions} finite numbers for each of many states.")
    recovered = []
    for name in ATTACKS if attacks is None else attacks:
        if name not in ATTACKS:
            raise InvalidInput(f"attacks must be some of {', '.join(ATTACKS)}, not {name!r}.")
        blind = ("scale", "shift") if name in ON_POLICIES else ()
        recovered.append(_judged(name, ATTACKS[name](grid, values, gamma), blind, true))
    return Reconstruction(grid, tuple(recovered), true)


def compare(rewards: np.ndarray, truth: np.ndarray, blind_to: Sequence[str] = ()) -> dict[str, float]:
    """A recovered reward against the true one; what the attack is blind to is fitted, but a scale never below zero.

    The correlation is 1 for the same reward but for scale and shift, and 0 for a constant. The error is taken after the
    fit; relative to that of guessing the best constant, 1 is no better than knowing nothing but the mean.

    >>> compare(np.array([0.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0]), ("scale", "shift"))["rmse"]
    0.0
    """
    spread, level = float(truth.std()), float(truth.mean())
    if spread <= _FLAT * max(np.abs(truth).max(), np.finfo(np.float64).tiny):
        raise InvalidInput("truth must not be the same everywhere: then there is nothing to recover.")
    own, mean = float(rewards.std()), float(rewards.mean())
    constant = own <= _FLAT * np.abs(rewards).max()
    correlation = 0.0 if constant else float(((rewards - mean) * (truth - level)).mean() / (own * spread))
    fitted = rewards
    if "scale" in blind_to:  # an attack that is blind to scale still tells up from down
        fitted = level + (0.0 if constant else max(correlation, 0.0) * spread / own) * (rewards - mean)
    elif "shift" in blind_to:
        fitted = rewards - mean + level
    rmse = float(np.sqrt(np.square(fitted - truth).mean()))
    return {"correlation": correlation, "rmse": rmse, "relative_error": rmse / spread}


def discount(settings: Mapping[str, object], steps: int) -> float:
    """The discount that an agent's values were learnt with, from its settings.

    Where nothing is expected beyond an episode's end, a future of one step in `steps` is missing, which is a smaller
    discount on average.

    >>> discount({"gamma": 0.95}, 50), discount({"gamma": 1.0, "bootstrap_truncated": False}, 50)
    (0.95, 0.98)
    """
    instance("steps", steps, int, "the length of an episode")
    gamma = real("gamma", settings.get("gamma"))
    return gamma if settings.get("bootstrap_truncated", True) else gamma * (1 - 1 / steps)


def _turn_bellman_round(grid: Discretised, values: np.ndarray, gamma: float) -> Float[np.ndarray, " n"]:
    """Inverts with the slope of the mean reward that the world declares, if it does."""
    relation = grid.world.relation(1)
    # Two people's rewards differ in slope by up to twice what each of them may have.
    steepest = relation.lipschitz / 2 / (grid.points - 1) if isinstance(relation, LipschitzBall) else None
    return invert(grid, values, gamma, steepest)


def _ask_policy(grid: Discretised, values: np.ndarray, gamma: float) -> Float[np.ndarray, " n"]:
    best = best_actions(values)
    found = inverse_rl(grid, best, gamma)
    return found if np.ptp(found) > _FLAT else inverse_rl(grid, best, gamma, wrong=WRONG)  # a noised policy


def _follow_policy(grid: Discretised, values: np.ndarray, gamma: float) -> Float[np.ndarray, " n"]:
    return apprenticeship(grid, mixed(best_actions(values)), gamma)[0]


ATTACKS = {"bellman": _turn_bellman_round, "inverse-rl": _ask_policy, "apprenticeship": _follow_policy}
"""On values of actions."""
ON_POLICIES = ("inverse-rl", "apprenticeship")
"""Attacks that use the best actions only: blind to scale and shift, they work on released probabilities too."""


def _judged(name: str, rewards: np.ndarray, blind_to: tuple[str, ...], truth: np.ndarray | None) -> RecoveredReward:
    compared = None if truth is None else compare(rewards, truth, blind_to)
    return RecoveredReward(name, blind_to, rewards, compared)


def _planned(world: World, private: PrivateFunction, truth: RewardFunction) -> float:
    """The score under the true reward of planning on a private one."""
    policies = (uniform_policy(world), plan_on_grid(world, truth), plan_on_grid(world, private))
    random, best, own = (mean_return(world, policy, truth, episodes=500) for policy in policies)
    return (own - random) / (best - random)


# Files


def _record(kind: str, certificate: Certificate, world: World, draws: Sequence[Reconstruction]) -> dict[str, Any]:
    """All of it in JSON; whatever was compared with the true reward is under `not_private`."""
    first = draws[0]
    compared = {"constant_rmse": first.constant_error}
    return {
        "release": kind,
        "world": world.name,
        "standing": certificate.standing,
        "points": first.grid.points,
        "draws": len(draws),
        "attacks": [_average(same) for same in zip(*(one.recovered for one in draws), strict=True)],
        "not_private": compared | ({} if first.planned is None else {"planned_score": first.planned}),
    }


def attack_reward(file: Path, world: str, points: int | None = None) -> dict[str, Any]:
    release, place = open_release(file), _own_world(world)
    found = reconstruct(release.function, place, truth=place.reward_at, points=points)  # type: ignore[arg-type]
    return _record("private reward", release.certificate, place, [found])


def attack_agent(file: Path, world: str | None = None, points: int | None = None) -> dict[str, Any]:
    network = open_release(file).function
    if isinstance(network, PrivateNetwork) and (network.training is None or network.training.world is None):
        raise InvalidInput("Only agents of quietq's own worlds can be attacked here, and this one names none.")
    agent = Agent.load(file)
    place = agent.world
    assert isinstance(place, World)
    if world is not None and _own_world(world) != place:
        raise InvalidInput(
            f"The agent was trained in the {place.name}, not in the {_own_world(world).name}: leave --world out."
        )
    gamma = discount(agent.method.settings(), place.steps)
    # Seeds of one release are averaged; simulated draws are releases of their own.
    members = [None] if agent.draws == 1 else range(agent.members)
    # Probabilities are no values: there is no Bellman equation to turn round.
    attacks = ON_POLICIES if isinstance(agent.method, ActorCritic) else None
    found = [
        reconstruct(
            lambda states, member=member: agent.q_values(states, member),
            place,
            gamma,
            truth=place.reward_at,
            points=points,
            attacks=attacks,
        )
        for member in members
    ]
    return _record(f"agent ({agent.method.name})", agent.certificate, place, found)


def _own_world(name: str) -> World:
    place = find_place(name)
    if not isinstance(place, World):
        raise InvalidInput(f"{name!r} is not one of quietq's own worlds, whose rewards are known.")
    return place


def _average(same: tuple[RecoveredReward, ...]) -> dict[str, Any]:
    """One attack on all draws: means, and each draw's correlation if there are several."""
    judged = [attack.not_private for attack in same if attack.not_private is not None]
    means: dict[str, Any] = {name: statistics.fmean(one[name] for one in judged) for name in judged[0]}
    if len(judged) > 1:
        means["correlations"] = [one["correlation"] for one in judged]
    return {"name": same[0].name, "blind_to": list(same[0].blind_to), "not_private": means}
