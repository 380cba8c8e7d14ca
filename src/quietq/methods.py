"""All methods in a line each: the one place that names them. A new method is its own file and an entry here.

It imports no method, because those need JAX, which takes seconds to load: the command line lists them without.
"""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A method: its name, what it promises, where its noise enters, what it is, and where its class lives."""

    name: str
    standing: str
    noise: str
    summary: str
    place: str
    """`module:class`."""
    in_worlds: bool = True
    """Whether it is trained in a world, by `Agent` and `quietq train`."""

    def load(self) -> Any:
        """The class."""
        module, _, name = self.place.partition(":")
        return getattr(importlib.import_module(module), name)

    def build(self, values: Mapping[str, Any], **further: Any) -> Any:
        """The method with these hyper-parameters; `published` starts from its preset's."""
        kind = self.load()
        return getattr(kind, values.get("preset", "code"), kind)(**values, **further)


ENTRIES = (
    Entry("none", "none", "nowhere", "Deep Q-learning on the true reward, to compare with.",
          "quietq.learning.none:NoNoise"),
    Entry("published", "claimed", "values, as they act and learn", "The paper's algorithm; its proof does not hold.",
          "quietq.learning.published:Published"),
    Entry("reward", "certified", "the reward function, once, before training", "Deep Q-learning on a private reward.",
          "quietq.learning.reward:RewardNoise"),
    Entry("actor-critic", "certified", "the reward function, once, before training",
          "A policy and a critic on a private reward.", "quietq.learning.actor_critic:ActorCritic"),
    Entry("value", "certified", "mean rewards by knot, every round", "The paper's idea repaired, on a grid of knots.",
          "quietq.learning.value:ValueNoise"),
    Entry("value-network", "certified", "the reward part of each gradient, every round",
          "The paper's idea repaired, for any network.", "quietq.learning.value_network:NetworkValueNoise"),
    Entry("gradient", "certified", "clipped gradients, every step", "Deep Q-learning with noised gradients (DP-SGD).",
          "quietq.learning.gradient:GradientNoise"),
    Entry("input", "certified", "each observed reward", "Values from averages of noised rewards.",
          "quietq.learning.input:InputNoise"),
    Entry("output", "certified", "the solved values, once, at the end", "Values without noise, noised as a whole.",
          "quietq.learning.output:OutputNoise"),
    Entry("evaluation", "certified", "the value function of a policy, once",
          "From people's trajectories; from Python only.", "quietq.learning.evaluation:Evaluation", in_worlds=False),
)  # fmt: skip
METHODS = {entry.name: entry for entry in ENTRIES}
