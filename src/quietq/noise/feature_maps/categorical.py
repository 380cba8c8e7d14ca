"""Items of a public list."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from quietq.noise.feature_maps.feature_map import FeatureMap, Moments
from quietq.privacy.errors import InvalidInput

MOST_ITEMS = 2**14
MOST_BYTES = 2**18
"""Of the names of all items, so that they fit into a release."""


@dataclass(frozen=True)
class Categorical(FeatureMap):
    """One of a public list of items: a feature for each, 1 for the state's own item and 0 for all others.

    Items lie evenly in the unit interval, the first at 0 and the last at 1.
    """

    kind: ClassVar[str] = "categorical"
    dimension: ClassVar[int] = 1  # type: ignore[misc]
    stretches: ClassVar[bool] = False
    items: tuple[str, ...]

    def __post_init__(self) -> None:
        given = self.items
        if not isinstance(given, tuple | list) or not all(isinstance(item, str) for item in given):
            raise InvalidInput("items must be a list of texts, the items' names.")
        if not 2 <= len(given) <= MOST_ITEMS or len(set(given)) < len(given):
            raise InvalidInput(f"items must be between 2 and {MOST_ITEMS} different names, not {len(given)}.")
        if not all(item.isprintable() for item in given):
            raise InvalidInput("items must be names that can be printed, without tabs, line breaks or half characters.")
        if sum(len(item.encode()) + 8 for item in given) > MOST_BYTES:
            raise InvalidInput(f"items' names must have at most {MOST_BYTES} bytes together: shorten them.")
        object.__setattr__(self, "items", tuple(given))

    @property
    def rank(self) -> int:
        return len(self.items)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {item: i for i, item in enumerate(self.items)}

    def numbers_of(self, states: object) -> Any:
        """Places in the list, from names of items; numbers are places already, and must be whole."""
        given = np.asarray(states)
        if given.dtype.kind not in "UOT":
            if given.dtype.kind == "f" and (between := given[np.isfinite(given) & (given != np.rint(given))]).size:
                raise InvalidInput(
                    f"states must be items, by name or by their whole place in the list, from 0 on, not {between[0]}."
                )
            return states
        unknown = [str(name) for name in given.flat if name not in self._places]
        if unknown:
            raise InvalidInput(f"states must be items of the public list, and {unknown[0]!r} is none of them.")
        return np.array([self._places[name] for name in given.flat], dtype=np.int64).reshape(given.shape)

    def __call__(self, points: Any, xp: Any = np) -> Any:
        which = xp.rint(points * (self.rank - 1))
        return xp.where(which == np.arange(self.rank), 1.0, 0.0)

    def moments(self) -> Moments:
        share = np.full(self.rank, 1 / self.rank)
        return np.zeros(self.rank), share  # around 0, because the constant is one of what items can say
