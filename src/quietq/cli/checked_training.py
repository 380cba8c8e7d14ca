"""A training as the command line asks for it: everything is checked before anything is drawn, charged or written.

The check is a rehearsal with simulated noise, so that what would be refused later is refused now.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import quietq as qq
from quietq.cli import folder
from quietq.cli.known_names import NOISES
from quietq.cli.ledger_command import LEDGER, SOURCE
from quietq.cli.options import dashed, kinds
from quietq.mechanisms.privatise import MECHANISMS
from quietq.paper.agents.agent import Agent
from quietq.paper.agents.hyper_parameters import options_of, read_options
from quietq.paper.agents.training import Training
from quietq.paper.methods import METHODS, build_method
from quietq.paper.observed import out_of_reach, privatise_world
from quietq.privacy.checks import count
from quietq.privacy.relations import Relation
from quietq.worlds import World, find_place

PROMISE = ("people", "radius", "epsilon", "delta")


def setting(sentence: str, part: str, default: Any = None, choices: Iterable[str] = ()) -> Any:
    """A field that is an option of the command line, with its sentence; methods have the parts that they need."""
    return field(default=default, metadata={"help": sentence, "part": part, "choices": choices})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A training, as the command line and config.json have it; None is what was not given."""

    method: str
    world: str
    box: tuple[tuple[float, float], ...] = ()
    env: Mapping[str, Any] = field(default_factory=dict)
    people: int | None = setting("How many people stand behind the reward; public.", "promise")
    radius: float | None = setting(
        "Instead of people: most that neighbouring rewards differ, however rough.", "promise"
    )
    epsilon: float | None = setting("Privacy budget, above 0.", "promise")
    delta: float | None = setting("Probability that the promise fails, well below 1/people.", "promise")
    reward: str | None = setting("Train on this private reward, which `quietq reward` or publish wrote.", "reward")
    noise: str | None = setting("Of the reward; default auto.", "noise", choices=("auto", *NOISES))
    pieces: int | None = setting("Pieces between the knots of k-norm and knots.", "noise")
    rewards: int | None = setting("With --radius: noised rewards that a reward is made of; default 5000.", "reward")
    steps: int = setting("Steps of the world to learn from; default 5000.", "run", 5000)
    seeds: int = setting("Trainings side by side; default 1.", "run", 1)
    seed: int = setting("Makes training repeatable; noise that protects is new whatever the seed.", "run", MISSING)
    log: bool = setting("Write a log for TensorBoard, in the run's folder.", "run", False)
    simulate: int | None = setting("So many simulated noise draws, for experiments: they protect nobody.", "simulate")
    ledger: str | None = setting(LEDGER, "ledger")
    source: str | None = setting(SOURCE, "ledger")
    options: Mapping[str, Any] = field(default_factory=dict)
    """Hyper-parameters; in config.json all of them, so that it does not hang on defaults."""

    @classmethod
    def new(cls, method: str, values: Mapping[str, Any]) -> "Settings":
        kind = METHODS[method]
        common = {name: value for name, value in values.items() if name not in options_of(kind)}
        for name in ("steps", "seeds", "people", "simulate", "rewards", "pieces"):
            if name in common:
                count(name, common[name])
        count("seed", common.setdefault("seed", int.from_bytes(os.urandom(4))), 0, 2**63 - 1)
        settings = cls(method=method, **common, options=read_options(kind, values))
        settings.check()
        return settings

    def check(self) -> None:
        on_reward, promises = kinds(self.method)
        names = {name for name, value in asdict(self).items() if value is not None}
        extra = [name for name in (*PROMISE, "simulate", "noise", "pieces", "rewards") if name in names]
        missing = [name for name in ("people", "epsilon", "delta") if name not in names]
        if "radius" in names and "people" in missing:
            missing.remove("people")
        other = ", or --reward with a private reward's file" if on_reward else ""
        smooth = sorted(names & {"noise", "pieces"})
        for wrong, sentence in (
            ({"reward", "ledger"} <= names,
             "--reward was paid for when it was made, and training on it is free: leave out --ledger."),
            ("reward" in names and extra,
             f"--reward brings its noise and its promise along: leave out {dashed(*extra)}."),
            ({"ledger", "simulate"} <= names,
             "--ledger is charged for noise that protects, and --simulate draws none."),
            ({"people", "radius"} <= names,
             "--people and --radius both say what one person can change: give one of them."),
            (promises and missing and "reward" not in names, f"{self.method!r} needs {dashed(*missing)}{other}."),
            ("rewards" in names and "radius" not in names, "--rewards counts noised rewards, and belongs to --radius."),
            ("radius" in names and smooth,
             f"{dashed(*smooth)} needs smooth rewards: give --people instead of --radius."),
        ):  # fmt: skip
            if wrong:
                raise qq.InvalidInput(sentence)


