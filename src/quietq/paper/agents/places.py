"""Where agents are trained: quietq's own worlds by name, and any environment that Gymnasium knows, in a public box."""

from collections.abc import Sequence

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.wrappers import TransformObservation

from quietq.noise import Box as PublicBox
from quietq.privacy import InvalidInput
from quietq.privacy.checks import did_you_mean
from quietq.worlds import WORLDS, World, find_world
from quietq.worlds.environment import gymnasium_id


def bound_observations(env: gymnasium.Env, low: Sequence[float], high: Sequence[float]) -> gymnasium.Env:
    """Wraps an environment so that it declares a public box, and clips its observations to it.

    Args:
        env: The environment, whose observations are a Box of one axis.
        low: The low end of each coordinate, chosen without looking at private data.
        high: The high end of each.

    >>> env = bound_observations(gymnasium.make("CartPole-v1"), low=[-2.4, -3, -0.21, -3], high=[2.4, 3, 0.21, 3])
    >>> env.observation_space.is_bounded()
    True

    """
    box, own = PublicBox(tuple(map(float, low)), tuple(map(float, high))), env.observation_space
    if not isinstance(own, Box) or own.shape != (box.dimension,):
        raise InvalidInput(
            f"box has {box.dimension} pairs of LOW and HIGH, which do not fit the observations {own}: give one for "
            "each coordinate of a Box of shape (d,)."
        )
    # In double precision, so that the box is the one that was asked for to the last bit.
    space = Box(np.array(box.low), np.array(box.high), (box.dimension,), np.float64)
    return TransformObservation(env, lambda seen: np.clip(np.asarray(seen, np.float64), space.low, space.high), space)


def find_place(name: str, box: Sequence[tuple[float, float]] = ()) -> World | gymnasium.Env:
    """Finds one of quietq's worlds, or makes any environment that Gymnasium knows.

    Args:
        name: The world's name or Gymnasium id, or that of an environment.
        box: The public box that an environment's observations are clipped to, a pair for each coordinate.

    """
    by_id = {prefix + gymnasium_id(own): own for own in WORLDS for prefix in ("", "quietq.worlds:")}
    if name in WORLDS or name in by_id:
        if box:
            raise InvalidInput(f"{name!r} has a box of its own: leave out the box.")
        return find_world(by_id.get(name, name))
    try:
        env = gymnasium.make(name)
    except gymnasium.error.DependencyNotInstalled as error:
        raise InvalidInput(f"The environment {name!r} needs more than is installed: {error}") from error
    except gymnasium.error.UnregisteredEnv as error:
        known, ids = ", ".join(WORLDS), (*WORLDS, *gymnasium.registry)
        raise InvalidInput(
            f"There is no world called {name!r}: quietq has {known}, and Gymnasium none of that id."
            + did_you_mean(name, ids)
        ) from error
    except Exception as error:  # of the environment's own code, which may quote what it holds
        raise InvalidInput(f"Gymnasium could not make {name!r}: it failed with {type(error).__name__}.") from None
    return bound_observations(env, *zip(*box, strict=True)) if box else env
