"""Who takes part in one round: each person with the same probability, by a draw that nobody sees.

Each group of people is drawn for by itself, from the operating system's generator, on the machine where their rows lie.
Names, rows and numbers of rows play no part in it, so replacing one person changes nothing for anybody else.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from quietq.noise.entropy import Entropy, SeededEntropy
from quietq.noise.exact_normals import Chance, Level, Uniforms


@dataclass(frozen=True)
class Draw:
    """Of one round. It holds nothing secret: people are drawn when they are asked, and that is forgotten then."""

    fraction: float
    seeds: tuple[int, ...] | None = None
    """For simulation; None for a draw that protects."""

    @classmethod
    def now(cls, fraction: float, entropy: Entropy) -> "Draw":
        return cls(fraction, (int(2**52 * entropy.uniforms((1,))[0]),) if entropy.reproducible else None)

    def of_part(self, number: int) -> "Draw":
        """For one of several parts, each of which draws for itself."""
        return self if self.seeds is None else replace(self, seeds=(*self.seeds, number))

    def who(self, people: int) -> Bool[np.ndarray, " people"]:
        """For a draw that protects, with exactly that probability: by as many bits as the comparison takes."""
        if self.seeds is not None:
            return SeededEntropy(_one(self.seeds)).uniforms((people,)) < self.fraction
        chance = Chance()
        return Uniforms(people, chance).below(Level(self.fraction, chance), np.arange(people))


def _one(seeds: tuple[int, ...]) -> int:
    return int.from_bytes(np.random.SeedSequence(seeds).generate_state(4).tobytes())
