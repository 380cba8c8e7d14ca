"""Algorithm 1 as it is listed, line by line; the program that was run in its place; and what its rounds give away."""

import math
from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np

from quietq.noise import SeededEntropy
from quietq.paper import Published
from quietq.paper.agents.trainer import spaces_of
from quietq.paper.attacks.successive import SuccessiveSteps, rewards_from_successive
from quietq.paper.discrete import random_mdp
from quietq.paper.sampler import SortedPath
from quietq.privacy import Budget, Exponential
from quietq.privacy.budget import epsilon_from_mu
from quietq.worlds import WALK
from reproduction.claims.spaces import SCALES, forward, initial, network
from reproduction.claims.statement import Measurements, at_most, says
from reproduction.experiment import Decision, Row, decide

STEPS, BATCH, ROUNDS = 5000, 64, 78
RATE, GAMMA = 3e-4, 0.999
BUDGET = Budget(0.9, 1e-4)

RETURNED_NOISE = "largest noise in what is returned"


HIDDEN = says("Theorem 5, proof: rounds compose")(
    lambda found: decide(found.most("mu") <= found.one("mu", "claimed") * 1.001)
)
KEPT = says("Utility analysis: J = 1")(
    lambda found: decide(found.one("error of the rewards", "J = 1") > found.one("error of the rewards", "J = T/B"))
)
RETURNED = says("Algorithm 1, line 24: what is returned")(lambda found: decide(found.one(RETURNED_NOISE, "text") > 0))
ERRORS = says("Theorem 5, proof: TD errors")(at_most(2, "largest TD error"))
INDEX = says("Algorithm 1, line 11: the index")(
    lambda found: decide(
        found.one("steps numbered T or more") + found.one("whole numbers given twice or left out") == 0
    )
)
SIGN = says("Algorithm 1, line 22: the step")(lambda found: decide(found.one("change of the loss", "as printed") < 0))
TERMS = says("Algorithm 1, line 22: the sum")(
    lambda found: decide(found.one("terms") == BATCH and found.one("terms that do not exist yet") == 0)
)
VARIANCE = says("Algorithm 1, line 16: the variance")(
    lambda found: decide(all(abs(value - 1) < 0.1 for value in found.all("variance over sigma^2", "sigma d")))
)
RESET = says("Algorithm 1, line 12: noise at s_t")(at_most(0, "look-ups that find nothing"))


@says("Experiments: the algorithm that was run")
def PROGRAM(found: Measurements) -> Decision:
    differing = [row["setting"] for row in found.rows if row["quantity"] == "differs"]
    return decide(not differing, number=len(differing), differing="; ".join(differing))


def measure_rounds() -> list[Row]:
    return [*_differences(), *_successive(), *_noise_returned(), *_td_errors()]


def _differences() -> list[Row]:
    """A constant feature; rewards differ by 1 everywhere. Noise is for N single steps, as in the proof."""
    sigma = RATE * math.sqrt(ROUNDS) / BUDGET.mu
    rows = [HIDDEN.row("mu", BUDGET.mu, setting="claimed")]
    for words, pull in (("linear", 0.0), ("linear, with TD errors", 1.0)):
        theta, seen = np.zeros(2), []
        for _ in range(ROUNDS):
            theta = theta + RATE * (np.array([0.0, 1.0]) - pull * theta)  # never replaced by what was released
            seen.append(theta[1] - theta[0])
        mu = float(np.linalg.norm(seen)) / sigma
        rows.append(HIDDEN.row("mu", mu, BUDGET.mu, setting=words))
        rows.append(HIDDEN.row("epsilon", epsilon_from_mu(mu, BUDGET.delta), BUDGET.epsilon, setting=words))
    rows.append(HIDDEN.row("factor", rows[1]["measured"] / BUDGET.mu, 1))
    return [*rows, HIDDEN.row("sqrt((N + 1)(2N + 1)/6)", math.sqrt((ROUNDS + 1) * (2 * ROUNDS + 1) / 6))]


def _successive(sigma: float = 0.74, states: int = 20) -> list[Row]:
    """One round of the listing in a table with random moves, released before and after."""
    rng, world = np.random.default_rng(0), random_mdp(states, 2, GAMMA, 0)
    reward, q = rng.random(states), rng.normal(size=(states, 2))
    first, redrawn = sigma * rng.standard_normal((2, states, 2))
    state, action = rng.integers(states, size=BATCH), rng.integers(2, size=BATCH)
    after = np.array([rng.choice(states, p=world.transitions[s, a]) for s, a in zip(state, action, strict=True)])
    steps = SuccessiveSteps(state, action, after, np.zeros(BATCH, bool))
    before, new = q + first, q.copy()
    errors = reward[after] + GAMMA * before.max(axis=1)[after] - before[state, action]
    np.add.at(new, (state, action), RATE / BATCH * errors)
    rows = []
    for words, noise in (("J = 1", first), ("J = T/B", redrawn)):
        told = rewards_from_successive(before, new + noise, steps, RATE, GAMMA)
        wrong = np.nanmax(np.abs(told - reward))
        rows.append(KEPT.row("error of the rewards", wrong, setting=words))
    return [*rows, KEPT.row("rewards told", np.isfinite(told).sum())]


