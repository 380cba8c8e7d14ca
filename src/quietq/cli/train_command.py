"""`quietq paper train`: everything is checked before anything is drawn, charged or written.

The check is a rehearsal with simulated noise, so that what would be refused later is refused now.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import INTERRUPTED, answer, dashed, warn
from quietq.cli.ledger_command import absolute, open_account
from quietq.cli.options import (
    WORLDS,
    AsJson,
    HyperParameters,
    LedgerSource,
    LedgerUrl,
    MethodName,
    Noise,
    Pieces,
    Radius,
    complete,
    given,
    read_assignment,
    read_pairs,
    refuse_others,
)
from quietq.cli.paper_commands import (
    check_method,
    learns_from_reward,
    paper,
    promises,
    read_hyper_parameters,
    refused_options,
)
from quietq.paper.method_table import METHOD_TABLE

if TYPE_CHECKING:
    import gymnasium

    from quietq.ledger import SourceAccount
    from quietq.paper import Agent
    from quietq.paper.agents.scoring import NotPrivate
    from quietq.privacy import Account, Relation
    from quietq.released.publishable import Publishable
    from quietq.worlds import World


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
    log: bool = False
    simulate: int | None = None
    ledger: str | None = None
    source: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    """Hyper-parameters; in config.json all of them, so that it does not hang on defaults."""

    def __post_init__(self) -> None:
        """Refuses options that contradict each other, and those that the method has no use for."""
        from quietq.privacy.checks import count

        for name in ("steps", "seeds", "people", "simulate", "rewards", "pieces"):
            if (value := getattr(self, name)) is not None:
                count(name, value)
        count("seed", self.seed, 0, 2**63 - 1)
        typed = given(**vars(self))
        refuse_others(f"{self.method!r} has", typed, set(typed) - refused_options(self.method))
        if self.people is not None and self.radius is not None:
            raise qq.InvalidInput("--people and --radius both say what one person can change: give one of them.")
        if self.simulate is not None and self.ledger is not None:
            raise qq.InvalidInput("--ledger is charged for noise that protects, and --simulate draws none.")
        if self.reward is not None:
            self._check_file(typed)
        elif promises(self.method):
            self._check_promise(typed)

    def _check_file(self, typed: dict[str, object]) -> None:
        """A private reward's file was paid for, and says everything about its promise."""
        if self.ledger is not None:
            raise qq.InvalidInput(
                "--reward was paid for when it was made, and training on it is free: leave out --ledger."
            )
        of_promise = ("people", "radius", "epsilon", "delta", "simulate", "noise", "pieces", "rewards")
        if extra := [name for name in of_promise if name in typed]:
            raise qq.InvalidInput(f"--reward brings its noise and its promise along: leave out {dashed(*extra)}.")

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
    """A training that was rehearsed, and can be carried out."""

    def __init__(self, settings: Settings) -> None:
        from quietq.paper.agents.hyper_parameters import options_of
        from quietq.paper.agents.training import Training
        from quietq.worlds import World

        self.settings = settings
        self.learns_from_reward = learns_from_reward(settings.method)
        self.world = _find_world(settings)
        self.budget: qq.Budget | None = None
        self.relation: Relation | None = None
        if promises(settings.method) and settings.reward is None:
            assert settings.epsilon is not None
            assert settings.delta is not None
            self.budget = qq.Budget(settings.epsilon, settings.delta)
            self.relation = self._relate()
        rehearsal = self._build_agent([self._make_reward(simulate=0)] if self.learns_from_reward else [])
        Training(  # checks itself when it is made
            world=rehearsal.world,
            spaces=rehearsal.spaces,
            method=rehearsal.method,
            seed=settings.seed,
            steps=settings.steps,
            seeds=settings.seeds,
            simulate=self.simulate,
        )
        method = rehearsal.method
        options = {name: getattr(method, name) for name in options_of(type(method))}
        name = self.world.name if isinstance(self.world, World) else settings.world
        self.settings = replace(settings, world=name, options=options)

    @property
    def simulate(self) -> int | None:
        """How many draws the training itself simulates; a private reward is simulated before it."""
        return None if self.learns_from_reward else self.settings.simulate

    def build_agent(self, out: Path, account: "Account | None" = None) -> "Agent":
        """Makes the agent that learns. A private reward is drawn now, and written to the run's folder.

        Whatever is drawn is charged to `account` first.
        """
        return self._build_agent(self._draw_rewards(out, account) if self.learns_from_reward else [], account)

    def warning(self) -> str | None:
        """A sentence if a good score is out of reach of any algorithm with this promise."""
        from quietq.mechanisms.privatise import MECHANISMS
        from quietq.paper.agents.world_reward import out_of_reach
        from quietq.worlds import World

        if self.relation is None or self.budget is None or not isinstance(self.world, World):
            return None
        noise = self.settings.noise
        pure = self.budget.is_pure or (noise in MECHANISMS and MECHANISMS[noise].pure)
        radius = self.relation.radius  # pyright: ignore[reportAttributeAccessIssue]
        return out_of_reach(self.world, radius, self.budget, gaussian=not pure)

    def _relate(self) -> "Relation":
        """Says what must stay hidden; refused if the method has no noise for it."""
        from quietq.worlds import World

        settings = self.settings
        if not isinstance(self.world, World) and self.learns_from_reward:
            raise qq.InvalidInput(f"{settings.method!r} needs --reward in {settings.world!r}: a private reward's file.")
        if settings.radius is not None:
            return qq.SupBall(settings.radius)
        if not isinstance(self.world, World):
            raise qq.InvalidInput(
                f"What people want of {settings.world!r} is not declared: give --radius, not --people."
            )
        assert settings.people is not None
        return self.world.relation(settings.people)

    def _build_agent(self, rewards: "list[Publishable]", account: "Account | None" = None) -> "Agent":
        from quietq.paper.agents.agent import Agent
        from quietq.paper.methods import build_method

        promised: dict[str, object] = {}
        if rewards:
            promised = {"private": rewards[0] if len(rewards) == 1 else rewards}
        elif self.budget is not None:
            promised = {"relation": self.relation, "budget": self.budget}
        method = build_method(self.settings.method, self.settings.options, **promised)
        return Agent(self.world, method, seed=self.settings.seed, account=account)

    def _draw_rewards(self, out: Path, account: "Account | None") -> "list[Publishable]":
        import numpy as np

        settings = self.settings
        if settings.simulate is not None:
            seeds = (np.random.SeedSequence((settings.seed, draw)) for draw in range(settings.simulate))
            return [self._make_reward(int(seed.generate_state(1)[0])) for seed in seeds]
        private = self._make_reward(account=account)
        if settings.reward is None:
            qq.publish(private, out / folder.REWARD)
        return [private]

    def _make_reward(self, simulate: int | None = None, account: "Account | None" = None) -> "Publishable":
        from quietq.paper.agents.world_reward import privatise_world
        from quietq.worlds import World

        settings = self.settings
        if settings.reward is not None:
            return qq.load(settings.reward)
        assert isinstance(self.world, World)
        assert self.relation is not None
        assert self.budget is not None
        return privatise_world(
            self.world,
            self.relation,
            self.budget,
            noise=settings.noise,
            pieces=settings.pieces,
            rewards=settings.rewards,
            seed=settings.seed,
            simulate=simulate,
            account=account,
        )


