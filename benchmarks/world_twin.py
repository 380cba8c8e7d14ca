"""A world without privacy: the same features and known parts, fitted by least squares and logistic regression."""

from itertools import combinations_with_replacement

import numpy as np

from benchmarks.systems import Array, Steps, System
from quietq.noise.box import Box
from quietq.noise.feature_maps import Polynomials
from quietq.privacy.certificate import Certificate
from quietq.released.private_model import PrivateModel
from quietq.released.private_world import PrivateWorld, WorldErrors
from quietq.released.publishable import Labels

NOTHING = Certificate(method="world/twin", standing="none")


def twin(steps: Steps) -> PrivateWorld:
    """The non-private twin of a private world: everybody's steps in one fit, each for the same."""
    system, unit = steps.system, steps.unit()
    spaces, model, there = system.spaces, system.model, steps.there
    states, actions, after = unit.states[there], unit.actions[there], unit.after[there]
    feature_map, moved = model.feature_map(spaces), model.learned(spaces.states)
    features = with_constant(feature_map(spaces.join(states, actions)))
    change = 2 * (after - states)[:, moved]
    gram = features.T @ features / len(features)
    weights = solve(gram, features.T @ change / len(features))
    left = change - features @ weights
    reward = ends = None
    if model.reward is None:
        reward = _reward(steps, states, actions, unit.rewards[there])
    if model.end is None and system.ends:
        features = all_terms(after.shape[1], 2)
        ends = linear_model(features, *logistic(with_constant(features(after)), steps.ended[there]))
    first = unit.states[:, 0]
    begin = first.mean(axis=0), np.atleast_2d(np.cov(first.T, bias=True))
    return world_of(system, weights, gram, left.T @ left / len(left), begin, reward, ends)


def world_of(
    system: System,
    weights: Array,
    gram: Array,
    residual: Array,
    first: tuple[Array, Array] | None,
    reward: PrivateModel | None,
    ends: PrivateModel | None,
) -> PrivateWorld:
    """A world of fits that no noise is known of; first states by mean and covariance, in the unit box."""
    spaces, model = system.spaces, system.model
    moved = model.learned(spaces.states)
    begin, spread = (None, None) if first is None else first
    return PrivateWorld(
        actions=spaces.actions,
        action_box=spaces.action_box,
        low=spaces.low,
        high=spaces.high,
        feature_map=model.feature_map(spaces),  # pyright: ignore[reportArgumentType]
        moved=moved,
        weights=weights,
        gram=gram,
        residual=residual,
        left=np.zeros_like(gram),
        right=np.eye(len(moved)),
        first=begin,
        spread=spread,
        reward=reward,
        ends=ends,
        rate=0.0,
        errors=WorldErrors(),
        box=spaces.box,
        certificate=NOTHING,
        known=model.known,
        circles=model.circles,
        model=model,
        labels=Labels(spaces.state_names, spaces.action_names),
    )


def _reward(steps: Steps, states: Array, actions: Array, rewards: Array) -> PrivateModel:
    spaces = steps.system.spaces
    points = states if not spaces.numbers else np.hstack([states, actions])
    features = all_terms(points.shape[1], 3 if points.shape[1] <= 5 else 2)
    phi, number = with_constant(features(points)), spaces.actions or 1
    columns = []
    for action in range(number):
        chosen = actions == action if number > 1 else np.ones(len(points), bool)
        columns.append(solve(phi[chosen].T @ phi[chosen], phi[chosen].T @ (rewards[chosen] - 0.5)))
    weights = np.stack(columns, axis=1)
    return linear_model(features, weights[0], weights[1:] if number > 1 else weights[1:, 0], (spaces.low, spaces.high))


def linear_model(
    features: Polynomials, offset: Array, weights: Array, ends: tuple[float, float] | tuple[None, None] = (None, None)
) -> PrivateModel:
    d = features.dimension
    knots = np.tile([0.0, 1.0], (d, 1))
    return PrivateModel(features, np.atleast_1d(offset), weights, knots, *ends, Box.of([(0.0, 1.0)] * d), NOTHING)


def logistic(phi: Array, labels: Array, ridge: float = 1.0, rounds: int = 30) -> tuple[Array, Array]:
    """Log-odds by Newton's steps, held together by a ridge of one row's weight: a constant, and the rest."""
    weights, wanted = np.zeros(phi.shape[1]), labels.astype(float)
    for _ in range(rounds):
        odds = 1 / (1 + np.exp(-np.clip(phi @ weights, -30, 30)))
        slope = phi.T @ (odds - wanted) + ridge * weights
        weights = weights - np.linalg.solve((phi.T * (odds * (1 - odds))) @ phi + ridge * np.eye(len(weights)), slope)
    return weights[:1], weights[1:]


def all_terms(dimension: int, degree: int) -> Polynomials:
    """All products of up to `degree` coordinates, without a constant."""
    chosen = [
        tuple((i, one.count(i)) for i in sorted(set(one)))
        for size in range(1, degree + 1)
        for one in combinations_with_replacement(range(dimension), size)
    ]
    return Polynomials(dimension, tuple(sorted(chosen, key=len)))


def with_constant(features: Array) -> Array:
    return np.concatenate([np.ones((*features.shape[:-1], 1)), features], axis=-1)


def solve(gram: Array, moment: Array) -> Array:
    """Least squares, with a ridge of a millionth of the mean eigenvalue."""
    return np.linalg.solve(gram + 1e-6 * np.trace(gram) / len(gram) * np.eye(len(gram)), moment)
