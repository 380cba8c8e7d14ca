"""An environment's own reward made private as it goes, under a relation that the caller declares.

Theorem. LipschitzBall: the reward as a function of the state, plus (Delta/mu) times an Ornstein-Uhlenbeck path, is
mu-GDP at all states at once, whoever chooses them and in whatever order; with an allowance for rounding errors, at any
states that keep a public distance (`noise/allowance.py`). SupBall: n observed rewards differ by at most
radius sqrt(n) in the Euclidean norm, so independent noise of that size over mu on each is mu-GDP, also adaptively.

What the code does for it: a state's value is released once and remembered, because a reward that is not a function of
the state would otherwise show its differences without noise; states that are very near share a released value, because
the path hardly changes between them and would show how their rewards were rounded; there is one path an object, which
can be neither copied nor carried into another process.
"""

import math
import os
import warnings
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from quietq.noise.box import Domain
from quietq.noise.evaluation import coarse_type
from quietq.noise.rounding import rounding_in_words
from quietq.privacy.account import Account, accounted
from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.certificate import CHOSEN, Assumption, Certificate
from quietq.privacy.checks import count, instance
from quietq.privacy.cost import Cost
from quietq.privacy.errors import BudgetExhausted, InvalidInput, PrivacyWarning
from quietq.privacy.relations import LipschitzBall, Relation, SupBall
from quietq.worlds.independence import independence
from quietq.worlds.observations import (
    PUBLIC_INFO,
    Hidden,
    State,
    is_reset_by_itself,
    refuse_categories,
    refuse_recorders,
    scrub,
)
from quietq.worlds.own_noise import EPSILON, Exactness, IndependentNoise, PathNoise, Place
from quietq.worlds.private_reward import PrivateReward
from quietq.worlds.reader import check_place


class OwnReward(PrivateReward, gymnasium.Wrapper):
    """What `PrivateReward.of` makes: one release, spread over as many steps as you like (SupBall: `rewards` steps)."""

    def __new__(cls, *_: object, **__: object) -> "OwnReward":
        """One object; the kind is known."""
        return object.__new__(cls)

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
        largest: float | None = None,
        accuracy: float | None = None,
        account: Account | None = None,
    ) -> None:
        """`largest` is a public number that rewards are clipped to, in size; without it a generous one is taken.

        `accuracy` is how far off a reward may be at the most; without it, what the type of the first reward allows for
        (float64 and Python's numbers, or float32), and rewards of a less exact type are refused after that.
        """
        if isinstance(env, VectorEnv):
            raise InvalidInput(
                "Copies of an environment would each release their own reward: wrap a single environment, or release "
                "one function (GaussianProcessMechanism.apply) and give it to PrivateReward(env, private)."
            )
        if not isinstance(env, gymnasium.Env):
            raise InvalidInput(f"env must be a Gymnasium environment, not {type(env).__name__}.")
        check_place(on)
        instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
        refuse_recorders(env)
        if isinstance(relation, LipschitzBall):
            if rewards is not None:
                raise InvalidInput("rewards is for a SupBall: under a LipschitzBall any number of them is covered.")
            refuse_categories(env.observation_space, state)

            def noise(kind: str) -> PathNoise | IndependentNoise:
                return PathNoise(env, relation, budget, on, state, box, Exactness(relation, largest, accuracy, kind))

        elif isinstance(relation, SupBall):
            if rewards is None or state is not None or box is not None:
                raise InvalidInput(
                    "Under a SupBall every observed reward has noise of its own, wherever it was seen: say with "
                    "`rewards` how many there will be, and leave `state` and `box` out."
                )
            number = count("rewards", rewards)

            def noise(kind: str) -> PathNoise | IndependentNoise:
                return IndependentNoise(relation, budget, number, Exactness(relation, largest, accuracy, kind))

        else:
            raise InvalidInput(
                "An environment's own reward cannot be made private under an RkhsBall as it goes: privatise the "
                "function (GaussianProcessMechanism.for_relation) and give it to PrivateReward(env, private)."
            )
        stated = independence(env), accounted(account)
        gymnasium.Wrapper.__init__(self, env)
        if sentence := weak_delta(budget.delta, relation.people):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)
        self._with = noise
        self._stated = lambda: _certificate(relation, budget, on, self._noise, *stated)
        self._noise = noise("float64")
        self.certificate = self._stated()
        self._on, self._mu, self._account, self._relation = on, budget.mu, account, relation
        self._process = os.getpid()
        self._resets = is_reset_by_itself(env)
        self._spent = self._finished = False
        self._before: float | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """As the environment does, with `info` scrubbed."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._before, self._finished = self._noise.state(observation), False
        return observation, scrub(info, PUBLIC_INFO)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """As the environment does, with noise in the reward and `info` scrubbed."""
        if os.getpid() != self._process:
            raise BudgetExhausted(
                "This reward is made private in another process; a second path would not be covered by its budget."
            )
        starts = self._resets and self._finished
        if not starts:
            self._noise.check_left()
        observation, own, terminated, truncated, info = _hide_reward(*self.env.step(action))
        before, after = self._before, self._noise.state(observation)
        self._before, self._finished = after, bool(terminated or truncated)
        if starts:
            reward = 0.0  # Autoreset's, not the reward of the state that it went to
        else:
            reward = self._release(self._noise.place(after if self._on == "next-state" else before, action), own)
        return observation, reward, terminated, truncated, scrub(info, PUBLIC_INFO)

    def _release(self, at: Place, own: Hidden) -> float:
        known = self._noise.known(at)
        if known is not None:
            return known
        value = _finite(own.value)
        self._settle(coarse_type(own.value))
        if not self._spent and self._account is not None:
            self._account.charge(Cost.gaussian(self._mu), self._relation)
        self._spent = True
        return self._noise.release(at, value)

    def _settle(self, coarse: str | None) -> None:
        """Before anything is released, the first reward's type says how exact rewards are."""
        if not self._spent and self._noise.exactness.kind is not None and coarse in EPSILON:
            self._noise = self._with(coarse)
            self.certificate = self._stated()
        self._noise.exactness.check(coarse)

    def __reduce__(self) -> str:
        raise TypeError(
            "An environment whose own reward is made private as it goes is one release: it is not copied or pickled; "
            "release a function and share PrivateReward(env, private) instead."
        )


def _hide_reward(observation: Any, own: Any, *rest: Any) -> tuple[Any, ...]:
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


def _certificate(
    relation: Relation,
    budget: Budget,
    on: str,
    noise: PathNoise | IndependentNoise,
    independent: Assumption,
    charged: Assumption,
) -> Certificate:
    return Certificate(
        method=noise.method,
        standing="certified",
        relation=relation.describe(),
        domain=noise.domain,
        epsilon=budget.epsilon,
        delta=budget.delta,
        mu=budget.mu,
        sigma=noise.sigma,
        sensitivity=noise.sensitivity,
        norm=noise.norm,
        assumptions=(
            Assumption(
                f"The reward is a function of the state (here: {on}) and changes as the relation says: neighbours are "
                f"{relation}.",
                enforced=False,
            ),
            independent,
            CHOSEN,
            Assumption(noise.how, True),
            Assumption(f"Rewards were clipped to {noise.exactness.largest:g} in size.", True),
            Assumption("Noise was drawn in float64 from the operating system's generator.", True),
            Assumption(rounding_in_words(noise.sigma, noise.exactness.largest, noise.exactness.error), False),
            charged,
        ),
    )
