"""`protect` can be watched, and what it noises can be replaced, while an audit looks."""

import asyncio
import threading
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from quietq.paper.agents.protect import protect, watched


def test_calls_of_protect_are_seen_while_watched_and_only_then() -> None:
    def noised() -> Any:
        return jax.eval_shape(lambda value: protect(value, value, 0.25), jnp.zeros(3))

    with watched() as calls:
        noised()
        elsewhere = threading.Thread(target=noised)
        elsewhere.start()
        elsewhere.join()
        with watched() as inner:
            noised()
    with pytest.raises(RuntimeError), watched():
        raise RuntimeError
    noised()
    assert len(calls) == len(inner) == 1
    assert (calls[0].value.shape, calls[0].scale) == ((3,), 0.25)


def test_another_thread_is_watched_if_it_copies_the_context() -> None:
    with watched() as calls:
        asyncio.run(asyncio.to_thread(protect, jnp.zeros(3), jnp.ones(3), 0.25))
    assert len(calls) == 1


def test_something_else_can_be_noised_while_watched() -> None:
    with watched(instead=lambda call: jnp.zeros_like(call.value)):
        nothing = protect(jnp.full(3, 5.0), jnp.ones(3), 0.25)
    assert (nothing == protect(jnp.zeros(3), jnp.ones(3), 0.25)).all()
    assert (nothing != protect(jnp.full(3, 5.0), jnp.ones(3), 0.25)).all()
