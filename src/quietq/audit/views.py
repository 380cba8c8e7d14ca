"""What the adversary sees of a training, and at how many states: stated, and chosen by whoever audits."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from quietq.learning.method import Method
from quietq.noise.box import Box
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput

Kind = Literal["final", "policy", "every"]
MOST_STATES = 100_000


@dataclass(frozen=True)
class View:
    """`final`: the values of all actions, released at the end; `policy`: only which action is best; `every`: the values
    at `moments` moments, of which the end is the last. Each at `queries` states a coordinate, equally spaced.
    """

    kind: Kind = "final"
    queries: int = 65
    moments: int = 10

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidInput(f"view must be one of {', '.join(get_args(Kind))}, not {self.kind!r}.")
        count("queries", self.queries, 1, 10_000)
        count("moments", self.moments, 1, 1000)

    def check(self, box: Box, steps: int) -> None:
        """Refuses to look more often, or at more numbers, than makes sense."""
        if self.looks > steps:
            raise InvalidInput(f"moments must be at most the number of steps, {steps}, not {self.moments}.")
        if self.queries**box.dimension * self.looks > MOST_STATES:
            raise InvalidInput(
                f"queries must be fewer: {self.queries} a coordinate, {box.dimension} coordinate(s) and {self.looks} "
                f"look(s) are more than {MOST_STATES} states."
            )

    @property
    def looks(self) -> int:
        """How often the adversary looks."""
        return self.moments if self.kind == "every" else 1

    def states(self, box: Box) -> Float[np.ndarray, "points d"]:
        """The states that are asked for."""
        sides = [np.linspace(low, high, self.queries) for low, high in zip(box.low, box.high, strict=True)]
        return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, box.dimension)

    def seen(self, method: Method, released: Any, box: Box) -> Float[np.ndarray, "runs numbers"]:
        """What is seen of each run's release, a row a run."""
        values = np.asarray(_values(method, released, jnp.asarray(self.states(box), jnp.float32)))
        if self.kind == "policy":
            values = np.eye(values.shape[-1])[values.argmax(axis=-1)]  # the first of those that are equal, as agents do
        # What is not finite counts as 0: a score stays a number, whatever training came to.
        return np.where(np.isfinite(values), values, 0.0).reshape(len(values), -1).astype(np.float32)


@partial(jax.jit, static_argnums=0)
def _values(method: Method, released: Any, states: Any) -> Any:
    return jax.vmap(jax.vmap(method.values, in_axes=(None, 0)), in_axes=(0, None))(released, states)
