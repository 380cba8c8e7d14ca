"""The worlds by name."""

from quietq.privacy.errors import InvalidInput
from quietq.rewards import independence
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


def world_env(world: World | str, reward: Preference | None = None, render_mode: str | None = None) -> WorldEnv:
    """A world, or the one of that name, for Gymnasium: what `gymnasium.make` calls.

    >>> import gymnasium
    >>> env = gymnasium.make("quietq/Recommender-v0", world=RecommenderWorld(strength=0.02))  # no consensus
    """
    return WorldEnv(find_world(world) if isinstance(world, str) else world, reward, render_mode)
