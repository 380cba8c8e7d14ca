"""What does a thief learn of the reward, who has a release and knows the world?

Three attacks on an agent: turning the Bellman equation round (`bellman`), and inverse reinforcement learning from its
policy alone, by Ng & Russell's linear program (`inverse-rl`) and by Abbeel & Ng's projection (`apprenticeship`). A
private reward is simply read (`read`). They use the release and what is public; by post-processing they are covered by
the release's certificate, and may be as good as they like. Only the comparison with the true reward looks at it: it is
under `not_private`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from quietq.audit import bellman
from quietq.audit.discretised import Discretised, best_actions, discretise, mixed
from quietq.audit.inverse_rl import WRONG, apprenticeship, inverse_rl
from quietq.mechanisms.private_function import PrivateFunction
from quietq.privacy.checks import instance, real
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall
from quietq.worlds.environment import RewardFunction, rewards_at
from quietq.worlds.planning import plan_on_grid
from quietq.worlds.returns import mean_return, uniform_policy
from quietq.worlds.world import World

BELLMAN, INVERSE_RL, APPRENTICESHIP, READ = "bellman", "inverse-rl", "apprenticeship", "read"
ATTACKS = (BELLMAN, INVERSE_RL, APPRENTICESHIP)
"""On values of actions."""
ON_POLICIES = (INVERSE_RL, APPRENTICESHIP)
"""Those that look at the best actions only, and so work on released probabilities too."""
BLIND_TO = {BELLMAN: (), INVERSE_RL: ("scale", "shift"), APPRENTICESHIP: ("scale", "shift"), READ: ()}
EPISODES = 500
_FLAT = 1e-9
"""A reward that varies by less, relative to its size, is a constant."""


@dataclass(frozen=True)
class Comparison:
    """A recovered reward beside the true one, at the grid's points. NOT private."""

    correlation: float
    """1 is the same but for scale and shift; 0 if what was recovered is a constant."""
    rmse: float
    """Root mean squared error, after the alignment."""
    relative_error: float
    """`rmse` over that of guessing the best constant: 1 is no better than knowing nothing but the mean."""
    aligned: Float[np.ndarray, " n"] = field(repr=False, compare=False)
    """The recovered reward, with what the attack is blind to fitted to the truth."""

    def to_dict(self) -> dict[str, float]:
        return {"correlation": self.correlation, "rmse": self.rmse, "relative_error": self.relative_error}


@dataclass(frozen=True, eq=False)
class RecoveredReward:
    """One attack, and what it recovered."""

    name: str
    blind_to: tuple[str, ...]
    """Of `scale` and `shift`: what this attack cannot tell, and what is fitted to the truth before errors are taken."""
    rewards: Float[np.ndarray, " n"]
    """At the grid's points, as recovered."""
    not_private: Comparison | None = None
    """Against the true reward, if that was given."""


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """All attacks on one release."""

    grid: Discretised
    recovered: tuple[RecoveredReward, ...]
    truth: Float[np.ndarray, " n"] | None
    """The true reward at the grid's points. NOT private."""
    planned: float | None = None
    """For a private reward: the score under the truth of planning on it, 0 random actions, 1 the best. NOT private."""

    @property
    def constant_error(self) -> float | None:
        """Root mean squared error of the best constant guess: the true reward's deviation. NOT private."""
        return None if self.truth is None else float(self.truth.std())

    def __getitem__(self, name: str) -> RecoveredReward:
        for one in self.recovered:
            if one.name == name:
                return one
        raise InvalidInput(f"There is no attack {name!r} here: there are {', '.join(a.name for a in self.recovered)}.")


