"""A training as the command line asks for it: everything is checked before anything is drawn, charged or written.

A private reward that is yet to be drawn is simulated until then, so that what would be refused later is refused now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import dashed
from quietq.cli.ledger_command import open_account
from quietq.cli.options import given, read_assignment, refuse_others
from quietq.mechanisms.candidates import MECHANISMS
from quietq.paper.agents import Agent, InLoopMethod, RewardLearner
from quietq.paper.agents.agent import NotPrivate
from quietq.paper.agents.hyper_parameters import read_options
from quietq.paper.agents.places import find_place
from quietq.paper.method_table import METHOD_TABLE
from quietq.paper.methods import METHODS, build_method
from quietq.paper.observed import out_of_reach, privatise_world
from quietq.privacy import Relation
from quietq.privacy.checks import count
from quietq.released.publishable import Publishable
from quietq.worlds import World


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


class CheckedTraining:
    """A training as it was asked for, of which nothing will be refused any more but an account that is exhausted.

    Args:
        method: The name of the method.
        world: The name of the world, or an id of Gymnasium.
        box: The box that a Gymnasium environment's observations are clipped to.
        steps: How many steps of the world there are to learn from.
        seeds: How many trainings side by side.
        seed: Makes training repeatable.
        options: Hyper-parameters.
        asked: Further options of `quietq paper train`, by their names.

    """

    def __init__(
        self,
        method: str,
        world: str,
        box: Sequence[tuple[float, float]] | None = None,
        steps: int = 5000,
        seeds: int = 1,
        seed: int | None = None,
        options: Mapping[str, object] | None = None,
        **asked: Any,
    ) -> None:
        """Refuses what contradicts itself, what the method has no use for, and whatever training would refuse."""
        self._method = method
        self._asked: dict[str, Any] = given(**asked)
        self._steps, self._seeds = steps, seeds
        self._learns_from_reward = issubclass(METHODS[method], RewardLearner)
        self._check_options()
        self._account = open_account(asked.get("ledger"), asked.get("source"), f"train/{method}")
        self.place = find_place(world, box or ())
        self.world = self.place.name if isinstance(self.place, World) else world
        self._budget: qq.Budget | None = None
        self._relation: Relation | None = None
        promised: dict[str, object] = {}
        if "epsilon" in self._asked:
            self._budget, self._relation = qq.Budget(asked["epsilon"], asked["delta"]), self._relate()
            promised = {"relation": self._relation, "budget": self._budget}
        self._draws_reward = self._learns_from_reward and "reward" not in self._asked
        if self._learns_from_reward:
            drawn = self._make_reward(seed, simulate=0) if self._draws_reward else qq.load(asked["reward"])
            promised = {"private": drawn}
        built = build_method(method, options or {}, **promised)
        self.agent = Agent(self.place, built, seed=seed, account=self._account)
        # A private reward is simulated before the training, which draws nothing itself then.
        self._draws = None if self._draws_reward else self._asked.get("simulate")
        self.agent.check(steps, seeds=seeds, simulate=self._draws)

    def _check_options(self) -> None:
        """Refuses options that contradict each other or are too few, before a file is looked for."""
        asked, refused = self._asked, refused_options(self._method)
        refuse_others(f"{self._method!r} has", [name for name in asked if name in refused])
        if "simulate" in asked:
            count("simulate", asked["simulate"])
            if "ledger" in asked:
                raise qq.InvalidInput("--ledger is charged for noise that protects, and --simulate draws none.")
        if "reward" in asked:
            # The file of a private reward was paid for, and says everything about its promise.
            if extra := [name for name in asked if name not in ("reward", "source")]:
                raise qq.InvalidInput(
                    f"--reward was paid for when it was made, and brings noise and promise along: leave out "
                    f"{dashed(*extra)}."
                )
        elif "epsilon" not in refused:
            self._check_promise()

    def _check_promise(self) -> None:
        asked, rough = self._asked, "radius" in self._asked
        if "people" in asked and rough:
            raise qq.InvalidInput("--people and --radius both bound what one person can change: give one of them.")
        needed = ("epsilon", "delta") if rough else ("people", "epsilon", "delta")
        if missing := [name for name in needed if name not in asked]:
            other = ", or --reward with a private reward's file" if self._learns_from_reward else ""
            raise qq.InvalidInput(f"{self._method!r} needs {dashed(*missing)}{other}.")
        if "rewards" in asked and not rough:
            raise qq.InvalidInput("--rewards counts noised rewards, and belongs to --radius.")
        smooth = [name for name in ("noise", "pieces") if name in asked]
        if rough and smooth:
            raise qq.InvalidInput(f"{dashed(*smooth)} needs smooth rewards: give --people instead of --radius.")

    def _relate(self) -> Relation:
        """Says what must stay hidden; refused if that is not declared, or the method has no noise for it."""
        if not isinstance(self.place, World) and self._learns_from_reward:
            raise qq.InvalidInput(f"{self._method!r} needs --reward in {self.world!r}: its file.")
        if "radius" in self._asked:
            return qq.SupBall(self._asked["radius"])
        if not isinstance(self.place, World):
            raise qq.InvalidInput(f"What people want of {self.world!r} is not declared: give --radius, not --people.")
        return self.place.relation(self._asked["people"])

    def warning(self) -> str | None:
        """A sentence if a good score is out of reach of any algorithm with this promise."""
        if self._relation is None or self._budget is None or not isinstance(self.place, World):
            return None
        noise = self._asked.get("noise")
        pure = self._budget.is_pure or (noise in MECHANISMS and MECHANISMS[noise].pure)
        radius = self._relation.radius  # pyright: ignore[reportAttributeAccessIssue]
        return out_of_reach(self.place, radius, self._budget, gaussian=not pure)

    def run(self, out: Path) -> NotPrivate:
        """Trains, and writes what was released to the folder; the scores under the true reward are not private."""
        out.mkdir(parents=True, exist_ok=True)
        self.draw_reward(out)
        self.agent.learn(self._steps, seeds=self._seeds, simulate=self._draws)
        if self.agent.certificate.standing == "certified":
            qq.publish(self.agent, out / folder.AGENT)
        else:
            self.agent.save(out / folder.AGENT)  # marked as NOT PRIVATE
        return self.agent.evaluate()

    def draw_reward(self, out: Path) -> None:
        """Gives the agent the private reward that it learns from, charged first and written to the run's folder.

        Nothing happens where a method draws its own noise, or the reward came from a file.
        """
        if not self._draws_reward:
            return
        if "simulate" not in self._asked:
            private = self._make_reward(self.agent.seed, account=self._account)
            qq.publish(private, out / folder.REWARD)
        else:
            seed = self.agent.seed
            sequences = [np.random.SeedSequence((seed, draw)) for draw in range(self._asked["simulate"])]
            private = [self._make_reward(seed, simulate=int(one.generate_state(1)[0])) for one in sequences]
        self.agent.method = replace(self.agent.method, private=private)  # pyright: ignore[reportCallIssue]

    def _make_reward(self, seed: int | None, **how: Any) -> Publishable:
        """The private reward of a world: with `simulate` a seed draws it, and else an `account` is charged."""
        named = {name: self._asked.get(name) for name in ("noise", "pieces", "rewards")}
        return privatise_world(self.place, self._relation, self._budget, seed=seed, **named, **how)  # pyright: ignore
