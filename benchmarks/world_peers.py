"""Other ways from people's sessions to a policy, at epsilon = 1, delta = 1e-5, for the same unit: one person replaced.

Each takes steps in the unit box, with the features and the known parts that quietq is given, and settings that were
chosen on the development systems (`world_peer_study.py`). None is a library's own: a library's accounting of a person
who is added or removed would allow them half the noise, or 1/sqrt(2) of it for matrices.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import quietq as qq
from benchmarks.planners import Released, plan
from benchmarks.search import Settings
from benchmarks.session_data import Array, Policy, Rng, Steps
from benchmarks.world_twin import all_terms, linear_model, quadratic, twin, with_constant, world_of
from quietq.feedback.spaces import Spaces
from quietq.released.private_world import PrivateWorld

BUDGET = qq.Budget(1, 1e-5)
Features = Callable[[Array, Array], Array]
"""Of states and actions in the unit box."""


def quietq(steps: Steps, settings: Settings, seed: int) -> Policy:
    return plan(Released(private_world(steps, seed), settings["halt"]), steps.system, seed)


@lru_cache(maxsize=2)
def private_world(steps: Steps, seed: int, budget: qq.Budget = BUDGET) -> PrivateWorld:
    return qq.privatise(steps.read(), budget, world=steps.system.model, simulate=seed)


def non_private(steps: Steps, settings: Settings, seed: int) -> Policy:
    return plan(Released(twin(steps), settings["halt"]), steps.system, seed)


def one_shot(steps: Steps, settings: Settings, seed: int) -> Policy:
    """All second moments at once, each person's over its Frobenius norm, and ridge regressions from them."""
    world = one_shot_world(steps, settings, seed)
    return plan(Released(world, settings["halt"], settings["ensemble"]), steps.system, seed)


def one_shot_world(steps: Steps, settings: Settings, seed: int, mu: float = BUDGET.mu) -> PrivateWorld:
    """With `white`, features are first made white for uniform points of the box, which is public."""
    system, unit, rng = steps.system, steps.unit(), np.random.default_rng([seed, 6])
    spaces, model, there = system.spaces, system.model, steps.there.astype(float)
    rest = (1 - settings["dynamics"]) / 3
    shares = {"dynamics": settings["dynamics"], "reward": rest, "end": rest, "start": rest}
    shares = {name: share for name, share in shares.items() if name not in model.known}
    if not system.ends:
        shares.pop("end", None)
    of = {name: mu * math.sqrt(share / sum(shares.values())) for name, share in shares.items()}

    def fit(features: Features, states: Array, targets: Array, weights: Array, part: str) -> Regression:
        white = white_in_box(features, spaces) if settings["white"] else np.eye(features(*_anywhere(spaces)).shape[-1])
        found = regress(features(states, unit.actions) @ white, targets, weights, of[part], settings["ridge"], rng)
        back = np.linalg.inv(white)
        return found._replace(slopes=white @ found.slopes, gram=back.T @ found.gram @ back, error=white @ found.error)

    feature_map, moved = model.feature_map(spaces), model.learned(spaces.states)
    change, larger = 2 * (unit.after - unit.states)[..., moved], settings["larger"]
    found = fit(
        lambda states, actions: with_constant(feature_map(spaces.join(states, actions))),
        unit.states,
        larger * change,
        there,
        "dynamics",
    )
    reward = ends = begin = None
    if "reward" in of:
        number, features = spaces.actions or 1, all_terms(spaces.states + spaces.numbers, 2)

        def own(states: Array, actions: Array) -> Array:
            points = states if not spaces.numbers else np.concatenate([states, actions], axis=-1)
            acted = np.eye(number)[actions.astype(int)] if number > 1 else np.ones((*states.shape[:-1], 1))
            terms = with_constant(features(points))[..., None] * acted[..., None, :]
            return terms.reshape(*states.shape[:-1], -1)

        table = fit(own, unit.states, (unit.rewards - 0.5)[..., None], there, "reward").slopes.reshape(-1, number)
        weights = table[1:] if number > 1 else table[1:, 0]
        reward = linear_model(features, table[0], weights, (spaces.low, spaces.high))
    if "end" in of:
        features, ended = quadratic(spaces.states), steps.ended & steps.there
        balanced = shares_of(ended) + shares_of(~steps.ended & steps.there)
        labels = np.where(steps.ended, 1.0, -1.0)[..., None]
        table = fit(lambda states, _: with_constant(features(states)), unit.after, labels, balanced, "end").slopes[:, 0]
        ends = linear_model(features, settings["steep"] * table[:1], settings["steep"] * table[1:])
    if "start" in of:
        seen, each = 2 * unit.states[:, :1] - 1, np.ones((steps.people, 1))
        first = regress(each[..., None], seen, each, of["start"], settings["ridge"], rng)
        begin = (first.slopes[0] + 1) / 2, first.left / 4
    world = world_of(system, found.slopes / larger, found.gram, found.left / larger**2, begin, reward, ends)
    return replace(world, left=found.error, right=np.diag(found.lengths / larger))