def _find_world(settings: Settings) -> "World | gymnasium.Env":
    from quietq.worlds import find_place

    place = find_place(settings.world, settings.box, settings.env)
    space = getattr(place, "observation_space", None)
    if space is not None and hasattr(space, "is_bounded") and len(space.shape) == 1 and not space.is_bounded():
        raise qq.InvalidInput(
            f"The observations of {settings.world!r} have no bounds: give --box LOW HIGH for each of their "
            f"{space.shape[0]} coordinates, in order; public."
        )
    return place


@paper.command()
def train(
    method: MethodName,
    world: Annotated[
        str,
        typer.Argument(
            metavar="WORLD",
            help="One that `quietq worlds` lists, or any Gymnasium id.",
            autocompletion=complete(WORLDS),
        ),
    ],
    people: Annotated[int | None, typer.Option(help="How many people stand behind the reward; public.")] = None,
    radius: Radius = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget, above 0.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Probability that the promise fails, well below 1/people.")
    ] = None,
    reward: Annotated[
        Path | None, typer.Option(help="Train on this private reward, which `quietq reward` or publish wrote.")
    ] = None,
    noise: Noise = None,
    pieces: Pieces = None,
    rewards: Annotated[
        int | None, typer.Option(help="With --radius: noised rewards that a reward is made of; default 5000.")
    ] = None,
    hyper_parameters: HyperParameters = None,
    steps: Annotated[int, typer.Option(help="Steps of the world to learn from.")] = 5000,
    seeds: Annotated[int, typer.Option(help="Trainings side by side.")] = 1,
    seed: Annotated[
        int | None, typer.Option(help="Makes training repeatable; noise that protects is new whatever the seed.")
    ] = None,
    simulate: Annotated[
        int | None, typer.Option(help="So many simulated noise draws, for experiments: they protect nobody.")
    ] = None,
    box: Annotated[
        list[str] | None,
        typer.Option(metavar="LOW HIGH", help="Hold a Gymnasium id's observations to it; once per coordinate."),
    ] = None,
    env_kwarg: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An argument for a Gymnasium id; may be repeated.")
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Write a log for TensorBoard, in the run's folder.")] = False,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; default runs/<world>-<method>-<date-time>.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train an agent; what it answers may be published if its certificate says so.

    Methods that learn from a private reward (reward, actor-critic) have --reward, --noise, --pieces and --rewards;
    those that promise nothing have no people and no budget. `quietq paper methods METHOD` lists hyper-parameters.
    """
    began = time.monotonic()
    check_method(method, [name for name, one in METHOD_TABLE.items() if one.in_worlds])
    common = given(
        people=people,
        radius=radius,
        epsilon=epsilon,
        delta=delta,
        reward=None if reward is None else str(reward.absolute()),
        noise=noise,
        pieces=pieces,
        rewards=rewards,
        seed=seed,
        simulate=simulate,
        ledger=None if ledger is None else absolute(ledger),
        source=source,
    )
    settings = Settings(
        method=method,
        world=world,
        box=tuple(read_pairs(box) or ()),
        env=dict(map(_read_argument, env_kwarg or ())),
        steps=steps,
        seeds=seeds,
        log=log,
        options=read_hyper_parameters(method, hyper_parameters),
        **common,  # pyright: ignore[reportArgumentType]
    )
    training = CheckedTraining(settings)
    out = folder.choose(out, f"{training.settings.world}-{method}")
    if sentence := training.warning():
        warn(sentence)
    account = open_account(settings.ledger, settings.source, f"train/{method}")
    agent, evaluation = carry_out(training, out, account)
    certificate = agent.certificate
    seconds = round(time.monotonic() - began, 3)
    result = {"score": evaluation.scores, "return": evaluation.returns}
    record = {"certificate": certificate.to_dict(), "out": str(out), "seconds": seconds, "not_private": result}
    files = ", ".join(str(out / name) for name in folder.RELEASED if (out / name).exists())
    may = "May be published" if certificate.standing == "certified" else "Not private, so not to be published"
    score = "" if evaluation.scores is None else f"score {_spread(evaluation.scores)}, "
    lines = [certificate, f"\n{may}: {files}", f"What else is in {out} stays with you; {folder.README} says why."]
    lines.append(f"NOT PRIVATE, for you only: {score}return {_spread(evaluation.returns)}")
    if score:
        worst = "the worst policy" if training.settings.world == "walk" else "random actions"
        lines.append(f"(A score of 0 is that of {worst}, 1 that of the best policy known.)")
    answer(as_json, record, *lines)


def _read_argument(word: str) -> tuple[str, object]:
    """Reads an environment's argument: its value is JSON if it can be read as such, or else text."""
    key, value = read_assignment(word, "--env-kwarg", "KEY=VALUE, e.g. gravity=-9.8")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def carry_out(training: CheckedTraining, out: Path, account: "SourceAccount | None") -> "tuple[Agent, NotPrivate]":
    """Trains, and writes the run's folder; the scores under the true reward are not private."""
    settings = training.settings
    out.mkdir(parents=True, exist_ok=True)
    folder.write_config(out, asdict(settings))
    folder.write_note(out, None, True)
    agent = None
    before = _charges(account)
    try:
        agent = training.build_agent(out, account)
        agent.learn(
            settings.steps,
            seeds=settings.seeds,
            simulate=training.simulate,
            progress=sys.stderr.isatty(),
            log=out / folder.LOG if settings.log else None,
        )
        return agent, _write(agent, out)
    except qq.BudgetExhausted:  # nothing was booked, and nothing is left behind
        shutil.rmtree(out)
        raise
    except KeyboardInterrupt:
        spent = agent is not None and agent.spent if account is None else _charges(account) > before
        print(f"\nquietq: stopped: {_what_is_left(training, out, spent)}.", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None  # it has said what there is to say


def _write(agent: "Agent", out: Path) -> "NotPrivate":
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
    return {one.id for one in account.ledger.balance(account.source).bookings if one.method == account.method}


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


def _spread(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{sum(values) / len(values):.4g} ({min(values):.4g} to {max(values):.4g} over {len(values)} runs)"
