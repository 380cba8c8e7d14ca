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
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar

import gymnasium
import msgspec
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box as BoxSpace, Discrete
from gymnasium.vector import VectorEnv

from quietq.noise import Box, Domain, Entropy, Exponential
from quietq.noise.exact_path import ExactPath
from quietq.noise.laws import Gaussian, RoundedLaw
from quietq.noise.own_values import coarse_type
from quietq.noise.rounding import check_allowance, finest_levels, largest_value, size_bound, worst_norm
from quietq.privacy import (
    Budget,
    BudgetExhausted,
    Cost,
    InvalidInput,
    LipschitzBall,
    PrivacyWarning,
    Relation,
    SupBall,
    weak_promise,
)
from quietq.privacy.account import Account
from quietq.privacy.assumptions import Assumption, Code
from quietq.privacy.certificate import Certificate
from quietq.privacy.checks import count, instance, one_of, positive
from quietq.privacy.kernel_norms import ExponentialNorm
from quietq.privacy.norms import ObservedRewards
from quietq.privacy.transcript import Law, Query, Transcript
from quietq.worlds.guards import (
    Hidden,
    refuse_private_worlds,
    refuse_recorders,
    scrub,
)
from quietq.worlds.reader import HAIR, PLACES, State, batch_of, in_box, refuse_categories, states_of
from quietq.worlds.world import Action, Info, Observation

