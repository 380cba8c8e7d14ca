"""A training as the command line asks for it: everything is checked before anything is drawn, charged or written.

A private reward that is yet to be drawn is simulated until then, so that what would be refused later is refused now.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium
import numpy as np

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import INTERRUPTED, dashed
from quietq.cli.options import given, read_assignment, refuse_others
from quietq.mechanisms.candidates import MECHANISMS
from quietq.paper.agents import Agent, InLoopMethod, RewardLearner
from quietq.paper.agents.agent import NotPrivate
from quietq.paper.agents.hyper_parameters import options_of, read_options
from quietq.paper.method_table import METHOD_TABLE
from quietq.paper.methods import METHODS, build_method
from quietq.paper.observed import out_of_reach, privatise_world
from quietq.privacy import Account, Relation
from quietq.privacy.checks import count
from quietq.released.publishable import Publishable
from quietq.worlds import World, find_place

if TYPE_CHECKING:
    from quietq.ledger import SourceAccount


def learns_from_reward(method: str) -> bool:
    """Whether a method learns from a private reward."""
    return issubclass(METHODS[method], RewardLearner)


def refused_options(method: str) -> set[str]:
    """Names the options of `train` and `audit` that make no sense for a method."""
    refused: set[str] = set()
    if not learns_from_reward(method):
        refused |= {"reward", "noise", "pieces", "rewards"}
    if not issubclass(METHODS[method], RewardLearner | InLoopMethod):
        refused |= {"people", "radius", "epsilon", "delta", "ledger", "source"}
    if METHOD_TABLE[method].standing == "none":
        refused.add("simulate")
    return refused


def read_hyper_parameters(method: str, words: list[str] | None) -> dict[str, object]:
    """Reads what --set says; refused by the method where it has no such hyper-parameter."""
    texts = dict(read_assignment(word, "--set", "NAME=VALUE, e.g. --set gamma=0.9") for word in words or ())
    return read_options(METHODS[method], {name.replace("-", "_"): text for name, text in texts.items()})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A training as it was asked for, and as config.json keeps it; None is what was not given."""

    method: str
    world: str
    box: tuple[tuple[float, float], ...] = ()
    env: Mapping[str, object] = field(default_factory=dict)
    people: int | None = None
    radius: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    reward: str | None = None
    noise: str | None = None
    pieces: int | None = None
    rewards: int | None = None
    steps: int = 5000
    seeds: int = 1
    seed: int = field(default_factory=lambda: int.from_bytes(os.urandom(4)))
    simulate: int | None = None
    ledger: str | None = None
    source: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    """Hyper-parameters; in config.json all of them, so that it does not hang on defaults."""

    def __post_init__(self) -> None:
        """Refuses options that contradict each other, and those that the method has no use for."""
        typed = given(**vars(self))
        refused = refused_options(self.method)
        refuse_others(f"{self.method!r} has", [name for name in typed if name in refused])
        if self.simulate is not None:
            count("simulate", self.simulate)
        if self.people is not None and self.radius is not None:
            raise qq.InvalidInput("--people and --radius both say what one person can change: give one of them.")
        if self.simulate is not None and self.ledger is not None:
            raise qq.InvalidInput("--ledger is charged for noise that protects, and --simulate draws none.")
        if self.reward is not None:
            # The file of a private reward was paid for, and says everything about its promise.
            of_promise = ("people", "radius", "epsilon", "delta", "simulate", "noise", "pieces", "rewards", "ledger")
            if extra := [name for name in of_promise if name in typed]:
                raise qq.InvalidInput(
                    f"--reward was paid for when it was made, and brings noise and promise along: leave out "
                    f"{dashed(*extra)}."
                )
        elif "epsilon" not in refused:
            self._check_promise(typed)

    def _check_promise(self, typed: dict[str, object]) -> None:
        needed = ("epsilon", "delta") if self.radius is not None else ("people", "epsilon", "delta")
        if missing := [name for name in needed if name not in typed]:
            other = ", or --reward with a private reward's file" if learns_from_reward(self.method) else ""
            raise qq.InvalidInput(f"{self.method!r} needs {dashed(*missing)}{other}.")
        if self.rewards is not None and self.radius is None:
            raise qq.InvalidInput("--rewards counts noised rewards, and belongs to --radius.")
        smooth = [name for name in ("noise", "pieces") if name in typed]
        if self.radius is not None and smooth:
            raise qq.InvalidInput(f"{dashed(*smooth)} needs smooth rewards: give --people instead of --radius.")


