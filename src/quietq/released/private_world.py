"""A private world that can be published: dynamics, start states, rewards and terminations.

All of it is arrays that the noise has already gone into, and names of public functions, so that any planner or learner
may act in it for as long as it likes. It is written against an array module, `xp`, and works in the unit box; `env`
makes a Gymnasium environment of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from msgspec import Meta

from quietq.feedback.spaces import Spaces
from quietq.noise import Box
from quietq.noise.feature_maps import AnyFeatureMap, FeatureMap, Polynomials
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.checks import not_negative, shown
from quietq.privacy.norms import AnyNorm, MeanOfPeople
from quietq.privacy.records import Count, Natural, Real, Record, checked_by
from quietq.released.private_model import LARGEST, PrivateModel
from quietq.released.publishable import Arrays, Details, Json, Labels, Publishable, Stored, require
from quietq.released.world_model import MOST_FEATURES, WorldModel

_PARTS = ("reward", "ends")
_FIT = ("weights", "gram", "residual", "left", "right")
_FIRST = ("first", "spread")


STARTS_UNSEEN = (
    "Start states may be noise alone: their z-score against pure noise is below 3. Check the episode and the step of "
    "the sessions, or declare what is known: qq.WorldModel(start=...)."
)


def _sizes(name: str, given: object) -> tuple[float, ...]:
    if not isinstance(given, tuple | list):
        raise InvalidInput(f"{name} must be numbers, one for each coordinate that is learned, not {shown(given)}.")
    return tuple(not_negative(name, one) for one in given)


Size = Annotated[float, checked_by(not_negative)]
Sizes = Annotated[tuple[float, ...], checked_by(_sizes)]


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
    step_noise: Sizes = ()
    """The standard error of the expected next value from noise, for each learned coordinate, in its own units."""
    step_scatter: Sizes = ()
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
    """Of what is expected, by the release's known noise alone, at people's own states and actions."""
    residual: Float[np.ndarray, " moved"]
    """Of people's steps around what is expected, as released."""
    explained: Float[np.ndarray, " moved"]
    """Of what is expected, from state to state and from action to action."""


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


class WorldDetails(Details, frozen=True, tag="world"):
    """What a file says of a world; what its coordinates and actions are called stands beside it."""

    feature_map: AnyFeatureMap
    moved: Annotated[tuple[Natural, ...], Meta(min_length=1)]
    known: tuple[Literal["reward", "end", "start"], ...]
    circles: tuple[tuple[Natural, Natural], ...]
    actions: Count | None
    action_box: Box | None
    low: Real
    high: Real
    rate: Real
    errors: WorldErrors
    reward: PrivateModel.details | None  # pyright: ignore[reportInvalidTypeForm]
    ends: PrivateModel.details | None  # pyright: ignore[reportInvalidTypeForm]
    end_reward: Real | None = None


