"""Experience replay as one array, a row a transition, so that a batch is one gather."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from quietq.paper.agents.method import Moment, Transition


def empty(capacity: int, dimension: int, copies: int) -> Float[Array, "capacity width"]:
    """Room for at least `capacity` transitions, a multiple of `copies`."""
    return jnp.zeros((-(-capacity // copies) * copies, 2 * dimension + 3), jnp.float32)


def store(
    replay: Float[Array, "capacity width"], seen: Transition, step: Array, bootstrap_truncated: bool
) -> Float[Array, "capacity width"]:
    """The buffer with what was seen at `step`, over what was stored longest ago.

    `step` is the same for all runs of a batched program, so that this stays one slice and is done in place.
    """
    ends = seen.terminated if bootstrap_truncated else seen.terminated | seen.truncated
    numbers = (seen.action, seen.reward, 1 - ends)
    columns = [number.astype(jnp.float32)[:, None] for number in numbers]
    rows = jnp.concatenate([*columns, seen.state, seen.next_state], axis=1)
    first = (step * rows.shape[0]) % replay.shape[0]
    return lax.dynamic_update_slice(replay, rows, (first, 0))


def sample(replay: Float[Array, "capacity width"], batch: int, copies: int, now: Moment) -> Transition:
    """Transitions drawn uniformly with replacement from those that have been stored."""
    stored = jnp.minimum((now.step + 1) * copies, replay.shape[0])
    return rows(replay, jax.random.randint(now.key, (batch,), 0, stored))


def rows(replay: Float[Array, "capacity width"], index: Int[Array, " batch"]) -> Transition:
    """Some stored transitions; `terminated` says where not to bootstrap, `truncated` is not kept."""
    picked = replay[index]
    dimension = (picked.shape[1] - 3) // 2
    ends = picked[:, 2] < 0.5
    return Transition(
        picked[:, 3 : 3 + dimension],
        picked[:, 0].astype(jnp.int32),
        picked[:, 1],
        picked[:, 3 + dimension :],
        ends,
        jnp.zeros_like(ends),
    )
