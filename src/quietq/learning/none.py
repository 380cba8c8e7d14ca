"""`none`: deep Q-learning on the true reward, without noise. It protects nobody, and says so."""

from dataclasses import dataclass
from typing import ClassVar

from quietq.learning.deep_q import DeepQ, check_learns
from quietq.learning.method import Spaces
from quietq.privacy.certificate import Certificate


@dataclass(frozen=True, kw_only=True)
class NoNoise(DeepQ):
    """The non-private twin of the other methods."""

    name: ClassVar[str] = "none"

    def check(self, spaces: Spaces, steps: int) -> None:
        """There must be something to learn."""
        check_learns(self, steps)

    def certificate(self, spaces: Spaces, steps: int) -> Certificate:
        """Standing `none`."""
        return Certificate(
            method=self.name, standing="none", remarks=("Trained on the true reward without any noise.",)
        )
