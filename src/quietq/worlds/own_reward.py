"""An environment's own reward made private as it goes, under a relation that the caller declares.

Theorem. LipschitzBall: the reward as a function of the state, plus (Delta/mu) times an Ornstein-Uhlenbeck path, is
mu-GDP at all states at once, whoever chooses them and in whatever order; with an allowance for rounding errors, at any
states that keep a public distance (`noise/rounding.py`). SupBall: n observed rewards differ by at most
radius sqrt(n) in the Euclidean norm, so independent noise of that size over mu on each is mu-GDP, also adaptively.

What the code does for it: a state's value is released once and remembered, because a reward that is not a function of
the state would otherwise show its differences without noise; states that are very near share a released value, because
the path hardly changes between them and would show how their rewards were rounded; there is one path per object, which
can be neither copied nor carried into another process.

Proof: docs/theory.md#observed-rewards and docs/theory.md#own-reward.
"""

import math
import os
import threading
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium
import msgspec
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box as BoxSpace
from gymnasium.vector import VectorEnv

from quietq.noise import Box, Domain, Entropy
from quietq.noise.exact_path import ExactPath
from quietq.noise.laws import Gaussian
from quietq.noise.rounding import check_allowance, coarse_type, finest_levels, largest_value, size_bound, worst_norm
from quietq.privacy import (
    Budget,
    BudgetExhausted,
    Exponential,
    InvalidInput,
    LipschitzBall,
    PrivacyWarning,
    Relation,
    SupBall,
    weak_promise,
)
from quietq.privacy.account import Account
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import count, instance, one_of, positive
from quietq.privacy.errors import shows_nothing
from quietq.privacy.norms import ObservedRewards
from quietq.privacy.transcript import Query, Transcript
from quietq.worlds.guards import (
    Hidden,
    refuse_private_worlds,
    refuse_recorders,
    scrub,
)
from quietq.worlds.reader import HAIR, PLACES, State, batch_of, in_box, refuse_categories, states_of
from quietq.worlds.world import Action, Info, Observation

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The relative rounding error of each type of number."""


@dataclass(frozen=True)
class OnlinePath(Gaussian):
    """A path of the exponential kernel at points that come one by one.

    What the law says of a difference is for one number, wherever on the path it lies.
    """

    path: ExactPath = field(compare=False)

    def add_exactly(self, numbers: np.ndarray) -> np.ndarray:
        raise InvalidInput("A path that comes point by point has to know where its numbers lie.")

    def add(self, numbers: np.ndarray, simulated: Entropy | None = None, given: Any = None) -> np.ndarray:
        """Returns one number with the path's noise at a state in [0, 1]."""
        return np.array([self.path.add(given, float(numbers[0]))])


class PathNoise:
    """Noise for a LipschitzBall: an exact path, at states that keep their distance.

    Between two states that are very near the path hardly changes, so rounding errors of their rewards would stand out:
    without bound, if any two floating-point numbers would do. A state nearer than `gap` to one whose reward was
    released gets that reward. So released states are `gap` apart, where `noise/rounding.py` says what errors can do.
    Public, but for what it has drawn.
    """

    def __init__(
        self,
        env: gymnasium.Env,
        relation: LipschitzBall,
        mu: float,
        error: float,
        state: State,
        box: Domain | None,
    ) -> None:
        refuse_categories(env.observation_space, state)
        self._space, self._part = env.observation_space, state
        self._box = _box_of(env, state) if box is None else Box.of(box)
        if self._box.dimension != 1:
            raise InvalidInput(
                f"A LipschitzBall speaks of one dimension, but the box is {self._box}: name one `state`."
            )
        # A state may lie a hair outside its box, and is not clipped here: where it was seen is where the noise must be.
        # So the path lives on the box widened by that hair, over whose width the slope is as much larger.
        wide = msgspec.structs.replace(relation, lipschitz=relation.lipschitz * (1 + 2 * HAIR))
        kernel = Exponential(wide.best_beta())
        radius = wide.rkhs_radius(kernel)
        # Both neighbours' rewards err; and they belong to the state as it was before it was rounded for show.
        differ = error + wide.lipschitz * _blur(env, state, self._box) / 2
        # States nearer than 2^-16 of the box share a released value, or those nearer than what rounding errors need.
        levels = finest_levels(kernel, differ, radius, 16)
        self.gap = 2.0**-levels
        allowance = 2 * differ * worst_norm(kernel, levels)
        check_allowance(allowance, radius, error)
        self.sensitivity = radius + allowance
        sigma = self.sensitivity / mu
        self.domain = tuple(zip(self._box.low, self._box.high, strict=True))
        self.law = OnlinePath(sigma, kernel, ExactPath(kernel, self.gap, sigma))

    def state(self, observation: Observation) -> float:
        """Returns the one coordinate that the reward is a function of."""
        return float(states_of(batch_of([observation], self._space), 1, self._part, 1)[0, 0])

    def place(self, state: float | None) -> float:
        """Returns where on the path the reward of this state is noised, in [0, 1]; refuses a state outside."""
        if state is None:
            raise ResetNeeded("The reward is a function of the state before the step: call reset first.")
        # No clipping: the reward of a state outside is not that of the end of the box, and as one it could be steeper.
        advice = "give a `box` that all states lie in, and a relation whose slope is per width of that box"
        in_box(np.array([[state]]), self._box, advice=advice)
        low, (width,) = self._box.low[0], self._box.width
        hair = HAIR * width
        return min(max((state - low + hair) / (width + 2 * hair), 0.0), 1.0)

    def known(self, at: float) -> float | None:
        """Returns what was released before for this state, or for the nearest that is too near to it."""
        return self.law.path.nearest(at)


