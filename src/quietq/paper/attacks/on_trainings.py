"""The audit of a method that is trained: thousands of complete runs under r and r', a score, and what it tells.

All runs are one compiled program. Each batch is half r and half r', with keys and noise of its own, all from one
seed: simulation, on which no release rests.
"""

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from quietq.audit.bounds import MOST_RUNS
from quietq.audit.distinguisher import LEARNED_SHARE, Seen, learn
from quietq.audit.draws import Progress
from quietq.audit.finding import Attack, Finding, Promise, count_errors
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.release import Mechanism, simulate
from quietq.noise import Box, SeededEntropy
from quietq.paper import Published
from quietq.paper.agents import InLoopMethod, Method, trainer
from quietq.paper.agents.jax_world import JaxReward, as_jax, stack
from quietq.paper.agents.method import EnvironmentSpaces, Released, values_of_runs
from quietq.paper.agents.trainer import spaces_of
from quietq.paper.attacks.pairs import Pair, neighbours
from quietq.privacy import InvalidInput, Relation, RkhsBall, SupBall
from quietq.privacy.checks import count, one_of
from quietq.worlds import World


def pair_reward(pair: Pair, side: int) -> JaxReward:
    """r (side 0) or r' (side 1) for compiled code; which of them is a number, so that one program runs both."""
    return JaxReward(_of_pair, pair, (jnp.asarray(side, jnp.float32),))


def _of_pair(state: Array, pair: Pair, side: Array) -> Array:
    return pair.world.reward(state, jnp) + side * pair.moved(state, jnp)


BATCH = 64  # runs side by side, half of them under r'
Sight = Literal["final", "policy", "every"]  # what the adversary sees of a training
MOST_STATES = 100_000


@dataclass(frozen=True)
class View:
    """`final`: the values of all actions, released at the end; `policy`: only which action is best; `every`: the values
    at `moments` moments, of which the end is the last. Each at `queries` states a coordinate, equally spaced.
    """

    kind: Sight = "final"
    queries: int = 65
    moments: int = 10

    def __post_init__(self) -> None:
        one_of("view", self.kind, get_args(Sight))
        count("queries", self.queries, 1, 10_000)
        count("moments", self.moments, 1, 1000)

    def check(self, box: Box, steps: int) -> None:
        if self.looks > steps:
            raise InvalidInput(f"moments must be at most the number of steps, {steps}, not {self.moments}.")
        if self.queries**box.dimension * self.looks > MOST_STATES:
            raise InvalidInput(
                f"queries must be fewer: {self.queries} a coordinate, {box.dimension} coordinate(s) and {self.looks} "
                f"look(s) are more than {MOST_STATES} states."
            )

    @property
    def looks(self) -> int:
        return self.moments if self.kind == "every" else 1

    def states(self, box: Box) -> Float[np.ndarray, "points d"]:
        sides = [np.linspace(low, high, self.queries) for low, high in zip(box.low, box.high, strict=True)]
        return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, box.dimension)

    def seen(self, method: Method, released: Released, box: Box) -> Float[np.ndarray, "runs numbers"]:
        """Returns what is seen of each run's release, a row a run."""
        values = np.asarray(values_of_runs(method, released, jnp.asarray(self.states(box), jnp.float32)))
        if self.kind == "policy":
            values = np.eye(values.shape[-1])[values.argmax(axis=-1)]  # the first of those that are equal, as agents do
        # What is not finite counts as 0: a score stays a number, whatever training came to.
        return np.where(np.isfinite(values), values, 0.0).reshape(len(values), -1).astype(np.float32)


