"""The system of Wang & Hegde (2019), *Privacy-preserving Q-Learning with Functional Noise in Continuous Spaces*, whole.

`README.md` beside this file maps every algorithm, theorem, figure and appendix of the paper to a file, a test and a
command. Names are imported when they are first used: the theorem and the sampler need no JAX, which agents do. What
holds of its methods, and why, is in docs/theory.md#rounds-of-rewards and below.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quietq.paper.agents import (
        ActorCritic as ActorCritic,
        Agent as Agent,
        NoNoise as NoNoise,
        RewardNoise as RewardNoise,
    )
    from quietq.paper.algorithm import Published as Published
    from quietq.paper.attacks import reconstruct as reconstruct
    from quietq.paper.baselines.abadi import GradientNoise as GradientNoise
    from quietq.paper.baselines.balle import Evaluation as Evaluation
    from quietq.paper.baselines.output import OutputNoise as OutputNoise
    from quietq.paper.baselines.value import ValueNoise as ValueNoise
    from quietq.paper.baselines.value_network import NetworkValueNoise as NetworkValueNoise
    from quietq.paper.baselines.venkitasubramaniam import InputNoise as InputNoise
    from quietq.paper.discrete import Tabular as Tabular
    from quietq.paper.kernels import (
        BandLimited as BandLimited,
        FeatureKernel as FeatureKernel,
        FiniteRank as FiniteRank,
        FiniteRankMechanism as FiniteRankMechanism,
        PrivateWeights as PrivateWeights,
    )
    from quietq.paper.sampler import SortedPath as SortedPath
    from quietq.paper.theorem import PublishedTheorem as PublishedTheorem

_WHERE = {
    "ActorCritic": "agents",
    "Agent": "agents",
    "NoNoise": "agents",
    "RewardNoise": "agents",
    "Published": "algorithm",
    "reconstruct": "attacks",
    "GradientNoise": "baselines.abadi",
    "Evaluation": "baselines.balle",
    "OutputNoise": "baselines.output",
    "ValueNoise": "baselines.value",
    "NetworkValueNoise": "baselines.value_network",
    "InputNoise": "baselines.venkitasubramaniam",
    "Tabular": "discrete",
    "SortedPath": "sampler",
    "BandLimited": "kernels",
    "FeatureKernel": "kernels",
    "FiniteRank": "kernels",
    "FiniteRankMechanism": "kernels",
    "PrivateWeights": "kernels",
    "PublishedTheorem": "theorem",
}
__all__ = sorted(_WHERE)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name in _WHERE:
        return getattr(importlib.import_module(f"quietq.paper.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'quietq.paper' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
