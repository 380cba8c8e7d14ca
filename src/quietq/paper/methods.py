"""The methods that are trained in a world, by name."""

from collections.abc import Mapping
from typing import Any

from quietq.paper.agents.actor_critic import ActorCritic
from quietq.paper.agents.deep_q import NoNoise
from quietq.paper.agents.method import Method
from quietq.paper.agents.reward_learner import RewardNoise
from quietq.paper.algorithm import Published
from quietq.paper.baselines.abadi import GradientNoise
from quietq.paper.baselines.output import OutputNoise
from quietq.paper.baselines.value import ValueNoise
from quietq.paper.baselines.value_network import NetworkValueNoise
from quietq.paper.baselines.venkitasubramaniam import InputNoise

METHODS: dict[str, type[Method]] = {
    kind.name: kind
    for kind in (
        NoNoise,
        Published,
        RewardNoise,
        ActorCritic,
        ValueNoise,
        NetworkValueNoise,
        GradientNoise,
        InputNoise,
        OutputNoise,
    )
}


def build_method(name: str, values: Mapping[str, Any], **further: Any) -> Any:
    """Builds the method with these hyper-parameters; `published` starts from its preset's."""
    kind: Any = METHODS[name]
    return getattr(kind, values.get("preset", "code"), kind)(**values, **further)
