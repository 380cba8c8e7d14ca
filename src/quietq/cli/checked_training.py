"""A training as the command line asks for it: everything is checked before anything is drawn, charged or written.

A private reward that is yet to be drawn is simulated until then, so that what would be refused later is refused now.
"""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import INTERRUPTED, dashed
from quietq.cli.ledger_command import open_account
from quietq.cli.options import read_assignment, refuse_others
from quietq.mechanisms.candidates import MECHANISMS
from quietq.paper.agents import Agent, InLoopMethod, RewardLearner
from quietq.paper.agents.agent import NotPrivate
from quietq.paper.agents.hyper_parameters import options_of, read_options
from quietq.paper.agents.places import find_place
from quietq.paper.method_table import METHOD_TABLE
from quietq.paper.methods import METHODS, build_method
from quietq.paper.observed import out_of_reach, privatise_world
from quietq.privacy import Relation
from quietq.privacy.checks import count
from quietq.released.publishable import Publishable
from quietq.worlds import World

if TYPE_CHECKING:
    from quietq.ledger import SourceAccount


def refused_options(method: str) -> set[str]:
    """Names the options of `train` and `audit` that make no sense for a method."""
    refused: set[str] = set()
    if not issubclass(METHODS[method], RewardLearner):
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


OPTIONS = (
    *("method", "world", "box", "people", "radius", "epsilon", "delta", "reward", "noise", "pieces", "rewards"),
    *("steps", "seeds", "seed", "simulate", "ledger", "source", "options"),
)
"""What a training can be asked for, and what config.json keeps: everything needed to repeat it."""


