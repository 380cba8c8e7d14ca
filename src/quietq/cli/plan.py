"""A training as the command line asks for it: everything is checked, by a rehearsal with simulated noise, before anything
is drawn, charged or written.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import quietq as qq
from quietq.cli import folder
from quietq.cli.options import PROMISE, build_method, dashed, read_values
from quietq.learning import METHODS, options_of
from quietq.learning.observed import observe
from quietq.learning.private_source import OnPrivateReward
from quietq.learning.promise import Promising
from quietq.learning.training import Training
from quietq.noise.kernels import Features
from quietq.privacy import cap_any_dp, cap_gdp, people_needed, steps_between
from quietq.privacy.checks import count
from quietq.privacy.relations import Relation, RkhsBall
from quietq.worlds import World, find_place

HOPED_FOR = 0.9
"""The score below which a warning says how many people it takes."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A training, as the command line and config.json have it; None is what was not given."""

    method: str
    world: str
    seed: int
    box: tuple[tuple[float, float], ...] = ()
    env: Mapping[str, Any] = field(default_factory=dict)
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

    @classmethod
    def new(cls, method: str, given: Mapping[str, Any]) -> "Settings":
        """From the options that were given."""
        own = options_of(METHODS[method])
        common = {name: value for name, value in given.items() if name not in own}
        for name in ("steps", "seeds", "people", "simulate", "every", "rewards", "pieces"):
            if name in common:
                count(name, common[name])
        count("seed", common.setdefault("seed", int.from_bytes(os.urandom(4))), 0, 2**63 - 1)
        settings = cls(method=method, **common, options=read_values(METHODS[method], given))
        settings.check()
        return settings

    @classmethod
    def of_run(cls, record: Mapping[str, Any]) -> "Settings":
        """From a run's config.json."""
        try:
            options = {name: tuple(v) if isinstance(v, list) else v for name, v in record["options"].items()}
            box = tuple((low, high) for low, high in record["box"])
            return cls(**{**record, "options": options, "box": box})
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise qq.InvalidInput("The run's config.json is not complete.") from error

    def given(self, *names: str) -> list[str]:
        """Which of these were given."""
        return [name for name in names if getattr(self, name) is not None]

    def check(self) -> None:
        """Refuses what does not go together, with what would."""
        on_reward, promises = _kinds(METHODS[self.method])
        if self.reward is not None:
            if self.ledger is not None:
                raise qq.InvalidInput(
                    "--reward was paid for when it was made, and training on it is free: leave out --ledger."
                )
            if extra := self.given(*PROMISE, "simulate", "noise", "pieces", "rewards"):
                raise qq.InvalidInput(f"--reward brings its noise and its promise along: leave out {dashed(*extra)}.")
            return
        if self.ledger is not None and self.simulate is not None:
            raise qq.InvalidInput("--ledger is charged for noise that protects, and --simulate draws none.")
        if not promises:
            return
        if self.people is not None and self.radius is not None:
            raise qq.InvalidInput("--people and --radius both say what one person can change: give one of them.")
        missing = [name for name in ("epsilon", "delta") if getattr(self, name) is None]
        if self.people is None and self.radius is None:
            missing.insert(0, "people")
        if missing:
            other = ", or --reward with a private reward's file" if on_reward else ""
            raise qq.InvalidInput(f"{self.method!r} needs {dashed(*missing)}{other}.")
        if self.radius is None and self.rewards is not None:
            raise qq.InvalidInput("--rewards counts noised rewards, and belongs to --radius.")
        if self.radius is not None and (extra := self.given("noise", "pieces")):
            raise qq.InvalidInput(f"{dashed(*extra)} needs smooth rewards: give --people instead of --radius.")


