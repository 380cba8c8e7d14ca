"""A policy that another library trained on a private reward, or in a private world: its network in NumPy.

Theorem (post-processing). Training looks at what was released, so the policy is covered by that certificate, if nothing
else that is private was looked at: not by training, and not by whoever chose this policy among others. No code can see
that, and so every certified policy states it as trusted (`TRAINED`).

What is stored are numbers and the names of a few well-known functions. Nothing in a file is code.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Float, Shaped
from scipy.special import log_softmax

from quietq.mechanisms.private_network import LARGEST, observed
from quietq.mechanisms.publishable import Arrays, Details, Publishable, Stored, require
from quietq.noise.box import Box
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.errors import InvalidInput

Activation = Literal["tanh", "relu", "elu", "leaky-relu"]
Output = Literal["values", "log-probabilities", "clipped", "squashed"]
LEAK = 0.01
"""The slope of leaky-relu below 0."""
TRAINED = Assumption(
    "The policy was trained on rewards from what this certificate covers, and nothing else private was used: no "
    "private observations, ends of episodes, environment, demonstrations or other rewards in training, and no private "
    "scores to choose this policy by.",
    enforced=False,
)
_CHOOSES = ("values", "log-probabilities")
_AT_ONCE = 2**17  # numbers of a layer, for all observations together
_WORDS = {
    "values": "The values are what the policy expects of each action; it takes the best.",
    "log-probabilities": "The values are logarithms of the probabilities of actions; it takes the most probable.",
    "clipped": "The values are the action itself, number by number, held to the action's range.",
    "squashed": "The values are the action itself, number by number, squashed into the action's range.",
}


@dataclass(frozen=True, eq=False, repr=False)
class PrivatePolicy(Publishable):
    """A policy: ask it by `predict`, as Stable-Baselines3 has it, with observations of shape (d,) or (points, d).

    Called, it gives the values or log-probabilities of finitely many actions, or the action itself where that is
    numbers. It acts as the model does with `deterministic=True`; of a policy that is probabilities of finitely many
    actions, `deterministic=False` draws one by them. How other policies explore does not leave.
    """

    kind: ClassVar[str] = "policy"
    what: ClassVar[Literal["agent", "function"]] = "agent"
    own_box: ClassVar[bool] = True
    details: ClassVar = ("activation", "output", "clip")
    activation: Activation
    """After each layer but the last."""
    output: Output
    weights: tuple[Float[np.ndarray, "_ _"], ...]
    biases: tuple[Float[np.ndarray, " _"], ...]
    box: Box
    """Of observations; the certificate names the reward's."""
    certificate: Certificate  # pyright: ignore[reportIncompatibleVariableOverride]
    action_range: Float[np.ndarray, "2 actions"] | None = None
    """The lowest and the highest action, where actions are numbers."""
    normal: Float[np.ndarray, "2 d"] | None = None
    """Mean and deviation that observations are normalised by, before they are held to `clip` in size."""
    clip: float | None = None

    def to_arrays(self) -> tuple[Details, Arrays]:
        named = [(f"weight.{i}", array) for i, array in enumerate(self.weights)]
        named += [(f"bias.{i}", array) for i, array in enumerate(self.biases)]
        further = {"action_range": self.action_range, "normal": self.normal}
        return super().to_arrays()[0], dict(named) | {name: a for name, a in further.items() if a is not None}

    @classmethod
    def from_arrays(cls, stored: Stored) -> "PrivatePolicy":
        details, arrays, box = stored.details, stored.arrays, stored.box
        layers = sum(name.startswith("weight.") for name in arrays)
        names = [f"{part}.{i}" for part in ("weight", "bias") for i in range(layers)]
        further = [name for name in ("action_range", "normal") if name in arrays]
        stored.expect(cls.details, names + further)
        activation, output, clip = (details[name] for name in cls.details)
        require(activation in get_args(Activation), "its activation is not known here")
        require(output in get_args(Output), "its output is not known here")
        weights, biases = tuple(arrays[name] for name in names[:layers]), tuple(arrays[name] for name in names[layers:])
        require(layers, "a policy has one layer or more")
        inputs = box.dimension
        for weight, bias in zip(weights, biases, strict=True):
            fits = weight.ndim == 2 and weight.shape[1] == inputs and bias.shape == weight.shape[:1]
            require(fits, "its layers do not fit each other")
            inputs = len(weight)
        ends, normal = arrays.get("action_range"), arrays.get("normal")
        require((ends is None) == (output in _CHOOSES), "it has an action_range if its outputs are an action")
        if ends is not None:
            fits = ends.shape == (2, inputs) and (ends[0] < ends[1]).all()
            require(fits, "its action_range must have a low below a high for each of the action's numbers")
        require((normal is None) == (clip is None), "observations are normalised and clipped, or neither")
        if normal is not None:
            fits = normal.shape == (2, box.dimension) and (normal[1] > 0).all()
            require(fits, "each coordinate has one mean, and one deviation above 0")
            require(type(clip) is float and 0 < clip <= LARGEST, "its clip must be a number above 0")
        policy = cls(activation, output, weights, biases, box, stored.certificate, ends, normal, clip)
        require(policy.largest() <= LARGEST, "its values could get too large to compute with")
        return policy

    def check_norm(self, norm: dict[str, Any], certificate: Certificate) -> None:
        require(TRAINED in certificate.assumptions, "a policy's certificate must state what it trusts training for")

    def in_words(self) -> list[str]:
        what = "world" if self.certificate.method.startswith("world/") else "reward"
        whose = (
            f"This policy was trained on a private {what}: the promise, and the box that it names, are the {what}'s."
        )
        return [whose, _WORDS[self.output]]

    @property
    def choices(self) -> int | None:
        return self.outputs if self.output in _CHOOSES else None

    @property
    def outputs(self) -> int:
        return len(self.biases[-1])

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        self.box.to_unit(states)  # refuses what lies outside
        given = np.asarray(states, np.float64)
        where = given.shape if self.box.dimension == 1 else given.shape[:-1]
        points = given.reshape(-1, self.box.dimension)
        values = np.empty((len(points), self.outputs))
        at_once = max(1, _AT_ONCE // max(map(len, self.biases)))
        for begin in range(0, len(points), at_once):
            values[begin : begin + at_once] = self._at(points[begin : begin + at_once])
        return values.reshape(*where, self.outputs)

    def predict(
        self, observation: object, state: object = None, episode_start: object = None, deterministic: bool = True
    ) -> tuple[Shaped[np.ndarray, "..."], None]:
        """The best action, or one drawn by its probabilities, and None for the state: as Stable-Baselines3 has it."""
        if not deterministic and self.output != "log-probabilities":
            raise InvalidInput(
                "deterministic must be True, because this release holds the best action and not how the model explores "
                "around it."
            )
        points = observed(observation, self.box)
        values = self(points[..., 0] if self.box.dimension == 1 else points)
        if not deterministic:
            values += np.random.default_rng().gumbel(size=values.shape)  # the largest is drawn by its probability
        return (values.astype(np.float32) if self.choices is None else np.asarray(values.argmax(axis=-1))), None

    def largest(self) -> float:
        """A bound of what any layer can hold, anywhere in the box."""
        with np.errstate(over="ignore"):
            low, high = np.array(self.box.low), np.array(self.box.high)
            middle, deviation = (0.0, 1.0) if self.normal is None else self.normal
            size = most = float((np.maximum(np.abs(low - middle), np.abs(high - middle)) / deviation).max())
            for weight, bias in zip(self.weights, self.biases, strict=True):
                size = float((np.abs(weight).sum(axis=1) * size + np.abs(bias)).max())
                most = max(most, size)
                size = min(size, 1.0) if self.activation == "tanh" else max(size, 1.0)
            return most if self.action_range is None else max(most, float(np.abs(self.action_range).max()))

    def _shape(self) -> str:
        widths = "-".join(map(str, (self.box.dimension, *map(len, self.biases))))
        return f"{self.activation} {widths}, {self.output}"

    def _at(self, points: Float[np.ndarray, "points d"]) -> Float[np.ndarray, "points outputs"]:
        hidden = points
        if self.normal is not None and self.clip is not None:
            hidden = np.clip((points - self.normal[0]) / self.normal[1], -self.clip, self.clip)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = (activate(self.activation, hidden) if i else hidden) @ weight.T + bias
        if self.output == "log-probabilities":
            return log_softmax(hidden, axis=-1)
        if self.action_range is None:
            return hidden
        low, high = self.action_range
        if self.output == "squashed":
            hidden = low + (np.tanh(hidden) + 1) / 2 * (high - low)
        return np.clip(hidden, low, high)


def activate(name: Activation, x: Float[np.ndarray, "points units"]) -> Float[np.ndarray, "points units"]:
    match name:
        case "tanh":
            return np.tanh(x)
        case "relu":
            return np.maximum(x, 0)
        case "elu":
            return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
        case "leaky-relu":
            return np.where(x > 0, x, LEAK * x)
