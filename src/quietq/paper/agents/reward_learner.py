"""`reward`: the reward is made private once, as a function; and all that learns from something released.

Theorem (post-processing). Whatever is computed from a release without another look at the private data is covered by
the release's certificate: there is no number of steps, batch size, learning rate, discount or network in the bound, and
trainings may be repeated and the best of them kept, by what they achieve on the *private* reward
(docs/theory.md#post-processing). So all that must be checked is that the source *is* a release: a raw reward, or
values without a promise, are refused.

Where episodes can end early, a constant added to the reward changes what is best: noise on knots releases the reward up
to a constant, and `privatise(..., level=True)` is there for that.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from quietq.noise import Box
from quietq.paper.agents.deep_q import DeepQ
from quietq.paper.agents.jax_world import JaxReward, as_jax
from quietq.paper.agents.method import EnvironmentSpaces, Method, Released, some_states
from quietq.privacy import Certificate, InvalidInput
from quietq.released import PrivateFunction
from quietq.worlds.world import flat


class ReleasedValues:
    """Values of all actions that one run of a method released, and the certificate that covers them.

    `agent.released_values()` makes it: a function of one's own could hold what no certificate covers.
    """

    def __init__(self, method: Method, released: Released, box: Box, certificate: Certificate) -> None:
        self.reward = JaxReward(_answer, method, (released,), by_action=True)
        self.box, self.certificate = box, certificate


def _answer(state: Float[Array, " d"], method: Method, released: Released) -> Float[Array, " actions"]:
    return jax.vmap(method.values, in_axes=(None, 0))(released, state[None])[0]


as_jax.register(ReleasedValues, lambda values: values.reward)
PrivateSource = PrivateFunction | ReleasedValues


@dataclass(frozen=True, kw_only=True)
class RewardLearner(Method):
    """Learns from a private reward; `private` is one, or several simulated draws of one setting."""

    uses_true_reward: ClassVar[bool] = False
    sources: ClassVar[tuple[type, ...]] = (PrivateFunction,)
    private: PrivateSource | Sequence[PrivateSource] | None = field(default=None, kw_only=False)

    @property
    def rewards(self) -> tuple[PrivateSource, ...]:
        given: Any = (self.private,) if isinstance(self.private, self.sources) else self.private
        if not isinstance(given, Sequence) or not given or not all(isinstance(one, self.sources) for one in given):
            raise InvalidInput(
                f"{self.name} needs a private reward: what privatise returns, or quietq.load reads from a file."
            )
        return tuple(given)

    def core(self) -> "RewardLearner":
        return replace(self, private=None)

    def check(self, spaces: EnvironmentSpaces, steps: int) -> None:
        for private in self.rewards:
            if private.box.low != spaces.box.low or private.box.high != spaces.box.high:
                raise InvalidInput(f"The private reward is defined on {private.box}, but states lie in {spaces.box}.")
            if isinstance(private, PrivateFunction):
                private.require_as_issued()
            certificate = private.certificate
            if certificate.standing != "certified" and not certificate.reproducible:
                raise InvalidInput(
                    f"{self.name} learns from what is certified, or simulated, but this source's standing is "
                    f"{certificate.standing!r}: make the reward private with privatise, and give that."
                )
        if len(self.rewards) > 1 and any(one.certificate.standing != "none" for one in self.rewards):
            raise InvalidInput(
                "Several private rewards are several releases; only simulated ones are trained on together."
            )
        super().check(spaces, steps)

    def certificate(self, spaces: EnvironmentSpaces, steps: int) -> Certificate:
        return self.rewards[0].certificate

    def settings(self) -> dict[str, object]:
        """Returns the hyper-parameters, and which reward: by a hash of its values, which are public."""
        if self.private is None:  # an agent that was loaded answers without its reward
            return super().settings()
        digest = hashlib.sha256()
        for private in self.rewards:
            digest.update(np.ascontiguousarray(_values_of(private)).tobytes())
        return super().settings() | {"private": digest.hexdigest()}


@dataclass(frozen=True, kw_only=True)
class RewardNoise(RewardLearner, DeepQ):
    """Deep Q-learning on a private reward.

    `private` is what `privatise` returned, or several simulated draws of one setting.
    """

    name: ClassVar[str] = "reward"


def _values_of(private: PrivateSource) -> np.ndarray:
    states = some_states(private.box)
    if isinstance(private, ReleasedValues):
        return np.asarray(jax.vmap(private.reward.at)(jnp.asarray(states, jnp.float32)))
    return np.asarray(private(flat(states)))
