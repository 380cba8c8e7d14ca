"""A private world that can be published: dynamics, start states, rewards and terminations.

All of it is arrays that the noise has already gone into, and names of public functions, so that any planner or learner
may act in it for as long as it likes. It is written against an array module, `xp`, and works in the unit box; `env`
makes a Gymnasium environment of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, get_args

import numpy as np
from jaxtyping import Float
from msgspec import Meta

from quietq.feedback.spaces import Spaces
from quietq.noise import Box
from quietq.noise.feature_maps import AnyFeatureMap, FeatureMap, Polynomials
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.checks import Count, Natural, Real, Record, checked_by, not_negative
from quietq.privacy.norms import AnyNorm, MeanOfPeople
from quietq.released.private_model import LARGEST, PrivateModel
from quietq.released.publishable import UNNAMED, Arrays, Labels, Publishable, require
from quietq.released.world_model import MOST_FEATURES, KnownName, WorldModel

STARTS_UNSEEN = (
    "Start states may be noise alone: their z-score against pure noise is below 3. Check the episode and the step of "
    "the sessions, or declare what is known: qq.WorldModel(start=...)."
)


Size = Annotated[float, checked_by(not_negative)]


class WorldErrors(Record, frozen=True, tag=False, tag_field=None):
    """How far off a private world may be; None for rewards, ends and starts that are known, or not there.

    Noise is not all of it: where noise is large, fits are shrunk towards a constant, and terms that would not be worth
    their noise are left out. All numbers here are post-processing of noisy answers, or public, so they can be
    published.
    """

    reward_noise: Size | None = None
    """The standard error of rewards from noise alone: root mean square over states, in their own units."""
    reward_kept: Size | None = None
    """The estimated fraction of reward variation that survives shrinkage. Clipping, and rounds that end early, may
    take more."""
    reward_error: Size | None = None
    """The estimated error of rewards from noise, sampling, shrinkage and omitted terms, if they are as smooth as the
    fit assumes: root mean square where people's states lie, in their own units. It is an estimate, not a bound."""
    ends_noise: Size | None = None
    """The standard error of the log-odds of termination from noise alone: root mean square over states."""
    end_reward_noise: Size | None = None
    """The standard error of the mean reward of steps that end an episode, from noise alone, in its own units."""
    starts_seen: Size | None = None
    """The z-score of the start-state statistics against pure noise; below 3, treat start states as unknown."""
    step_noise: tuple[Size, ...] = ()
    """The standard error of the expected next value from noise, for each learned coordinate, in its own units."""
    step_scatter: tuple[Size, ...] = ()
    """The residual standard deviation of people's own steps, likewise."""

    @property
    def starts_unseen(self) -> bool:
        """Whether start states may be noise alone."""
        # Pure noise has a z-score above 3 once in some hundred draws.
        return self.starts_seen is not None and self.starts_seen < 3.0

    def of_steps(self, names: Sequence[str]) -> list[str]:
        """The standard error of one step beside the residual scatter, of each learned coordinate, by its name."""
        return [
            f"Steps of {name}: the expected next value has a standard error from noise of about {noise:.2g}; people's "
            f"own steps scatter around it by {scatter:.2g}."
            for name, noise, scatter in zip(names, self.step_noise, self.step_scatter, strict=True)
        ]

    def in_words(self, low: float, high: float) -> list[str]:
        """For whoever has to decide whether to train in the world; nothing of what is known."""
        lines = []
        if self.reward_error is not None:
            lines.append(
                f"Rewards, from {low:g} to {high:g}: expected error about {self.reward_error:.2g} where people's "
                "states lie (an estimate, not a bound), more elsewhere. "
                f"Noise alone: about {self.reward_noise:.2g}; fraction of their variation that survives shrinkage: "
                f"about {self.reward_kept:.2g}. If there is a public formula, declare it: "
                "qq.WorldModel(reward=...)."
            )
        if self.end_reward_noise is not None:
            lines.append(
                "The reward of a step that ends its episode was learned separately, as one mean, with a standard error "
                f"from noise of about {self.end_reward_noise:.2g}."
            )
        if self.ends_noise is not None:
            lines.append(
                f"The probability of termination is learned: noise alone has a standard error of about "
                f"{self.ends_noise:.2g} in log-odds, a factor of {np.exp(min(self.ends_noise, 50.0)):.2g} where ends "
                "are rare. If there is a public rule, declare it: qq.WorldModel(end=...)."
            )
        if self.starts_unseen:
            lines.append(STARTS_UNSEEN)
        return lines


