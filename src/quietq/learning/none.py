"""`none`: deep Q-learning on the true reward, without noise. It protects nobody, and says so."""

from dataclasses import dataclass
from typing import ClassVar

from quietq.learning.deep_q import DeepQ
from quietq.learning.method import Spaces
from quietq.privacy.certificate import Certificate


@dataclass(frozen=True, kw_only=True)
class NoNoise(DeepQ):
    """The non-private twin of the other methods."""

    name: ClassVar[str] = "none"

    def certificate(self, spaces: Spaces, steps: int) -> Certificate:
        return Certificate(
            method=self.name, standing="none", remarks=("Trained on the true reward without any noise.",)
        )
