"""Everything that is chosen by its name: methods, worlds, kinds of noise, kinds of feedback.

A new one is its own file and one line here. This module imports nothing of quietq, because methods need JAX, which
takes seconds to load: the command line lists them without.
"""

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal


@dataclass(frozen=True)
class Entry:
    """A class, or a function, by its place."""

    place: str
    """`module:name`."""

    @property
    def module(self) -> str:
        return self.place.partition(":")[0]

    def load(self) -> Any:
        return getattr(importlib.import_module(self.module), self.place.partition(":")[2])


@dataclass(frozen=True)
class Method(Entry):
    """A method: what it promises, where its noise enters, and what it is."""

    standing: str
    noise: str
    summary: str
    in_worlds: bool = True
    """Whether it is trained in a world, by `Agent` and `quietq train`."""
    norm: str | None = None
    """The norm that its noise is measured in, if every run is a release of its own."""
    pure_norm: str | None = None
    """That of pure noise, if it may have such instead."""
    releases: Literal["network", "knots", "noised knots"] = "network"
    """What its agents are made of: any network, or values at knots, which may be the very numbers that were noised."""

    @property
    def norms(self) -> tuple[str, ...]:
        return tuple(norm for norm in (self.norm, self.pure_norm) if norm is not None)

    def build(self, values: Mapping[str, Any], **further: Any) -> Any:
        """The method with these hyper-parameters; `published` starts from its preset's."""
        kind = self.load()
        return getattr(kind, values.get("preset", "code"), kind)(**values, **further)


@dataclass(frozen=True)
class World(Entry):
    """A world, and the id that Gymnasium knows it by."""

    gymnasium_id: str


@dataclass(frozen=True)
class Kind(Entry):
    """A kind of feedback, and what is made private of it."""

    releases: Literal["reward", "world"] = "reward"


METHODS = {
    "none": Method("quietq.learning.deep_q:NoNoise", "none", "nowhere",
                   "Deep Q-learning on the true reward, to compare with."),
    "published": Method("quietq.learning.published:Published", "claimed", "values, as they act and learn",
                        "The paper's algorithm; its proof does not hold."),
    "reward": Method("quietq.learning.reward:RewardNoise", "certified", "the reward function, once, before training",
                     "Deep Q-learning on a private reward."),
    "actor-critic": Method("quietq.learning.actor_critic:ActorCritic", "certified",
                           "the reward function, once, before training", "A policy and a critic on a private reward."),
    "value": Method("quietq.learning.value:ValueNoise", "certified", "mean rewards by knot, every round",
                    "The paper's idea repaired, on a grid of knots.", norm="mean-rewards",
                    pure_norm="largest-mean-reward", releases="knots"),
    "value-network": Method("quietq.learning.value_network:NetworkValueNoise", "certified",
                            "the reward part of each gradient, every round",
                            "The paper's idea repaired, for any network.", norm="reward-gradients"),
    "gradient": Method("quietq.learning.gradient:GradientNoise", "certified", "gradients, each round",
                       "Deep Q-learning with noised gradients (DP-SGD).", norm="clipped-gradients"),
    "input": Method("quietq.learning.input:InputNoise", "certified", "each observed reward",
                    "Values from averages of noised rewards.", norm="rewards", releases="knots"),
    "output": Method("quietq.learning.output:OutputNoise", "certified", "the solved values, once, at the end",
                     "Values without noise, noised as a whole.", norm="values", pure_norm="largest-value",
                     releases="noised knots"),
    "evaluation": Method("quietq.mechanisms.evaluation:Evaluation", "certified",
                         "the value function of a policy, once", "From people's trajectories; from Python only.",
                         in_worlds=False, norm="smooth-bound"),
}  # fmt: skip
WORLDS = {
    "walk": World("quietq.worlds.walk:WalkWorld", "quietq/Walk-v0"),
    "thermostat": World("quietq.worlds.thermostat:ThermostatWorld", "quietq/Thermostat-v0"),
    "navigation": World("quietq.worlds.navigation:NavigationWorld", "quietq/Navigation-v0"),
    "recommender": World("quietq.worlds.recommender:RecommenderWorld", "quietq/Recommender-v0"),
}
MECHANISMS = {
    "path": Entry("quietq.mechanisms.path:Path"),
    "k-norm": Entry("quietq.mechanisms.k_norm:Increments"),
    "knots": Entry("quietq.mechanisms.knots:ShapedKnots"),
    "weights": Entry("quietq.mechanisms.weights:Weights"),
    "ball": Entry("quietq.mechanisms.weights:BallWeights"),
    "rounds": Entry("quietq.mechanisms.rounds:Rounds"),
    "fits": Entry("quietq.mechanisms.fits:Fits"),
    "network": Entry("quietq.mechanisms.network:Network"),
    "moments": Entry("quietq.mechanisms.moments:Moments"),
}
"""The kinds of noise; a certificate calls them `reward/KIND`, or `world/KIND` where a world is released."""
ENVIRONMENT = Entry("quietq.worlds.world_copies:environment")
"""What makes the Gymnasium form of a private world, in a room further on."""
FEEDBACK = {
    "ratings": Kind("quietq.feedback.ratings:Ratings"),
    "comparisons": Kind("quietq.feedback.comparisons:Comparisons"),
    "sessions": Kind("quietq.feedback.sessions:Sessions", releases="world"),
}
_OTHER_METHODS = {
    "gaussian-process": "quietq.mechanisms.gaussian_process",
    "independent-gaussian": "quietq.worlds.own_noise",
    "reward/observed": "quietq.worlds.observed",
    "policies/values": "quietq.mechanisms.policy_values",
    "policies/choice": "quietq.mechanisms.policy_values",
    "plan/check": "quietq.worlds.plan_check",
    **{f"bandit/{name}": f"quietq.learning.bandits.{module}" for name, module in {
        "elimination": "elimination", "episodes": "episodes", "tree": "tree_ucb", "local": "local_flips",
        "linear-tree": "linear", "linear-factors": "linear",
    }.items()},
}  # fmt: skip
"""Methods that a certificate names but nobody chooses by name, with their modules."""


