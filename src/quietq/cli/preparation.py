"""From settings to an agent: everything is checked, by a rehearsal with simulated noise, before anything is drawn."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import quietq as qq
from quietq.cli import hyper
from quietq.cli import run_directory as run
from quietq.cli.settings import Settings, kind_of, world_of
from quietq.noise.kernels import Features
from quietq.privacy import cap_any_dp, cap_gdp, people_needed, steps_between
from quietq.privacy.relations import Relation, RkhsBall
from quietq.worlds import World

if TYPE_CHECKING:
    from quietq.privacy import Account

HOPED_FOR = 0.9


@dataclass(frozen=True)
class Preparation:
    """A training that was checked, and can be carried out."""

    settings: Settings
    world: World
    relation: Relation | None
    budget: qq.Budget | None
    on_reward: bool

    def agent(self, out: Path, account: "Account | None" = None) -> Any:
        """The agent, ready to learn. A private reward is drawn now, once, and kept in the run's folder.

        Whatever is drawn is charged to `account` first.
        """
        return qq.Agent(self.world, self._method(self._rewards(out, account)), seed=self.settings.seed, account=account)

    @property
    def simulate(self) -> int | None:
        """How many draws the training itself simulates; a private reward is simulated before it."""
        return None if self.on_reward else self.settings.simulate

    def warning(self) -> str | None:
        """A sentence if the score that one hopes for is out of reach of any algorithm with this promise."""
        if self.relation is None or self.budget is None:
            return None
        assert not isinstance(self.relation, qq.Trajectories)
        width = self.world.relation(1).radius  # pyright: ignore[reportAttributeAccessIssue]
        gaussian = not self.budget.is_pure and self._noise() not in ("k-norm", "auto")
        steps = steps_between(width, self.relation.radius)
        cap = cap_gdp(self.budget.mu, steps) if gaussian else cap_any_dp(self.budget, steps)
        if cap >= HOPED_FOR:
            return None
        people = people_needed(HOPED_FOR, self.budget, distance=width, width=width, gaussian=gaussian)
        other = "" if self.settings.people is not None else f", a radius of at most {width / people:.3g}"
        return (
            f"no algorithm with this promise can score above {cap:.2f} both for a preference and for its opposite (0 "
            f"is the worst policy, 1 the best); {HOPED_FOR:g} takes at least {people} people{other}."
        )

    def check(self) -> dict[str, Any]:
        """Refuses what cannot work; nothing is drawn or written. All hyper-parameters, with their defaults."""
        from quietq.learning.trainer import spaces_of
        from quietq.learning.training import Training

        method = self._method([self._reward(simulate=0)] if self.on_reward else [])
        s = self.settings
        Training(
            self.world,
            spaces_of(self.world),
            method,
            None,
            s.seed,
            s.steps,
            s.seeds,
            self.simulate,
            None,
            s.every,
            None,
        )
        return hyper.settings(method)

    def _method(self, rewards: list[Any]) -> Any:
        kind, further = kind_of(self.settings.method), {}
        if self.on_reward:
            further = {"private": rewards[0] if len(rewards) == 1 else rewards}
        elif self.budget is not None:
            further = {"relation": self.relation, "budget": self.budget}
        return hyper.made(kind, self.settings.options, **further)

    def _rewards(self, out: Path, account: "Account | None") -> list[Any]:
        s = self.settings
        if not self.on_reward:
            return []
        if s.simulate is not None:
            return [self._reward(_stream(s.seed, draw)) for draw in range(s.simulate)]
        if (out / run.REWARD).exists():
            return [qq.load(out / run.REWARD, features=self._features())]
        private = self._reward(account=account)
        if s.reward is None:
            qq.publish(private, out / run.REWARD)
        return [private]

    def _reward(self, simulate: int | None = None, account: "Account | None" = None) -> Any:
        """A private reward: from a file, by observed rewards, or of the world's own preference."""
        s = self.settings
        if s.reward is not None:
            return qq.load(s.reward, features=self._features())
        assert self.budget is not None
        if isinstance(self.relation, qq.SupBall):
            from quietq.learning.observed import observe

            high = self.world.relation(1).radius  # pyright: ignore[reportAttributeAccessIssue]
            return observe(
                self.world, self.relation, self.budget, low=0.0, high=high, rewards=s.rewards or 5000,
                simulate=simulate, seed=s.seed, account=account,
            )  # fmt: skip
        return qq.privatise(
            self.world.preference(), self.budget, noise=self._noise(), pieces=s.pieces, relation=self.relation,
            domain=self.world.box, simulate=simulate, account=account,
        )  # fmt: skip

    def _noise(self) -> Any:
        assert self.budget is not None
        return self.settings.noise or ("k-norm" if self.budget.is_pure else "path")

    def _features(self) -> Features | None:
        relation = self.world.relation(1)
        return relation.kernel if isinstance(relation, RkhsBall) and isinstance(relation.kernel, Features) else None


def prepare(settings: Settings) -> Preparation:
    """Checks a training, without drawing or writing anything."""
    from quietq.learning.private_source import OnPrivateReward

    world, kind = world_of(settings.world), kind_of(settings.method)
    relation = budget = None
    on_reward = issubclass(kind, OnPrivateReward)
    if settings.epsilon is not None and settings.delta is not None:
        budget = qq.Budget(settings.epsilon, settings.delta)
        relation = qq.SupBall(settings.radius) if settings.people is None else world.relation(settings.people)  # type: ignore[arg-type]
        of_features = isinstance(relation, RkhsBall) and isinstance(relation.kernel, Features)
        if isinstance(relation, RkhsBall) and not of_features and budget.is_pure and on_reward:
            raise qq.InvalidInput(f"delta must be above 0 in {world.name!r}: noise for sums of functions is Gaussian.")
        if of_features and not on_reward:
            raise qq.InvalidInput(
                f"{settings.method!r} needs to know how much one reward can change, which people do not say in "
                f"{world.name!r}: give --radius instead, or use 'reward'."
            )
    plan = Preparation(settings, world, relation, budget, on_reward)
    return replace(plan, settings=replace(settings, options=plan.check()))


def _stream(seed: int, draw: int) -> int:
    """A seed for each simulated reward."""
    return int(np.random.SeedSequence((seed, draw)).generate_state(1)[0])
