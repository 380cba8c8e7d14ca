"""Rollouts of a private world as a Minari data set, which offline RL libraries train on.

Theorem (post-processing). Episodes that are played in a released world, by a policy that is public or was made of
releases, are computed from what was released alone: the world's certificate covers them, however many there are. It
goes along in the data set's metadata, as JSON.

Proof: docs/theory.md#post-processing.
"""

import json
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from quietq.privacy import InvalidInput, MissingExtra
from quietq.privacy.checks import count, instance
from quietq.publishing.publish import function_of
from quietq.released.private_world import PrivateWorld
from quietq.released.publishable import Publishable
from quietq.worlds.private_env import PrivateWorldEnv

if TYPE_CHECKING:
    from minari import MinariDataset

CERTIFICATE, POLICY_CERTIFICATE = "quietq_certificate", "quietq_policy_certificate"
"""What the data set's metadata call the certificates of the world, and of a policy that has one."""


def to_minari(
    world: PrivateWorld,
    policy: Any,
    dataset_id: str,
    *,
    episodes: int = 100,
    steps: int = 200,
    deterministic: bool = True,
    seed: int = 0,
    data_format: str = "arrow",
    not_private: bool = False,
    minari: dict[str, Any] | None = None,
    **options: Any,
) -> "MinariDataset":
    """Plays episodes in a private world, and stores them as a Minari data set with the certificate in its metadata.

    Nothing is spent. Minari stores it where its own settings say (`MINARI_DATASETS_PATH`).

    Args:
        world: The private world, as `privatise` makes it of Sessions, or loaded.
        policy: What acts: something that predicts as Stable-Baselines3's models do, such as a plan of `plan_linear`, or
            a function from states, shape (states, d), to actions. It must be public, or made of releases alone; if it
            has a certificate of its own, that goes along, and both add up.
        dataset_id: What Minari calls the data set, such as "clinic/doses-v0".
        episodes: How many are played.
        steps: The time limit of each.
        deterministic: Whether a policy that predicts takes its best action, or draws one.
        seed: Of the episodes: public, and no secret.
        data_format: Minari's format of files, "arrow" or "hdf5".
        not_private: Whether a world that is only simulated may be written too; its certificate says so.
        minari: Further arguments of `minari.create_dataset_from_buffers`, such as author or env, the environment that
            libraries evaluate in.
        options: Those of `world.env`, such as ensemble or halt.

    """
    try:
        from minari import create_dataset_from_buffers
        from minari.data_collector import EpisodeBuffer
    except ImportError as error:
        raise MissingExtra.of("minari", "A Minari data set needs Minari") from error
    instance("world", world, PrivateWorld, "a PrivateWorld, as privatise makes it of Sessions")
    function_of(world, not_private)
    if not hasattr(policy, "predict") and not callable(policy):
        raise InvalidInput(f"policy must predict, or be a function of states, not {type(policy).__name__}.")
    env = PrivateWorldEnv(world, steps=steps, seed=seed, **options)
    buffers = []
    for episode in range(count("episodes", episodes)):
        state, _ = env.reset(seed=seed + episode)
        states, actions, rewards, ends, cuts = [state], [], [], [], []
        while not (ends and (ends[-1] or cuts[-1])):
            action = _act(policy, state, env, deterministic)
            state, reward, ended, cut, _ = env.step(action)
            states.append(state)
            actions.append(action)
            rewards.append(reward)
            ends.append(ended)
            cuts.append(cut and not ended)  # d3rlpy refuses a last step that is both
        buffers.append(
            EpisodeBuffer(
                id=episode,
                seed=seed + episode,
                observations=states,
                actions=actions,
                rewards=rewards,
                terminations=ends,
                truncations=cuts,
            )
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that nobody is named as its author
        found = create_dataset_from_buffers(
            dataset_id,
            buffers,
            observation_space=env.observation_space,
            action_space=env.action_space,
            data_format=data_format,
            **(minari or {}),
        )
    told = {CERTIFICATE: world.certificate.to_json()}
    if isinstance(policy, Publishable):
        told[POLICY_CERTIFICATE] = policy.certificate.to_json()
    told |= {name: json.dumps(list(getattr(world.spaces, name))) for name in ("state_names", "action_names")}
    found.storage.update_metadata(told)
    return found


def _act(policy: Any, state: np.ndarray, env: PrivateWorldEnv, deterministic: bool) -> Any:
    """One action, as the environment takes it: a number of the list, or numbers clipped to their range."""
    if hasattr(policy, "predict"):
        found = policy.predict(state, deterministic=deterministic)[0]
    else:
        found = np.asarray(policy(state[None].astype(np.float64)))[0]
    space = env.action_space
    if env.world.spaces.action_box is None:
        return np.int64(found)
    return np.clip(np.asarray(found, np.float32).reshape(space.shape), space.low, space.high)  # type: ignore[attr-defined]
