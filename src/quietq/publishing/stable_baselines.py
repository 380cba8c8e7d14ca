"""A model of Stable-Baselines3 as a policy that can be published: its numbers, and a certificate.

Policies, layers and spaces are those of closed lists, and of exactly these classes, because whatever else a model
computes would be lost; and what was read must act as the model does before anything is written.
"""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import gymnasium
import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.torch_layers import FlattenExtractor, MlpExtractor
from stable_baselines3.dqn.policies import DQNPolicy
from stable_baselines3.sac.policies import SACPolicy
from stable_baselines3.td3.policies import TD3Policy
from torch import nn

from quietq.noise import Domain
from quietq.privacy import Certificate, Code, InvalidInput, PrivacyWarning
from quietq.publishing.publish import certificate_of, release_behind
from quietq.released.private_network import LARGEST, Activation, PolicyOutput, PrivatePolicy
from quietq.released.publishable import UNNAMED, Labels, Publishable
from quietq.worlds.reader import observation_box

_SUPPORTED = "publish takes the MlpPolicy of PPO, A2C, DQN, SAC, TD3 and DDPG"


def policy_of(model: BaseAlgorithm, trained_on: object, box: Domain | None = None) -> PrivatePolicy:
    """The policy of a model that was trained on this private reward or world, checked to act as the model does."""
    own = certificate_of(trained_on)
    certificate = own.with_assumption(Code.TRAINED())
    activation, weights, biases = _network(_layers(model.policy))
    seen = observation_box(model.observation_space, box)
    output, action_range = _actions(model)
    normal, clip = _normalisation(model)
    policy = PrivatePolicy(activation, output, weights, biases, seen, certificate, action_range, normal, clip)
    policy = replace(policy, labels=_labels(policy, trained_on))
    _check(policy, model)
    _warn_if_elsewhere(model, own)
    return policy


def _labels(policy: PrivatePolicy, trained_on: object) -> Labels:
    """Names of what it was trained on, where the policy's observations and actions are the same."""
    source = release_behind(trained_on)
    if not isinstance(source, Publishable) or source.box != policy.box:
        return UNNAMED
    named = source.labels.actions
    return Labels(source.labels.states, named if len(named) == policy.outputs else ())


def _layers(policy: BasePolicy) -> list[nn.Module]:
    """The layers of the network that a policy acts by."""
    kind = type(policy)
    if isinstance(policy, ActorCriticPolicy) and kind is ActorCriticPolicy:
        extractor, layers = policy.pi_features_extractor, [*policy.mlp_extractor.policy_net, policy.action_net]
        _expect(policy.mlp_extractor, MlpExtractor)
    elif isinstance(policy, DQNPolicy) and kind is DQNPolicy:
        extractor, layers = policy.q_net.features_extractor, [*policy.q_net.q_net]
    elif isinstance(policy, SACPolicy) and kind is SACPolicy:
        extractor, layers = policy.actor.features_extractor, [*policy.actor.latent_pi, policy.actor.mu]
    elif isinstance(policy, TD3Policy) and kind is TD3Policy:
        extractor, layers = policy.actor.features_extractor, [*policy.actor.mu][:-1]  # its Tanh squashes
    else:
        raise InvalidInput(f"{_SUPPORTED}, not {kind.__name__}: train it with 'MlpPolicy'.")
    _expect(extractor, FlattenExtractor)
    return layers


def _expect(part: object, kind: type) -> None:
    if type(part) is not kind:
        raise InvalidInput(f"{_SUPPORTED}, with the library's {kind.__name__}, not with {type(part).__name__}.")