@dataclass(frozen=True, eq=False, repr=False)
class PrivateWorld(Publishable):
    """A released world: `env()` is its Gymnasium form.

    Called with states, it gives the expected next state for each action of the list, one after the other, or for the
    middle of the box of actions.
    """

    details: ClassVar = WorldDetails
    spaces: Spaces
    feature_map: FeatureMap
    """Of state and action, besides a constant."""
    moved: tuple[int, ...]
    """The coordinates that are learned; those that are not follow from known functions."""
    weights: Float[np.ndarray, "features moved"]
    """Half the box's widths that each feature moves each coordinate by."""
    gram: Float[np.ndarray, "features features"]
    residual: Float[np.ndarray, "moved moved"]
    """The covariance of what features do not explain, in squares of half the box's widths."""
    left: Float[np.ndarray, "features features"]
    right: Float[np.ndarray, "moved moved"]
    """The release's noise moved the weights by about left @ E @ right, with E independent standard normals."""
    first: Float[np.ndarray, " states"] | None
    spread: Float[np.ndarray, "states states"] | None
    """Mean and covariance of first states, in the unit box; None if starts are known."""
    reward: PrivateModel | None
    ends: PrivateModel | None
    """None if they are known, or if there are none."""
    rate: float
    """The log-odds of an end, where `ends` says 0."""
    errors: WorldErrors
    """How far off rewards and ends may be."""
    box: Box
    certificate: Certificate  # pyright: ignore[reportIncompatibleVariableOverride]
    known: tuple[str, ...] = ()
    end_reward: float | None = None
    """What a step that ends its episode is worth, if learned separately; `reward` is of the other steps then."""
    model: WorldModel = field(default_factory=WorldModel)
    """With circles, and with the known functions, which a file does not hold."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", Labels(self.spaces.state_names, self.spaces.action_names))

    @classmethod
    def of(
        cls,
        spaces: Spaces,
        feature_map: FeatureMap,
        moved: tuple[int, ...],
        moves: Fit,
        first: tuple[np.ndarray, np.ndarray] | None,
        parts: dict[str, PrivateModel],
        model: WorldModel,
        certificate: Certificate,
        **numbers: Any,
    ) -> "PrivateWorld":
        begin = (None, None) if first is None else first
        return cls(
            spaces,
            feature_map,
            moved,
            *moves,
            *begin,
            parts.get("reward"),
            parts.get("ends"),
            box=spaces.box,
            certificate=certificate,
            known=model.known,
            model=model,
            **numbers,
        )

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
        """Mean and deviation of people's states, in the unit box, if features tell; else those of the whole box."""
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
                environment of so many copies, and `stable_baselines=True` for one of Stable-Baselines3's kind.

        """
        from quietq.worlds.private_env import environment  # a room to the right: this is a way of calling it

        return environment(self, **options)

    def with_known(self, model: WorldModel) -> "PrivateWorld":
        """Returns the same world with the known functions that a file does not hold.

        Args:
            model: The `WorldModel` that was given to `privatise`.

        """
        same = model.known == self.known and self.moved == model.learned(self.spaces.states)
        if not same or model.circles != self.model.circles:
            raise InvalidInput(f"This world was made with {self._declared()} declared as known: give these.")
        same_numbers = replace(self, model=model)
        return same_numbers.issued(self.receipt) if self.is_as_issued() else same_numbers

    def _declared(self) -> str:
        others = sorted(set(range(self.spaces.states)) - set(self.moved))
        names = self.spaces.state_names
        moves = (f"moves[{i}] ({names[i]})" for i in others)
        circles = [f"circles={self.model.circles}"] if self.model.circles else []
        return ", ".join([*self.known, *moves, *circles]) or "nothing"

    def missing(self) -> str | None:
        """What was declared as known, if it is not there."""
        there = self.model.known == self.known and set(self.model.moves).isdisjoint(self.moved)
        whole = len(self.model.moves) + len(self.moved) == self.spaces.states
        return None if there and whole else self._declared()

    # The way to a file and back.

    def describe(self) -> WorldDetails:
        spaces = self.spaces
        return WorldDetails(
            feature_map=self.feature_map,  # pyright: ignore[reportArgumentType]
            moved=self.moved,
            known=self.known,  # pyright: ignore[reportArgumentType]
            circles=self.model.circles,
            actions=spaces.actions,
            action_box=spaces.action_box,
            low=spaces.low,
            high=spaces.high,
            rate=self.rate,
            end_reward=self.end_reward,
            errors=self.errors,
            reward=None if self.reward is None else self.reward.describe(),
            ends=None if self.ends is None else self.ends.describe(),
        )

    def to_arrays(self) -> tuple[Json, Arrays]:
        arrays = {name: getattr(self, name) for name in (*_FIT, *_FIRST) if getattr(self, name) is not None}
        for name in _PARTS:
            part = getattr(self, name)
            if part is not None:
                arrays |= {f"{name}.{array}": value for array, value in part.to_arrays()[1].items()}
        return self.describe().to_dict(), arrays

    @classmethod
    def from_arrays(cls, stored: Stored) -> "PrivateWorld":
        said, arrays, names = stored.details, stored.arrays, stored.labels
        acts = {"actions": said.actions, "action_box": said.action_box, "low": said.low, "high": said.high}
        spaces = Spaces(stored.box, **acts, state_names=names.states, action_names=names.actions)
        parts = {
            "reward": _part(stored, "reward", said.reward, spaces.states + spaces.numbers),
            "ends": _part(stored, "ends", said.ends, spaces.states),
        }
        of_parts = {f"{name}.{one}" for name, part in parts.items() if part is not None for one in PrivateModel.arrays}
        own = (*_FIT, *(() if "start" in said.known else _FIRST))
        stored.expect({*own, *of_parts})
        world = cls(
            spaces,
            said.feature_map,
            said.moved,
            **{name: arrays.get(name) for name in (*_FIT, *_FIRST)},  # pyright: ignore[reportArgumentType]
            **parts,
            rate=said.rate,
            end_reward=said.end_reward,
            errors=said.errors,
            box=stored.box,
            certificate=stored.certificate,
            known=said.known,
            model=WorldModel(circles=said.circles),
        )
        world.check()
        return world

    def check(self) -> None:
        spaces, errors, known = self.spaces, self.errors, self.known
        require(sorted(set(known), key=("reward", "end", "start").index) == list(known), "what is known is named once")
        rising = sorted(set(self.moved)) == list(self.moved) and self.moved[-1] < spaces.states
        require(rising, "its moved coordinates must be some of the box's")
        self.model.require_circles(self.box)
        for name, part, declared, outputs in (
            ("reward", self.reward, "reward", spaces.actions or 1),
            ("ends", self.ends, "end", 1),
        ):
            require(part is None or declared not in known, f"its {name} must be learned, or else known")
            require(part is not None or name == "ends" or declared in known, f"its {name} must be learned or known")
            fits = part is None or part.weights.shape[1:] == ((outputs,) if outputs > 1 else ())
            require(fits, f"its {name} must fit its actions")
        for part, stated in (
            (self.reward, errors.reward_noise),
            (self.reward, errors.reward_kept),
            (self.reward, errors.reward_error),
            (self.ends, errors.ends_noise),
            (self.end_reward, errors.end_reward_noise),
            (self.first, errors.starts_seen),
        ):
            require(
                (part is None) == (stated is None), "its errors must be stated for all that is learned, and no more"
            )
        within = self.end_reward is None or (self.reward is not None and spaces.low <= self.end_reward <= spaces.high)
        require(within, "its reward at ends must be learned beside others, and lie in their range")
        of_steps = len(errors.step_noise) == len(errors.step_scatter) == len(self.moved)
        require(of_steps, "its errors must be stated for each coordinate that is learned")
        self._check_arrays()

    def _check_arrays(self) -> None:
        features, states, moved = 1 + self.feature_map.rank, self.spaces.states, len(self.moved)
        # before anything is factored, so that no file can ask for matrices of thousands
        require(features <= 1 + MOST_FEATURES, f"it has more than {MOST_FEATURES} features")
        require(self.feature_map.dimension == self.spaces.dimension, "its features must be of states and actions")
        shapes = {
            "weights": (features, moved),
            "gram": (features, features),
            "residual": (moved, moved),
            "left": (features, features),
            "right": (moved, moved),
            "first": (states,),
            "spread": (states, states),
        }
        there = {name: getattr(self, name) for name in shapes if getattr(self, name) is not None}
        for name, array in there.items():
            require(array.shape == shapes[name], f"its {name} must have shape {shapes[name]}")
            require((np.abs(array) <= LARGEST).all(), f"its {name} is too large to compute with")
        for name in ("gram", "residual", "spread"):
            require(name not in there or _is_covariance(there[name]), f"its {name} must be positive semi-definite")
        for name in ("gram", "right"):
            require(_is_invertible(there[name]), f"its {name} must be invertible")

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        means = all(isinstance(norm, MeanOfPeople) for norm in norms)
        require(means, "its noise must be that of means over people")
        require(certificate.method == "world/moments", "its certificate must be that of a world")

    def in_words(self) -> list[str]:
        return ["This is a world: its values are the expected next state, for each action one after the other."]

    def __str__(self) -> str:
        """What it is, in names that whoever declared it knows, and how far off it may be."""
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


def _part(stored: Stored, name: str, described: Details | None, dimension: int) -> PrivateModel | None:
    """The model of rewards or of ends, which has a unit box and arrays of its own."""
    if described is None:
        return None
    own = {array: stored.arrays.get(f"{name}.{array}") for array in PrivateModel.arrays}
    require(all(array is not None for array in own.values()), f"its {name} must have its arrays")
    unit = Box.of([(0.0, 1.0)] * dimension)
    return PrivateModel.from_arrays(Stored(described, own, unit, stored.certificate))  # pyright: ignore[reportArgumentType]


def _is_covariance(matrix: np.ndarray) -> bool:
    """Whether it is symmetric and positive semi-definite, but for rounding."""
    largest = float(np.abs(matrix).max())
    even = np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-12 * largest)
    return even and bool(np.linalg.eigvalsh(matrix).min() >= -1e-9 * largest)


def _is_invertible(matrix: np.ndarray) -> bool:
    try:
        return bool(np.isfinite(np.linalg.inv(matrix)).all())
    except np.linalg.LinAlgError:
        return False