class Fit(NamedTuple):
    """target = features @ weights + residual."""

    weights: Float[np.ndarray, "features targets"]
    gram: Float[np.ndarray, "features features"]
    """The mean of features times features, of which the first is 1."""
    residual: Float[np.ndarray, "targets targets"]
    """The covariance of what is not explained."""
    left: Float[np.ndarray, "features features"]
    right: Float[np.ndarray, "targets targets"]
    """Noise moves weights by left @ E @ right, with E about independent standard normals."""


class Spreads(NamedTuple):
    """Standard deviations of one step, for each coordinate that is learned, in its own units."""

    noise: Float[np.ndarray, " moved"]
    """Standard deviations of the expected change by the release's known noise, at people's own states and actions."""
    residual: Float[np.ndarray, " moved"]
    """Residual standard deviations of people's steps, as released."""
    explained: Float[np.ndarray, " moved"]
    """Standard deviations of the expected change over states and actions."""


def spreads(world: "Fit | PrivateWorld", box: Box, moved: tuple[int, ...]) -> Spreads:
    """The error of weights is about left @ E @ right with standard normals E; gram is the mean of features squared."""
    half = np.array(box.width)[list(moved)] / 2
    mean = world.gram[0]
    explained = np.einsum("fi,fg,gi->i", world.weights, world.gram - np.outer(mean, mean), world.weights)
    off = np.sqrt(max(float(np.trace(world.left.T @ world.gram @ world.left)), 0.0))
    return Spreads(
        half * off * np.linalg.norm(world.right, axis=0),
        half * np.sqrt(np.maximum(np.diag(world.residual), 0.0)),
        half * np.sqrt(np.maximum(explained, 0.0)),
    )


