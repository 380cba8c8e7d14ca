"""The worlds' Gymnasium ids, registered as soon as Gymnasium is there, without importing it for that.

`import quietq` is quick, and Gymnasium is not. So if nobody has imported it yet, an import hook waits until somebody
does.
"""

import importlib.util
import sys
from types import ModuleType
from typing import Any

WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "quietq/Walk-v0": ("walk:Walk", {}),
    "quietq/Thermostat-v0": ("registry:world_env", {"world": "thermostat"}),
    "quietq/Navigation-v0": ("registry:world_env", {"world": "navigation"}),
    "quietq/Recommender-v0": ("registry:world_env", {"world": "recommender"}),
}
"""By id: the module and name below `quietq.worlds` that makes it, and the arguments for that."""


def register_worlds() -> None:
    """Registers the worlds with Gymnasium; once, however often it is called."""
    from gymnasium.envs.registration import register, registry

    for name, (entry, arguments) in WORLDS.items():
        if name not in registry:
            register(id=name, entry_point=f"quietq.worlds.{entry}", kwargs=arguments)


def register_when_imported() -> None:
    """Registers the worlds now if Gymnasium is there, or else right after it is imported."""
    if "gymnasium" in sys.modules:
        register_worlds()
    elif not any(isinstance(finder, _AfterGymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterGymnasium())


class _AfterGymnasium:
    """Finds Gymnasium as Python would, and registers the worlds when its code has run."""

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> Any:
        """Gymnasium's own spec; None for all other modules."""
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)  # its work is done, and the next line must find what others would
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                register_worlds()

            spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
