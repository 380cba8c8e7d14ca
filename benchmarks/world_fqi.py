"""Fitted Q iteration by noisy statistics, for one person replaced: no model, and nothing to plan in.

Products of features are released once, and in each iteration those of features with what they promise.
"""

import math

import numpy as np

from benchmarks.session_data import Array, Policy, Steps
from benchmarks.world_peers import BUDGET, Settings, shares_of, some_rows, symmetric, white_in_box
from benchmarks.world_twin import with_constant
from quietq.feedback.spaces import Spaces
from quietq.mechanisms.world_model import WorldModel
from quietq.noise.feature_maps import FeatureMap

ROWS, MOST_FEATURES = 32, 160
"""Of each person, at random; and of features."""


def fitted_q(steps: Steps, settings: Settings, seed: int) -> Policy:
    """Features are white in the box and held to a length, a person's statistics are means over their rows.

    Values lie in [0, 1], and their distances from 1/2 are fitted: another person moves those by half as much.
    """
    system, rng = steps.system, np.random.default_rng([seed, 7])
    some = some_rows(steps, ROWS, rng)
    unit, there, spaces, gamma = some.unit(), some.there, system.spaces, settings["discount"]
    terms = _products(spaces, settings["degree"])

    def features(states: Array, actions: Array) -> Array:
        return with_constant(terms(spaces.join(states, actions)))

    white = white_in_box(features, spaces)
    longest = settings["length"] * math.sqrt(1 + terms.rank)

    def phi(states: Array, actions: Array) -> Array:
        found = features(states, actions) @ white
        return found / np.maximum(np.linalg.norm(found, axis=-1, keepdims=True), longest)

    weights = shares_of(there)[there]
    design, people = phi(unit.states[there], unit.actions[there]), steps.people
    gram = (design.T * weights) @ design / people
    rounds = settings["rounds"]
    noise = math.sqrt(2) / (people * BUDGET.mu * math.sqrt(settings["gram"]))
    values, vectors = np.linalg.eigh(gram + symmetric(noise, len(gram), rng))
    inverse = (vectors / np.maximum(values, settings["ridge"] * noise * math.sqrt(2 * len(gram)))) @ vectors.T
    each = 1 / (people * BUDGET.mu * math.sqrt((1 - settings["gram"]) / rounds))
    choices, after, ended = _choices(steps), unit.after[there], some.ended[there]
    tried = choices if len(choices) <= 10 else choices[rng.permutation(len(choices))[:10]]
    later = [phi(after, np.broadcast_to(one, (len(after), *one.shape))) for one in tried]
    q, worth = np.zeros(len(gram)), np.full(len(after), 0.5)
    for _ in range(rounds):
        promised = np.clip((1 - gamma) * unit.rewards[there] + gamma * np.where(ended, _at_end(steps), worth), 0, 1)
        moment = (design.T * weights) @ (promised - 0.5) / people + each * rng.standard_normal(len(gram))
        q = inverse @ moment
        worth = np.clip(0.5 + np.max([one @ q for one in later], axis=0), 0, 1)

    def policy(states: Array) -> Array:
        box, acting = spaces.box, spaces.action_box
        place = np.clip((states - box.low) / np.array(box.width), 0.0, 1.0)
        scores = [phi(place, np.broadcast_to(one, (len(place), *one.shape))) @ q for one in choices]
        actions = choices[np.argmax(scores, axis=0)]
        return actions if acting is None else np.array(acting.low) + actions * np.array(acting.width)

    return policy


def _products(spaces: Spaces, degree: int) -> FeatureMap:
    """All products of up to so many coordinates, or of as many as give no more features than that."""
    while math.comb(spaces.dimension + degree, degree) > MOST_FEATURES:
        degree -= 1
    return WorldModel(degree=degree).feature_map(spaces)


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