def _noise_returned() -> list[Row]:
    rows, spaces = [], spaces_of(WALK)
    for words, method in (("text", Published.text(levels=6)), ("code", Published.code(levels=6))):
        noise = jax.tree.map(jnp.asarray, method.draw(spaces, 200, SeededEntropy(0)))
        released = method.finish(method.init(spaces, jax.random.key(0)), noise)
        rows.append(RETURNED.row(RETURNED_NOISE, np.abs(released.path).max(), setting=words))
    return rows


def _td_errors() -> list[Row]:
    rng, rows = np.random.default_rng(0), []  # two networks stand for the two actions
    state, after = rng.random((2, 500, 1))
    for words, scale in SCALES.items():
        following = np.max([network(after, "relu", scale, seed) for seed in (0, 1)], axis=0)
        errors = 0.5 - np.abs(after[:, 0] - 0.5) + GAMMA * following - network(state, "relu", scale, 0)
        rows.append(ERRORS.row("largest TD error", np.abs(errors).max(), 2, setting=words))
    return rows


def measure(paths: int = 4000) -> list[Row]:
    return [*_indices(), *_steps(), *_sums(), *_variances(paths), *_look_ups(), *_settings()]


def _indices() -> list[Row]:
    j, b = np.meshgrid(np.arange(ROUNDS), np.arange(BATCH), indexing="ij")
    numbers, right = j * STEPS / BATCH + b, j * BATCH + b
    whole = np.floor(numbers).astype(int).ravel()
    astray = len(set(right.ravel()) - set(whole)) + len(whole) - len(set(whole))
    return [
        INDEX.row("steps in all", numbers.size),
        INDEX.row("steps numbered T or more", (numbers >= STEPS).sum(), 0),
        INDEX.row("whole numbers given twice or left out", astray, 0),
    ]


def _steps() -> list[Row]:
    """The loss before and after; targets are held fixed, as in Q-learning."""
    rng, theta = np.random.default_rng(0), initial(1, 1.0, 0)
    states, following = rng.random((BATCH, 1)), rng.random((BATCH, 1))
    targets = 0.5 - np.abs(following[:, 0] - 0.5) + GAMMA * forward(following, "relu", theta)

    def loss(parameters: np.ndarray) -> float:
        return float(((forward(states, "relu", parameters) - targets) ** 2).mean() / 2)

    moves = 1e-6 * np.eye(len(theta))
    gradient = np.array([(loss(theta + move) - loss(theta - move)) / 2e-6 for move in moves])
    return [
        SIGN.row("change of the loss", loss(theta + side * RATE * gradient) - loss(theta), setting=words)
        for words, side in (("as printed", 1), ("sign turned", -1))
    ]


def _sums() -> list[Row]:
    """Round j knows the losses of its own steps, and of those before it."""
    last = ROUNDS - 2
    summed = range(last * BATCH, (last + 1) * BATCH + 1)  # inclusive, as a sum's limits are
    unknown = set(summed) - set(range((last + 1) * BATCH))
    return [TERMS.row("terms", len(summed), BATCH), TERMS.row("terms that do not exist yet", len(unknown), 0)]


def _variances(paths: int) -> list[Row]:
    """The law that line 16 asks for, in the list whose other rules are right: noise of variance sigma d, not d."""
    unit = np.array([SortedPath(Exponential(1.0), entropy=SeededEntropy(i))([0.3, 0.6]) for i in range(paths)])
    return [
        VARIANCE.row("variance over sigma^2", float((size * unit).var()) / sigma**2, 1, setting=words, x=sigma)
        for sigma in (0.32, 3.0)
        for words, size in (("sigma d", math.sqrt(sigma)), ("sigma^2 d", sigma))
    ]


def _look_ups() -> list[Row]:
    """Lines 4 to 17 with states in place of noise: which states are in the list when line 12 asks for one?"""
    rng, missing = np.random.default_rng(1), 0
    state, known = float(rng.random()), set()
    for _ in range(ROUNDS):
        known.clear()  # line 8, with J = T/B
        for _ in range(BATCH):
            missing += state not in known  # line 12
            state = float(rng.random())  # line 13
            known.add(state)  # lines 15 to 17
    return [RESET.row("look-ups that find nothing", missing, 0), RESET.row("rounds", ROUNDS)]


def _settings() -> list[Row]:
    """What both presets say; noise anew every episode and for each network is in the code of one and not the other.

    Settings that follow from others, or that the listing has no use for, are left out: it never explores, so nothing
    decays.
    """
    code, text, rows = Published.code(), Published.text(), []
    for field in fields(Published):
        one, other = getattr(code, field.name), getattr(text, field.name)
        if one != other and field.name not in ("preset", "levels", "replay", "start", "explore_decay"):
            one, other = (f"{value:g}" if isinstance(value, float) else str(value) for value in (one, other))
            rows.append(PROGRAM.row("differs", 1, 0, setting=f"{field.name} {one}, not {other}"))
    for words, method in (("code", code), ("text", text)):
        steps = sum((t + 1) % method.train_every == 0 for t in range(method.start - 1, STEPS))
        rows.append(PROGRAM.row("gradient steps", steps, setting=words))
    return rows