Place = tuple[float, int]
"""Where a reward was seen: the state in [0, 1], and which path is its."""

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The relative rounding error of each type of number."""


class OwnNoise(ABC):
    """Noise for rewards of one exactness, that of a type or the declared one. Public, but for what it has drawn."""

    method: ClassVar[str]
    domain: tuple[tuple[float, float], ...] | None = None
    sensitivity: float
    how: Assumption
    """What was noised, for the certificate."""
    left: float = math.inf
    """How many rewards are still covered."""

    def __init__(
        self,
        env: gymnasium.Env,
        relation: Relation,
        budget: Budget,
        kind: str,
        *,
        on: str = "next-state",
        state: State = None,
        box: Domain | None = None,
        rewards: int | None = None,
        largest: float | None = None,
        accuracy: float | None = None,
    ) -> None:
        one_of("on", on, PLACES)
        self.env, self.relation, self.budget = env, relation, budget
        self.on, self.part, self.box, self.rewards = on, state, box, rewards
        self._kind = kind if accuracy is None else None
        radius = getattr(relation, "radius", 0.0)
        self.largest = size_bound(radius, relation.people) if largest is None else positive("largest", largest)
        # A reward may be wrong by eight units in the last place of its largest value.
        self.error = 8 * EPSILON[kind] * self.largest if accuracy is None else positive("accuracy", accuracy)
        law = self._prepare()
        self.largest = min(self.largest, largest_value(law.sigma))
        self.query = Query(np.atleast_1d, self.sensitivity, law, in_parts=True)

    @abstractmethod
    def _prepare(self) -> Law:
        """Returns the noise; sets sensitivity and how, with `error` allowed for; refuses what does not fit."""

    def open(self, account: Account | None) -> Transcript:
        """Returns the transcript that all rewards are answered through, each a part of one query."""
        transcript = Transcript(self.relation, self.budget, account, largest=self.largest, error=self.error)
        transcript.ask(self.query)
        return transcript

    def certify(self, transcript: Transcript) -> Certificate:
        """Returns what is promised; it says whether the account was charged yet."""
        given = Code.REWARD_OF_STATE(self.on), Code.INDEPENDENT(), self.how, Code.REWARDS_CLIPPED(self.largest)
        return transcript.certificate(self.method, self.domain, given)

    def check_type(self, coarse: str | None) -> None:
        """Refuses a reward of a type that is less exact than what is covered."""
        if self._kind is not None and EPSILON.get(coarse or "float64", math.inf) > EPSILON[self._kind]:
            raise InvalidInput(
                f"The environment's reward is a {coarse}, less exact than the {self._kind} that the noise covers: "
                "state with `accuracy` the largest error of a reward; nothing was drawn or spent for this one."
            )

    def state(self, observation: Observation) -> float | None:
        return None

    def place(self, state: float | None, action: Action) -> Place:
        return 0.0, 0

    def check_left(self) -> None:
        if not self.left:
            raise BudgetExhausted(f"All {self.rewards} rewards that this budget covers have been released.")

    def known(self, at: Place) -> float | None:
        return None

    def release(self, at: Place, value: float, transcript: Transcript) -> float:
        """Returns the value with noise, rounded."""
        # Clipping is a projection, so no two neighbours get farther apart, and no refusal has to look at the size.
        clipped = min(max(value, -self.largest), self.largest)
        return float(transcript.answer(self.query, [clipped], at)[0])


class OnlinePaths(RoundedLaw):
    """Paths of the exponential kernel, one for each action that matters, at points that come one by one."""

    family = "gaussian"

    def __init__(self, kernel: Exponential, gap: float, sigma: float, paths: int) -> None:
        self._kernel, self._sigma = kernel, sigma
        self.paths = [ExactPath(kernel, gap, sigma) for _ in range(paths)]

    @property
    def norm(self) -> ExponentialNorm:
        return self._kernel.norm

    @property
    def sigma(self) -> float:
        return self._sigma

    @property
    def size(self) -> float:
        return self._sigma

    def cost(self, sensitivity: float) -> Cost:
        return Cost.gaussian(sensitivity / self._sigma)

    def add_exactly(self, numbers: np.ndarray) -> np.ndarray:
        raise InvalidInput("A path that comes point by point has to know where its numbers lie.")

    def add(self, numbers: np.ndarray, simulated: Entropy | None = None, given: Any = None) -> np.ndarray:
        """Returns one number with the noise of its place on a path, which is the state in [0, 1] and which path."""
        unit, path = given
        return np.array([self.paths[path].add(unit, float(numbers[0]))])


class PathNoise(OwnNoise):
    """Noise for a LipschitzBall: an exact path, one for each action that matters, at states that keep their distance.

    Between two states that are very near the path hardly changes, so rounding errors of their rewards would stand out:
    without bound, if any two floating-point numbers would do. A state nearer than `gap` to one whose reward was
    released gets that reward. So released states are `gap` apart, where `noise/rounding.py` says what errors can do.
    """

    method = "gaussian-process"

    def _prepare(self) -> OnlinePaths:
        env, relation, state = self.env, self.relation, self.part
        assert isinstance(relation, LipschitzBall)
        if self.rewards is not None:
            raise InvalidInput("rewards is for a SupBall: under a LipschitzBall any number of them is covered.")
        refuse_categories(env.observation_space, state)
        self._box = _box_of(env, state) if self.box is None else Box.of(self.box)
        if self._box.dimension != 1:
            raise InvalidInput(
                f"A LipschitzBall speaks of one dimension, but the box is {self._box}: name one `state`."
            )
        # A state may lie a hair outside its box, and is not clipped here: where it was seen is where the noise must be.
        # So the path lives on the box widened by that hair, over whose width the slope is as much larger.
        wide = msgspec.structs.replace(relation, lipschitz=relation.lipschitz * (1 + 2 * HAIR))
        kernel = Exponential(wide.best_beta())
        radius = wide.rkhs_radius(kernel.norm)
        # Both neighbours' rewards err; and they belong to the state as it was before it was rounded for show.
        error = self.error + wide.lipschitz * _blur(env, state, self._box) / 2
        by_action = self.on == "state-action"
        outputs = relation.actions if by_action else 1
        # States nearer than 2^-16 of the box share a released value, or those nearer than what rounding errors need.
        levels = finest_levels(kernel, error, radius, 16, outputs)
        self.gap = 2.0**-levels
        allowance = 2 * error * worst_norm(kernel, levels, outputs)
        check_allowance(allowance, radius, self.error)
        self.sensitivity = radius + allowance
        self._actions = _actions(env, relation) if by_action else None
        paths = 1 if self._actions is None else int(self._actions.n)
        self.domain = tuple(zip(self._box.low, self._box.high, strict=True))
        self.how = Code.FIRST_SEEN(self.gap)
        law = OnlinePaths(kernel, self.gap, self.sensitivity / self.budget.mu, paths)
        self._paths = law.paths
        return law

    def state(self, observation: Observation) -> float:
        batch = batch_of([observation], self.env.observation_space)
        return float(states_of(batch, 1, self.part, 1)[0, 0])

    def place(self, state: float | None, action: Action) -> Place:
        if state is None:
            raise ResetNeeded("The reward is a function of the state before the step: call reset first.")
        # No clipping: the reward of a state outside is not that of the end of the box, and as one it could be steeper.
        advice = "give a `box` that all states lie in, and a relation whose slope is per width of that box"
        in_box(np.array([[state]]), self._box, advice=advice)
        low, (width,) = self._box.low[0], self._box.width
        hair = HAIR * width
        unit = min(max((state - low + hair) / (width + 2 * hair), 0.0), 1.0)
        if self._actions is None:
            return unit, 0
        if not self._actions.contains(action):
            raise InvalidInput(f"action must be one of {self._actions}, not {action!r}.")
        return unit, int(action) - int(self._actions.start)

    def known(self, at: Place) -> float | None:
        """What was released before for this state, or for the nearest that is too near to it."""
        unit, path = at
        return self._paths[path].nearest(unit)


class IndependentNoise(OwnNoise):
    """Noise for a SupBall: fresh for each of n observed rewards, and exact."""

    method = "independent-gaussian"

    def _prepare(self) -> Law:
        if self.rewards is None or self.part is not None or self.box is not None:
            raise InvalidInput(
                "Under a SupBall every observed reward has noise of its own, also in the same state: say with "
                "`rewards` how many there will be, and leave `state` and `box` out."
            )
        assert isinstance(self.relation, SupBall)
        self.left = total = count("rewards", self.rewards)
        check_allowance(2 * self.error, self.relation.radius, self.error)
        # Nothing is amplified: each reward of either neighbour errs by no more than that.
        self.sensitivity = (self.relation.radius + 2 * self.error) * math.sqrt(total)
        self.how = Code.REWARDS_NOISED_ONCE(total)
        return Gaussian(self.sensitivity / self.budget.mu, ObservedRewards(total, 0))

    def release(self, at: Place, value: float, transcript: Transcript) -> float:
        self.left -= 1
        return super().release(at, value, transcript)


def noise_kind(relation: Relation) -> type[OwnNoise]:
    if isinstance(relation, LipschitzBall):
        return PathNoise
    if isinstance(relation, SupBall):
        return IndependentNoise
    raise InvalidInput(
        "An environment's own reward cannot be made private under an RkhsBall as it goes: privatise the function "
        "(GaussianProcessMechanism.for_relation) and give it to PrivateReward(env, private)."
    )


def _blur(env: gymnasium.Env, state: State, box: Box) -> float:
    """How far a state may lie from where it is shown, in widths of the box: it may be shown in float32, say."""
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


def _actions(env: gymnasium.Env, relation: LipschitzBall) -> Discrete:
    """The actions, if there are finitely many and the relation lets all of them change."""
    if not isinstance(env.action_space, Discrete):
        raise InvalidInput(f"On 'state-action' there must be finitely many actions, not {env.action_space}.")
    if int(env.action_space.n) > relation.actions:
        raise InvalidInput(
            f"The environment has {env.action_space.n} actions, but the relation lets {relation.actions} change: "
            "declare it with `actions`."
        )
    return env.action_space


class OwnReward(gymnasium.Wrapper):
    """`PrivateReward.of`: `env` with its own reward made private as it goes, under a relation that you declare.

    It is one release, spread over as many steps as you like (SupBall: `rewards` steps). The `terms` are keywords: `on`
    ("next-state", "state" or "state-action"), `state` and `box` say what the reward is a function of. `largest` is a
    public number that rewards are clipped to, in size; without it a generous one is taken. `accuracy` is the
    largest error of a reward; without it, what the type of the first reward allows for (float64 and Python's numbers,
    or float32), and rewards of a less exact type are refused after that. `account` is charged before the first draw.
    """

    def __init__(
        self,
        env: gymnasium.Env | VectorEnv,
        relation: Relation,
        budget: Budget,
        *,
        account: Account | None = None,
        **terms: Any,
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
        self._account = account
        self._make = partial(noise_kind(relation), env, relation, budget, **terms)
        self._prepare("float64")
        if sentence := weak_promise(budget, relation.people):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)
        self._process, self._lock = os.getpid(), threading.Lock()
        self._spent = False
        self._before: float | None = None

    def _prepare(self, kind: str) -> None:
        """Makes noise for rewards of this type; nothing is drawn or charged."""
        self._noise = self._make(kind)
        self._transcript = self._noise.open(self._account)
        self.certificate = self._noise.certify(self._transcript)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._before = self._noise.state(observation)
        return observation, scrub(info)

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, Info]:
        with self._lock:  # one path, one charge, whatever threads do
            return self._step(action)

    def _step(self, action: Action) -> tuple[Observation, float, bool, bool, Info]:
        if os.getpid() != self._process:
            raise BudgetExhausted(
                "This reward is made private in another process; a second path would not be covered by its budget."
            )
        self._noise.check_left()
        observation, own, terminated, truncated, info = _hide_reward(*self.env.step(action))
        before, after = self._before, self._noise.state(observation)
        self._before = after
        looked_at = after if self._noise.on == "next-state" else before
        reward = self._release(self._noise.place(looked_at, action), own)
        return observation, reward, terminated, truncated, scrub(info)

    def _release(self, at: Place, own: Hidden) -> float:
        known = self._noise.known(at)
        if known is not None:
            return known
        value, coarse = _finite(own.value), coarse_type(own.value)
        if not self._spent and coarse in EPSILON:  # the first reward's type says how exact rewards are
            self._prepare(coarse)
        self._noise.check_type(coarse)
        self._transcript.charge()
        if not self._spent:
            self.certificate = self._noise.certify(self._transcript)  # which says now that it was charged
        self._spent = True
        return self._noise.release(at, value, self._transcript)

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