def _anywhere(spaces: Spaces) -> tuple[Array, Array]:
    """Uniform states and actions of the unit box, always the same."""
    rng = np.random.default_rng(0)
    states = rng.random((4096, spaces.states))
    return states, rng.integers(0, spaces.actions, 4096) if spaces.actions else rng.random((4096, spaces.numbers))


def white_in_box(features: Features, spaces: Spaces) -> Array:
    """What makes features of uniform points white; a constant that comes first stays as it is."""
    phi = features(*_anywhere(spaces))
    gram = phi.T @ phi / len(phi)
    return np.linalg.inv(np.linalg.cholesky(gram + 1e-9 * np.trace(gram) / len(gram) * np.eye(len(gram)))).T


def some_rows(steps: Steps, number: int, rng: Rng) -> Steps:
    """As many steps of each person, drawn from theirs; who has fewer has some that do not count."""
    order = np.argsort(np.where(steps.there, rng.random(steps.there.shape), 2.0), axis=1)[:, :number]

    def of(values: Array) -> Array:
        return np.take_along_axis(values, order[..., None] if values.ndim == 3 else order, axis=1)

    return Steps(
        steps.system,
        of(steps.states),
        of(steps.actions),
        of(steps.after),
        of(steps.rewards),
        of(steps.ended),
        of(steps.there),
    )


def shares_of(chosen: Array) -> Array:
    """Of each person's steps that count, as shares of 1."""
    return chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1)


class Regression(NamedTuple):
    slopes: Array
    gram: Array
    """Mean products of features, of which the first is 1."""
    left: Array
    """Mean products of what is left of the targets."""
    error: Array
    lengths: Array
    """error @ normals * lengths is about as far off as noise has moved slopes, to the first order."""


def regress(phi: Array, targets: Array, weights: Array, mu: float, ridge: float, rng: Rng) -> Regression:
    """By one noisy look."""
    size = phi.shape[-1]
    moments, noise = noisy_moments(np.concatenate([phi, targets], axis=-1), weights, mu, rng)
    a, b, c = moments[:size, :size], moments[:size, size:], moments[size:, size:]
    values, vectors = np.linalg.eigh(a)
    least = ridge * noise * math.sqrt(2 * size)
    values = np.maximum(values, least)
    inverse = (vectors / values) @ vectors.T
    slopes = inverse @ b
    lengths = np.sqrt(1 + (slopes**2).sum(axis=0))
    gram = (vectors * values) @ vectors.T
    left = c - b.T @ slopes - slopes.T @ b + slopes.T @ gram @ slopes
    values, vectors = np.linalg.eigh(left)
    left = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return Regression(slopes, gram / gram[0, 0], left / gram[0, 0], noise / math.sqrt(2) * inverse, lengths)


def noisy_moments(rows: Array, weights: Array, mu: float, rng: Rng) -> tuple[Array, float]:
    """The mean of everybody's sum of z z^T over its own norm: replacing one moves it by at most sqrt(2)/N."""
    total, people, size = 0.0, len(rows), rows.shape[-1]
    for block in np.array_split(np.arange(people), max(1, rows.size // 2**22)):
        own = np.matmul((rows[block] * weights[block][..., None]).transpose(0, 2, 1), rows[block])
        length = np.sqrt((own**2).sum(axis=(1, 2), keepdims=True))
        total = total + (own / np.where(length > 0, length, 1)).sum(axis=0)
    noise = math.sqrt(2) / (people * mu)
    return total / people + symmetric(noise, size, rng), noise


def symmetric(noise: float, size: int, rng: Rng) -> Array:
    """Beside the diagonal 1/sqrt(2) of it is enough: lengths are Frobenius norms."""
    normal = noise * rng.standard_normal((size, size))
    return (normal + normal.T) / 2