def reconstruct(
    release: Callable[[np.ndarray], np.ndarray] | PrivateFunction,
    world: World,
    gamma: float | None = None,
    *,
    truth: RewardFunction | None = None,
    points: int | None = None,
    attacks: Sequence[str] = ATTACKS,
) -> Reconstruction:
    """Recovers the reward from a release, on a grid of so many `points` a coordinate.

    A release is a private reward, or values of all actions, (n, m), as a function of states, (n, d), like an agent's
    `q_values`; then `gamma` is the discount that they were learnt with (`discount` has it from an agent's settings).
    `truth` is what to compare with: that part of the result is not private.

    >>> from quietq.worlds.walk import WALK, walk_reward
    >>> grid = discretise(WALK)
    >>> values = grid.best_values(walk_reward(grid.states[:, 0]), gamma=0.9)
    >>> found = reconstruct(lambda states: values, WALK, 0.9, truth=walk_reward)
    >>> round(found["bellman"].not_private.correlation, 3)
    1.0
    """
    grid = discretise(world, points)
    box = world.box
    true = None if truth is None else rewards_at(grid.states, truth)
    if isinstance(release, PrivateFunction):
        if release.box.low != box.low or release.box.high != box.high:
            raise InvalidInput(f"The private reward is defined on {release.box}, but states lie in {box}.")
        rewards = rewards_at(grid.states, release)
        # K-norm noise goes into increments: where the released reward starts means nothing.
        blind = ("shift",) if release.certificate.method.endswith("k-norm") else BLIND_TO[READ]
        score = None if truth is None else _planned(world, release, truth)
        return Reconstruction(grid, (_judged(RecoveredReward(READ, blind, rewards), true),), true, score)
    if gamma is None:
        raise InvalidInput("gamma must be the discount that the values were learnt with, and is missing.")
    values = np.asarray(release(grid.states), dtype=np.float64)
    if values.shape != grid.transitions.shape[:2] or not np.isfinite(values).all():
        raise InvalidInput(f"release must give {world.actions} finite numbers for each of many states.")
    found = [RecoveredReward(name, BLIND_TO.get(name, ()), _attack(name, grid, values, gamma)) for name in attacks]
    return Reconstruction(grid, tuple(_judged(attack, true) for attack in found), true)


def compare(rewards: np.ndarray, truth: np.ndarray, blind_to: Sequence[str] = ()) -> Comparison:
    """A recovered reward against the true one; what the attack is blind to is fitted, but a scale never below zero.

    >>> compare(np.array([0.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0]), ("scale", "shift")).rmse
    0.0
    """
    spread, level = float(truth.std()), float(truth.mean())
    if spread <= _FLAT * max(np.abs(truth).max(), np.finfo(np.float64).tiny):
        raise InvalidInput("truth must not be the same everywhere: then there is nothing to recover.")
    own, mean = float(rewards.std()), float(rewards.mean())
    constant = own <= _FLAT * np.abs(rewards).max()
    correlation = 0.0 if constant else float(((rewards - mean) * (truth - level)).mean() / (own * spread))
    aligned = rewards
    if "scale" in blind_to:  # an attack that is blind to scale still tells up from down
        aligned = level + (0.0 if constant else max(correlation, 0.0) * spread / own) * (rewards - mean)
    elif "shift" in blind_to:
        aligned = rewards - mean + level
    rmse = float(np.sqrt(np.square(aligned - truth).mean()))
    return Comparison(correlation, rmse, rmse / spread, aligned)


def discount(settings: Mapping[str, object], steps: int) -> float:
    """The discount that an agent's values were learnt with, from its settings.

    Where nothing is expected beyond an episode's end, a future of one step in `steps` is missing, which is a smaller
    discount on average.

    >>> discount({"gamma": 0.95}, 50), discount({"gamma": 1.0, "bootstrap_truncated": False}, 50)
    (0.95, 0.98)
    """
    instance("steps", steps, int, "the length of an episode")
    gamma = real("gamma", settings.get("gamma"))
    return gamma if settings.get("bootstrap_truncated", True) else gamma * (1 - 1 / steps)


def _attack(name: str, grid: Discretised, values: np.ndarray, gamma: float) -> Float[np.ndarray, " n"]:
    if name == BELLMAN:
        return bellman.invert(grid, values, gamma, _steepest(grid)).rewards
    best = best_actions(values)
    if name == APPRENTICESHIP:
        return apprenticeship(grid, mixed(best), gamma).rewards
    if name == INVERSE_RL:
        found = inverse_rl(grid, best, gamma)
        return found if np.ptp(found) > _FLAT else inverse_rl(grid, best, gamma, wrong=WRONG)  # a noised policy
    raise InvalidInput(f"attacks must be some of {', '.join(ATTACKS)}, not {name!r}.")


def _steepest(grid: Discretised) -> float | None:
    """The most that people's mean reward changes between neighbouring points, where the world declares it."""
    relation = grid.world.relation(1)
    # Two people's rewards differ in slope by up to twice what each of them may have.
    return relation.lipschitz / 2 / (grid.points - 1) if isinstance(relation, LipschitzBall) else None


def _judged(attack: RecoveredReward, truth: np.ndarray | None) -> RecoveredReward:
    judged = None if truth is None else compare(attack.rewards, truth, attack.blind_to)
    return RecoveredReward(attack.name, attack.blind_to, attack.rewards, judged)


def _planned(world: World, private: PrivateFunction, truth: RewardFunction) -> float:
    """The score under the true reward of planning on a private one."""
    policies = (uniform_policy(world), plan_on_grid(world, truth), plan_on_grid(world, private))
    random, best, own = (mean_return(world, policy, truth, episodes=EPISODES) for policy in policies)
    return (own - random) / (best - random)