class CheckedTraining:
    """A training that was checked, and can be carried out."""

    def __init__(self, settings: Settings) -> None:
        self.settings = s = settings
        self.on_reward, promises = kinds(s.method)
        self.world = _find(s)
        self.budget, self.relation = None, None
        if promises and s.reward is None:
            self.budget, self.relation = qq.Budget(s.epsilon, s.delta), self._relate()  # type: ignore[arg-type]
        method = self._build([self._make_reward(simulate=0)] if self.on_reward else [])
        agent = Agent(self.world, method, seed=s.seed)
        Training(
            world=self.world, spaces=agent.spaces, method=method, seed=s.seed, steps=s.steps, seeds=s.seeds,
            simulate=self.simulate,
        )  # fmt: skip
        name = self.world.name if isinstance(self.world, World) else s.world
        self.settings = replace(s, world=name, options={one: getattr(method, one) for one in options_of(type(method))})

    @property
    def simulate(self) -> int | None:
        """How many draws the training itself simulates; a private reward is simulated before it."""
        return None if self.on_reward else self.settings.simulate

    def build_agent(self, out: Path, account: Any = None) -> Any:
        """The agent, ready to learn. A private reward is drawn now, and written to the run's folder.

        Whatever is drawn is charged to `account` first.
        """
        rewards = self._find_rewards(out, account) if self.on_reward else []
        return Agent(self.world, self._build(rewards), seed=self.settings.seed, account=account)

    def warning(self) -> str | None:
        """A sentence if a good score is out of reach of any algorithm with this promise."""
        if self.relation is None or self.budget is None or not isinstance(self.world, World):
            return None
        noise = self.settings.noise
        pure = self.budget.is_pure or (noise in MECHANISMS and MECHANISMS[noise].pure)
        radius = self.relation.radius  # pyright: ignore[reportAttributeAccessIssue]
        return out_of_reach(self.world, radius, self.budget, gaussian=not pure)

    def _relate(self) -> Relation:
        """What must stay hidden; refused if the method has no noise for it."""
        s, world = self.settings, self.world
        if not isinstance(world, World) and self.on_reward:
            raise qq.InvalidInput(f"{s.method!r} needs --reward in {s.world!r}: a private reward's file.")
        if s.radius is not None:
            return qq.SupBall(s.radius)
        if not isinstance(world, World):
            raise qq.InvalidInput(f"What people want of {s.world!r} is not declared: give --radius, not --people.")
        assert s.people is not None
        return world.relation(s.people)

    def _build(self, rewards: list[Any]) -> Any:
        further: dict[str, Any] = {}
        if self.on_reward:
            further = {"private": rewards[0] if len(rewards) == 1 else rewards}
        elif self.budget is not None:
            further = {"relation": self.relation, "budget": self.budget}
        return build_method(self.settings.method, self.settings.options, **further)

    def _find_rewards(self, out: Path, account: Any) -> list[Any]:
        s = self.settings
        if s.simulate is not None:
            seeds = (np.random.SeedSequence((s.seed, draw)) for draw in range(s.simulate))
            return [self._make_reward(int(seed.generate_state(1)[0])) for seed in seeds]
        private = self._make_reward(account=account)
        if s.reward is None:
            qq.publish(private, out / folder.REWARD)
        return [private]

    def _make_reward(self, simulate: int | None = None, account: Any = None) -> Any:
        s = self.settings
        if s.reward is not None:
            return qq.load(s.reward)
        assert self.budget is not None
        assert self.relation is not None
        return privatise_world(
            self.world, self.relation, self.budget, noise=s.noise, pieces=s.pieces, rewards=s.rewards,  # type: ignore[arg-type]
            seed=s.seed, simulate=simulate, account=account,
        )  # fmt: skip


def _find(settings: Settings) -> Any:
    place = find_place(settings.world, settings.box, settings.env)
    space: Any = getattr(place, "observation_space", None)
    if hasattr(space, "is_bounded") and len(space.shape) == 1 and not space.is_bounded():
        raise qq.InvalidInput(
            f"The observations of {settings.world!r} have no bounds: give --box LOW HIGH for each of their "
            f"{space.shape[0]} coordinates, in order; public."
        )
    return place