def _blur(env: gymnasium.Env, state: State, box: Box) -> float:
    """Returns how far a state may lie from where it is shown, in widths of the box: it may be shown in float32, say."""
    space = env.observation_space
    known = isinstance(space, BoxSpace) and not callable(state)
    epsilon = EPSILON.get(np.dtype(space.dtype).name, 0.0) if known else EPSILON["float32"]  # 0 for whole numbers
    return epsilon * max(abs(box.low[0]), abs(box.high[0])) / box.width[0]


def _box_of(env: gymnasium.Env, state: State) -> Box:
    space = env.observation_space
    if not isinstance(space, BoxSpace) or callable(state):
        raise InvalidInput("Only a Box observation space says where its entries lie: give the reward's `box`.")
    ends = [states_of(end[None], 1, state, 1)[0] for end in (space.low, space.high)]
    return Box.of(list(zip(*ends, strict=True)))


class OwnReward(gymnasium.Wrapper):
    """`PrivateReward.of`: `env` with its own reward made private as it goes, under a relation that you declare.

    It is one release, spread over as many steps as you like (SupBall: `rewards` steps).

    Args:
        env: The environment, single, and without recorders of rewards underneath.
        relation: A LipschitzBall or a SupBall: the most that one person can change the reward.
        budget: The (epsilon, delta) of all rewards together, with a delta above 0.
        on: What the reward is a function of: "next-state", "state" or, under a SupBall, "state-action".
        state: The part of an observation that is the state, as for `PrivateReward`.
        box: Where states lie, if the observations do not say.
        rewards: The number of rewards that are covered under a SupBall.
        accuracy: The largest error of a reward; by default that of float64 and of Python's own numbers, and rewards of
            a less exact type are refused.
        account: Charged before the first draw.

    """

    def __init__(
        self,
        env: gymnasium.Env | VectorEnv,
        relation: Relation,
        budget: Budget,
        *,
        on: str = "next-state",
        state: State = None,
        box: Domain | None = None,
        rewards: int | None = None,
        accuracy: float | None = None,
        account: Account | None = None,
    ) -> None:
        if isinstance(env, VectorEnv):
            raise InvalidInput(
                "Copies of an environment would each release their own reward: wrap a single environment, or release "
                "one function (GaussianProcessMechanism.apply) and give it to PrivateReward(env, private)."
            )
        if not isinstance(env, gymnasium.Env):
            raise InvalidInput(f"env must be a Gymnasium environment, not {type(env).__name__}.")
        instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
        refuse_recorders(env)
        refuse_private_worlds(env)
        super().__init__(env)
        if not isinstance(relation, LipschitzBall | SupBall):
            raise InvalidInput(
                "An environment's own reward cannot be made private under an RkhsBall as it goes: privatise the "
                "function (GaussianProcessMechanism.for_relation) and give it to PrivateReward(env, private)."
            )
        one_of("on", on, PLACES)
        self._on = on
        rewards = None if rewards is None else count("rewards", rewards)
        self._rewards, self._left = rewards, math.inf if rewards is None else rewards
        self._accuracy = accuracy
        largest = size_bound(relation.radius, relation.people)  # which rewards are clipped to, in size
        # A reward may be wrong by eight units in the last place of its largest value.
        error = 8 * EPSILON["float64"] * largest if accuracy is None else positive("accuracy", accuracy)
        self._path: PathNoise | None = None
        if isinstance(relation, LipschitzBall):
            if rewards is not None:
                raise InvalidInput("rewards is for a SupBall: under a LipschitzBall any number of them is covered.")
            if on == "state-action":
                raise InvalidInput(
                    "on must be 'next-state' or 'state': a LipschitzBall bounds a function of the state."
                )
            self._path = PathNoise(env, relation, budget.mu, error, state, box)
            method, domain, how = "gaussian-process", self._path.domain, Code.FIRST_SEEN(self._path.gap)
            sensitivity, law = self._path.sensitivity, self._path.law
        else:
            if rewards is None or state is not None or box is not None:
                raise InvalidInput(
                    "Under a SupBall every observed reward has noise of its own, also in the same state: say with "
                    "`rewards` how many there will be, and leave `state` and `box` out."
                )
            check_allowance(2 * error, relation.radius, error)
            method, domain, how = "independent-gaussian", None, Code.REWARDS_NOISED_ONCE(rewards)
            # Nothing is amplified: each reward of either neighbour errs by no more than that.
            sensitivity = (relation.radius + 2 * error) * math.sqrt(rewards)
            law = Gaussian(sensitivity / budget.mu, ObservedRewards(rewards, 0))
        if sentence := weak_promise(budget, relation.people):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)
        self._largest = min(largest, largest_value(law.sigma))
        self._transcript = Transcript(relation, budget, account, largest=self._largest, error=error)
        # All rewards are answered through one transcript, each a part of one query.
        self._query = Query(np.atleast_1d, sensitivity, law, in_parts=True)
        self._transcript.ask(self._query)
        given = Code.REWARD_OF_STATE(on), Code.INDEPENDENT(), how, Code.REWARDS_CLIPPED(self._largest)
        self._certify = partial(self._transcript.certificate, method, domain, given)
        self.certificate = self._certify()
        self._process, self._lock = os.getpid(), threading.Lock()
        self._before: float | None = None

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._before = self._state(observation)
        return observation, scrub(info)

    @shows_nothing
    def step(self, action: Action) -> tuple[Observation, float, bool, bool, Info]:
        with self._lock:  # one path, one charge, whatever threads do
            return self._step(action)

    def _step(self, action: Action) -> tuple[Observation, float, bool, bool, Info]:
        if os.getpid() != self._process:
            raise BudgetExhausted(
                "This reward is made private in another process; a second path would not be covered by its budget."
            )
        if not self._left:
            raise BudgetExhausted(f"All {self._rewards} rewards that this budget covers have been released.")
        observation, own, terminated, truncated, info = _hide_reward(*self.env.step(action))
        before, self._before = self._before, self._state(observation)
        at = known = None
        if self._path is not None:
            at = self._path.place(self._before if self._on == "next-state" else before)
            known = self._path.known(at)
        reward = self._release(at, own) if known is None else known
        return observation, reward, terminated, truncated, scrub(info)

    def _state(self, observation: Observation) -> float | None:
        return None if self._path is None else self._path.state(observation)

    def _release(self, at: float | None, own: Hidden) -> float:
        """Returns the environment's own reward with noise, rounded; charges before the first."""
        value, coarse = _finite(own.value), coarse_type(own.value)
        if coarse is not None and self._accuracy is None:
            raise InvalidInput(
                f"The environment's reward is a {coarse}, less exact than the float64 that the noise covers: state "
                "with `accuracy` the largest error of a reward; nothing was drawn or spent for this one."
            )
        if not self._transcript.charged:
            self._transcript.charge()
            self.certificate = self._certify()  # which says now that it was charged
        self._left -= 1
        # Clipping is a projection, so no two neighbours get farther apart, and no refusal has to look at the size.
        clipped = min(max(value, -self._largest), self._largest)
        return float(self._transcript.answer(self._query, [clipped], at)[0])

    def __reduce__(self) -> str:
        raise TypeError(
            "An environment whose own reward is made private as it goes is one release: it is not copied or pickled; "
            "release a function and share PrivateReward(env, private) instead."
        )


def _hide_reward(observation: Observation, own: object, *rest: Any) -> tuple[Any, ...]:
    return observation, Hidden(own), *rest


def _finite(own: Any) -> float:
    """The environment's reward as a number; no message shows it."""
    try:
        value = math.nan if isinstance(own, str | bytes) else float(own)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput("The environment's reward must be a finite number; nothing was drawn or spent for this one.")
    return value
