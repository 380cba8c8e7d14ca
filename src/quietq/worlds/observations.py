"""What passes from an environment to whoever trains on a private reward: checked states and public bookkeeping.

The environment's own reward must not. A wrapper underneath may record it: that is refused. `info` may carry it: that
goes through an allow-list, because a deny-list would have to know every name that somebody might give to a reward.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from gymnasium.spaces import Box as BoxSpace, Discrete, MultiBinary, MultiDiscrete, Space
from gymnasium.vector.utils import concatenate, create_empty_array
from jaxtyping import Float

from quietq.noise.box import Box
from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput

RECORDERS = frozenset(
    {
        "RecordEpisodeStatistics",  # Gymnasium, single and vector
        "NormalizeReward",  # Gymnasium, single and vector
        "Monitor",  # Stable-Baselines3
        "VecMonitor",
        "VecNormalize",
        "DataCollector",  # Minari
    }
)
"""Classes that keep rewards or statistics of them; known by name, so that none of the libraries need be installed."""

PROTECTORS = frozenset({"PrivateReward", "PrivateEnv", "PrivateVectorEnv", "OwnReward"})
"""What lies above one of these sees private rewards only, and may record them."""

PUBLIC_INFO = frozenset({"final_obs", "final_observation", "terminal_observation", "final_info", "TimeLimit.truncated"})
"""Bookkeeping of Gymnasium and Stable-Baselines3 that says nothing of rewards."""

State = int | Sequence[int] | Callable[[Any], Any] | None
"""Which part of an observation the reward looks at: all of it, some entries, or a function of a batch of them."""

Outside = Literal["refuse", "clip"]
"""What becomes of a state that lies outside the reward's box: it is refused, or the nearest state of the box taken."""

HAIR = 1e-6
"""How far outside its box a state may lie, in widths of the box, to be taken for rounding."""

_NESTED = "final_info"
_TELLTALE = re.compile(r"reward|return|^episode$|^r$", re.IGNORECASE)


def layers(env: object) -> list[list[frozenset[str]]]:
    """From the outermost layer down to each base environment: the names of the classes that each layer is of."""
    return list(_chains(env, frozenset()))


def refuse_recorders(env: object) -> None:
    """Raises InvalidInput if something underneath would see and keep the environment's own reward."""
    for chain in layers(env):
        bottom = max((i for i, names in enumerate(chain) if names & PROTECTORS), default=-1)
        for names in chain[bottom + 1 :]:
            if found := sorted(names & RECORDERS):
                raise InvalidInput(
                    f"{found[0]} lies underneath PrivateReward, where it records the environment's own reward: put it "
                    f"on top, as {found[0]}(PrivateReward(env, private))."
                )


def is_reset_by_itself(env: object) -> bool:
    """Whether Gymnasium's Autoreset lies underneath, so that the step after the last one resets, for a reward of 0."""
    return any("Autoreset" in names for chain in layers(env) for names in chain)


def allowed_info(keep: Iterable[str]) -> frozenset[str]:
    """The keys of `info` that may pass: public bookkeeping, and the caller's own."""
    if isinstance(keep, str) or not all(isinstance(key, str) for key in keep):
        raise InvalidInput(f"keep_info must be a sequence of keys of info, not {keep!r}.")
    for key in keep:
        if _TELLTALE.search(key):
            raise InvalidInput(
                f"keep_info must not name {key!r}: a reward or return in info would pass by the private one."
            )
    return PUBLIC_INFO | frozenset(keep)


def scrub(info: Mapping[str, Any], allowed: frozenset[str]) -> dict[str, Any]:
    """What of `info` may pass; vector environments' masks, named `_key`, go with their keys.

    >>> scrub({"raw_reward": 3.0, "final_obs": 0.5, "_final_obs": True, "final_info": {"r": 3.0}}, allowed_info(()))
    {'final_obs': 0.5, '_final_obs': True, 'final_info': {}}
    """
    return {
        key: _scrub_nested(value, allowed) if key == _NESTED else value
        for key, value in info.items()
        if (key in allowed or (key.startswith("_") and key[1:] in allowed)) and _is_of_its_kind(key, value)
    }


def _is_of_its_kind(key: str, value: object) -> bool:
    """Masks and flags are true or false: a number under their names is something else."""
    return np.asarray(value).dtype == bool if key.startswith("_") or key == "TimeLimit.truncated" else True