def feedback_for(released: str) -> list[str]:
    """The kinds of feedback of which a reward, or a world, is made."""
    return [name for name, entry in FEEDBACK.items() if entry.releases == released]


def holds(table: Mapping[str, Entry], kind: type) -> bool:
    """Whether one of the entries is this very class; a subclass is another one."""
    return any(entry.place.endswith(f":{kind.__name__}") and entry.load() is kind for entry in table.values())


def owner(method: str) -> str | None:
    """The module to import for what a certificate names as its method; None for an unknown one.

    >>> owner("gradient"), owner("reward/k-norm"), owner("evaluation/moments"), owner("magic")
    ('quietq.learning.gradient', 'quietq.mechanisms.k_norm', 'quietq.mechanisms.evaluation', None)
    """
    if method in _OTHER_METHODS:
        return _OTHER_METHODS[method]
    first, _, kind = method.partition("/")
    entry = MECHANISMS.get(kind) if first in ("reward", "world") and kind else METHODS.get(first)
    return None if entry is None else entry.module


def register_worlds() -> None:
    """Registers the worlds with Gymnasium; once, however often it is called."""
    from gymnasium.envs.registration import register, registry

    for name, entry in WORLDS.items():
        if entry.gymnasium_id not in registry:
            register(entry.gymnasium_id, "quietq.worlds.environment:world_env", kwargs={"world": name})


def register_when_imported() -> None:
    """Registers the worlds now if Gymnasium is there, or else right after it is imported, which takes a while."""
    if "gymnasium" in sys.modules:
        register_worlds()
    elif not any(isinstance(finder, _AfterGymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterGymnasium())


class _AfterGymnasium:
    """Finds Gymnasium as Python would, and registers the worlds when its code has run."""

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> Any:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)  # its work is done, and the next line must find what others would
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                register_worlds()

            spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
