"""A released agent without JAX: the values of all actions by NumPy, from the numbers that were released.

The networks are those of `learning.networks`, in NumPy because whoever loads a release should not have to install what
trained it; a test holds the two against each other.
"""

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax

from quietq.mechanisms.private_function import PrivateFunction
from quietq.mechanisms.publishable import Arrays, Details, Stored, require
from quietq.noise.box import Box
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.checks import numbers
from quietq.registry import METHODS

Form = Literal["mlp", "splines", "fourier", "random", "grid"]
Output = Literal["values", "log-probabilities"]
LARGEST = 1e30
"""No hidden value may be able to get larger: far from overflow in float32."""
MOST_FEATURES, MOST_RUNS, MOST_DIMENSION = 4096, 1024, 12
_MOST_POINTS = 2**26 + 1  # of a grid
_AT_ONCE = 2**17  # hidden values or features of all states and runs together: they fit the processor's cache
_TRAINING = {"world": (str, NoneType), "episode": (int,), "steps": (int, NoneType), "settings": (dict,)}
_WORDS = {str: "a name", int: "a whole number", dict: "a JSON object", NoneType: "missing"}


@dataclass(frozen=True, eq=False, repr=False)
class PrivateNetwork(PrivateFunction):
    """Released values of all actions: the mean over runs of networks, or of linear weights on public features.

    Call it with states as any private function; or with observations of shape (d,) or (points, d), as Stable-Baselines3
    has it, by `predict` and `q_values`.
    """

    kind: ClassVar[str] = "network"
    what: ClassVar[Literal["agent", "function"]] = "agent"
    details: ClassVar = ("form", "size", "output", "draws", "training")
    form: Form
    size: int
    """Of what a feature map is made: knots, frequencies or grid points a coordinate, or units; 0 for an mlp."""
    weights: tuple[Float[np.ndarray, "runs _ _"], ...]
    """Layer by layer; linear weights, and values on a grid, are one layer."""
    biases: tuple[Float[np.ndarray, "runs _"], ...]
    """Layer by layer, for an mlp."""
    output: Output
    box: Box
    certificate: Certificate
    draws: int = 1
    """How many releases the runs are of: more than one are simulated, and not answered for together."""
    training: Mapping[str, Any] | None = None
    """What is public about how it was trained, for `Agent.load`: the world's name, the longest episode, the steps that
    a promise of the method's own is for, and the hyper-parameters."""

    def __post_init__(self) -> None:
        super().__post_init__()
        with np.errstate(over="ignore"):  # what gets too large is refused by `largest`
            layers = [_with_bias(*both) for both in zip(self.weights, self.biases, strict=True)] if self.biases else []
        object.__setattr__(self, "_layers", layers)

    def to_arrays(self) -> tuple[Details, Arrays]:
        named = [(f"weight.{i}", array) for i, array in enumerate(self.weights)]
        return super().to_arrays()[0], dict(named + [(f"bias.{i}", array) for i, array in enumerate(self.biases)])

    @classmethod
    def from_arrays(cls, stored: Stored) -> "PrivateNetwork":
        layers = sum(name.startswith("weight.") for name in stored.arrays)
        mlp = stored.details.get("form") == "mlp"
        names = [f"weight.{i}" for i in range(layers)] + [f"bias.{i}" for i in range(layers if mlp else 0)]
        stored.expect(cls.details, names)
        form, size, output, draws, training = (stored.details[name] for name in cls.details)
        require(form in get_args(Form), "its network is not known here")
        require(output in get_args(Output), "its network's output is not known here")
        arrays = [stored.arrays[name] for name in names]
        weights, biases = tuple(arrays[:layers]), tuple(arrays[layers:])
        require(layers and all(weight.ndim == 3 for weight in weights), "a layer's weights have three axes")
        runs = weights[0].shape[0]
        require(runs <= MOST_RUNS, f"it has more than {MOST_RUNS} runs")
        require(type(draws) is int and draws > 0 and runs % draws == 0, "its draws must have the same number of runs")
        inputs = _number_of_inputs(form, size, layers, stored.box.dimension)
        for i, weight in enumerate(weights):
            require(weight.shape[0] == runs and weight.shape[2] == inputs, "its layers do not fit each other")
            inputs = weight.shape[1]
            require(not biases or biases[i].shape == (runs, inputs), "its layers do not fit each other")
        _check_training(training)
        network = cls(form, size, weights, biases, output, stored.box, stored.certificate, draws, training)
        require(network.largest() <= LARGEST, "its values could get too large to compute with")
        return network

    def check_norm(self, norm: dict[str, Any], certificate: Certificate) -> None:
        """A method that noises as it goes has a certificate of its own name; others post-process what was released."""
        require(self.draws == 1, "it has more runs than its certificate, which is for one release")
        method = METHODS.get(certificate.method)
        if method is None or self._post_processed():
            return
        require(norm["kind"] in method.norms, f"the method {certificate.method!r} has noise in another norm")
        require(self.runs == 1, "it has more runs than its certificate, which is for one release")
        if method.releases != "network":
            at_knots = self.form == "splines" and self.output == "values"
            require(at_knots, f"the method {certificate.method!r} releases values at knots")
        if method.releases == "noised knots" or norm["kind"] == method.pure_norm:
            require(self.weights[0].size == norm["count"], "its values must be as many as its certificate names")

    def _post_processed(self) -> bool:
        """Whether its own training learned from something released, and noised nothing."""
        name = None if self.training is None else self.training["settings"].get("method")
        own = METHODS.get(name) if isinstance(name, str) else None
        return own is not None and own.standing == "certified" and own.norm is None

    def in_words(self) -> list[str]:
        if self.output == "values":
            return []
        return ["The values of this agent are logarithms of the probabilities with which it would act, averaged."]

    @property
    def actions(self) -> int:
        return self.weights[-1].shape[1]

    @property
    def runs(self) -> int:
        return self.weights[0].shape[0]

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        if self.draws > 1:
            raise InvalidInput(f"These are {self.draws} simulated releases: Agent.load picks one by its member.")
        unit = self.box.to_unit(states)
        where = unit.shape if self.box.dimension == 1 else unit.shape[:-1]
        points = unit.reshape(-1, self.box.dimension)
        values = np.empty((len(points), self.actions))
        at_once = max(1, _AT_ONCE // (self.runs * self._widest()))
        for begin in range(0, len(points), at_once):
            values[begin : begin + at_once] = self._at(points[begin : begin + at_once])
        return values.reshape(*where, self.actions)

    def q_values(self, observation: object) -> Float[np.ndarray, "... actions"]:
        """The values of all actions at one or many observations, shape (d,) or (points, d)."""
        points = observed(observation, self.box)
        return self(points[..., 0] if self.box.dimension == 1 else points)

    def predict(
        self, observation: object, state: object = None, episode_start: object = None, deterministic: bool = True
    ) -> tuple[Int[np.ndarray, "..."], None]:
        """The best action by the released values, and None for the state: as Stable-Baselines3 has it."""
        return np.asarray(self.q_values(observation).argmax(axis=-1)), None

    def largest(self) -> float:
        """A bound of what any layer can hold, anywhere in the box."""
        size, most = 2.0, 0.0  # of features and of unit coordinates
        with np.errstate(over="ignore"):
            for i, weights in enumerate(self.weights):
                size = float(np.abs(weights).sum(axis=-1).max()) * size
                size += float(np.abs(self.biases[i]).max()) if self.biases else 0.0
                most = max(most, size, float(np.abs(weights).max()))
        return most

    def _shape(self) -> str:
        return f"{self.form}, runs={self.runs}, actions={self.actions}"

    def _at(self, unit: Float[np.ndarray, "points d"]) -> Float[np.ndarray, "points actions"]:
        if self.form == "mlp":
            each = self._runs(unit)
        else:
            weights = self.weights[0]
            if self.output == "values":  # linear weights can be averaged before they are used
                weights = weights.mean(axis=0, keepdims=True)
            each = self._linear(weights, unit)
        each = np.asarray(each, np.float64)
        return (log_softmax(each, axis=-1) if self.output == "log-probabilities" else each).mean(axis=0)

    def _linear(
        self, weights: Float[np.ndarray, "runs actions features"], unit: Float[np.ndarray, "points d"]
    ) -> Float[np.ndarray, "runs points actions"]:
        runs, actions, _ = weights.shape
        if self.form == "grid":
            nearest = np.rint(unit * (self.size - 1)).astype(np.int64) @ self.size ** np.arange(unit.shape[1])[::-1]
            return weights[:, :, nearest].swapaxes(1, 2)
        if self.form != "splines":
            return features(self.form, self.size, unit) @ weights.swapaxes(1, 2)
        found = interpolate(weights.reshape(runs * actions, -1), self.size, unit)
        return found.reshape(len(unit), runs, actions).swapaxes(0, 1)

    def _widest(self) -> int:
        """The most numbers that one state becomes, in one run."""
        return self.actions if self.form == "grid" else max(max(weights.shape[1:]) for weights in self.weights) + 1

    def _runs(self, unit: Float[np.ndarray, "points d"]) -> Float[np.ndarray, "runs points actions"]:
        """Each training's network. Points are columns, so that a layer is one product and one pass."""
        layers: list[np.ndarray] = self.__dict__["_layers"]
        hidden = np.vstack([unit.T, np.ones(len(unit))]).astype(np.float32)
        for layer in layers[:-1]:
            hidden = layer @ hidden
            np.maximum(hidden, 0, out=hidden)
        return (layers[-1][:, :-1] @ hidden).swapaxes(1, 2)


def observed(observation: object, box: Box) -> Float[np.ndarray, "... d"]:
    """Observations as numbers; one that lies a hair outside the box, where float32 puts its ends, counts as the end."""
    points, dimension = numbers("observation", observation), box.dimension
    if points.ndim not in (1, 2) or points.shape[-1] != dimension:
        raise InvalidInput(f"observation must have shape ({dimension},) or (points, {dimension}), not {points.shape}.")
    inside = np.clip(points, box.low, box.high)
    return np.where(np.abs(points - inside) <= box.hair, inside, points)


def _with_bias(
    weight: Float[np.ndarray, "runs out in"], bias: Float[np.ndarray, "runs out"]
) -> Float[np.ndarray, "runs more columns"]:
    """A layer as one matrix, which takes a 1 below its inputs and gives one below its outputs."""
    one = np.zeros((len(weight), 1, weight.shape[2] + 1))
    one[..., -1] = 1
    return np.concatenate([np.concatenate([weight, bias[..., None]], axis=2), one], axis=1).astype(np.float32)


def features(form: str, size: int, unit: Float[np.ndarray, "points d"]) -> Float[np.ndarray, "points features"]:
    """The public features at points of the unit box, but for splines, which are interpolated."""
    dimension = unit.shape[1]
    if form == "fourier":
        waves = frequencies(size, dimension)
        return np.cos(math.pi * (unit @ waves.T)) / math.sqrt(len(waves))
    directions, kinks = random_units(size, dimension)
    return np.maximum(unit @ directions.T - kinks, 0) * (2 / math.sqrt(size))


@functools.lru_cache
def frequencies(size: int, dimension: int) -> Float[np.ndarray, "waves d"]:
    """All vectors of whole numbers below `size`."""
    return np.array(list(itertools.product(range(size), repeat=dimension)), np.float64)


@functools.lru_cache
def random_units(size: int, dimension: int) -> tuple[Float[np.ndarray, "units d"], Float[np.ndarray, " units"]]:
    source = np.random.default_rng(20191208)  # any fixed number: the features are public
    directions = source.normal(size=(size, dimension)).astype(np.float32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions, (directions * source.uniform(size=directions.shape)).sum(axis=1).astype(np.float32)


def number_of_features(form: str, size: int, dimension: int) -> int:
    return size if form == "random" else size**dimension


def _number_of_inputs(form: str, size: Any, layers: int, dimension: int) -> int:
    """Of the first layer; checked before it is computed, because a large power is slow."""
    if form == "mlp":
        require(size == 0, "an mlp's size is 0")
        return dimension
    require(layers == 1 and type(size) is int and size >= 2, "linear weights are one layer of 2 features or more")
    most = _MOST_POINTS if form == "grid" else MOST_FEATURES
    require(size <= most and dimension <= MOST_DIMENSION, f"it has more than {most} features")
    inputs = number_of_features(form, size, dimension)
    require(inputs <= most, f"it has more than {most} features")
    return inputs


def _check_training(training: Any) -> None:
    if training is None:
        return
    require(isinstance(training, dict) and set(training) == set(_TRAINING), f"its training must be {sorted(_TRAINING)}")
    for name, kinds in _TRAINING.items():
        require(type(training[name]) in kinds, f"its {name} must be {' or '.join(_WORDS[kind] for kind in kinds)}")


def interpolate(
    weights: Float[np.ndarray, "outputs knots"], size: int, unit: Float[np.ndarray, "points d"]
) -> Float[np.ndarray, "points outputs"]:
    """Multilinear between knots: what hat functions come to, by the corners of each point's cell alone."""
    table = np.ascontiguousarray(weights.T)
    position = unit * (size - 1)
    left = np.minimum(position.astype(np.int64), size - 2)
    share = position - left
    values = np.zeros((len(unit), table.shape[1]))
    for corner in itertools.product((0, 1), repeat=unit.shape[1]):
        index, part = np.zeros(len(unit), np.int64), np.ones(len(unit))
        for axis, up in enumerate(corner):
            index = index * size + left[:, axis] + up
            part = part * (share[:, axis] if up else 1 - share[:, axis])
        values += table[index] * part[:, None]
    return values
