"""What `quietq audit` was asked for, checked, as one audit that is ready to run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import quietq as qq
from quietq.cli import hyper

if TYPE_CHECKING:
    from quietq.audit import Finding
    from quietq.worlds import World

    Audit = Callable[[Any], Finding]

FROM_PRIVATE = ("reward", "actor-critic")
"""Methods that learn from a private reward."""
QUERIES = {"final": 65, "policy": 65, "every": 9}
"""States a coordinate that are asked for, unless told otherwise."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The command line's options; None is what was not given."""

    method: str
    world: str
    runs: int
    people: int
    radius: float | None
    epsilon: float
    delta: float
    noise: Any
    pieces: int | None
    move: str | None
    view: str | None
    queries: int | None
    moments: int
    score: Any
    steps: int
    seed: int
    confidence: float
    hyper_parameters: Mapping[str, Any]
    folder: Path | None

    def audit(self) -> "Audit":
        """The audit, with everything refused that can be before it runs."""
        from quietq.audit import audit_evaluation
        from quietq.audit.bounds import significance_of
        from quietq.learning import METHODS
        from quietq.worlds import find_world

        significance_of(self.confidence)
        budget, world = qq.Budget(self.epsilon, self.delta), find_world(self.world)
        if self.method == "evaluation":
            return lambda progress: audit_evaluation(
                self.people, budget, self.runs, progress=progress, **self._randomness()
            )
        if self.method not in METHODS or self.method == "none":
            known = ", ".join(sorted(set(METHODS) - {"none"} | {"evaluation", "all"}))
            raise qq.InvalidInput(f"There is no method called {self.method!r} to audit: they are {known}.")
        if self.method not in FROM_PRIVATE:
            if self.noise is not None or self.pieces is not None:
                raise qq.InvalidInput(f"--noise and --pieces are for a private reward, and {self.method!r} has none.")
            if self.view == "reward":
                raise qq.InvalidInput(f"--view reward is for a private reward, and {self.method!r} has none.")
        elif self.view in (None, "reward"):
            return self._of_reward(world, budget)
        return self._of_training(METHODS[self.method], world, budget)

    def _randomness(self) -> dict[str, Any]:
        return {"seed": self.seed, "confidence": self.confidence}

    def _relation(self, world: "World") -> Any:
        return world.relation(self.people) if self.radius is None else qq.SupBall(self.radius)

    def _of_training(self, kind: Any, world: "World", budget: qq.Budget) -> "Audit":
        """Of what is trained, by complete runs."""
        from quietq.audit import PrivateSource, View, audit_training

        values, private, promise = hyper.read(kind, self.hyper_parameters), None, {}
        if self.method in FROM_PRIVATE:
            private = PrivateSource(self._relation(world), budget, self.noise or "path", self.pieces)
        elif self.method != "published":
            promise = {"relation": self._relation(world), "budget": budget}
        method: Any = hyper.made(kind, values, **promise)
        seen: Any = "final" if self.view is None else self.view
        view = View(seen, QUERIES[seen] if self.queries is None else self.queries, self.moments)
        return lambda progress: audit_training(
            method, world, self.runs, move=self.move or "shift", view=view, score=self.score, steps=self.steps,
            folder=self.folder, private=private, progress=progress, **self._randomness(),
        )  # fmt: skip

    def _of_reward(self, world: "World", budget: qq.Budget) -> "Audit":
        """Of the private reward itself, of which all training is post-processing."""
        from quietq.audit import audit_observed, audit_reward, audit_weights

        if self.hyper_parameters or self.score or self.queries:
            raise qq.InvalidInput(
                "The private reward itself is seen whole, before any training: for hyper-parameters, --score and "
                "--queries add --view final."
            )
        relation, further = self._relation(world), self._randomness()
        if isinstance(relation, qq.LipschitzBall):
            noise = ("k-norm" if budget.is_pure else "path") if self.noise is None else self.noise
            return lambda progress: audit_reward(
                world, relation, budget, self.runs, noise=noise, pieces=self.pieces, move=self.move or "worst",
                progress=progress, **further,
            )  # fmt: skip
        if self.move is not None:
            raise qq.InvalidInput("--move is for a private reward of one coordinate behind which people stand.")
        if isinstance(relation, qq.SupBall):
            return lambda progress: audit_observed(world, relation, budget, self.runs, progress=progress, **further)
        return lambda progress: audit_weights(
            world, self.people, budget, self.runs, noise=self.noise or "k-norm", progress=progress, **further
        )
