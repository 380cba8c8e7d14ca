"""An environment's own reward made private as it goes, under a relation that the caller declares.

Theorem. LipschitzBall: the reward as a function of the state, plus (Delta/mu) times an Ornstein-Uhlenbeck path, is
mu-GDP at all states at once, whoever chooses them and in whatever order; with an allowance for rounding errors, at any
states that keep a public distance (`noise/allowance.py`). SupBall: n observed rewards differ by at most
radius sqrt(n) in the Euclidean norm, so independent noise of that size over mu on each is mu-GDP, also adaptively.

What the code does for it: a state's value is released once and remembered, because a reward that is not a function of
the state would otherwise show its differences without noise; states that are very near share a released value, because
the path hardly changes between them and would show how their rewards were rounded; there is one path per object, which
can be neither copied nor carried into another process.
"""

import math
import os
import threading
import warnings
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from quietq.noise.evaluation import coarse_type
from quietq.privacy.account import Account, accounted
from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.certificate import CHOSEN, FAIR, Assumption, Certificate
from quietq.privacy.checks import instance
from quietq.privacy.cost import Cost
from quietq.privacy.errors import BudgetExhausted, InvalidInput, PrivacyWarning
from quietq.privacy.relations import Relation
from quietq.worlds.guards import Hidden, is_reset_by_itself, refuse_recorders, scrub
from quietq.worlds.independence import independence
from quietq.worlds.own_noise import EPSILON, OwnNoise, Place, Terms, noise_for


class OwnReward(gymnasium.Wrapper):
    """`PrivateReward.of`: `env` with its own reward made private as it goes, under a relation that you declare.

    It is one release, spread over as many steps as you like (SupBall: `rewards` steps). The `terms` are keywords: `on`
    ("next-state", "state" or "state-action"), `state` and `box` say what the reward is a function of. `largest` is a
    public number that rewards are clipped to, in size; without it a generous one is taken. `accuracy` is how far off a
    reward may be at the most; without it, what the type of the first reward allows for (float64 and Python's numbers,
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
        self._noise = noise_for(Terms(env, relation, budget, **terms))
        self._stated = independence(env), accounted(account)
        self.certificate = _certificate(self._noise, *self._stated)
        super().__init__(env)
        if sentence := weak_delta(budget.delta, relation.people):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)
        self._account = account
        self._process, self._lock = os.getpid(), threading.Lock()
        self._resets = is_reset_by_itself(env)
        self._spent = self._finished = False
        self._before: float | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._before, self._finished = self._noise.state(observation), False
        return observation, scrub(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        with self._lock:  # one path, one charge, whatever threads do
            return self._step(action)

    def _step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
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
            looked_at = after if self._noise.terms.on == "next-state" else before
            reward = self._release(self._noise.place(looked_at, action), own)
        return observation, reward, terminated, truncated, scrub(info)

    def _release(self, at: Place, own: Hidden) -> float:
        known = self._noise.known(at)
        if known is not None:
            return known
        value, coarse = _finite(own.value), coarse_type(own.value)
        if not self._spent and coarse in EPSILON:  # the first reward's type says how exact rewards are
            self._noise = type(self._noise)(self._noise.terms, coarse)
            self.certificate = _certificate(self._noise, *self._stated)
        self._noise.check_type(coarse)
        if not self._spent and self._account is not None:
            terms = self._noise.terms
            self._account.charge(Cost.gaussian(terms.budget.mu), terms.relation)
        self._spent = True
        return self._noise.release(at, value)

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


def _certificate(noise: OwnNoise, independent: Assumption, charged: Assumption) -> Certificate:
    relation, budget = noise.terms.relation, noise.terms.budget
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
                f"The reward is a function of the state (here: {noise.terms.on}) and changes as the relation says: "
                f"neighbours are {relation}.",
                enforced=False,
            ),
            independent,
            CHOSEN,
            Assumption(noise.how, True),
            Assumption(f"Rewards were clipped to {noise.largest:g} in size.", True),
            *noise.drawn,
            FAIR,
            charged,
        ),
    )
