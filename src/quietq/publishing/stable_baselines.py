"""A model of Stable-Baselines3 as a policy that may leave: its numbers, and the certificate of its reward or world.

It is read without torch or Stable-Baselines3 being imported: whoever has a model has both. Policies, layers and spaces
come from closed lists, because whatever else a model computes would be lost; and what was read must act as the model
does before anything is written.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np

from quietq.noise.box import Box, Domain
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput, PrivacyWarning
from quietq.publishing.trained_on import certificate_of, with_checks
from quietq.released.private_network import LARGEST, LEAK, TRAINED, Activation, PolicyOutput, PrivatePolicy
from quietq.worlds.plan_check import CheckedPlan

NO_BOUND = 1e10
"""Observations that may be larger count as unbounded: no environment means it."""
_POINTS = 256  # observations at which the policy is held against the model
_TOLERANCE = 1e-5  # of float32's rounding, relative to the largest number in sight
_SUPPORTED = "publish takes the MlpPolicy of PPO, A2C, DQN, SAC, TD3 and DDPG"
_LIBRARY = "stable_baselines3"
_ACTORS: dict[str, Callable[[Any], tuple[Any, list[Any]]]] = {
    "common.policies.ActorCriticPolicy": lambda it: (
        it.pi_features_extractor,
        [*_exactly(it.mlp_extractor, "MlpExtractor").policy_net, it.action_net],
    ),
    "dqn.policies.DQNPolicy": lambda it: (it.q_net.features_extractor, [*it.q_net.q_net]),
    "sac.policies.SACPolicy": lambda it: (it.actor.features_extractor, [*it.actor.latent_pi, it.actor.mu]),
    "td3.policies.TD3Policy": lambda it: (it.actor.features_extractor, [*it.actor.mu][:-1]),  # its Tanh squashes
}
"""By its class, which network a policy acts by: what features it takes, and its layers."""
_ACTIVATIONS: dict[str, tuple[Activation, dict[str, float]]] = {
    "Tanh": ("tanh", {}), "ReLU": ("relu", {}), "ELU": ("elu", {"alpha": 1.0}),
    "LeakyReLU": ("leaky-relu", {"negative_slope": LEAK}),
}  # fmt: skip


def policy_of(
    model: Any, trained_on: object, box: Domain | None = None, checks: Sequence[CheckedPlan] = ()
) -> PrivatePolicy:
    """The policy of a model that was trained on this private reward or world, checked to act as the model does."""
    own = certificate_of(trained_on)
    certificate = with_checks(own, checks, trained_on).with_assumption(TRAINED)
    observations, name = model.observation_space, _name(model.policy)
    if name not in _ACTORS:
        raise InvalidInput(f"{_SUPPORTED}, not {type(model.policy).__name__}: train it with 'MlpPolicy'.")
    if not isinstance(observations, gymnasium.spaces.Box) or len(observations.shape) != 1:
        raise InvalidInput(f"The policy's observations must be a Box of one axis, not {observations}.")
    extractor, layers = _ACTORS[name](model.policy)
    _exactly(extractor, "FlattenExtractor")
    activation, weights, biases = _network(layers)
    output, action_range = _actions(model, name)
    normal, clip = _normalisation(model)
    policy = PrivatePolicy(
        activation, output, weights, biases, _box(observations, box), certificate, action_range, normal, clip
    )
    _check(policy, model)
    _warn_if_elsewhere(model, own)
    return policy


def _name(thing: object) -> str:
    """Where the library defines its class; nothing for a class from elsewhere."""
    kind = type(thing)
    inside = kind.__module__.startswith(f"{_LIBRARY}.")
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix(f"{_LIBRARY}.") if inside else ""


def _exactly(part: Any, name: str) -> Any:
    if _name(part) != f"common.torch_layers.{name}":
        raise InvalidInput(f"{_SUPPORTED}, with the library's {name}, not with {type(part).__name__}.")
    return part


def _network(layers: Sequence[Any]) -> tuple[Activation, tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Linear layers, and the one function between them."""
    found: set[Activation] = set()
    for layer in layers[1::2]:
        name, settings = _ACTIVATIONS.get(_torch(layer), ("", {}))
        if not name or any(getattr(layer, key) != value for key, value in settings.items()):
            raise _unknown(layer)
        found.add(name)
    if len(found) > 1:
        raise InvalidInput(f"The policy's layers must have one activation, not {' and '.join(sorted(found))}.")
    linear = layers[::2]
    for layer in (*linear, layers[-1]):
        if _torch(layer) != "Linear":
            raise _unknown(layer)
    weights = tuple(_numbers(layer.weight) for layer in linear)
    biases = tuple(np.zeros(len(layer.weight)) if layer.bias is None else _numbers(layer.bias) for layer in linear)
    return found.pop() if found else "tanh", weights, biases


def _torch(layer: object) -> str:
    return type(layer).__name__ if type(layer).__module__.startswith("torch.nn.modules.") else ""


