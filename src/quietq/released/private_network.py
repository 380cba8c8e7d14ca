"""Networks that can be published, in NumPy: agents that quietq trained, and policies that other libraries trained.

Whoever loads a release should not have to install what trained it. An agent's network is that of
`paper.agents.networks`; a test holds the two against each other. Of a policy, numbers are stored and the names of a few
well-known functions; nothing in a file is code.

A policy that imitates people (`mechanisms.clone`) is released itself, and has a certificate of its own.

Theorem (post-processing). Training looks at what was released, so a policy is covered by that certificate, if nothing
else that is private was looked at: not by training, and not by whoever chose this policy among others. No code can see
that, and so every certified policy states it as trusted (`TRAINED`).

Proof: docs/theory.md#post-processing.
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int, Shaped
from msgspec import Meta
from scipy.special import log_softmax

from quietq.feedback.spaces import Spaces
from quietq.noise import Box
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import Count, Natural, Record, numbers
from quietq.privacy.norms import TRAINED_METHODS, AnyNorm, KnotValues, MeanOfPeople
from quietq.released.private_function import PrivateFunction
from quietq.released.private_world import PrivateWorld
from quietq.released.publishable import Json, Publishable, require

Form = Literal["mlp", "splines", "grid"]
Output = Literal["values", "log-probabilities"]
Activation = Literal["tanh", "relu"]
LARGEST = 1e30
"""No hidden value may be able to get larger: far from overflow in float32."""
MOST_FEATURES, MOST_RUNS, MOST_DIMENSION = 4096, 1024, 12
MOST_POINTS = 2**26 + 1
"""The most points of a grid."""


class LayeredFunction(Publishable):
    """A network of layers, asked at many states at once. A subclass says what goes in and what comes out."""

    what: ClassVar[Literal["agent", "function"]] = "agent"
    arrays: ClassVar[tuple[str, ...]] = ("weights", "biases")
    layered: ClassVar = ("weights", "biases")
    weights: tuple[Float[np.ndarray, "*runs _ _"], ...]
    """Layer by layer, (outputs, inputs)."""
    biases: tuple[Float[np.ndarray, "*runs _"], ...]
    output: str
    """What the last layer's numbers are."""

    @property
    def outputs(self) -> int:
        return self.weights[-1].shape[-2]

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        """Some states at a time, so that what they become in a layer fits the processor's cache."""
        points = self._inputs(states)
        flat = points.reshape(-1, self.box.dimension)
        widest = max(math.prod(weights.shape[:-1]) for weights in self.weights)  # of what a state becomes, in all runs
        at_once = max(1, 2**17 // widest)
        values = np.empty((len(flat), self.outputs))
        for begin in range(0, len(flat), at_once):
            values[begin : begin + at_once] = self._at(flat[begin : begin + at_once])
        return values.reshape(*points.shape[:-1], values.shape[1])

    def q_values(self, observation: object) -> Float[np.ndarray, "... outputs"]:
        """All outputs at one or many observations, shape (d,) or (points, d)."""
        points = observed(observation, self.box)
        return self(points[..., 0] if self.box.dimension == 1 else points)

    def predict(
        self, observation: object, state: object = None, episode_start: object = None, deterministic: bool = True
    ) -> tuple[Shaped[np.ndarray, "..."], None]:
        """The best action, or one drawn by its probabilities, and None for the state: as Stable-Baselines3 has it."""
        values = self.q_values(observation)
        if self.choices is None and deterministic:
            return values.astype(np.float32), None
        if not deterministic:
            if self.output != "log-probabilities":
                raise InvalidInput(
                    "deterministic must be True, because this release holds the best action and not how the model "
                    "explores around it."
                )
            # The largest is drawn by its probability.
            values = values + np.random.default_rng().gumbel(size=values.shape)
        return np.asarray(values.argmax(axis=-1)), None

    @abstractmethod
    def _inputs(self, states: object) -> Float[np.ndarray, "... d"]:
        """Returns what the first layer is given, with an axis of coordinates also where there is one only."""

    @abstractmethod
    def _at(self, points: Float[np.ndarray, "points d"]) -> Float[np.ndarray, "points outputs"]: ...


Layers = tuple[np.ndarray, ...]


def check_layers(weights: Layers, biases: Layers, axes: int, inputs: int) -> None:
    """Refuses layers, whose weights have this number of axes, that do not fit each other or the input."""
    require(weights, "it has one layer or more")
    require(all(one.ndim == axes for one in weights), f"a layer's weights have {axes} axes")
    shapes = [one.shape for one in weights]
    chained = all((*after[:-2], after[-1]) == before[:-1] for before, after in itertools.pairwise(shapes))
    shifted = all(bias.shape == shape[:-1] for bias, shape in zip(biases, shapes, strict=False))
    require(chained and shifted and shapes[0][-1] == inputs, "its layers do not fit each other")


def largest_value(weights: Layers, biases: Layers, size: float, squashed: bool = False) -> float:
    """A bound of what any layer holds, if inputs are at most so large; squashed values are at most 1 in size."""
    most = size
    for i, weight in enumerate(weights):
        with np.errstate(over="ignore"):
            size = float(np.abs(weight).sum(axis=-1).max()) * size + (float(np.abs(biases[i]).max()) if biases else 0.0)
        most = max(most, size, float(np.abs(weight).max()))
        size = min(size, 1.0) if squashed else max(size, 1.0)
    return most


class HowTrained(Record, frozen=True, tag=False, tag_field=None):
    """What is public about how an agent was trained, for `Agent.load`."""

    world: str | None
    episode: int
    """The longest episode."""
    steps: int | None
    """The steps that a promise of the method's own is for."""
    settings: Json
    """The hyper-parameters."""


@dataclass(frozen=True, eq=False, repr=False)
class PrivateNetwork(LayeredFunction, PrivateFunction, tag="network"):
    """Released values of all actions: the mean over runs of networks, or of linear weights on public features.

    Call it with states as any private function; or with observations of shape (d,) or (points, d), as Stable-Baselines3
    has it, by `predict` and `q_values`.
    """

    form: Form
    size: Natural
    """Knots of splines or grid points, a coordinate; 0 for an mlp."""
    weights: tuple[Float[np.ndarray, "runs _ _"], ...]
    """Layer by layer; linear weights, and values on a grid, are one layer."""
    biases: tuple[Float[np.ndarray, "runs _"], ...]
    """Layer by layer, for an mlp."""
    output: Output  # pyright: ignore[reportIncompatibleVariableOverride]
    box: Box
    certificate: Certificate
    draws: Count = 1
    """How many releases the runs are of: more than one are simulated, and not answered for together."""
    training: HowTrained | None = None

    def check(self) -> None:
        inputs = self.box.dimension
        if self.form == "mlp":
            require(self.size == 0, "an mlp's size is 0")
        else:
            require(len(self.weights) == 1 and self.size >= 2, "linear weights are one layer of 2 features or more")
            most = MOST_POINTS if self.form == "grid" else MOST_FEATURES
            # In this order, because a large power is slow.
            few = self.size <= most and inputs <= MOST_DIMENSION and self.size**inputs <= most
            require(few, f"it has more than {most} features")
            inputs = self.size**inputs
        check_layers(self.weights, self.biases, 3, inputs)
        require(len(self.biases) == len(self.weights) * (self.form == "mlp"), "an mlp alone has biases, one a layer")
        require(self.runs <= MOST_RUNS, f"it has more than {MOST_RUNS} runs")
        require(self.runs % self.draws == 0, "its draws must have the same number of runs")
        largest = largest_value(self.weights, self.biases, 2.0)  # of features and of unit coordinates
        require(largest <= LARGEST, "its values could get too large to compute with")

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        """A method that noises as it goes has a certificate of its own name; others post-process what was released."""
        require(self.draws == 1, "it has more runs than its certificate, which is for one release")
        method = TRAINED_METHODS.get(certificate.method)
        if method is None or self._post_processed():
            return
        own = method.norm is not None and all(type(norm) is method.norm for norm in norms)
        require(own, f"the method {certificate.method!r} has noise in another norm")
        require(self.runs == 1, "it has more runs than its certificate, which is for one release")
        if method.releases != "network":
            at_knots = self.form == "splines" and self.output == "values"
            require(at_knots, f"the method {certificate.method!r} releases values at knots")
        if method.releases == "noised knots":
            named = all(isinstance(norm, KnotValues) and self.weights[0].size == norm.count for norm in norms)
            require(named, "its values must be as many as its certificate names")

    def _post_processed(self) -> bool:
        """Says whether its own training learned from something released, and noised nothing."""
        name = None if self.training is None else self.training.settings.get("method")
        own = TRAINED_METHODS.get(name) if isinstance(name, str) else None
        # A file may say anything of its training: somebody is trusted for it, and the certificate says so.
        trusted = Code.COVERED() in self.certificate.assumptions
        return trusted and own is not None and own.standing == "certified" and own.norm is None

    def in_words(self) -> list[str]:
        averaged = "The values of this agent are logarithms of the probabilities with which it would act, averaged."
        return [*([] if self.output == "values" else [averaged]), *super().in_words()]

    @property
    def runs(self) -> int:
        return self.weights[0].shape[0]

    def _inputs(self, states: object) -> Float[np.ndarray, "... d"]:
        if self.draws > 1:
            raise InvalidInput(f"These are {self.draws} simulated releases: Agent.load picks one by its member.")
        unit = self.box.to_unit(states)
        return unit[..., None] if self.box.dimension == 1 else unit

    def _shape(self) -> str:
        return f"{self.form}, runs={self.runs}, actions={self.outputs}"

    def _at(self, points: Float[np.ndarray, "points d"]) -> Float[np.ndarray, "points actions"]:
        if self.form == "mlp":
            each = through_layers(self.weights, self.biases, "relu", points)
        else:
            weights = self.weights[0]
            if self.output == "values":  # linear weights can be averaged before they are used
                weights = weights.mean(axis=0, keepdims=True)
            each = self._linear(weights, points)
        return (log_softmax(each, axis=-1) if self.output == "log-probabilities" else each).mean(axis=0)

    def _linear(
        self, weights: Float[np.ndarray, "runs actions features"], unit: Float[np.ndarray, "points d"]
    ) -> Float[np.ndarray, "runs points actions"]:
        runs, actions, _ = weights.shape
        if self.form == "grid":
            nearest = np.rint(unit * (self.size - 1)).astype(np.int64) @ self.size ** np.arange(unit.shape[1])[::-1]
            return weights[:, :, nearest].swapaxes(1, 2)
        found = interpolate(weights.reshape(runs * actions, -1), self.size, unit)
        return found.reshape(len(unit), runs, actions).swapaxes(0, 1)


def observed(observation: object, box: Box) -> Float[np.ndarray, "... d"]:
    """Observations as numbers; one that lies a hair outside the box, where float32 puts its ends, counts as the end."""
    points, dimension = numbers("observation", observation), box.dimension
    if points.ndim not in (1, 2) or points.shape[-1] != dimension:
        raise InvalidInput(f"observation must have shape ({dimension},) or (points, {dimension}), not {points.shape}.")
    inside = np.clip(points, box.low, box.high)
    return np.where(np.abs(points - inside) <= box.hair, inside, points)


def corners(
    size: int, unit: Float[np.ndarray, "points d"]
) -> Iterator[tuple[Int[np.ndarray, " points"], Float[np.ndarray, " points"]]]:
    """For each corner of the cells that points lie in, which knot of a grid it is and its share of each point.

    The grid has `size` knots a coordinate; by these shares interpolation is linear in each coordinate.
    """
    position = unit * (size - 1)
    left = np.minimum(position.astype(np.int64), size - 2)
    share = position - left
    for ups in itertools.product((0, 1), repeat=unit.shape[1]):
        index, part = np.zeros(len(unit), np.int64), np.ones(len(unit))
        for axis, up in enumerate(ups):
            index = index * size + left[:, axis] + up
            part = part * (share[:, axis] if up else 1 - share[:, axis])
        yield index, part


def interpolate(
    weights: Float[np.ndarray, "outputs knots"], size: int, unit: Float[np.ndarray, "points d"]
) -> Float[np.ndarray, "points outputs"]:
    """Values between knots, linear in each coordinate: what hat functions come to."""
    table = np.ascontiguousarray(weights.T)
    values = np.zeros((len(unit), table.shape[1]))
    for index, part in corners(size, unit):
        values += table[index] * part[:, None]
    return values


CLONE = "policy/clone"
"""What certificates call the method that releases a policy itself."""
PolicyOutput = Literal["values", "log-probabilities", "clipped", "squashed"]
_CHOOSES = ("values", "log-probabilities")
_POLICY_WORDS = {
    "values": "The values are what the policy expects of each action; it takes the best.",
    "log-probabilities": "The values are logarithms of the probabilities of actions; it takes the most probable.",
    "clipped": "The values are the action itself, number by number, clipped to the action's range.",
    "squashed": "The values are the action itself, number by number, squashed into the action's range.",
}


@dataclass(frozen=True, eq=False, repr=False)
class PrivatePolicy(LayeredFunction, tag="policy"):
    """A policy that another library trained, that was planned, or that imitates people: ask it by `predict`, as
    Stable-Baselines3 has it.

    Observations are of shape (d,) or (points, d). Called, it gives the values or log-probabilities of finitely many
    actions, or the action itself where that is numbers. It acts as the model does with `deterministic=True`; of a
    policy that is probabilities of finitely many actions, `deterministic=False` draws one by them. How other policies
    explore does not leave. A policy that imitates people, or was made in a private world, takes an observation outside
    its box for the nearest one inside, as people's rows were.
    """

    own_box: ClassVar[bool] = True
    arrays: ClassVar = (*LayeredFunction.arrays, "action_range", "normal")
    not_in_files: ClassVar = ("made_in",)
    activation: Activation
    """After each layer but the last."""
    output: PolicyOutput  # pyright: ignore[reportIncompatibleVariableOverride]
    weights: tuple[Float[np.ndarray, "_ _"], ...]
    biases: tuple[Float[np.ndarray, " _"], ...]
    box: Box
    """The box of observations; the certificate names the reward's."""
    certificate: Certificate  # pyright: ignore[reportIncompatibleVariableOverride]
    action_range: Float[np.ndarray, "2 actions"] | None = None
    """The lowest and the highest action, where actions are numbers."""
    normal: Float[np.ndarray, "2 d"] | None = None
    """Mean and deviation that observations are normalised by, before they are clipped to `clip` in size."""
    clip: Annotated[float, Meta(gt=0, le=LARGEST)] | None = None
    threshold: float | None = None
    """The return that the people reached who are imitated, if some were chosen by it; released with noise."""
    made_in: PrivateWorld | None = None
    """The world that `plan_linear` made it in, for `check` and `publish`; in memory only."""

    def check(self) -> None:
        check_layers(self.weights, self.biases, 2, self.box.dimension)
        require(len(self.biases) == len(self.weights), "each of its layers has biases")
        ends, normal = self.action_range, self.normal
        require((ends is None) == (self.output in _CHOOSES), "it has an action_range if its outputs are an action")
        if ends is not None:
            fits = ends.shape == (2, self.outputs) and (ends[0] < ends[1]).all()
            require(fits, "its action_range must have a low below a high for each of the action's numbers")
        require((normal is None) == (self.clip is None), "observations are normalised and clipped, or neither")
        if normal is not None:
            fits = normal.shape == (2, self.box.dimension) and (normal[1] > 0).all()
            require(fits, "each coordinate has one mean, and one deviation above 0")
        middle, deviation = (0.0, 1.0) if normal is None else normal
        with np.errstate(over="ignore"):
            far = float(np.max(np.abs(np.array([self.box.low, self.box.high]) - middle) / deviation))
        most = largest_value(self.weights, self.biases, far, self.activation == "tanh")
        furthest = 0.0 if ends is None else float(np.abs(ends).max())
        require(max(most, furthest) <= LARGEST, "its values could get too large to compute with")
        self.spaces()  # refuses names and ranges of actions that could not be stated

    def spaces(self) -> Spaces:
        """Returns where observations and actions lie, and what they are called."""
        acting = None if self.action_range is None else Box(*(tuple(end) for end in self.action_range.tolist()))
        return Spaces(self.box, self.choices, acting, state_names=self.labels.states, action_names=self.labels.actions)

    @property
    def imitates(self) -> bool:
        """Whether it imitates people, and is what was released itself; else it was made of a release."""
        return self.certificate.method == CLONE

    @property
    def of_world(self) -> bool:
        """Whether it was made in a private world."""
        return self.certificate.method.startswith("world/")

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        if self.imitates:
            sides = tuple(zip(self.box.low, self.box.high, strict=True))
            require(certificate.domain == sides, "its certificate must name its box")
            require(
                all(isinstance(norm, MeanOfPeople) for norm in norms), "its noise must be that of means over people"
            )
            return
        trusted = Code.TRAINED() in certificate.assumptions
        require(trusted, "a policy's certificate must state what it trusts training for")

    def in_words(self) -> list[str]:
        if self.imitates:
            whom = "people" if self.threshold is None else f"the people whose returns reached {self.threshold:.4g}"
            return [f"This policy imitates {whom}: {self.spaces().in_words()}.", _POLICY_WORDS[self.output]]
        what = "world" if self.of_world else "reward"
        whose = (
            f"This policy was trained on a private {what}: the promise, and the box that it names, are the {what}'s."
        )
        return [whose, _POLICY_WORDS[self.output], *super().in_words()]

    def __str__(self) -> str:
        """Returns what it is, in names that whoever declared it knows, and what is promised."""
        if not self.imitates:
            return repr(self)
        lines = [*self.in_words(), str(self.certificate).splitlines()[0]]
        return ("" if self.certificate.standing == "certified" else "NOT PRIVATE: ") + "\n".join(lines)

    @property
    def choices(self) -> int | None:
        return self.outputs if self.output in _CHOOSES else None

    def _inputs(self, states: object) -> Float[np.ndarray, "... d"]:
        self.box.to_unit(states)  # refuses what lies outside
        given = np.asarray(states, np.float64)
        return given[..., None] if self.box.dimension == 1 else given

    def one_by_one(self, observations: Float[np.ndarray, "*some d"]) -> Float[np.ndarray, "*some outputs"]:
        """Returns all outputs at observations, each by products of its own: no other in the array changes a bit.

        What lies outside the box counts as the nearest observation inside.
        """
        inside = np.clip(observations, self.box.low, self.box.high)
        return self._at(inside[..., None, :])[..., 0, :]

    def q_values(self, observation: object) -> Float[np.ndarray, "... outputs"]:
        if self.imitates or self.of_world:
            observation = np.clip(numbers("observation", observation), self.box.low, self.box.high)
        return super().q_values(observation)

    def _shape(self) -> str:
        widths = "-".join(map(str, (self.box.dimension, *map(len, self.biases))))
        return f"{self.activation} {widths}, {self.output}"

    def _at(self, points: Float[np.ndarray, "*points d"]) -> Float[np.ndarray, "*points outputs"]:
        hidden = points
        if self.normal is not None and self.clip is not None:
            hidden = np.clip((points - self.normal[0]) / self.normal[1], -self.clip, self.clip)
        hidden = through_layers(self.weights, self.biases, self.activation, hidden)
        if self.output == "log-probabilities":
            return log_softmax(hidden, axis=-1)
        if self.action_range is None:
            return hidden
        low, high = self.action_range
        if self.output == "squashed":
            hidden = low + (np.tanh(hidden) + 1) / 2 * (high - low)
        return np.clip(hidden, low, high)


def through_layers(
    weights: Layers, biases: Layers, activation: Activation, points: Float[np.ndarray, "*points d"]
) -> Float[np.ndarray, "..."]:
    """Returns what the last layer gives at points; where layers are of several runs, these are the first axis."""
    hidden = points
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if i:
            hidden = np.tanh(hidden) if activation == "tanh" else np.maximum(hidden, 0)
        hidden = hidden @ weight.swapaxes(-1, -2) + bias[..., None, :]
    return hidden