class CheckedTraining:
    """A training that can be carried out: nothing of it will be refused but an account that is exhausted."""

    def __init__(self, settings: Settings, account: Account | None = None) -> None:
        self.world = find_place(settings.world, settings.box, settings.env)
        self.account = account
        self.budget: qq.Budget | None = None
        self.relation: Relation | None = None
        if settings.epsilon is not None and settings.delta is not None:
            self.budget = qq.Budget(settings.epsilon, settings.delta)
            self.relation = _relate(settings, self.world)
        self.settings = settings
        self.draws_reward = learns_from_reward(settings.method) and settings.reward is None
        promised: dict[str, object] = {"relation": self.relation, "budget": self.budget} if self.budget else {}
        if settings.reward is not None:
            promised = {"private": qq.load(settings.reward)}
        elif self.draws_reward:
            promised = {"private": self._make_reward(simulate=0)}
        method = build_method(settings.method, settings.options, **promised)
        self.agent = Agent(self.world, method, seed=settings.seed, account=account)
        self.agent.check(settings.steps, seeds=settings.seeds, simulate=self.simulate)
        options = {name: getattr(method, name) for name in options_of(type(method))}
        name = self.world.name if isinstance(self.world, World) else settings.world
        self.settings = replace(settings, world=name, options=options)

    @property
    def simulate(self) -> int | None:
        """How many draws the training itself simulates; a private reward is simulated before it."""
        return None if self.draws_reward else self.settings.simulate

    def draw_reward(self, out: Path) -> None:
        """Gives the agent the private reward that it learns from, charged first and written to the run's folder.

        Nothing happens where a method draws its own noise, or the reward came from a file.
        """
        if not self.draws_reward:
            return
        seed, draws = self.settings.seed, self.settings.simulate
        if draws is None:
            private = self._make_reward(account=self.account)
            qq.publish(private, out / folder.REWARD)
        else:
            seeds = [np.random.SeedSequence((seed, draw)).generate_state(1)[0] for draw in range(draws)]
            private = [self._make_reward(simulate=int(one)) for one in seeds]
        self.agent.method = replace(self.agent.method, private=private)  # pyright: ignore[reportCallIssue]

    def warning(self) -> str | None:
        """A sentence if a good score is out of reach of any algorithm with this promise."""
        if self.relation is None or self.budget is None or not isinstance(self.world, World):
            return None
        noise = self.settings.noise
        pure = self.budget.is_pure or (noise in MECHANISMS and MECHANISMS[noise].pure)
        radius = self.relation.radius  # pyright: ignore[reportAttributeAccessIssue]
        return out_of_reach(self.world, radius, self.budget, gaussian=not pure)

    def _make_reward(self, simulate: int | None = None, account: Account | None = None) -> Publishable:
        assert isinstance(self.world, World)
        assert self.relation is not None
        assert self.budget is not None
        return privatise_world(
            self.world,
            self.relation,
            self.budget,
            noise=self.settings.noise,
            pieces=self.settings.pieces,
            rewards=self.settings.rewards,
            seed=self.settings.seed,
            simulate=simulate,
            account=account,
        )


def _relate(settings: Settings, world: World | gymnasium.Env) -> Relation:
    """Says what must stay hidden; refused if that is not declared, or the method has no noise for it."""
    if not isinstance(world, World) and learns_from_reward(settings.method):
        raise qq.InvalidInput(f"{settings.method!r} needs --reward in {settings.world!r}: a private reward's file.")
    if settings.radius is not None:
        return qq.SupBall(settings.radius)
    if not isinstance(world, World):
        raise qq.InvalidInput(f"What people want of {settings.world!r} is not declared: give --radius, not --people.")
    assert settings.people is not None
    return world.relation(settings.people)


def carry_out(training: CheckedTraining, out: Path, account: "SourceAccount | None") -> NotPrivate:
    """Trains, and writes the run's folder; the scores under the true reward are not private."""
    settings, agent = training.settings, training.agent
    out.mkdir(parents=True, exist_ok=True)
    folder.write_json(out / folder.CONFIG, {"schema": 2, "version": qq.__version__, **asdict(settings)})
    folder.write_note(out, None, True)
    before = _charges(account)
    try:
        training.draw_reward(out)
        progress = sys.stderr.isatty()
        agent.learn(settings.steps, seeds=settings.seeds, simulate=training.simulate, progress=progress)
        return _write(agent, out)
    except qq.BudgetExhausted:  # nothing was booked, and nothing is left behind
        shutil.rmtree(out)
        raise
    except KeyboardInterrupt:
        spent = agent.spent if account is None else _charges(account) > before
        print(f"\nquietq: stopped: {_what_is_left(training, out, spent)}.", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None  # it has said what there is to say


def _write(agent: Agent, out: Path) -> NotPrivate:
    """Writes what was released, and then what is not private, which it gives back."""
    if agent.certificate.standing == "certified":
        qq.publish(agent, out / folder.AGENT)
    else:
        agent.save(out / folder.AGENT)  # marked as NOT PRIVATE
    folder.write_json(out / folder.CERTIFICATE, agent.certificate.to_dict())
    if agent.method.uses_true_reward:
        folder.write_returns(out, agent.not_private["episode_returns"])
    evaluation = agent.evaluate()
    folder.write_json(out / folder.SCORES, {"score": evaluation.scores, "return": evaluation.returns})
    folder.write_note(out, agent.certificate.standing, agent.method.uses_true_reward)
    return evaluation


def _charges(account: "SourceAccount | None") -> set[str]:
    """The ids of what a ledger booked for trainings by this method: it knows of a charge before this process does."""
    if account is None:
        return set()
    reserved = [one.reserved for one in account.ledger.balance(account.source).bookings]
    return {one.id for one in reserved if one.method == account.method}


def _what_is_left(training: CheckedTraining, out: Path, spent: bool) -> str:
    """What a training that was stopped cost, and what there is of it: noise that is left over is never kept."""
    if (out / folder.AGENT).exists():
        return f"the agent is trained, and in {out / folder.AGENT}; only its scores are missing"
    if (out / folder.REWARD).exists():
        again = f"--reward {out / folder.REWARD} trains on it, and spends nothing"
        return f"the training is lost, but not the private reward that was spent on: {again}"
    if not spent or training.budget is None:
        return "the training is lost; nothing was spent"
    budget = f"epsilon = {training.budget.epsilon:g} and delta = {training.budget.delta:g}"
    return f"the training is lost, and {budget} were spent on it, because its noise had been drawn"