def _unknown(layer: object) -> InvalidInput:
    known = ", ".join(_ACTIVATIONS)
    return InvalidInput(
        f"The policy's layers must be Linear, with one of {known} between them, not a {type(layer).__name__} there."
    )


def _numbers(parameter: Any) -> np.ndarray:
    found: np.ndarray = parameter.detach().cpu().double().numpy().copy()
    if not np.isfinite(found).all():
        raise InvalidInput("The model's weights must be finite numbers, and some are not: its training diverged.")
    return found


def _actions(model: Any, name: str) -> tuple[PolicyOutput, np.ndarray | None]:
    space = model.action_space
    if isinstance(space, gymnasium.spaces.Discrete) and space.start == 0:
        return ("values" if name.startswith("dqn") else "log-probabilities"), None
    if isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1:
        return ("squashed" if model.policy.squash_output else "clipped"), np.array([space.low, space.high], np.float64)
    raise InvalidInput(f"The policy's actions must be Discrete from 0, or a Box of one axis, not {space}.")


def _normalisation(model: Any) -> tuple[np.ndarray | None, float | None]:
    """What the model's VecNormalize, if it has one, does to observations: the policy sees no others."""
    normalise = model.get_vec_normalize_env()
    if normalise is None or not normalise.norm_obs:
        return None, None
    statistics = normalise.obs_rms
    deviation = np.sqrt(np.asarray(statistics.var, np.float64) + normalise.epsilon)
    return np.stack([np.asarray(statistics.mean, np.float64), deviation]), min(float(normalise.clip_obs), LARGEST)


def _box(space: gymnasium.spaces.Box, given: Domain | None) -> Box:
    dimension = space.shape[0]
    if given is not None:
        box = Box.of(given)
        if box.dimension != dimension:
            raise InvalidInput(f"box must have a pair (low, high) for each of {dimension} coordinates, not {box}.")
        return box
    sides = [(float(low), float(high)) for low, high in zip(space.low, space.high, strict=True)]
    without = [str(i) for i, (low, high) in enumerate(sides) if max(-low, high) > NO_BOUND or not low < high]
    if without:
        raise InvalidInput(
            f"The observations have no bounds, or no width, in coordinate {' and '.join(without)}: give `box`, a pair "
            f"(low, high) for each of {dimension} coordinates, for the observations that the policy may be asked about."
        )
    return Box.of(sides)


def _check(policy: PrivatePolicy, model: Any) -> None:
    """Refuses a policy that does not act as the model does: something in the model was not read."""
    low, high = np.array(policy.box.low), np.array(policy.box.high)
    middle, radius = (0.0, 1.0) if policy.normal is None else (policy.normal[0], 3 * policy.normal[1])
    nearest = np.clip(middle, low, high)  # where numbers are small, so that rounding hides nothing
    unit = np.random.default_rng(0).uniform(-1, 1, size=(_POINTS, len(low)))
    points = np.clip(nearest + radius * unit, low, high).astype(np.float32)
    normalise = model.get_vec_normalize_env()
    expected, _ = model.predict(points if normalise is None else normalise.normalize_obs(points), deterministic=True)
    inside = np.clip(points.astype(np.float64), low, high)  # float32 may lie a hair outside
    found = policy(inside[:, 0] if len(low) == 1 else inside)
    if policy.choices is None:
        differ = np.abs(found - expected).max()
    else:  # where two actions are as good, either may be taken
        differ = (found.max(axis=1) - np.take_along_axis(found, expected[:, None], axis=1)[:, 0]).max()
    if not differ <= _TOLERANCE * (1 + np.abs(inside).max()) * (1 + np.abs(found).max()):
        raise InvalidInput(
            "The policy that was read acts differently from the model, so something in the model was changed in a way "
            "that publish does not know: publish a model of stock parts."
        )


def _warn_if_elsewhere(model: Any, certificate: Certificate) -> None:
    """Says so if the model's environment gives another reward or is another world, or if it cannot be asked."""
    env = model.get_env()
    doubt = ""
    if env is None:
        doubt = (
            "The model has no environment, as one that was loaded without env=..., so neither what it was trained on "
            "nor whether its observations were normalised can be checked"
        )
    else:
        try:
            found = env.get_attr("certificate")
        except AttributeError:
            found = [None]
        except Exception:  # of whatever kind
            found = []
            doubt = "The model's environment, which may be closed, cannot be asked what the model was trained on"
        if any(not isinstance(one, Certificate) or _promise(one) != _promise(certificate) for one in found):
            doubt = "The model's environment is not one of trained_on, by PrivateReward or a private world's env"
    if doubt:
        warnings.warn(
            f"{doubt}: it is your word alone that the model was trained on that.", PrivacyWarning, stacklevel=4
        )


def _promise(certificate: Certificate) -> dict[str, Any]:
    """A certificate without its assumptions, of which an environment adds one."""
    return certificate.to_dict() | {"assumptions": ()}
