"""That an environment shows nothing of its own reward: known by construction, checked, or else trusted.

What a learner sees is post-processing of released rewards only if observations, `info` and ends of episodes depend on
the environment's own reward through the agent's actions and in no other way. An environment that writes its reward into
the observation, or ends when it is high, breaks every promise, and its code cannot be read from here. But it can be
run: if the base environment has a method `with_reward(function)`, which gives the same environment with another reward
(a function of a batch of states), copies of it with very different rewards get the same seed and the same actions, and
must show the same, bit by bit. That finds carelessness, not every ill will, so what was checked is still trusted.
"""

import copy
import dataclasses
import time
import warnings
from collections.abc import Callable
from types import MethodType
from typing import Any

import gymnasium
import numpy as np
from gymnasium import wrappers
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from quietq.mechanisms.private_function import PrivateFunction
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.errors import InvalidInput
from quietq.registry import WORLDS, holds
from quietq.worlds.environment import WorldEnv
from quietq.worlds.guards import PUBLIC_INFO, inner_environments, scrub
from quietq.worlds.learned_world import LearnedWorld
from quietq.worlds.private_world import PrivateWorldEnv
from quietq.worlds.walk import walk_reward
from quietq.worlds.world import World
from quietq.worlds.world_copies import WorldCopies

STEPS = 300
"""Of the check, in each of the copies."""
PATIENCE = 2.0
"""Seconds after which the check of a slow environment ends."""

_PLAIN = {wrappers.Autoreset, wrappers.OrderEnforcing, wrappers.PassiveEnvChecker, wrappers.TimeLimit, SyncVectorEnv}
"""Layers that look at no reward."""
_SENTENCE = "The environment's observations, info and ends depend on its reward through the agent's actions only"


