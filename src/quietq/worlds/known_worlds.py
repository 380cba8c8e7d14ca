"""quietq's own worlds, by name and by Gymnasium's id: `gymnasium.make("quietq.worlds:quietq/Walk-v0")`."""

from gymnasium.envs.registration import register, registry

from quietq.privacy.checks import did_you_mean
from quietq.privacy.errors import InvalidInput
from quietq.worlds.navigation import NavigationWorld
from quietq.worlds.thermostat import ThermostatWorld
from quietq.worlds.walk import WalkWorld
from quietq.worlds.world import World

WORLDS: dict[str, type[World]] = {kind.name: kind for kind in (WalkWorld, ThermostatWorld, NavigationWorld)}


def gymnasium_id(name: str) -> str:
    """The id under which Gymnasium knows a world of this name.

    >>> gymnasium_id("walk")
    'quietq/Walk-v0'
    """
    return f"quietq/{name.capitalize()}-v0"


def register_worlds() -> None:
    """Registers the worlds with Gymnasium, each once however often this is called."""
    for name in WORLDS:
        if gymnasium_id(name) not in registry:
            register(gymnasium_id(name), "quietq.worlds.environment:world_env", kwargs={"world": name})


def find_world(name: str) -> World:
    """The world of that name, with its own constants."""
    if name in WORLDS:
        return WORLDS[name]()
    known = f"the known ones are {', '.join(WORLDS)}."
    raise InvalidInput(f"There is no world called {name!r}: {known}{did_you_mean(name, WORLDS)}")
