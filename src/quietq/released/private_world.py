"""A world that may leave: how states move, where episodes begin, what a step is worth, and where it ends.

All of it is arrays that the noise has already gone into, and names of public functions, so that any planner or learner
may act in it for as long as it likes. It is written against an array module, `xp`, and works in the unit box; `env`
makes a Gymnasium environment of it.
"""

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.feedback.spaces import Spaces
from quietq.noise import Box
from quietq.noise.feature_maps import FeatureMap, Polynomials, map_of
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.checks import not_negative, real
from quietq.privacy.norms import AnyNorm, MeanOfPeople
from quietq.released.private_model import LARGEST, PrivateModel
from quietq.released.publishable import Arrays, Details, InvalidRelease, Json, Publishable, Stored, require
from quietq.released.world_model import WorldModel

_PARTS = ("reward", "ends")
_MODEL = ("offset", "weights", "knots")
_FIT = ("weights", "gram", "residual", "left", "right")
_FIRST = ("first", "spread")
_NAMES = ("state_names", "action_names")


STARTS_UNSEEN = (
    "First states may be noise alone, not people's: so little was seen of where episodes begin. Check the episode and "
    "the step of the sessions, or declare what is known: qq.WorldModel(start=...)."
)


@dataclass(frozen=True)
class WorldErrors:
    """How far off the rewards and the ends of a private world may be; None for what is known, or not there.

    Noise is not all of it: where noise is large, fits are shrunk towards a constant, and terms that would not be worth
    their noise are left out. All numbers here are post-processing of noisy answers, or public, so they may leave.
    """

    reward_noise: float | None = None
    """How far noise alone may have moved rewards: root mean square over states, in their own units."""
    reward_kept: float | None = None
    """Which part of the differences between states and actions shrinkage leaves, by the fit's own account: less than 1
    means that released rewards are flatter than people's. Clipping, and rounds that end early, may take more."""
    reward_error: float | None = None
    """What rewards must be expected to be off by in all, noise, chance, shrinkage and terms left out, if they are as
    smooth as the fit takes them to be: root mean square where people's states lie, in their own units. An estimate, and
    no bound."""
    ends_noise: float | None = None
    """How far noise alone may have moved the log-odds of an end: root mean square over states."""
    starts_seen: float | None = None
    """By how many deviations what was seen of first states exceeds what noise alone shows: below 3, no first state of
    anybody may have been seen."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None:
                not_negative(one.name, value)

    @property
    def starts_unseen(self) -> bool:
        """Whether first states may be noise alone."""
        # Noise alone exceeds three deviations once in some hundred draws.
        return self.starts_seen is not None and self.starts_seen < 3.0

    def to_dict(self) -> Json:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def in_words(self, low: float, high: float) -> list[str]:
        """For whoever has to decide whether to train in the world; nothing of what is known."""
        lines = []
        if self.reward_error is not None:
            lines.append(
                f"Rewards, from {low:g} to {high:g}: expect them to be off by about {self.reward_error:.2g} in all "
                "where people's states lie, which is an estimate and no bound; elsewhere by more. "
                f"Noise alone moved them by about {self.reward_noise:.2g}, and "
                f"shrinkage left about {self.reward_kept:.2g} of the differences between states and actions. If there "
                "is a public formula, declare it: qq.WorldModel(reward=...)."
            )
        if self.ends_noise is not None:
            lines.append(
                f"Episodes end by a chance that was learned: noise alone moved its log-odds by about "
                f"{self.ends_noise:.2g}, which is a factor of {np.exp(min(self.ends_noise, 50.0)):.2g} where ends are "
                "rare. If there is a public rule, declare it: qq.WorldModel(end=...)."
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


@dataclass(frozen=True, eq=False, repr=False)
class PrivateWorld(Publishable):
    """A released world: `env()` is its Gymnasium form.

    Called with states, it gives the expected next state for each action of the list, one after the other, or for the
    middle of the box of actions.
    """

    kind: ClassVar[str] = "world"
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
    model: WorldModel = field(default_factory=WorldModel)
    """With the known functions, which a file does not hold."""

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
        """Weights that the true ones may be, as the known noise has it."""
        normals = rng.standard_normal((number, *self.weights.shape))
        return self.weights + self.left @ normals @ self.right

    def env(self, **options: Any) -> Any:
        """The world as a Gymnasium environment: see `quietq.worlds.private_env.PrivateWorldEnv`.

        With `copies` it is a vector environment, and with `stable_baselines=True` too, one of Stable-Baselines3's kind.
        """
        from quietq.worlds.private_env import environment  # a room to the right: this is a way of calling it

        return environment(self, **options)

    def with_known(self, model: WorldModel) -> "PrivateWorld":
        """The same world with the known functions that a file does not hold."""
        if model.known != self.known or self.moved != model.learned(self.spaces.states):
            raise InvalidInput(f"This world was made with {self._declared()} declared as known: give these functions.")
        return replace(self, model=model)

    def _declared(self) -> str:
        others = sorted(set(range(self.spaces.states)) - set(self.moved))
        moves = (f"moves[{i}] ({self.spaces.state_names[i]})" for i in others)
        return ", ".join([*self.known, *moves]) or "nothing"

    def missing(self) -> str | None:
        """What was declared as known, if it is not there."""
        there = self.model.known == self.known and set(self.model.moves).isdisjoint(self.moved)
        whole = len(self.model.moves) + len(self.moved) == self.spaces.states
        return None if there and whole else self._declared()

    # The way to a file and back.

    def to_arrays(self) -> tuple[Details, Arrays]:
        spaces, acting = self.spaces, self.spaces.action_box
        details: Details = {
            "feature_map": self.feature_map.to_dict(),
            "moved": list(self.moved),
            "known": list(self.known),
            "actions": spaces.actions,
            "low": spaces.low,
            "high": spaces.high,
            "rate": self.rate,
            "errors": self.errors.to_dict(),
            "action_box": None if acting is None else [list(acting.low), list(acting.high)],
            **{name: list(getattr(spaces, name)) for name in _NAMES},
        }
        arrays = {name: getattr(self, name) for name in _FIT}
        arrays |= {name: getattr(self, name) for name in _FIRST if getattr(self, name) is not None}
        for name in _PARTS:
            part = getattr(self, name)
            details[name] = None if part is None else part.to_arrays()[0]
            if part is not None:
                arrays |= {f"{name}.{array}": value for array, value in part.to_arrays()[1].items()}
        return details, arrays

    @classmethod
    def from_arrays(cls, stored: Stored) -> "PrivateWorld":
        details, arrays, box = stored.details, stored.arrays, stored.box
        own = (
            "feature_map",
            "moved",
            "known",
            "actions",
            "low",
            "high",
            "rate",
            "errors",
            "action_box",
            *_NAMES,
            *_PARTS,
        )
        require(set(details) == set(own), f"its details must be {sorted(own)}")
        given = details["known"] if isinstance(details["known"], list) else None
        known = tuple(name for name in ("reward", "end", "start") if name in (given or ()))
        require(list(known) == given, "what is known must be a list of reward, end and start")
        sides = details["action_box"]
        require(sides is None or _is_pair(sides), "its action_box must be two lists of numbers, low and high")
        names = [details[name] for name in _NAMES]
        stated, measured = details["errors"], set(WorldErrors().to_dict())
        require(isinstance(stated, dict) and set(stated) == measured, f"its errors must be {sorted(measured)}")
        texts = all(isinstance(one, list) and one and all(isinstance(name, str) for name in one) for one in names)
        require(texts, "its names must be lists of text")
        try:
            feature_map, acting = map_of(details["feature_map"]), None if sides is None else Box(*map(tuple, sides))
            rate = real("rate", details["rate"])
            errors = WorldErrors(**{name: None if v is None else real(name, v) for name, v in stated.items()})
            spaces = Spaces(
                box,
                details["actions"],
                acting,
                details["low"],
                details["high"],
                state_names=tuple(names[0]),
                action_names=tuple(names[1]),
            )
        except (InvalidInput, TypeError, ValueError) as error:
            raise InvalidRelease(f"This is not a release: {error}") from error
        parts, held = _parts(stored, spaces, known)
        stored.expect(own, held)
        for part, stated in (
            ("reward", errors.reward_noise),
            ("reward", errors.reward_kept),
            ("reward", errors.reward_error),
            ("ends", errors.ends_noise),
        ):
            require((parts[part] is None) == (stated is None), f"its errors must be stated for {part} that are learned")
        require(
            ("start" in known) == (errors.starts_seen is None), "its errors must be stated for starts that are learned"
        )
        fit = {name: arrays[name] for name in _FIT}
        begin = {name: arrays.get(name) for name in _FIRST}
        moved = details["moved"]
        rising = isinstance(moved, list) and all(type(i) is int and 0 <= i < spaces.states for i in moved)
        require(rising and moved and sorted(set(moved)) == moved, "its moved coordinates must be some of the box's")
        _check(spaces, feature_map, len(moved), fit, begin)
        return cls(
            spaces,
            feature_map,
            tuple(moved),
            **fit,
            **begin,
            **parts,
            rate=rate,
            errors=errors,
            box=box,
            certificate=stored.certificate,
            known=known,
        )

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
        lines += self.errors.in_words(spaces.low, spaces.high)
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


def _parts(stored: Stored, spaces: Spaces, known: tuple[str, ...]) -> tuple[Json, list[str]]:
    """Models of rewards and ends, and the names of all arrays that there must be."""
    names, parts = [*_FIT, *(() if "start" in known else _FIRST)], {}
    for name, declared, dimension, outputs in (
        ("reward", "reward", spaces.states + spaces.numbers, (spaces.actions or 1)),
        ("ends", "end", spaces.states, 1),
    ):
        described = stored.details[name]
        learned = described is not None
        require(not (learned and declared in known), f"its {name} must be learned, or else known")
        require(learned or name == "ends" or declared in known, f"its {name} must be learned or known")
        parts[name] = None
        if described is not None:
            require(isinstance(described, dict), f"its {name} must be described")
            own = {array: stored.arrays.get(f"{name}.{array}") for array in _MODEL}
            require(all(array is not None for array in own.values()), f"its {name} must have its arrays")
            unit = Box.of([(0.0, 1.0)] * dimension)
            part = PrivateModel.from_arrays(Stored(described, own, unit, stored.certificate))  # type: ignore[arg-type]
            require(part.weights.shape[1:] == ((outputs,) if outputs > 1 else ()), f"its {name} must fit its actions")
            parts[name] = part
            names += [f"{name}.{array}" for array in _MODEL]
    return parts, names


def _check(
    spaces: Spaces, feature_map: FeatureMap, moved: int, fit: Arrays, begin: dict[str, np.ndarray | None]
) -> None:
    features, states = 1 + feature_map.rank, spaces.states
    require(feature_map.dimension == spaces.dimension, "its features must be of states and actions")
    shapes = {
        "weights": (features, moved),
        "gram": (features,) * 2,
        "residual": (moved,) * 2,
        "left": (features,) * 2,
        "right": (moved,) * 2,
        "first": (states,),
        "spread": (states,) * 2,
    }
    for name, array in {**fit, **begin}.items():
        if array is not None:
            require(array.shape == shapes[name], f"its {name} must have shape {shapes[name]}")
            require((np.abs(array) <= LARGEST).all(), f"its {name} is too large to compute with")
    for name, array in (("gram", fit["gram"]), ("residual", fit["residual"]), ("spread", begin["spread"])):
        if array is not None:
            even = np.allclose(array, array.T, rtol=1e-6, atol=1e-12 * float(np.abs(array).max()))
            require(
                even and np.linalg.eigvalsh(array).min() >= -1e-9 * float(np.abs(array).max()),
                f"its {name} must be positive semi-definite",
            )
    for name in ("gram", "right"):
        require(_is_invertible(fit[name]), f"its {name} must be invertible")


def _is_invertible(matrix: np.ndarray) -> bool:
    try:
        return bool(np.isfinite(np.linalg.inv(matrix)).all())
    except np.linalg.LinAlgError:
        return False


def _is_pair(sides: object) -> bool:
    if not (isinstance(sides, list) and len(sides) == 2 and all(isinstance(ends, list) for ends in sides)):
        return False
    return all(type(end) is float for ends in sides for end in ends)
