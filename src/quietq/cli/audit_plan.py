"""What `quietq audit` was asked for, checked, as one audit that is ready to run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import quietq as qq
from quietq.cli import hyper
from quietq.privacy.checks import count

if TYPE_CHECKING:
    from quietq.audit import Finding
    from quietq.worlds import World

    Audit = Callable[[Any], Finding]

FROM_PRIVATE = ("reward", "actor-critic")
"""Methods that learn from a private reward."""
QUERIES = {"final": 65, "policy": 65, "every": 9}
"""States a coordinate that are asked for, unless told otherwise."""
TRAINING = ("world", "move", "view", "queries", "moments", "score", "public_walk", "steps", "seed")
PROMISE = ("people", "radius", "epsilon", "delta")


@dataclass(frozen=True)
class Plan:
    """The command line: `given` are the options that were, by name, and `texts` the hyper-parameters."""

    method: str
    runs: int
    confidence: float
    given: Mapping[str, Any]
    texts: Mapping[str, Any]
    folder: Path | None

    def audit(self) -> "Audit":
        """The audit, with everything refused that can be before it runs."""
        from quietq.audit import audit_evaluation
        from quietq.learning import METHODS

        self._check()
        if self.method == "evaluation":
            self._only("people", "epsilon", "delta", "seed")
            people, budget = self.given.get("people", 50), self._budget()
            return lambda progress: audit_evaluation(people, budget, self.runs, progress=progress, **self._further())
        if self.method == "none":
            raise qq.InvalidInput("There is nothing to audit in 'none': it promises nothing.")
        if self.method not in METHODS:
            known = ", ".join(sorted(set(METHODS) - {"none"} | {"evaluation", "all"}))
            raise qq.InvalidInput(f"There is no method called {self.method!r} to audit: they are {known}.")
        if self.method in FROM_PRIVATE and self.given.get("view", "reward") == "reward":
            return self._of_reward()
        return self._of_training(METHODS[self.method])

    def for_all(self) -> tuple[qq.Budget, int, Path]:
        """What `all` goes by: budget, people, and the folder to write to."""
        self._check()
        self._only("people", "epsilon", "delta", "out")
        count("runs", self.runs, 40)
        return self._budget(), self.given.get("people", 50), self.given.get("out", Path("runs/audit"))

    def _check(self) -> None:
        from quietq.audit.bounds import significance_of

        significance_of(self.confidence)
        significance_of((1 + self.confidence) / 2)  # two bounds share it
        count("seed", self.given.get("seed", 0), 0)

    def _only(self, *used: str, hyper_parameters: bool = False) -> None:
        """Refuses options that would not matter."""
        unused = [name for name in self.given if name not in used]
        unused += [] if hyper_parameters else list(self.texts)
        if unused:
            given = f"--{unused[0].replace('_', '-')}"
            raise qq.InvalidInput(f"{given} makes no difference to this audit of {self.method!r}: leave it out.")

    def _budget(self) -> qq.Budget:
        return qq.Budget(self.given.get("epsilon", 0.9), self.given.get("delta", 1e-4))

    def _world(self) -> "World":
        from quietq.worlds import find_world

        return find_world(self.given.get("world", "walk"))

    def _relation(self, world: "World") -> Any:
        if "people" in self.given and "radius" in self.given:
            raise qq.InvalidInput("Give --people or --radius, not both.")
        return qq.SupBall(self.given["radius"]) if "radius" in self.given else world.relation(self._people)

    @property
    def _people(self) -> int:
        return self.given.get("people", 50)

    def _further(self) -> dict[str, Any]:
        return {"seed": self.given.get("seed", 0), "confidence": self.confidence}

    def _of_training(self, kind: Any) -> "Audit":
        """Of what is trained, by complete runs."""
        from quietq.audit import Privatising, View, audit_training

        if self.given.get("view") == "reward":
            raise qq.InvalidInput(f"--view reward is for a private reward, and {self.method!r} has none.")
        private, promise = None, {}
        values, world = hyper.read(kind, self.texts), self._world()
        if self.method in FROM_PRIVATE:
            self._only(*TRAINING, *PROMISE, "noise", "pieces", hyper_parameters=True)
            noise = self.given.get("noise", "path")
            private = Privatising(self._relation(world), self._budget(), noise, self.given.get("pieces"))
        elif self.method == "published":
            self._only(*TRAINING, hyper_parameters=True)
        else:
            self._only(*TRAINING, *PROMISE, hyper_parameters=True)
            promise = {"relation": self._relation(world), "budget": self._budget()}
        method: Any = hyper.made(kind, values, **promise)
        seen: Any = self.given.get("view", "final")
        view = View(seen, self.given.get("queries", QUERIES[seen]), self.given.get("moments", 10))
        if seen != "every" and "moments" in self.given:
            raise qq.InvalidInput("--moments is for --view every.")
        named = {name: self.given[name] for name in ("move", "score", "public_walk", "steps") if name in self.given}
        return lambda progress: audit_training(
            method, world, self.runs, view=view, folder=self.folder, private=private, progress=progress, **named,
            **self._further(),
        )  # fmt: skip

    def _of_reward(self) -> "Audit":
        """Of the private reward itself, of which all training is post-processing."""
        from quietq.audit import audit_observed, audit_reward, audit_weights

        if self.texts or {"score", "queries", "moments", "steps", "public_walk"} & set(self.given):
            raise qq.InvalidInput(
                "The private reward itself is seen whole, before any training: for hyper-parameters and the options "
                "of trainings add --view final."
            )
        world, budget, further = self._world(), self._budget(), self._further()
        relation, common = self._relation(world), ("world", "view", "epsilon", "delta", "seed")
        if isinstance(relation, qq.LipschitzBall):
            self._only(*common, "people", "noise", "pieces", "move")
            noise = self.given.get("noise", "k-norm" if budget.is_pure else "path")
            return lambda progress: audit_reward(
                world, relation, budget, self.runs, noise=noise, pieces=self.given.get("pieces"),
                move=self.given.get("move", "worst"), progress=progress, **further,
            )  # fmt: skip
        if isinstance(relation, qq.SupBall):
            self._only(*common, "radius")
            return lambda progress: audit_observed(world, relation, budget, self.runs, progress=progress, **further)
        self._only(*common, "people", "noise")
        noise = self.given.get("noise", "k-norm")
        return lambda progress: audit_weights(
            world, self._people, budget, self.runs, noise=noise, progress=progress, **further
        )