class Hidden:
    """A raw reward on its way to the noise; a traceback that prints variables does not show it."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Hidden()"


def without_reward(step: tuple[Any, ...], allowed: frozenset[str]) -> tuple[Any, Any, Any, dict[str, Any]]:
    """What `env.step` returned, but for the reward, which no variable of the caller ever holds."""
    return step[0], step[2], step[3], scrub(step[4], allowed)


def batch_of(observations: Sequence[Any], space: Space) -> Any:
    """Observations of one environment as a vector environment would return them."""
    if isinstance(space, BoxSpace | Discrete | MultiDiscrete | MultiBinary):
        return np.stack([np.asarray(observation) for observation in observations])
    return concatenate(space, observations, create_empty_array(space, len(observations)))


def states_of(batch: Any, size: int, state: State, dimension: int) -> Float[np.ndarray, "batch dimension"]:
    """The part of a batch of observations that `state` names, a row each; not yet checked to lie in a box."""
    if not callable(state) and isinstance(batch, Mapping | tuple):
        raise InvalidInput("The observations have parts: say with a function `state` what of them the reward looks at.")
    try:
        states = np.array(state(batch) if callable(state) else batch, dtype=np.float64).reshape(size, -1)
        if not callable(state) and state is not None:
            states = states[:, np.atleast_1d(np.asarray(state))]
    except (TypeError, ValueError, IndexError) as error:
        raise InvalidInput(f"state {state!r} does not give one state for each of {size} observations.") from error
    if states.shape[1] != dimension:
        raise InvalidInput(
            f"A state has {states.shape[1]} numbers, but the reward's box has {dimension}: say with `state` what of "
            "the observation the reward looks at."
        )
    return states


def in_box(
    states: np.ndarray,
    box: Box,
    outside: Outside = "refuse",
    advice: str = "give outside='clip' to take the nearest state of the box, or release the reward on a larger one",
) -> Float[np.ndarray, "batch dimension"]:
    """States that lie in the box, or a hair outside, where rounding puts them; then clipped."""
    low, high = np.array(box.low), np.array(box.high)
    hair = HAIR * (high - low)
    inside = (states >= low - hair) & (states <= high + hair)  # False for NaN
    if np.isnan(states).any():
        raise InvalidInput(f"A state has the value nan, outside the reward's box {box}: states must be numbers.")
    if outside == "refuse" and not inside.all():
        raise InvalidInput(
            f"A state has the value {float(states[~inside][0])!r}, outside the reward's box {box}: {advice}."
        )
    return np.clip(states, low, high)


def check_outside(outside: object) -> None:
    """Refuses what is not one of the two."""
    if outside not in get_args(Outside):
        raise InvalidInput(f"outside must be 'refuse' or 'clip', not {shown(outside)}.")


def refuse_categories(space: Space, state: State) -> None:
    """Refuses observations that are numbers of categories, unless a function says where in the box each lies."""
    if isinstance(space, Discrete | MultiDiscrete | MultiBinary) and not callable(state):
        raise InvalidInput(
            f"The observations are {space}, names of categories and not places in the reward's box: give as `state` a "
            "function from a batch of them to coordinates of the box, e.g. `lambda batch: places[batch]`."
        )


def _scrub_nested(value: object, allowed: frozenset[str]) -> object:
    if isinstance(value, Mapping):
        return scrub(value, allowed)
    if isinstance(value, list | tuple):
        return [_scrub_nested(item, allowed) for item in value]
    if isinstance(value, np.ndarray) and value.dtype == object:
        scrubbed = np.full(value.shape, None, dtype=object)
        for at in np.ndindex(value.shape):
            scrubbed[at] = _scrub_nested(value[at], allowed)
        return scrubbed
    return None


def _chains(env: object, seen: frozenset[int]) -> Iterable[list[frozenset[str]]]:
    here = frozenset(base.__name__ for base in type(env).__mro__)
    inner = [getattr(env, name, None) for name in ("env", "venv")]
    several = getattr(env, "envs", None)
    inner += several if isinstance(several, list | tuple) else []
    seen = seen | {id(env)}
    below = [child for child in inner if child is not None and id(child) not in seen]
    tails = [tail for child in below for tail in _chains(child, seen)] or list(_workers(env))
    for tail in tails or [[]]:
        yield [here, *tail]


def _workers(env: object) -> Iterable[list[frozenset[str]]]:
    """The layers in the worker processes of an AsyncVectorEnv, which can only be asked for their names."""
    if not any(base.__name__ == "AsyncVectorEnv" for base in type(env).__mro__):
        return
    for text in env.call("__str__"):  # pyright: ignore[reportAttributeAccessIssue]
        yield [frozenset({name}) for name in re.findall(r"<(\w+)(?=<)", str(text))]