@dataclass(frozen=True)
class Trainings:
    """What is trained, and what of it is seen."""

    method: Method
    pair: Pair
    view: View
    steps: int = 5000
    seed: int = 0
    private: Mechanism | None = None  # by which the reward is made private, for methods that learn from one that is
    public_walk: bool = False
    """Whether the adversary knows the randomness of the walk and of the learner: then it is the same in all runs, and
    only the noise differs. Certificates hold against them too, for states are public."""

    def describe(self) -> dict[str, object]:
        """Returns all that the outcome depends on, in JSON."""
        kind = type(self.method)  # a subclass may go by the same name
        further = {name: repr(getattr(self.method, name, None)) for name in ("relation", "budget")}
        made = self.private
        settings = self.method.settings() | further | {"kind": f"{kind.__module__}.{kind.__qualname__}"}
        return {
            "settings": settings,
            "pair": repr(self.pair),
            "view": repr(self.view),
            "steps": self.steps,
            "seed": self.seed,
            "batch": BATCH,
            "private": made and f"{made.name} {made.expected_error!r} {made.relation!r} {made.budget!r}",
            "public_walk": self.public_walk,
        }

    def run(self, runs: int, progress: Callable[[int, int], None] | None = None) -> Seen:
        """Returns what is observed of `runs` a world; `progress` hears how many batches of how many are there."""
        batches, tell = -(-2 * runs // BATCH), progress or (lambda done, of: None)
        found = [self._batch(0)]  # alone: threads that meet would compile the same program twice
        tell(1, batches)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for batch in pool.map(self._batch, range(1, batches)):
                found.append(batch)
                tell(len(found), batches)
        both = np.stack(found)  # batch, world, run, number
        flat = both.transpose(1, 0, 2, 3).reshape(2, -1, both.shape[-1])[:, :runs]
        return Seen(flat[0], flat[1])

    def _batch(self, number: int) -> Float[np.ndarray, "2 runs numbers"]:
        spaces, core = trainer.spaces_of(self.pair.world), self.method.core()
        drawn = [self.method.draw(spaces, self.steps, SeededEntropy(self._stream(number, run))) for run in range(BATCH)]
        noise = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *drawn)
        rewards = stack([self._reward(run // (BATCH // 2), self._stream(number, run)) for run in range(BATCH)])
        keys = jax.random.split(self._key(0 if self.public_walk else number), BATCH)
        keys = keys[jnp.zeros(BATCH, int)] if self.public_walk else keys
        runs = trainer.Runs(keys, rewards, noise)
        with jax.default_matmul_precision("highest"):
            seen = self._looks(core, runs)
        return seen.reshape(2, BATCH // 2, -1)

    def _reward(self, side: int, stream: int) -> JaxReward:
        """r or r', as it is or in a simulated release."""
        if self.private is None:
            return pair_reward(self.pair, side)
        feedback = OwnFunction(self.pair.second if side else self.pair.first, self.private.relation)
        return as_jax(simulate(self.private, feedback, stream))

    def _looks(self, core: Method, runs: trainer.Runs) -> Float[np.ndarray, "runs numbers"]:
        """Trains to the end, and looks as often as the view says."""
        world, box = self.pair.world, self.pair.world.box
        carry, rows, first = trainer.begin(core, world, runs), [], 0
        for look in range(self.view.looks):
            last = self.steps * (look + 1) // self.view.looks
            carry, _ = trainer.advance(core, world, runs, carry, first, last - first)
            first = last
            released = trainer.release(core, runs, carry, last=last == self.steps)
            if released is not None:
                rows.append(self.view.seen(core, released, box))
        return np.concatenate(rows, axis=1)

    def _key(self, number: int) -> PRNGKeyArray:
        high, low = divmod(self._stream(number, BATCH), 2**32)
        return jax.random.fold_in(jax.random.key(high), low)

    def _stream(self, number: int, run: int) -> int:
        """A seed for each run's noise, far from those of other runs."""
        text = json.dumps([self.describe(), number, run]).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())


ScoreKind = Literal["mean", "learned"]


def audit_training(
    method: Method,
    world: World,
    runs: int = 1000,
    *,
    move: str = "shift",
    view: View | None = None,
    score: ScoreKind | None = None,
    steps: int = 5000,
    seed: int = 0,
    confidence: float = 0.95,
    private: Mechanism | None = None,
    public_walk: bool | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Audits a method: trains under a reward and under its neighbour, and distinguishes the two as well as it can.

    With a `public_walk`, only the noise differs between runs, which is what certificates are about and so the default
    for methods that have one; otherwise the adversary does not know how the walk went.

    Args:
        method: The method.
        world: The world.
        runs: Trainings under each of the two rewards.
        move: How the neighbouring reward differs.
        view: What the adversary observes.
        score: "mean" of all observed values (the default for a shift), or "learned".
        steps: Steps of each training.
        seed: Makes the audit repeatable.
        confidence: Of the lower bounds.
        private: The mechanism that makes the reward private, for methods that learn from a private one.
        public_walk: Whether the adversary knows the walk.
        progress: Is called with how many of how many batches are done.

    """
    view = View() if view is None else view
    relation = relation_of(method) if private is None else private.relation
    pair = neighbours(world, relation, move)
    score = ("mean" if move == "shift" and view.kind != "policy" else "learned") if score is None else score
    one_of("score", score, get_args(ScoreKind))
    learned_on = round(LEARNED_SHARE * count("runs", runs, 40, MOST_RUNS))
    view.check(world.box, count("steps", steps))
    public_walk = not isinstance(method, Published) if public_walk is None else public_walk
    if private is None:
        method.check(spaces_of(world), steps)
        promise = _promise_of(method, spaces_of(world), steps)
    else:
        promise = Promise.of_mechanism(private)
    trainings = Trainings(method, pair, view, steps, count("seed", seed, 0), private, public_walk)
    seen = trainings.run(runs, progress)
    taught, judged = seen.split(learned_on)
    if score == "learned":
        weights, expected = learn(taught)
    else:
        weights = np.full(seen.first.shape[1], 1 / seen.first.shape[1])
        expected = taught.scored(weights).normal()
    thresholds = expected.thresholds(runs - learned_on, promise.delta, confidence)
    attack = Attack(method.name, world.name, str(relation), move, _in_words(view, seen, public_walk), score)
    return count_errors(judged.scored(weights), thresholds, attack, promise, confidence, learned_on)


def _promise_of(method: Method, spaces: EnvironmentSpaces, steps: int) -> Promise:
    """Returns what its budget promises, of methods that noise as they go: a copy that is broken has no certificate."""
    if not isinstance(method, InLoopMethod):
        return Promise.of(method.certificate(spaces, steps))
    _, budget = method.promised()
    return Promise("certified", budget.epsilon, budget.delta, budget.mu)


def relation_of(method: Method) -> Relation:
    """Returns what the method's promise is about: for the paper's, rewards that differ by at most 1."""
    if isinstance(method, Published):
        return SupBall(1.0)
    if isinstance(method, InLoopMethod):
        relation = method.promised()[0]
        # Their noise covers whatever moves no reward by more than the radius, and a norm's ball is part of that.
        return SupBall(method.radius) if isinstance(relation, RkhsBall) else relation
    raise InvalidInput(
        f"{method.name!r} makes no promise of its own that training could break: audit the private reward instead."
    )


def _in_words(view: View, seen: Seen, public_walk: bool) -> str:
    what = {"final": "released values", "policy": "released policy", "every": f"values at {view.moments} moments"}
    return f"{what[view.kind]}, {seen.first.shape[1]} numbers{', and the walk' if public_walk else ''}"
