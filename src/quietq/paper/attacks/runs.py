"""Thousands of complete trainings under r and under r', as one compiled program, kept on disk as they come.

Each batch is half r and half r', with keys and noise of its own, all from one seed: simulation, on which no release
rests. What is seen of a batch is written to a file before the next begins, so a stopped audit goes on where it was.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from quietq.audit.distinguisher import Seen
from quietq.audit.neighbours import MOVES, Pair
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.mechanism import Mechanism, Task
from quietq.mechanisms.privatise import choose
from quietq.mechanisms.release import simulate
from quietq.noise import Box, SeededEntropy
from quietq.paper.agents import Method, trainer
from quietq.paper.agents.jax_rewards import JaxReward, as_jax, stack
from quietq.paper.agents.method import values_of_runs
from quietq.paper.attacks.jax_pairs import PairReward
from quietq.privacy import Budget, InvalidInput, Relation
from quietq.privacy.checks import count, one_of
from quietq.released import PrivateFunction
from quietq.version import hash_of_code
from quietq.worlds import World

BATCH = 64  # runs side by side, half of them under r'


CODE = ("privacy", "noise", "feedback", "released", "mechanisms", "worlds", "audit/neighbours.py", "paper")
"""What results can depend on: rooms, and files."""
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

    def seen(self, method: Method, released: Any, box: Box) -> Float[np.ndarray, "runs numbers"]:
        """What is seen of each run's release, a row a run."""
        values = np.asarray(values_of_runs(method, released, jnp.asarray(self.states(box), jnp.float32)))
        if self.kind == "policy":
            values = np.eye(values.shape[-1])[values.argmax(axis=-1)]  # the first of those that are equal, as agents do
        # What is not finite counts as 0: a score stays a number, whatever training came to.
        return np.where(np.isfinite(values), values, 0.0).reshape(len(values), -1).astype(np.float32)


def cache_folder() -> Path | None:
    """The folder in which what audits and the paper's experiments found is kept, made if need be.

    It is QUIETQ_CACHE, or else the user's cache folder. None keeps nothing: QUIETQ_CACHE is empty, or the folder cannot
    be written to.
    """
    place = os.environ.get("QUIETQ_CACHE")
    if place == "":
        return None
    try:
        usual = os.environ.get("XDG_CACHE_HOME")
        folder = Path(place) if place else (Path(usual) if usual else Path.home() / ".cache") / "quietq"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # Path.home raises the second for a user whom the system does not know
        pass
    if place:
        warnings.warn(
            f"QUIETQ_CACHE must name a folder that can be written to, or be empty, not {place!r}: nothing is kept.",
            stacklevel=2,
        )
    return None


class Store:
    """A folder of numbered arrays, named by a hash of the configuration and of the code; None keeps nothing."""

    def __init__(self, folder: Path | None, configuration: object) -> None:
        text = json.dumps([configuration, hash_of_code(CODE)], sort_keys=True).encode()
        self.name = hashlib.sha256(text).hexdigest()[:24]
        self.folder = None if folder is None else folder / self.name
        self._configuration = configuration

    def get(self, number: int) -> np.ndarray | None:
        """The array of this number; None if it is not there, or was not written to its end."""
        if self.folder is None:
            return None
        try:
            return np.load(self.folder / f"{number:05}.npy", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None

    def put(self, number: int, array: np.ndarray) -> None:
        """Keeps it, whole or not at all."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        note = self.folder / "configuration.json"
        if not note.exists():
            note.write_text(json.dumps(self._configuration, indent=1, sort_keys=True))
        temporary = self.folder / f".{number:05}.{os.getpid()}.part"
        with temporary.open("wb") as file:
            np.save(file, array, allow_pickle=False)
        os.replace(temporary, self.folder / f"{number:05}.npy")


@dataclass(frozen=True)
class Privatising:
    """How a reward is made private before anything is trained on it."""

    relation: Relation
    budget: Budget
    noise: str = "path"
    pieces: int | None = None

    def mechanism(self, world: World) -> Mechanism:
        return choose(self.noise, Task(self.relation, self.budget, world.box, pieces=self.pieces))

    def __call__(self, pair: Pair, side: int, seed: int) -> PrivateFunction:
        """A simulated release of r (side 0) or of r' (side 1)."""
        feedback = OwnFunction(pair.second if side else pair.first, self.relation)
        return simulate(self.mechanism(pair.world), feedback, seed)


@dataclass(frozen=True)
class Trainings:
    """What is trained, and what of it is seen."""

    method: Method
    pair: Pair
    view: View
    steps: int = 5000
    seed: int = 0
    private: Privatising | None = None  # how the reward is made private, for methods that learn from one that is
    public_walk: bool = False
    """Whether the adversary knows the randomness of the walk and of the learner: then it is the same in all runs, and
    only the noise differs. Certificates hold against them too, for states are public."""

    @property
    def known(self) -> bool:
        """Whether all that the outcome depends on is in this package and in `describe`, so that it can be kept."""
        parts = (type(self.method), type(self.pair.world), MOVES[self.pair.move])
        ours = all(part.__module__.startswith("quietq.") for part in parts)
        return ours and isinstance(getattr(self.method, "optimiser", ""), str)

    def describe(self) -> dict[str, object]:
        """All that the outcome depends on, in JSON."""
        kind = type(self.method)  # a subclass may go by the same name
        further = {name: repr(getattr(self.method, name, None)) for name in ("relation", "budget")}
        settings = self.method.settings() | further | {"kind": f"{kind.__module__}.{kind.__qualname__}"}
        return {
            "settings": settings, "pair": repr(self.pair), "view": repr(self.view), "steps": self.steps,
            "seed": self.seed, "batch": BATCH, "private": repr(self.private),
            "public_walk": self.public_walk,
        }  # fmt: skip

    def kept(self, runs: int, folder: Path) -> bool:
        """Whether so many runs a world are in the audits' folder, so that they need not be trained."""
        store = Store(folder, self.describe())
        return all(store.get(number) is not None for number in range(-(-2 * runs // BATCH)))

    def run(self, runs: int, store: Store, progress: Callable[[int, int], None] | None = None) -> Seen:
        """What is seen of so many runs a world; `progress` hears how many batches of how many are there."""
        batches = -(-2 * runs // BATCH)
        found = []
        for number in range(batches):
            seen = store.get(number)
            if seen is None or seen.ndim != 3 or seen.shape[:2] != (2, BATCH // 2) or not np.isfinite(seen).all():
                seen = self._batch(number)
                store.put(number, seen)
            found.append(seen)
            if progress is not None:
                progress(number + 1, batches)
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
        return PairReward(self.pair, side) if self.private is None else as_jax(self.private(self.pair, side, stream))

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
