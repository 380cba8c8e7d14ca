"""What replay costs where noise is added as one goes: every look at a reward pays again.

On a private reward replay is free, because rewards were released before. `gradient` looks at true rewards in each of
its rounds, so N rounds under one budget need noise of sqrt(N)/mu in units of a round's own sensitivity.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import quietq as qq
from paper.extensions.learners import DELTA, EPSILON, SEED, STEPS
from paper.extensions.row import REPLAY, TABLE, row
from paper.task import Row, Task
from quietq.learning.trainer import spaces_of
from quietq.privacy.gaussian import epsilon_from_mu
from quietq.worlds import WALK


@dataclass(frozen=True)
class PayingAgain(Task):
    """`gradient` with a step every so often, on batches from all that was seen, or on what is new only."""

    table: ClassVar[str] = TABLE
    people: int
    draws: int
    """None of them are trained if it is 0: then only what it costs is computed."""
    train_every: int
    batch: int = 2_000
    new_only: bool = False
    """Batches are of the transitions since the last step: none is replayed."""
    steps: int = STEPS

    @property
    def title(self) -> str:
        """How often it steps."""
        return f"extensions: gradient, a step every {self.train_every}"

    @property
    def program(self) -> str:
        """Each compiles its own."""
        return self.title

    def rows(self) -> list[Row]:
        """Gradient steps, how often each reward is used, the noise that this takes, and scores."""
        kept: dict[str, Any] = {"replay": self.train_every, "start": self.train_every} if self.new_only else {}
        method = qq.GradientNoise(
            relation=WALK.relation(self.people), budget=qq.Budget(EPSILON, DELTA), train_every=self.train_every,
            batch=self.batch, **kept,
        )  # fmt: skip
        rounds = method.rounds(self.steps)
        setting = "gradient, no replay" if self.new_only else f"gradient, a step every {self.train_every}"
        noise = method.certificate(spaces_of(WALK), self.steps).sigma
        numbers = {"gradient steps": rounds, "uses of a reward": rounds * self.batch / self.steps}
        found = [row(REPLAY, setting, quantity, value, people=self.people) for quantity, value in numbers.items()]
        promised = {"people": self.people, "epsilon": EPSILON, "delta": DELTA}
        found.append(row(REPLAY, setting, "noise multiplier", noise or math.nan, **promised))
        if self.draws:
            agent = qq.Agent(WALK, method, seed=SEED).learn(self.steps, simulate=self.draws)
            scores = agent.evaluate().scores or []
            found += [row(REPLAY, setting, "score", one, draw=i, **promised) for i, one in enumerate(scores)]
        return found


@dataclass(frozen=True)
class PublishedReplay(Task):
    """How often the authors' program looks at a reward, against the rounds that their theorem counts."""

    table: ClassVar[str] = TABLE
    steps: int = STEPS

    @property
    def title(self) -> str:
        """What it does."""
        return "extensions: replay in the published program"

    def rows(self) -> list[Row]:
        """Rounds as counted and as made, and what the claim comes to if all that are made are counted."""
        code, theorem = qq.Published.code(), qq.PublishedTheorem(qq.Budget(EPSILON, DELTA), steps=self.steps)
        counted = self.steps // theorem.batch
        made = (self.steps - code.start) // code.train_every + 1
        epsilon = epsilon_from_mu(qq.Budget(EPSILON, DELTA).mu * math.sqrt(made / counted), DELTA)
        setting = "published program"
        return [
            row(REPLAY, setting, "rounds counted by the theorem", counted),
            row(REPLAY, setting, "gradient steps", made),
            row(REPLAY, setting, "uses of a reward", made * code.batch / self.steps),
            row(REPLAY, setting, "epsilon if all were counted", epsilon, epsilon=EPSILON, delta=DELTA),
        ]
