"""Other ways from people's sessions to a policy, at epsilon = 1, delta = 1e-5, for the same unit: one person replaced.

Each takes steps in the unit box, with the features and the known parts that quietq is given, and settings that were
chosen on the development systems (`world_grids.py`). None is a library's own: a library's accounting of a person who is
added or removed would allow them half the noise, or 1/sqrt(2) of it for matrices.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np

import quietq as qq
from benchmarks.planners import Released, in_own_units, plan
from benchmarks.session_data import Array, Policy, Rng, Steps
from benchmarks.world_twin import all_terms, linear_model, quadratic, twin, with_constant, world_of
from quietq.mechanisms.private_world import PrivateWorld

BUDGET = qq.Budget(1, 1e-5)
Settings = dict[str, Any]


def quietq(steps: Steps, settings: Settings, seed: int) -> Policy:
    return plan(Released(private_world(steps, seed), settings["halt"]), steps.system, seed)


@lru_cache(maxsize=2)
def private_world(steps: Steps, seed: int, budget: qq.Budget = BUDGET) -> PrivateWorld:
    return qq.privatise(steps.read(), budget, world=steps.system.model, simulate=seed)


def non_private(steps: Steps, settings: Settings, seed: int) -> Policy:
    return plan(Released(twin(steps), settings["halt"]), steps.system, seed)


def one_shot(steps: Steps, settings: Settings, seed: int) -> Policy:
    """All second moments at once, each person's over its Frobenius norm, and ridge regressions from them."""
    return plan(Released(one_shot_world(steps, settings, seed), settings["halt"]), steps.system, seed)


def one_shot_world(steps: Steps, settings: Settings, seed: int, mu: float = BUDGET.mu) -> PrivateWorld:
    system, unit, rng = steps.system, steps.unit(), np.random.default_rng([seed, 6])
    spaces, model, there = system.spaces, system.model, steps.there.astype(float)
    shares = {"dynamics": 0.7, "reward": 0.1, "end": 0.1, "start": 0.1}
    shares = {name: share for name, share in shares.items() if name not in model.known}
    if not system.ends:
        shares.pop("end", None)
    of = {name: mu * math.sqrt(share / sum(shares.values())) for name, share in shares.items()}

    def fit(phi: Array, targets: Array, weights: Array, part: str) -> tuple[Array, Array, Array]:
        return regress(phi, targets, weights, of[part], settings["ridge"], rng)

    feature_map, moved = model.feature_map(spaces), model.learned(spaces.states)
    phi = with_constant(feature_map(spaces.join(unit.states, unit.actions)))
    change, larger = 2 * (unit.after - unit.states)[..., moved], settings["larger"]
    found, gram, left = fit(phi, larger * change, there, "dynamics")
    reward = ends = begin = None
    if "reward" in of:
        points = unit.states if not spaces.numbers else np.concatenate([unit.states, unit.actions], axis=-1)
        number, features = spaces.actions or 1, all_terms(points.shape[-1], 2)
        acted = np.eye(number)[unit.actions.astype(int)] if number > 1 else np.ones((*steps.there.shape, 1))
        own = (with_constant(features(points))[..., None] * acted[..., None, :]).reshape(*steps.there.shape, -1)
        table = fit(own, (unit.rewards - 0.5)[..., None], there, "reward")[0].reshape(-1, number)
        weights = table[1:] if number > 1 else table[1:, 0]
        reward = linear_model(features, table[0], weights, (spaces.low, spaces.high))
    if "end" in of:
        features, ended = quadratic(spaces.states), steps.ended & steps.there
        balanced = _shares(ended) + _shares(~steps.ended & steps.there)
        labels = np.where(steps.ended, 1.0, -1.0)[..., None]
        table = 10 * fit(with_constant(features(unit.after)), labels, balanced, "end")[0][:, 0]
        ends = linear_model(features, table[:1], table[1:])
    if "start" in of:
        seen, each = 2 * unit.states[:, :1] - 1, np.ones((steps.people, 1))
        middle, _, spread = fit(each[..., None], seen, each, "start")
        begin = (middle[0] + 1) / 2, spread / 4
    return world_of(system, found / larger, gram, left / larger**2, begin, reward, ends)