class Plan:
    """A training that was checked, and can be carried out."""

    def __init__(self, settings: Settings) -> None:
        self.settings = s = settings
        self.kind = METHODS[s.method]
        self.on_reward, promises = _kinds(self.kind)
        self.world = _find(s)
        self.budget, self.relation = None, None
        if promises and s.reward is None:
            assert s.epsilon is not None
            assert s.delta is not None
            self.budget = qq.Budget(s.epsilon, s.delta)
            self.relation = self._relate()
        method = self._build([self._make_reward(simulate=0)] if self.on_reward else [])
        agent = qq.Agent(self.world, method, seed=s.seed)
        Training(self.world, agent.spaces, method, None, s.seed, s.steps, s.seeds, self.simulate, None, s.every, None)
        name = self.world.name if isinstance(self.world, World) else s.world
        options = {name: getattr(method, name) for name in options_of(self.kind)}
        self.settings = replace(s, world=name, options=options)

    @property
    def saves_checkpoints(self) -> bool:
        """Whether it can be resumed: the state of a Gymnasium environment cannot be saved."""
        return isinstance(self.world, World)

    @property
    def simulate(self) -> int | None:
        """How many draws the training itself simulates; a private reward is simulated before it."""
        return None if self.on_reward else self.settings.simulate

    def record(self) -> dict[str, Any]:
        """All settings in JSON."""
        return asdict(self.settings)

    def build_agent(self, out: Path, account: Any = None) -> Any:
        """The agent, ready to learn. A private reward is drawn now, once, and kept in the run's folder.

        Whatever is drawn is charged to `account` first.
        """
        method = self._build(self._find_rewards(out, account))
        return qq.Agent(self.world, method, seed=self.settings.seed, ledger=account)

    def warning(self) -> str | None:
        """A sentence if the score that one hopes for is out of reach of any algorithm with this promise."""
        if self.relation is None or self.budget is None or not isinstance(self.world, World):
            return None
        width = _width(self.world)
        gaussian = not self.budget.is_pure and self._noise() not in ("k-norm", "auto")
        steps = steps_between(width, self.relation.radius)  # pyright: ignore[reportAttributeAccessIssue]
        cap = cap_gdp(self.budget.mu, steps) if gaussian else cap_any_dp(self.budget, steps)
        if cap >= HOPED_FOR:
            return None
        people = people_needed(HOPED_FOR, self.budget, distance=width, width=width, gaussian=gaussian)
        other = "" if self.settings.people is not None else f", a radius of at most {width / people:.3g}"
        return (
            f"no algorithm with this promise can score above {cap:.2f} both for a preference and for its opposite (0 "
            f"is the worst policy, 1 the best); {HOPED_FOR:g} takes at least {people} people{other}."
        )

    def _relate(self) -> Relation:
        """What must stay hidden; refused if the method has no noise for it."""
        s, world = self.settings, self.world
        if not isinstance(world, World):
            if self.on_reward:
                raise qq.InvalidInput(f"{s.method!r} needs --reward in {s.world!r}: a private reward's file.")
            if s.radius is None:
                raise qq.InvalidInput(f"What people want of {s.world!r} is not declared: give --radius, not --people.")
        if s.people is None or not isinstance(world, World):
            return qq.SupBall(s.radius)  # type: ignore[arg-type]
        relation = world.relation(s.people)
        of_features = isinstance(relation, RkhsBall) and isinstance(relation.kernel, Features)
        assert self.budget is not None
        if isinstance(relation, RkhsBall) and not of_features and self.budget.is_pure and self.on_reward:
            raise qq.InvalidInput(f"delta must be above 0 in {world.name!r}: noise for sums of functions is Gaussian.")
        if of_features and not self.on_reward:
            raise qq.InvalidInput(
                f"{s.method!r} needs to know how much one reward can change, which people do not say in "
                f"{world.name!r}: give --radius instead, or use 'reward'."
            )
        return relation

    def _build(self, rewards: list[Any]) -> Any:
        further: dict[str, Any] = {}
        if self.on_reward:
            further = {"private": rewards[0] if len(rewards) == 1 else rewards}
        elif self.budget is not None:
            further = {"relation": self.relation, "budget": self.budget}
        return build_method(self.kind, self.settings.options, **further)

    def _find_rewards(self, out: Path, account: Any) -> list[Any]:
        s = self.settings
        if not self.on_reward:
            return []
        if s.simulate is not None:
            return [self._make_reward(_stream(s.seed, draw)) for draw in range(s.simulate)]
        if (out / folder.REWARD).exists():
            return [qq.load(out / folder.REWARD, features=self._features())]
        private = self._make_reward(account=account)
        if s.reward is None:
            name = qq.publish(private, out / folder.REWARD)
            if account is not None:
                from quietq.cli.account import note_release

                note_release(account, name)
        return [private]

    def _make_reward(self, simulate: int | None = None, account: Any = None) -> Any:
        """A private reward: from a file, by observed rewards, or of the world's own preference."""
        s, world = self.settings, self.world
        if s.reward is not None:
            return qq.load(s.reward, features=self._features())
        assert self.budget is not None
        assert isinstance(world, World)
        if isinstance(self.relation, qq.SupBall):
            return observe(
                world, self.relation, self.budget, low=0.0, high=_width(world), rewards=s.rewards or 5000,
                simulate=simulate, seed=s.seed, ledger=account,
            )  # fmt: skip
        return qq.privatise(
            world.preference(), self.budget, noise=self._noise(), pieces=s.pieces, relation=self.relation,
            domain=world.box, simulate=simulate, ledger=account,
        )  # fmt: skip

    def _noise(self) -> Any:
        assert self.budget is not None
        return self.settings.noise or ("k-norm" if self.budget.is_pure else "path")

    def _features(self) -> Features | None:
        relation = self.world.relation(1) if isinstance(self.world, World) else None
        return relation.kernel if isinstance(relation, RkhsBall) and isinstance(relation.kernel, Features) else None


def _kinds(kind: type) -> tuple[bool, bool]:
    """Whether a method learns from a private reward, and whether it promises something for a budget."""
    on_reward = issubclass(kind, OnPrivateReward)
    return on_reward, on_reward or issubclass(kind, Promising)


def _find(settings: Settings) -> Any:
    """The world, or a Gymnasium environment whose observations are bounded."""
    place, name = find_place(settings.world, settings.box, settings.env), settings.world
    if isinstance(place, World) or settings.box:
        return place
    space: Any = place.observation_space
    if hasattr(space, "is_bounded") and len(space.shape) == 1 and not space.is_bounded():
        raise qq.InvalidInput(
            f"The observations of {name!r} have no bounds: give --box LOW HIGH for each of their {space.shape[0]} "
            "coordinates, in order; public."
        )
    return place


def _width(world: World) -> float:
    """The range of one person's reward."""
    return world.relation(1).radius  # pyright: ignore[reportAttributeAccessIssue]


def _stream(seed: int, draw: int) -> int:
    """A seed for each simulated reward."""
    return int(np.random.SeedSequence((seed, draw)).generate_state(1)[0])
