"""The worlds by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium

from quietq.privacy.errors import InvalidInput
from quietq.rewards import independence
from quietq.worlds.bounded import BoundedObservation
from quietq.worlds.environment import Preference, WorldEnv, reward_at
from quietq.worlds.navigation import NavigationWorld
from quietq.worlds.recommender import RecommenderWorld
from quietq.worlds.thermostat import ThermostatWorld
from quietq.worlds.walk import Walk, WalkWorld, walk_reward
from quietq.worlds.world import World

WORLDS: dict[str, type[World]] = {
    world.name: world for world in (WalkWorld, ThermostatWorld, NavigationWorld, RecommenderWorld)
}
independence.OWN.update({WorldEnv, Walk, *WORLDS.values()})
independence.OWN_REWARDS += [reward_at, walk_reward]


def find_world(name: str) -> World:
    """The world of that name, with its own constants.

    >>> find_world("thermostat").steps
    48
    """
    if name in WORLDS:
        return WORLDS[name]()
    raise InvalidInput(f"There is no world called {name!r}: the known ones are {', '.join(WORLDS)}.")


def find_place(
    name: str, box: Sequence[tuple[float, float]] = (), arguments: Mapping[str, Any] | None = None
) -> World | gymnasium.Env:
    """One of quietq's worlds, by its name or Gymnasium id, or any environment that Gymnasium makes.

    An environment is given the `arguments`, and its observations are held to the `box`, a pair for each coordinate.

    >>> find_place("quietq/Walk-v0") == find_place("walk")
    True
    >>> find_place("MountainCar-v0").action_space
    Discrete(3)
    """
    by_id = {kind.gymnasium_id: own for own, kind in WORLDS.items()}
    if name in WORLDS or name in by_id:
        if box or arguments:
            raise InvalidInput(f"{name!r} has a box of its own and takes no arguments: leave out the box and the rest.")
        return find_world(by_id.get(name, name))
    try:
        env = gymnasium.make(name, **(arguments or {}))
    except gymnasium.error.DependencyNotInstalled as error:
        raise InvalidInput(f"The environment {name!r} needs more than is installed: {error}") from error
    except gymnasium.error.UnregisteredEnv as error:
        raise InvalidInput(
            f"There is no world called {name!r}: quietq has {', '.join(WORLDS)}, and Gymnasium none of that id."
        ) from error
    except Exception as error:  # of the environment's own code, which may quote what it holds
        raise InvalidInput(
            f"Gymnasium could not make {name!r} with these arguments: it failed with {type(error).__name__}."
        ) from None
    return BoundedObservation(env, *zip(*box, strict=True)) if box else env


def world_env(world: World | str, reward: Preference | None = None, render_mode: str | None = None) -> WorldEnv:
    """A world, or the one of that name, for Gymnasium: what `gymnasium.make` calls.

    >>> import gymnasium
    >>> env = gymnasium.make("quietq/Recommender-v0", world=RecommenderWorld(strength=0.02))  # no consensus
    """
    return WorldEnv(find_world(world) if isinstance(world, str) else world, reward, render_mode)