@dataclass(frozen=True, eq=False, repr=False)
class PrivateWorld(Publishable, tag="world"):
    """A released world: `env()` is its Gymnasium form.

    Called with states, it gives the expected next state for each action of the list, one after the other, or for the
    middle of the box of actions.
    """

    arrays: ClassVar = ("weights", "gram", "residual", "left", "right", "first", "spread")
    parts: ClassVar = {"reward": PrivateModel, "ends": PrivateModel}
    not_in_files: ClassVar = ("model",)
    actions: Count | None
    """How many actions there are, or else the box of those that are numbers."""
    action_box: Box | None
    low: Real
    high: Real
    """The range of rewards."""
    feature_map: AnyFeatureMap
    """The features of state and action, besides a constant."""
    moved: Annotated[tuple[Natural, ...], Meta(min_length=1)]
    """The coordinates that are learned; those that are not follow from known functions."""
    weights: Float[np.ndarray, "features moved"]
    """Half the box's widths that each feature moves each coordinate by."""
    gram: Float[np.ndarray, "features features"]
    residual: Float[np.ndarray, "moved moved"]
    """The covariance of what features do not explain, in squares of half the box's widths."""
    left: Float[np.ndarray, "features features"]
    right: Float[np.ndarray, "moved moved"]
    """The release's noise moved the weights by about left @ E @ right, with E independent standard normals."""
    rate: Real
    """The log-odds of an end, where `ends` says 0."""
    errors: WorldErrors
    """How far off rewards and ends may be."""
    box: Box
    certificate: Certificate  # pyright: ignore[reportIncompatibleVariableOverride]
    first: Float[np.ndarray, " states"] | None = None
    spread: Float[np.ndarray, "states states"] | None = None
    """Mean and covariance of first states, in the unit box; None if starts are known."""
    reward: PrivateModel | None = None
    ends: PrivateModel | None = None
    """None if they are known, or if there are none."""
    end_reward: Real | None = None
    """What a step that ends its episode is worth, if learned separately; `reward` is of the other steps then."""
    known: tuple[KnownName, ...] = ()
    circles: tuple[tuple[Natural, Natural], ...] = ()
    """Pairs of coordinates that are cosine and sine of one angle."""
    model: WorldModel = field(default_factory=WorldModel)
    """The model with the known functions, which a file does not hold."""

    @cached_property
    def spaces(self) -> Spaces:
        """Where states, actions and rewards lie, and what they are called."""
        names = {"state_names": self.labels.states, "action_names": self.labels.actions}
        return Spaces(self.box, self.actions, self.action_box, self.low, self.high, **names)

    # What a step does, in the unit box.

    def features_of(self, states: np.ndarray, actions: np.ndarray) -> Float[np.ndarray, "*some features"]:
        """Computes the public features of states and actions that the dynamics are linear in.

        Args:
            states: States in their own units, one row each.
            actions: Actions: places in the list, or rows of numbers.

        """
        found = self.feature_map(self.spaces.join(states, actions))
        return np.concatenate([np.ones_like(found[..., :1]), found], axis=-1)

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        unit = self.box.to_unit(states)
        points = unit[..., None] if self.box.dimension == 1 else unit
        if self.spaces.actions is None:
            actions = [np.full((*points.shape[:-1], self.spaces.numbers), 0.5)]
        else:
            actions = [np.full(points.shape[:-1], i) for i in range(self.spaces.actions)]
        moved = []
        for action in actions:
            after = points.copy()
            after[..., self.moved] += self.features_of(points, action) @ self.weights / 2
            moved.append(np.clip(after, 0.0, 1.0) * np.array(self.box.width) + np.array(self.box.low))
        return np.concatenate(moved, axis=-1)

    def typical(self) -> tuple[Float[np.ndarray, " states"], Float[np.ndarray, " states"]]:
        """Returns mean and deviation of people's states, in the unit box, if features tell; else of the whole box."""
        mean, spread = visited(self.feature_map, self.spaces.states, self.gram)
        return mean, np.sqrt(np.maximum(np.diag(spread), 1e-12))

    def plausible(self, number: int, rng: np.random.Generator) -> Float[np.ndarray, "number features moved"]:
        """Draws weights that the true ones may be, given the known size of the noise.

        Args:
            number: How many draws.
            rng: A NumPy generator; the draws are post-processing, so any will do.

        """
        normals = rng.standard_normal((number, *self.weights.shape))
        return self.weights + self.left @ normals @ self.right

    def env(self, **options: Any) -> Any:
        """Makes a Gymnasium environment of the world: `quietq.worlds.private_env.PrivateWorldEnv`.

        Args:
            options: Those of `PrivateWorldEnv` (`steps`, `ensemble`, `halt`, `noise`); `copies` for a vector
                environment of this number of copies, and `stable_baselines=True` for one of Stable-Baselines3's kind.

        """
        from quietq.worlds.private_env import environment  # a room to the right: this is a way of calling it

        return environment(self, **options)

    def with_known(self, model: WorldModel) -> "PrivateWorld":
        """Returns the same world with the known functions that a file does not hold.

        Args:
            model: The `WorldModel` that was given to `privatise`.

        """
        same = model.known == self.known and self.moved == model.learned(self.spaces.states)
        if not same or model.circles != self.circles:
            raise InvalidInput(f"This world was made with {self._declared()} declared as known: give these.")
        same_numbers = replace(self, model=model)
        return same_numbers.issued(self.receipt) if self.is_as_issued() else same_numbers

    def _declared(self) -> str:
        others = sorted(set(range(self.spaces.states)) - set(self.moved))
        names = self.spaces.state_names
        moves = (f"moves[{i}] ({names[i]})" for i in others)
        circles = [f"circles={self.circles}"] if self.circles else []
        return ", ".join([*self.known, *moves, *circles]) or "nothing"

    def missing(self) -> str | None:
        """Returns what was declared as known, if it is not there."""
        there = self.model.known == self.known and set(self.model.moves).isdisjoint(self.moved)
        whole = len(self.model.moves) + len(self.moved) == self.spaces.states
        return None if there and whole else self._declared()

    @classmethod
    def from_file(
        cls,
        details: Any,
        arrays: Arrays,
        box: Box,
        certificate: Certificate,
        labels: Labels = UNNAMED,
        **parts: Publishable,
    ) -> "PrivateWorld":
        """Rewards and ends are models of the unit box of states and of numbers that actions are, or of states alone."""
        spaces = Spaces(box, details.actions, details.action_box, details.low, details.high)
        for name, sides in (("reward", spaces.states + spaces.numbers), ("ends", spaces.states)):
            if (said := getattr(details, name)) is not None:
                own = {key.partition(".")[2]: array for key, array in arrays.items() if key.startswith(f"{name}.")}
                parts[name] = PrivateModel.from_file(said, own, Box.of([(0.0, 1.0)] * sides), certificate)
        return super().from_file(details, arrays, box, certificate, labels, **parts)

    def check(self) -> None:
        spaces, errors, known = self.spaces, self.errors, self.known
        learned = [one is None for one in (self.first, self.spread)]
        require(set(learned) == {"start" in known}, "its arrays must be of first states unless these are known")
        require(sorted(set(known), key=get_args(KnownName).index) == list(known), "what is known is named once")
        rising = sorted(set(self.moved)) == list(self.moved) and self.moved[-1] < spaces.states
        require(rising, "its moved coordinates must be some of the box's")
        WorldModel(circles=self.circles).require_circles(self.box)
        for name, part, outputs in (("reward", self.reward, spaces.actions or 1), ("ends", self.ends, 1)):
            require(part is None or name.removesuffix("s") not in known, f"its {name} must be learned, or else known")
            fits = part is None or part.weights.shape[1:] == ((outputs,) if outputs > 1 else ())
            require(fits, f"its {name} must fit its actions")
        require(self.reward is not None or "reward" in known, "its reward must be learned or known")
        stated = (
            (self.reward, errors.reward_noise),
            (self.reward, errors.reward_kept),
            (self.reward, errors.reward_error),
            (self.ends, errors.ends_noise),
            (self.end_reward, errors.end_reward_noise),
            (self.first, errors.starts_seen),
        )
        agree = all((part is None) == (error is None) for part, error in stated)
        require(agree, "its errors must be stated for all that is learned, and no more")
        within = self.end_reward is None or (self.reward is not None and spaces.low <= self.end_reward <= spaces.high)
        require(within, "its reward at ends must be learned beside others, and lie in their range")
        of_steps = len(errors.step_noise) == len(errors.step_scatter) == len(self.moved)
        require(of_steps, "its errors must be stated for each coordinate that is learned")
        features, states, moved = 1 + self.feature_map.rank, spaces.states, len(self.moved)
        # before anything is factored, so that no file can ask for matrices of thousands
        require(features <= 1 + MOST_FEATURES, f"it has more than {MOST_FEATURES} features")
        require(self.feature_map.dimension == spaces.dimension, "its features must be of states and actions")
        shapes = {
            "weights": (features, moved),
            "gram": (features, features),
            "residual": (moved, moved),
            "left": (features, features),
            "right": (moved, moved),
            "first": (states,),
            "spread": (states, states),
        }
        for name, shape in shapes.items():
            if (array := getattr(self, name)) is not None:
                require(array.shape == shape, f"its {name} must have shape {shape}")
                require((np.abs(array) <= LARGEST).all(), f"its {name} is too large to compute with")
                is_covariance = name not in ("gram", "residual", "spread") or _is_covariance(array)
                require(is_covariance, f"its {name} must be positive semi-definite")
        for name in ("gram", "right"):
            require(_is_invertible(getattr(self, name)), f"its {name} must be invertible")

    def check_labels(self) -> None:
        """Nothing more: `spaces` refuses names that are not one for each coordinate and each action."""

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        means = all(isinstance(norm, MeanOfPeople) for norm in norms)
        require(means, "its noise must be that of means over people")
        require(certificate.method == "world/moments", "its certificate must be that of a world")

    def in_words(self) -> list[str]:
        return ["This is a world: its values are the expected next state, for each action one after the other."]

    def __str__(self) -> str:
        """Returns what it is, in names that whoever declared it knows, and how far off it may be."""
        spaces, known = self.spaces, self._declared()
        lines = [f"A private world of {spaces.in_words()}."]
        lines += self.errors.of_steps([spaces.state_names[i] for i in self.moved])
        low, high = spaces.low, spaces.high
        if self.reward is not None and self.reward.low is not None and self.reward.high is not None:
            low, high = self.reward.low, self.reward.high
        lines += self.errors.in_words(low, high)
        if self.ends is None and "end" not in self.known:
            lines.append("Episodes never end by themselves.")
        lines += [] if known == "nothing" else [f"Declared as known: {known}."]
        lines.append(str(self.certificate).splitlines()[0])
        mark = "" if self.certificate.standing == "certified" else "NOT PRIVATE: "
        return mark + "\n".join(lines)

    def _shape(self) -> str:
        actions = self.spaces.actions if self.spaces.actions is not None else self.spaces.action_box
        return f"actions={actions}, features={len(self.weights)}, known={self._declared()}"


def visited(
    feature_map: FeatureMap, states: int, gram: Float[np.ndarray, "features features"]
) -> tuple[Float[np.ndarray, " states"], Float[np.ndarray, "states states"]]:
    """Mean and covariance of people's states in the unit box, if features tell; else those of the whole box."""
    terms = feature_map.terms if isinstance(feature_map, Polynomials) else ()
    places = [1 + terms.index(((i, 1),)) for i in range(states) if ((i, 1),) in terms]
    if len(places) < states:
        return np.full(states, 0.5), np.eye(states) / 12
    mean = gram[0, places]
    return (mean / math.sqrt(3) + 1) / 2, (gram[np.ix_(places, places)] - np.outer(mean, mean)) / 12


def _is_covariance(matrix: np.ndarray) -> bool:
    """Says whether it is symmetric and positive semi-definite, but for rounding."""
    largest = float(np.abs(matrix).max())
    even = np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-12 * largest)
    return even and bool(np.linalg.eigvalsh(matrix).min() >= -1e-9 * largest)


def _is_invertible(matrix: np.ndarray) -> bool:
    try:
        return bool(np.isfinite(np.linalg.inv(matrix)).all())
    except np.linalg.LinAlgError:
        return False
