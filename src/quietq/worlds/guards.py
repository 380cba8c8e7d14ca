"""What must not pass from an environment to whoever trains on a private reward: its own reward, in any disguise.

A wrapper underneath may record it: that is refused. `info` may carry it: that goes through an allow-list, because a
deny-list would have to know every name that somebody might give to a reward.
"""

import re
from collections.abc import Iterable, Mapping

import numpy as np

from quietq.privacy import InvalidInput
from quietq.worlds.world import Info

RECORDERS = {"RecordEpisodeStatistics", "NormalizeReward", "Monitor", "VecMonitor", "VecNormalize", "DataCollector"}
"""Classes of Gymnasium, Stable-Baselines3 and Minari that keep rewards or statistics of them; known by name, so that
none of the libraries need be installed."""
RESETTERS = {"Autoreset"}
"""Classes of Gymnasium whose steps may be resets, which have no reward."""

PROTECTORS = {"PrivateReward", "PrivateEnv", "PrivateVectorEnv", "OwnReward"}
"""What lies above one of these sees private rewards only, and may record them."""

RELEASED_WORLDS = {"PrivateWorldEnv", "WorldCopies"}
"""Environments whose steps were learned from people: what is seen there is not public, whatever the reward is."""

PUBLIC_INFO = frozenset({"final_obs", "final_observation", "terminal_observation", "final_info", "TimeLimit.truncated"})
"""Bookkeeping of Gymnasium and Stable-Baselines3 that says nothing of rewards."""

_NESTED = "final_info"


def inner_environments(env: object) -> list[object]:
    """The environments directly below this one: one that it wraps, or all copies of a vector environment."""
    several = getattr(env, "envs", ())
    inner = [getattr(env, name, None) for name in ("env", "venv")]
    return [one for one in (*inner, *(several if isinstance(several, list | tuple) else ())) if one is not None]


def refuse_recorders(env: object) -> None:
    """Raises InvalidInput if something underneath keeps the environment's own reward, or takes a reset for a step."""
    for chain in _chains(env):
        bottom = max((i for i, names in enumerate(chain) if names & PROTECTORS), default=-1)
        for names in chain[bottom + 1 :]:
            if found := sorted(names & (RECORDERS | RESETTERS)):
                does = "records the environment's own reward" if names & RECORDERS else "hides where episodes begin"
                raise InvalidInput(
                    f"{found[0]} lies underneath PrivateReward, where it {does}: put it on top, as "
                    f"{found[0]}(PrivateReward(env, private))."
                )


def refuse_private_worlds(env: object) -> None:
    """Raises InvalidInput if a private world lies underneath, which is a release with a promise of its own."""
    if any(names & RELEASED_WORLDS for chain in _chains(env) for names in chain):
        raise InvalidInput(
            "The environment is a private world, which is a release of its own: a certificate of another reward in it "
            "would not state what the world promises. Train in the world by its own reward."
        )


def _chains(env: object, seen: frozenset[int] = frozenset()) -> Iterable[list[frozenset[str]]]:
    """Yields, from the outermost layer down to each base environment, the names of the classes of each layer."""
    here = frozenset(base.__name__ for base in type(env).__mro__)
    seen = seen | {id(env)}
    below = [child for child in inner_environments(env) if id(child) not in seen]
    tails = [tail for child in below for tail in _chains(child, seen)]
    if not tails and "AsyncVectorEnv" in here:  # whose worker processes can only be asked for the names of their layers
        texts = env.call("__str__")  # pyright: ignore[reportAttributeAccessIssue]
        tails = [[frozenset({name}) for name in re.findall(r"<(\w+)(?=<)", str(text))] for text in texts]
    for tail in tails or [[]]:
        yield [here, *tail]


def scrub(info: Mapping[str, object]) -> Info:
    """Returns what of `info` may pass; vector environments' masks, named `_key`, go with their keys."""
    return {
        key: _scrub_nested(value) if key == _NESTED else value
        for key, value in info.items()
        if key.removeprefix("_") in PUBLIC_INFO and _is_of_its_kind(key, value)
    }


def _is_of_its_kind(key: str, value: object) -> bool:
    """Masks and flags are true or false: a number under their names is something else."""
    is_flag = key.startswith("_") or key == "TimeLimit.truncated"
    return not is_flag or np.asarray(value).dtype == bool


def _scrub_nested(value: object) -> object:
    if isinstance(value, Mapping):
        return scrub(value)
    if isinstance(value, list | tuple):
        return [_scrub_nested(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.frompyfunc(_scrub_nested, 1, 1)(value)
    return None


class Hidden:
    """A raw reward on its way to the noise; a traceback that prints variables does not show it."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Hidden()"
