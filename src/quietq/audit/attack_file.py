"""Reward reconstruction from a file: an agent that was saved, or a private reward."""

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quietq.audit.reconstruct import ATTACKS, ON_POLICIES, Reconstruction, RecoveredReward, discount, reconstruct
from quietq.learning import Agent
from quietq.learning.actor_critic import ActorCritic
from quietq.mechanisms.private_network import PrivateNetwork
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.publishing import open_release
from quietq.worlds import find_place
from quietq.worlds.world import World


@dataclass(frozen=True)
class AttackedFile:
    """What a thief learns from a file, by each of its draws."""

    kind: str
    certificate: Certificate
    world: World
    draws: list[Reconstruction]

    def record(self) -> dict[str, Any]:
        """All of it in JSON; whatever was compared with the true reward is under `not_private`."""
        first = self.draws[0]
        compared = {"constant_rmse": first.constant_error}
        return {
            "release": self.kind,
            "world": self.world.name,
            "standing": self.certificate.standing,
            "points": first.grid.points,
            "draws": len(self.draws),
            "attacks": [_average(same) for same in zip(*(one.recovered for one in self.draws), strict=True)],
            "not_private": compared | ({} if first.planned is None else {"planned_score": first.planned}),
        }


def attack_reward(file: Path, world: str, points: int | None = None) -> AttackedFile:
    """Attacks a private reward, and compares with the world's own."""
    release, place = open_release(file), _own_world(world)
    found = reconstruct(release.function, place, truth=place.reward_at, points=points)  # type: ignore[arg-type]
    return AttackedFile("private reward", release.certificate, place, [found])


def attack_agent(file: Path, world: str | None = None, points: int | None = None) -> AttackedFile:
    """Attacks an agent, and compares with the reward of its own world."""
    network = open_release(file).function
    if isinstance(network, PrivateNetwork) and (network.training or {}).get("world") is None:
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
    attacks = ON_POLICIES if isinstance(agent.method, ActorCritic) else ATTACKS
    found = [
        reconstruct(
            lambda states, member=member: agent.q_values(states, member),
            place, gamma, truth=place.reward_at, points=points, attacks=attacks,
        )
        for member in members
    ]  # fmt: skip
    return AttackedFile(f"agent ({agent.method.name})", agent.certificate, place, found)


def _own_world(name: str) -> World:
    """By its name or its Gymnasium id."""
    place = find_place(name)
    if not isinstance(place, World):
        raise InvalidInput(f"{name!r} is not one of quietq's own worlds, whose rewards are known.")
    return place


def _average(same: tuple[RecoveredReward, ...]) -> dict[str, Any]:
    """One attack on all draws: means, and each draw's correlation if there are several."""
    judged = [attack.not_private.to_dict() for attack in same if attack.not_private is not None]
    means: dict[str, Any] = {name: statistics.fmean(one[name] for one in judged) for name in judged[0]}
    if len(judged) > 1:
        means["correlations"] = [one["correlation"] for one in judged]
    return {"name": same[0].name, "blind_to": list(same[0].blind_to), "not_private": means}