def _shares(chosen: Array) -> Array:
    return chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1)


def regress(
    phi: Array, targets: Array, weights: Array, mu: float, ridge: float, rng: Rng
) -> tuple[Array, Array, Array]:
    """Weights, mean products of features of which the first is 1, and what is left, by one noisy look."""
    size = phi.shape[-1]
    moments, noise = noisy_moments(np.concatenate([phi, targets], axis=-1), weights, mu, rng)
    a, b, c = moments[:size, :size], moments[:size, size:], moments[size:, size:]
    values, vectors = np.linalg.eigh(a)
    least = ridge * noise * math.sqrt(2 * size)
    values = np.maximum(values, least)
    slopes = (vectors / values) @ vectors.T @ b
    gram = (vectors * values) @ vectors.T
    left = c - b.T @ slopes - slopes.T @ b + slopes.T @ gram @ slopes
    values, vectors = np.linalg.eigh(left)
    left = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return slopes, gram / gram[0, 0], left / gram[0, 0]


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


def fitted_q(steps: Steps, settings: Settings, seed: int) -> Policy:
    """Fitted Q iteration: products of features once, and of features with what they promise in each iteration.

    Features are held to a length, a person's statistics are means over their rows, and values lie in [0, 1].
    """
    system, unit, rng = steps.system, steps.unit(), np.random.default_rng([seed, 7])
    spaces, there, gamma = system.spaces, steps.there, settings["discount"]
    features = all_terms(spaces.dimension, settings["degree"] if spaces.dimension <= 8 else 2)
    longest = settings["length"] * math.sqrt(1 + features.rank)

    def phi(states: Array, actions: Array) -> Array:
        found = with_constant(features(spaces.join(states, actions)))
        return found / np.maximum(np.linalg.norm(found, axis=-1, keepdims=True), longest)

    weights = _shares(there)[there]
    design, people = phi(unit.states[there], unit.actions[there]), steps.people
    gram = (design.T * weights) @ design / people
    of_gram, rounds = BUDGET.mu * math.sqrt(settings["gram"]), settings["rounds"]
    noise = math.sqrt(2) / (people * of_gram)
    values, vectors = np.linalg.eigh(gram + symmetric(noise, len(gram), rng))
    inverse = (vectors / np.maximum(values, settings["ridge"] * noise * math.sqrt(2 * len(gram)))) @ vectors.T
    each = 2 / (people * BUDGET.mu * math.sqrt((1 - settings["gram"]) / rounds))
    choices, after, ended = _choices(steps), unit.after[there], steps.ended[there]
    tried = choices if len(choices) <= 10 else choices[rng.permutation(len(choices))[:10]]
    q, worth = np.zeros(len(gram)), np.zeros(len(after))
    for _ in range(rounds):
        promised = np.clip((1 - gamma) * unit.rewards[there] + gamma * np.where(ended, _at_end(steps), worth), 0, 1)
        moment = (design.T * weights) @ promised / people + each * rng.standard_normal(len(gram))
        q = inverse @ moment
        worth = np.clip(_best(phi, after, tried, q)[0], 0, 1)
    return in_own_units(spaces, lambda states: choices[_best(phi, states, choices, q)[1]])


def _choices(steps: Steps) -> Array:
    """Actions among which the best is sought."""
    system = steps.system
    if system.actions is not None:
        return np.arange(system.actions)
    if system.items is not None:
        assert system.spaces.action_box is not None
        return (system.items - system.spaces.action_box.low) / np.array(system.spaces.action_box.width)
    return np.linspace(0, 1, 7)[:, None]


def _at_end(steps: Steps) -> float:
    """Nothing more is gained after an end, in units in which the least reward for ever is 0 and the most is 1."""
    low, high = steps.system.low, steps.system.high
    return float(np.clip(-low / (high - low), 0, 1))


def _best(phi: Any, states: Array, choices: Array, q: Array) -> tuple[Array, Array]:
    values = np.stack(
        [phi(states, np.broadcast_to(one, (len(states), *one.shape))) @ q for one in choices], axis=1
    )  # fmt: skip
    return values.max(axis=1), values.argmax(axis=1)
