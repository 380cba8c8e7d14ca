"""What `quietq audit METHOD` was asked for, checked, as one audit that is ready to run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quietq as qq
from quietq.audit import (
    Finding,
    Privatising,
    View,
    audit_evaluation,
    audit_observed,
    audit_reward,
    audit_training,
    audit_weights,
)
from quietq.audit.bounds import significance_of
from quietq.cli.options import build_method, dashed, read_values
from quietq.learning import METHODS, options_of
from quietq.learning.private_source import OnPrivateReward
from quietq.learning.promise import Promising
from quietq.privacy.checks import count
from quietq.worlds import World, find_world

Audit = Callable[[Any], Finding]
QUERIES = {"final": 65, "policy": 65, "every": 9}
"""States a coordinate that are asked for, unless told otherwise."""
OF_TRAINING = ("score", "queries", "moments", "steps", "public_walk")


@dataclass(frozen=True)
class Plan:
    """An audit: the method, and the options that were given."""

    method: str
    given: Mapping[str, Any]
    cache: Path | None = None
    """Where trainings are kept."""

    def __post_init__(self) -> None:
        significance_of(self.confidence)
        significance_of((1 + self.confidence) / 2)  # two bounds share it
        count("seed", self.given.get("seed", 0), 0)

    @property
    def confidence(self) -> float:
        """With which all bounds hold together."""
        return self.given.get("confidence", 0.95)

    @property
    def runs(self) -> int:
        """Under each of the two rewards."""
        return self.given.get("runs", 1000)

    @property
    def people(self) -> int:
        """Behind the reward."""
        return self.given.get("people", 50)

    @property
    def budget(self) -> qq.Budget:
        """What is promised."""
        return qq.Budget(self.given.get("epsilon", 0.9), self.given.get("delta", 1e-4))

    def build(self) -> Audit:
        """The audit, with everything refused that can be before it runs."""
        if self.method == "evaluation":
            people, budget = self.people, self.budget
            return lambda progress: audit_evaluation(people, budget, self.runs, progress=progress, **self._common())
        kind = METHODS[self.method]
        if issubclass(kind, OnPrivateReward) and self.given.get("view", "reward") == "reward":
            return self._of_reward(kind)
        return self._of_training(kind)

    def _common(self) -> dict[str, Any]:
        return {"seed": self.given.get("seed", 0), "confidence": self.confidence}

    def _chosen(self, *names: str) -> dict[str, Any]:
        return {name: self.given[name] for name in names if name in self.given}

    def _relation(self, world: World) -> Any:
        if "people" in self.given and "radius" in self.given:
            raise qq.InvalidInput("Give --people or --radius, not both.")
        return qq.SupBall(self.given["radius"]) if "radius" in self.given else world.relation(self.people)

    def _refuse(self, *unused: str) -> None:
        """Refuses options that would not matter."""
        for name in unused:
            if name in self.given:
                raise qq.InvalidInput(
                    f"{dashed(name)} makes no difference to this audit of {self.method!r}: leave it out."
                )

    def _of_training(self, kind: Any) -> Audit:
        """Of what is trained, by complete runs."""
        private, promise, world = None, {}, find_world(self.given.get("world", "walk"))
        if issubclass(kind, OnPrivateReward):
            noise = self.given.get("noise", "path")
            private = Privatising(self._relation(world), self.budget, noise, self.given.get("pieces"))
        elif issubclass(kind, Promising):
            promise = {"relation": self._relation(world), "budget": self.budget}
        method = build_method(kind, read_values(kind, self.given), **promise)
        seen: Any = self.given.get("view", "final")
        if seen != "every" and "moments" in self.given:
            raise qq.InvalidInput("--moments is for --view every.")
        view = View(seen, self.given.get("queries", QUERIES[seen]), self.given.get("moments", 10))
        return lambda progress: audit_training(
            method, world, self.runs, view=view, folder=self.cache, private=private, progress=progress,
            **self._chosen("move", "score", "public_walk", "steps"), **self._common(),
        )  # fmt: skip

    def _of_reward(self, kind: Any) -> Audit:
        """Of the private reward itself, of which all training is post-processing."""
        if self._chosen(*OF_TRAINING, *options_of(kind)):
            raise qq.InvalidInput(
                "The private reward itself is seen whole, before any training: for hyper-parameters and the options "
                "of trainings add --view final."
            )
        world, budget, common = find_world(self.given.get("world", "walk")), self.budget, self._common()
        relation = self._relation(world)
        if isinstance(relation, qq.LipschitzBall):
            noise = self.given.get("noise", "k-norm" if budget.is_pure else "path")
            return lambda progress: audit_reward(
                world, relation, budget, self.runs, noise=noise, pieces=self.given.get("pieces"),
                move=self.given.get("move", "worst"), progress=progress, **common,
            )  # fmt: skip
        if isinstance(relation, qq.SupBall):
            self._refuse("noise", "pieces", "move")
            return lambda progress: audit_observed(world, relation, budget, self.runs, progress=progress, **common)
        self._refuse("pieces", "move")
        noise = self.given.get("noise", "k-norm")
        return lambda progress: audit_weights(
            world, self.people, budget, self.runs, noise=noise, progress=progress, **common
        )