def independence(env: Any, allowed: frozenset[str] = PUBLIC_INFO) -> Assumption:
    """What a certificate says about it; an environment that was seen to break it is refused."""
    layers = _layers(env)
    if any(map(_is_release, layers)):
        raise InvalidInput(
            "The environment is a private world, which is a release of its own: a certificate of another reward in it "
            "would not state what the world promises. Train in the world by its own reward."
        )
    if all(_is_own(layer) for layer in layers):
        return Assumption(f"{_SENTENCE}: a step of quietq's own worlds is not shown it.", enforced=True)
    bases = [layer for layer in layers if not _inside(layer)]
    if not all(callable(getattr(base, "with_reward", None)) for base in bases):
        return Assumption(f"{_SENTENCE}, which could not be checked.", enforced=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they come again when it is trained in
        steps = _checked(env, bases, allowed)
    how = f": checked on {steps} steps under other rewards." if steps else ", which could not be checked."
    return Assumption(f"{_SENTENCE}{how}", enforced=False)


def is_own_world(world: object) -> bool:
    """Whether its steps never see the reward, because it is one of this package's own."""
    return type(world).__module__.startswith("quietq.") and holds(WORLDS, type(world))


def with_assumption(certificate: Certificate, assumption: Assumption) -> Certificate:
    """The certificate with one more assumption; one that promises nothing stays as it is."""
    if certificate.standing != "certified":
        return certificate
    return dataclasses.replace(certificate, assumptions=(*certificate.assumptions, assumption))


def _inside(env: Any) -> list[Any]:
    return [inner for inner in inner_environments(env) if isinstance(inner, gymnasium.Env | VectorEnv)]


def _layers(env: Any) -> list[Any]:
    return [env, *(layer for inner in _inside(env) for layer in _layers(inner))]


def _is_release(layer: Any) -> bool:
    """Whether its steps were learned from people: what is seen there is not public, whatever the reward is."""
    return isinstance(layer, PrivateWorldEnv | WorldCopies) or isinstance(getattr(layer, "world", None), LearnedWorld)


def _is_own(layer: Any) -> bool:
    """Whether nothing but quietq's and Gymnasium's own code runs in a step, and no reward that could look around."""
    if type(layer) in _PLAIN:
        return not _patched(layer)
    if type(layer) is not WorldEnv or not is_own_world(layer.world):
        return False
    reward, worlds = layer.reward, [layer.world]
    own = isinstance(reward, PrivateFunction) or reward is walk_reward
    if isinstance(reward, MethodType) and reward.__func__ is World.reward_at:
        own, worlds = is_own_world(reward.__self__), [layer.world, reward.__self__]
    return own and not _patched(layer, "reward") and not any(map(_patched, worlds))


def _patched(thing: Any, *but: str) -> bool:
    """Whether somebody put a function of their own in the place of one of its methods."""
    return any(callable(value) for name, value in getattr(thing, "__dict__", {}).items() if name not in but)


def _wave(scale: float) -> Any:
    """A reward that is of this size and different at different states, to the last bit."""

    def reward(states: Any) -> np.ndarray:
        rows = np.asarray(states, dtype=np.float64).reshape(*np.shape(states)[:1], -1)
        return scale * (1.5 + np.sin(1e4 * rows.sum(axis=-1)))

    return reward


_REWARDS = (_wave(0.0), _wave(1e3), _wave(-1e3), _wave(1e-3))


def _checked(env: Any, bases: list[Any], allowed: frozenset[str]) -> int:
    """On how many steps the environment showed the same, whatever its reward; 0 if it cannot be compared."""
    try:
        copies = [_with_reward(env, bases, reward) for reward in _REWARDS]
        again = _with_reward(env, bases, _REWARDS[0])
    except InvalidInput:
        raise
    except Exception:  # a layer that cannot be copied
        return 0
    steps, differs = _compared(copies, allowed)
    if not differs:
        return steps
    if _compared([_with_reward(env, bases, _REWARDS[0]), again], allowed)[1]:
        return 0  # the same seed does not give the same twice, whatever the reward
    raise InvalidInput(
        f"The environment's {differs} depend on its own reward, which would pass by the private one: with the same "
        "seed and actions they differ under another reward; wrap an environment in which they do not."
    )


def _with_reward(env: Any, bases: list[Any], reward: Any) -> Any:
    others = {id(base): _run("The environment's with_reward(function)", base.with_reward, reward) for base in bases}
    for base in bases:
        if others[id(base)] is base or not isinstance(others[id(base)], gymnasium.Env | VectorEnv):
            raise InvalidInput("The environment's with_reward(function) must return another environment, a copy.")
    return copy.deepcopy(env, others)


def _compared(copies: list[Any], allowed: frozenset[str]) -> tuple[int, str]:
    began, first = time.monotonic(), copies[0]
    actions = copy.deepcopy(first.action_space)
    actions.seed(0)
    vector = isinstance(first, VectorEnv)
    disabled = vector and first.metadata.get("autoreset_mode") == AutoresetMode.DISABLED

    def ask(verb: str, *arguments: Any, **options: Any) -> list[dict[str, Any]]:
        rows = []
        for one in copies:
            who = "With another reward, the environment"
            observation, *middle, info = _run(who, getattr(one, verb), *copy.deepcopy(arguments), **options)
            rows.append({"observations": observation, "ends of episodes": middle[1:], "info": scrub(info, allowed)})
        return rows

    shown = ask("reset", seed=0)
    for step in range(STEPS):
        if differs := _difference(shown):
            return step, differs
        if time.monotonic() - began > PATIENCE:
            return step, ""
        if np.any(shown[0]["ends of episodes"]) and (disabled or not vector):
            shown = ask("reset")
            if differs := _difference(shown):
                return step, differs
        shown = ask("step", actions.sample())
    return STEPS, _difference(shown)


def _run(who: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a call into the environment's own code returns; its error may quote what it holds, and is only named."""
    try:
        return call(*arguments, **options)
    except Exception as error:
        failure = type(error).__name__
    raise InvalidInput(f"{who} failed with {failure}.")


def _difference(rows: list[dict[str, Any]]) -> str:
    first, *others = rows
    return next((name for other in others for name in first if not _same(first[name], other[name])), "")


def _same(one: Any, two: Any) -> bool:
    """Equal to the last bit, whatever they are made of."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_same(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(_same(a, b) for a, b in zip(one, two, strict=True))
    a, b = np.asarray(one), np.asarray(two)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype != object:
        return a.tobytes() == b.tobytes()
    if a.shape == ():
        return a.item() is b.item() or bool(a.item() == b.item())
    return all(map(_same, a.flat, b.flat))