class CheckedTraining:
    """A training as it was asked for, of which nothing will be refused any more but an account that is exhausted.

    Args:
        asked: Options of `quietq paper train` by their names, those that were given; `options` has the
            hyper-parameters.

    """

    def __init__(self, **asked: Any) -> None:
        """Refuses what contradicts itself, what the method has no use for, and whatever training would refuse."""
        given = {name: value for name, value in asked.items() if value is not None}
        one = self.asked = SimpleNamespace(**dict.fromkeys(OPTIONS) | {"steps": 5000, "seeds": 1} | given)
        self.learns_from_reward = issubclass(METHODS[one.method], RewardLearner)
        refused = refused_options(one.method)
        refuse_others(f"{one.method!r} has", [name for name in given if name in refused])
        self._check_simulation(given)
        if one.reward is None and "epsilon" not in refused:
            self._check_promise(given)
        self.account = open_account(one.ledger, one.source, f"train/{one.method}")
        self.place = find_place(one.world, one.box or ())
        self.budget: qq.Budget | None = None
        self.relation: Relation | None = None
        if one.epsilon is not None and one.delta is not None:
            self.budget, self.relation = qq.Budget(one.epsilon, one.delta), self._relate()
        self.draws_reward = self.learns_from_reward and one.reward is None
        promised: dict[str, object] = {"relation": self.relation, "budget": self.budget} if self.budget else {}
        if one.reward is not None:
            promised = {"private": qq.load(one.reward)}
        elif self.draws_reward:
            promised = {"private": self._make_reward(simulate=0)}
        method = build_method(one.method, one.options or {}, **promised)
        self.agent = Agent(self.place, method, seed=one.seed, account=self.account)
        # A private reward is simulated before the training, which draws nothing itself then.
        self.draws = None if self.draws_reward else one.simulate
        self.agent.check(one.steps, seeds=one.seeds, simulate=self.draws)
        one.seed = self.agent.seed
        # All hyper-parameters, so that a record does not hang on defaults.
        one.options = {name: getattr(method, name) for name in options_of(type(method))}
        one.world = self.place.name if isinstance(self.place, World) else one.world

    def _check_simulation(self, given: Mapping[str, object]) -> None:
        if "simulate" in given:
            count("simulate", given["simulate"])
            if "ledger" in given:
                raise qq.InvalidInput("--ledger is charged for noise that protects, and --simulate draws none.")
        # The file of a private reward was paid for, and says everything about its promise.
        of_promise = ("people", "radius", "epsilon", "delta", "simulate", "noise", "pieces", "rewards", "ledger")
        extra = [name for name in of_promise if name in given]
        if "reward" in given and extra:
            raise qq.InvalidInput(
                f"--reward was paid for when it was made, and brings noise and promise along: leave out "
                f"{dashed(*extra)}."
            )

    def _check_promise(self, given: Mapping[str, object]) -> None:
        rough = "radius" in given
        if "people" in given and rough:
            raise qq.InvalidInput("--people and --radius both bound what one person can change: give one of them.")
        needed = ("epsilon", "delta") if rough else ("people", "epsilon", "delta")
        if missing := [name for name in needed if name not in given]:
            other = ", or --reward with a private reward's file" if self.learns_from_reward else ""
            raise qq.InvalidInput(f"{self.asked.method!r} needs {dashed(*missing)}{other}.")
        if "rewards" in given and not rough:
            raise qq.InvalidInput("--rewards counts noised rewards, and belongs to --radius.")
        smooth = [name for name in ("noise", "pieces") if name in given]
        if rough and smooth:
            raise qq.InvalidInput(f"{dashed(*smooth)} needs smooth rewards: give --people instead of --radius.")

    def _relate(self) -> Relation:
        """Says what must stay hidden; refused if that is not declared, or the method has no noise for it."""
        if not isinstance(self.place, World) and self.learns_from_reward:
            raise qq.InvalidInput(f"{self.asked.method!r} needs --reward in {self.asked.world!r}: its file.")
        if self.asked.radius is not None:
            return qq.SupBall(self.asked.radius)
        if not isinstance(self.place, World):
            raise qq.InvalidInput(
                f"What people want of {self.asked.world!r} is not declared: give --radius, not --people."
            )
        return self.place.relation(self.asked.people)

    def draw_reward(self, out: Path) -> None:
        """Gives the agent the private reward that it learns from, charged first and written to the run's folder.

        Nothing happens where a method draws its own noise, or the reward came from a file.
        """
        if not self.draws_reward:
            return
        if self.asked.simulate is None:
            private = self._make_reward(account=self.account)
            qq.publish(private, out / folder.REWARD)
        else:
            sequences = [np.random.SeedSequence((self.asked.seed, draw)) for draw in range(self.asked.simulate)]
            private = [self._make_reward(simulate=int(one.generate_state(1)[0])) for one in sequences]
        self.agent.method = replace(self.agent.method, private=private)  # pyright: ignore[reportCallIssue]

    def warning(self) -> str | None:
        """A sentence if a good score is out of reach of any algorithm with this promise."""
        if self.relation is None or self.budget is None or not isinstance(self.place, World):
            return None
        pure = self.budget.is_pure or (self.asked.noise in MECHANISMS and MECHANISMS[self.asked.noise].pure)
        radius = self.relation.radius  # pyright: ignore[reportAttributeAccessIssue]
        return out_of_reach(self.place, radius, self.budget, gaussian=not pure)

    def _make_reward(self, **how: Any) -> Publishable:
        """The private reward of a world: with `simulate` a seed draws it, and else an `account` is charged."""
        named = {name: getattr(self.asked, name) for name in ("noise", "pieces", "rewards", "seed")}
        return privatise_world(self.place, self.relation, self.budget, **named, **how)  # pyright: ignore


def carry_out(training: CheckedTraining, out: Path) -> NotPrivate:
    """Trains, and writes the run's folder; the scores under the true reward are not private."""
    agent = training.agent
    out.mkdir(parents=True, exist_ok=True)
    folder.write_json(out / folder.CONFIG, {"schema": 2, "version": qq.__version__, **vars(training.asked)})
    folder.write_note(out, None)
    before = _charges(training.account)
    try:
        training.draw_reward(out)
        agent.learn(training.asked.steps, seeds=training.asked.seeds, simulate=training.draws)
        return _write(agent, out)
    except qq.BudgetExhausted:  # nothing was booked, and nothing is left behind
        shutil.rmtree(out)
        raise
    except KeyboardInterrupt:
        spent = agent.spent if training.account is None else _charges(training.account) > before
        print(f"\nquietq: stopped: {_what_is_left(training, out, spent)}.", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None  # it has said what there is to say


def _write(agent: Agent, out: Path) -> NotPrivate:
    """Writes what was released, and then what is not private, which it gives back."""
    if agent.certificate.standing == "certified":
        qq.publish(agent, out / folder.AGENT)
    else:
        agent.save(out / folder.AGENT)  # marked as NOT PRIVATE
    folder.write_json(out / folder.CERTIFICATE, agent.certificate.to_dict())
    evaluation = agent.evaluate()
    folder.write_json(out / folder.SCORES, {"score": evaluation.scores, "return": evaluation.returns})
    folder.write_note(out, agent.certificate.standing)
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