def _network(layers: Sequence[nn.Module]) -> tuple[Activation, tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Linear layers, and the one function between them."""
    activations: set[Activation] = {_activation(layer) for layer in layers[1::2]}
    if len(activations) > 1:
        raise InvalidInput(f"The policy's layers must have one activation, not {' and '.join(sorted(activations))}.")
    _linear(layers[-1])  # nothing may come after the last linear layer
    weights, biases = zip(*map(_linear, layers[::2]), strict=True)
    return activations.pop() if activations else "tanh", weights, biases


def _activation(layer: nn.Module) -> Activation:
    known: dict[type[nn.Module], Activation] = {nn.Tanh: "tanh", nn.ReLU: "relu"}
    if type(layer) not in known:
        raise _unknown(layer)
    return known[type(layer)]


def _linear(layer: nn.Module) -> tuple[np.ndarray, np.ndarray]:
    """The weights and the biases of a layer."""
    if not isinstance(layer, nn.Linear) or type(layer) is not nn.Linear:
        raise _unknown(layer)
    return _numbers(layer.weight), np.zeros(layer.out_features) if layer.bias is None else _numbers(layer.bias)


def _unknown(layer: nn.Module) -> InvalidInput:
    return InvalidInput(
        f"The policy's layers must be Linear, with Tanh or ReLU between them, not a {type(layer).__name__} there."
    )


def _numbers(parameter: torch.Tensor) -> np.ndarray:
    found: np.ndarray = parameter.detach().cpu().double().numpy().copy()
    if not np.isfinite(found).all():
        raise InvalidInput("The model's weights must be finite numbers, and some are not: its training diverged.")
    return found


def _actions(model: BaseAlgorithm) -> tuple[PolicyOutput, np.ndarray | None]:
    space = model.action_space
    if isinstance(space, gymnasium.spaces.Discrete) and space.start == 0:
        return ("values" if isinstance(model.policy, DQNPolicy) else "log-probabilities"), None
    if isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1:
        return ("squashed" if model.policy.squash_output else "clipped"), np.array([space.low, space.high], np.float64)
    raise InvalidInput(f"The policy's actions must be Discrete from 0, or a Box of one axis, not {space}.")


def _normalisation(model: BaseAlgorithm) -> tuple[np.ndarray | None, float | None]:
    """Returns what the model's VecNormalize, if it has one, does to observations: the policy sees no others."""
    normalise = model.get_vec_normalize_env()
    if normalise is None or not normalise.norm_obs:
        return None, None
    statistics = normalise.obs_rms
    assert isinstance(statistics, RunningMeanStd)  # a dictionary of them is for observations of several parts
    deviation = np.sqrt(np.asarray(statistics.var, np.float64) + normalise.epsilon)
    return np.stack([np.asarray(statistics.mean, np.float64), deviation]), min(float(normalise.clip_obs), LARGEST)


def _check(policy: PrivatePolicy, model: BaseAlgorithm) -> None:
    """Refuses a policy that does not act as the model does: something in the model was not read."""
    low, high = np.array(policy.box.low), np.array(policy.box.high)
    middle, radius = (0.0, 1.0) if policy.normal is None else (policy.normal[0], 3 * policy.normal[1])
    nearest = np.clip(middle, low, high)  # where numbers are small, so that rounding hides nothing
    unit = np.random.default_rng(0).uniform(-1, 1, size=(256, len(low)))
    points = np.clip(nearest + radius * unit, low, high).astype(np.float32)
    normalise = model.get_vec_normalize_env()
    expected, _ = model.predict(points if normalise is None else normalise.normalize_obs(points), deterministic=True)
    inside = np.clip(points.astype(np.float64), low, high)  # float32 may lie a hair outside
    found = policy(inside[:, 0] if len(low) == 1 else inside)
    if policy.choices is None:
        differ = np.abs(found - expected).max()
    else:  # where two actions are as good, either may be taken
        differ = (found.max(axis=1) - np.take_along_axis(found, expected[:, None], axis=1)[:, 0]).max()
    # Of float32's rounding, relative to the largest number in sight.
    if not differ <= 1e-5 * (1 + np.abs(inside).max()) * (1 + np.abs(found).max()):
        raise InvalidInput(
            "The policy that was read acts differently from the model, so something in the model was changed in a way "
            "that publish does not know: publish a model of stock parts."
        )


def _warn_if_elsewhere(model: BaseAlgorithm, certificate: Certificate) -> None:
    """Says so if the model's environment gives another reward or is another world, or if it cannot be asked."""
    own = certificate.to_dict() | {"assumptions": ()}  # of which an environment adds one
    env = model.get_env()
    found: list[object] = [None]
    doubt = (
        "The model's environment, which may be closed, does not say that it is one of trained_on, by PrivateReward or "
        "a private world's env"
    )
    if env is None:
        doubt = (
            "The model has no environment, as one that was loaded without env=..., so neither what it was trained on "
            "nor whether its observations were normalised can be checked"
        )
    else:
        with suppress(Exception):  # of whatever kind: it has no certificate, or was closed
            found = env.get_attr("certificate")
    if not all(isinstance(one, Certificate) and one.to_dict() | {"assumptions": ()} == own for one in found):
        warnings.warn(
            f"{doubt}: it is your word alone that the model was trained on that.", PrivacyWarning, stacklevel=4
        )
