"""What a training is asked to be: what was given, what it defaults to, and which of it goes together."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import quietq as qq
from quietq.cli import hyper
from quietq.privacy.checks import count
from quietq.worlds import WORLDS, World, find_world

if TYPE_CHECKING:
    from quietq.learning import Method

PROMISE = ("people", "radius", "epsilon", "delta")
OF_REWARD = ("reward", "noise", "pieces", "rewards")
"""What only methods that learn from a private reward have."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A training, as the command line and config.json have it; None is what was not given."""

    world: str
    method: str
    seed: int
    steps: int = 5000
    seeds: int = 1
    people: int | None = None
    radius: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    simulate: int | None = None
    reward: str | None = None
    noise: str | None = None
    pieces: int | None = None
    rewards: int | None = None
    every: int | None = None
    log: bool = False
    ledger: str | None = None
    source: str | None = None
    """Of the ledger."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Hyper-parameters; in config.json all of them, so that it does not hang on defaults."""

    def record(self) -> dict[str, Any]:
        """All of it in JSON."""
        return {"schema": 1, "version": qq.__version__, **asdict(self)}


def fresh(given: Mapping[str, Any], texts: Mapping[str, str | bool]) -> Settings:
    """The settings of a new training."""
    for name, what in (("world", "a world (see quietq worlds)"), ("method", "--method (see quietq methods)")):
        if name not in given:
            raise qq.InvalidInput(f"Training needs {what}.")
    values = {"seed": int.from_bytes(os.urandom(4)), **given}
    values["world"] = world_of(values["world"]).name
    kind = kind_of(values["method"])
    for name in ("steps", "seeds", "people", "simulate", "every", "rewards", "pieces"):
        if name in given:
            count(name, given[name])
    count("seed", values["seed"], 0, 2**63 - 1)
    settings = Settings(**values, options=hyper.read(kind, texts))
    _check_together(settings, kind)
    return settings


def resumed(record: Mapping[str, Any], given: Mapping[str, Any], texts: Mapping[str, str | bool]) -> Settings:
    """The settings of a training that was begun; what is given again must be the same."""
    known = {name: value for name, value in record.items() if name not in ("schema", "version")}
    try:
        settings = Settings(**known)
        options = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.options.items()}
    except (TypeError, AttributeError) as error:
        raise qq.InvalidInput("The run's config.json is not complete.") from error
    new = {**given, **hyper.read(kind_of(settings.method), texts)}
    if "world" in new:
        new["world"] = world_of(new["world"]).name
    for name, value in new.items():
        before = options[name] if name in options else getattr(settings, name)
        if before != value:
            raise qq.InvalidInput(
                f"The run to go on with has {name.replace('_', '-')} {before!r}, not {value!r}: leave it out to resume."
            )
    return Settings(**{**known, "options": options})


def world_of(name: str) -> World:
    """The world of that name or Gymnasium id."""
    by_id = {kind.gymnasium_id: own for own, kind in WORLDS.items()}
    return find_world(by_id.get(name, name))


def kind_of(name: str) -> "type[Method]":
    """The method of that name."""
    from quietq.learning import METHODS

    if name in METHODS:
        return METHODS[name]
    if name == "evaluation":
        raise qq.InvalidInput(
            "'evaluation' works on trajectories that you hold, not in a world: use quietq.Evaluation from Python."
        )
    raise qq.InvalidInput(f"There is no method called {name!r}: the known ones are {', '.join(METHODS)}.")


def _check_together(settings: Settings, kind: "type[Method]") -> None:
    """Refuses what does not go together, with what would."""
    from quietq.learning.private_source import OnPrivateReward
    from quietq.learning.promise import Promising

    name, on_reward = settings.method, issubclass(kind, OnPrivateReward)
    promises = given_of(settings, PROMISE)
    if settings.ledger is not None:
        if settings.reward is not None:
            raise qq.InvalidInput(
                "--reward was paid for when it was made, and training on it is free: leave out --ledger."
            )
        if settings.simulate is not None or not (on_reward or issubclass(kind, Promising)):
            raise qq.InvalidInput(
                "--ledger is charged for noise that protects, and this training draws none: leave it out."
            )
    if not on_reward and (extra := given_of(settings, OF_REWARD)):
        raise qq.InvalidInput(f"{_dashed(extra)} belongs to methods that learn from a private reward, not to {name!r}.")
    if name == "published" and promises:
        raise qq.InvalidInput(
            f"'published' promises what follows from --sigma by the paper's claim: leave out {_dashed(promises)}, or "
            "choose another method."
        )
    if name == "none" and (extra := [*promises, *given_of(settings, ("simulate",))]):
        raise qq.InvalidInput(
            f"'none' has no noise and protects nobody: leave out {_dashed(extra)}, or choose another method."
        )
    if on_reward and settings.reward is not None:
        if extra := [*promises, *given_of(settings, ("simulate", "noise", "pieces", "rewards"))]:
            raise qq.InvalidInput(f"--reward brings its noise and its promise along: leave out {_dashed(extra)}.")
        return
    if on_reward or issubclass(kind, Promising):
        if settings.people is not None and settings.radius is not None:
            raise qq.InvalidInput("--people and --radius both say what one person can change: give one of them.")
        missing = [one for one in ("epsilon", "delta") if one not in promises]
        if settings.people is None and settings.radius is None:
            missing.insert(0, "people")
        if missing:
            other = ", or --reward with a private reward's file" if on_reward else ""
            raise qq.InvalidInput(f"{name!r} needs {_dashed(missing)}{other}.")
        if settings.radius is None and settings.rewards is not None:
            raise qq.InvalidInput("--rewards counts noised rewards, and belongs to --radius.")
        if settings.radius is not None and (extra := given_of(settings, ("noise", "pieces"))):
            raise qq.InvalidInput(f"{_dashed(extra)} needs smooth rewards: give --people instead of --radius.")


def given_of(settings: Settings, names: tuple[str, ...]) -> list[str]:
    """Which of these were given."""
    return [name for name in names if getattr(settings, name) is not None]


def _dashed(names: list[str]) -> str:
    words = [f"--{name}" for name in names]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
