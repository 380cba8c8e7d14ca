"""The methods by name, in a sentence each; `quietq paper methods` prints it without loading JAX."""

from typing import NamedTuple


class Described(NamedTuple):
    """A method in words."""

    standing: str
    noise: str
    """Where its noise enters."""
    summary: str
    in_worlds: bool = True
    """Whether it is trained in a world, by `Agent` and `quietq paper train`."""


METHOD_TABLE = {
    "none": Described("none", "nowhere", "Deep Q-learning on the true reward, to compare with."),
    "published": Described(
        "claimed", "values, as they act and learn", "The paper's algorithm; its proof does not hold."
    ),
    "reward": Described(
        "certified", "the reward function, once, before training", "Deep Q-learning on a private reward."
    ),
    "actor-critic": Described(
        "certified", "the reward function, once, before training", "A policy and a critic on a private reward."
    ),
    "value": Described(
        "certified", "mean rewards by knot, every round", "The paper's idea repaired, on a grid of knots."
    ),
    "value-network": Described(
        "certified", "the reward part of each gradient, every round", "The paper's idea repaired, for any network."
    ),
    "gradient": Described("certified", "gradients, each round", "Deep Q-learning with noised gradients (DP-SGD)."),
    "input": Described("certified", "each observed reward", "Values from averages of noised rewards."),
    "output": Described("certified", "the solved values, once, at the end", "Values without noise, noised as a whole."),
    "evaluation": Described(
        "certified",
        "the value function of a policy, once",
        "From people's trajectories; from Python only.",
        in_worlds=False,
    ),
}
