"""Local privacy (Gajane, Urvoy & Kaufmann 2017): each answer is flipped with a public probability before it is sent.

Theorem. `report` makes a coin of the answer, which shows 1 with the answer's place in its range as probability, and
passes it on as it is with odds of e^epsilon to 1, else turned round. Whatever the answer was, the odds of what is sent
differ by a factor of at most e^epsilon, so each report is epsilon-DP by itself, and nobody has to be trusted with an
answer. The mean of reports is 1/2 + (p - 1/2) (2 q - 1) for a mean answer q and p = e^epsilon/(1 + e^epsilon), so arms
keep their order, and gaps shrink by 2 p - 1, about epsilon/2.
"""

import math
import secrets
from dataclasses import dataclass
from typing import Any, ClassVar

from quietq.learning.bandits.policy import UNITS
from quietq.learning.bandits.private_policy import PrivatePolicy
from quietq.learning.bandits.references import UCB
from quietq.noise.exact import Enclosure, LazyUniform, RandomBits, decide
from quietq.privacy import Assumption, InvalidInput

_FLIPPED = Assumption(
    "Each answer was flipped by `report` on the person's own device, whose generator is taken for ideal, and nothing "
    "else of it was sent.",
    enforced=False,
)


@dataclass(eq=False)
class LocalUCB(UCB, PrivatePolicy):
    """Upper confidence bounds on reports: `policy.learn(context, arm, policy.report(reward))`.

    `report` belongs on the person's own device, where the answer is; `learn` takes what was reported, 0 or 1.
    """

    fields: ClassVar = {**PrivatePolicy.fields, **UCB.fields}
    name: ClassVar[str] = "local"
    pure: ClassVar[bool] = True
    remarks: ClassVar[tuple[str, ...]] = (
        *PrivatePolicy.remarks,
        "Local differential privacy: each answer is flipped before it leaves the person, so nobody is trusted with it.",
    )

    @property
    def norm(self) -> dict[str, Any]:
        return {"kind": "flips"}

    def report(self, reward: Any) -> int:
        """What may be sent. The flip is exact; the coin before it need not be."""
        entropy = self._entropy()
        coin = bool(entropy.uniforms((1,))[0] * UNITS < super()._units(reward))
        odds = self.budget.epsilon / self.visits
        if entropy.reproducible:
            return int(coin == bool(entropy.uniforms((1,))[0] < 1 / (1 + math.exp(-odds))))
        return int(coin == keeps(odds))

    def _units(self, reward: Any) -> int:
        """Of what `report` gave, or None if nothing was sent: by then it is no secret, and may be refused."""
        if reward is not None and not (isinstance(reward, int) and reward in (0, 1)):
            raise InvalidInput("reward must be what `report` gave, 0 or 1, or None.")
        return UNITS // 2 if reward is None else UNITS * int(reward)

    def _measured(self) -> dict[str, Any]:
        return {"norm": self.norm, "scale": self.law.measured()["scale"]}

    def _conditions(self) -> tuple[Assumption, ...]:
        return _FLIPPED, *self._about_visits(self.named)


def keeps(odds: float, random_bits: RandomBits = secrets.randbits) -> bool:
    """True with probability 1/(1 + exp(-odds)), exactly: where ln(u/(1 - u)) is below the odds."""
    uniform = LazyUniform(random_bits)

    def below() -> bool:
        u = uniform.enclosure()
        return (u.log() + -(Enclosure.exactly(1) + -u).log() + -odds).is_below(0)

    return decide(below, [uniform])
