"""`published`: the paper's Algorithm 1, as it is listed (`text`) and as its authors ran it (`code`).

There is no theorem here: the paper's proof does not hold, and the program can be distinguished from its neighbour in a
few runs (docs/errata.md). The certificate says `claimed` and names the conditions that fail. Two presets, because the
paper and its program are different algorithms:

- `Published.text()`: greedy, no replay; after every 64 steps one gradient step of 3e-4; J noise paths in a row, shared
  by the values that act, learn and are bootstrapped from; it returns the value function *without* noise. What the
  listing garbles (the sign of the step, the index t, the noise in the target) is read as it must be meant.
- `Published.code()`: RMSprop, replay, a target network with noise of its own, epsilon-greedy, Huber's loss, noise
  redrawn every episode; or, with `resets`, J times in a run, each path for as many episodes.

`Baseline` is the learner into which figure 2 puts other authors' noise, for the paper's relation: rewards differ by at
most 1. What comes of it is a simulation for figure 2; any other noise is refused. How much noise is our reading. For
noise on rewards the appendix names only the composition theorem of Kairouz et al.; we take the formula that the paper
quotes from it in the proof of its Theorem 5 (section 3.2). For noise on gradients it names Theorem 1 of Abadi et al.,
with c2 = sqrt 2, and neither the sampling share, the clipping, nor the number of updates. What the noise is really
worth, for ideal Gaussian noise, is `mu`.

See docs/theory.md#shared-noise.
"""

# pyright: reportIncompatibleMethodOverride=false
# It is deep Q-learning with a state and a release of its own.

from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from quietq.noise import Entropy, SeededEntropy
from quietq.noise.grid_path import draw_grid
from quietq.paper.agents import replay as memory
from quietq.paper.agents.deep_q import DeepQ, DeepQState, chosen
from quietq.paper.agents.hyper_parameters import option
from quietq.paper.agents.method import EnvironmentSpaces, Moment, Noise, Transition, values_of_runs
from quietq.paper.agents.networks import LinearQ, Network, in_unit_box
from quietq.paper.theorem import PublishedTheorem, claimed_budget
from quietq.privacy import Budget, Certificate, Exponential, InvalidInput
from quietq.privacy.budget import epsilon_from_mu
from quietq.privacy.checks import count, not_negative, positive
from quietq.released.private_network import PrivateNetwork
from quietq.worlds.walk import WALK

Preset = Literal["code", "text"]
ACTING, BOOTSTRAP = 0, 1  # which of the two networks' noise


class PublishedState(NamedTuple):
    learner: DeepQState
    episode: Int[Array, ""]


class PublishedRelease(NamedTuple):
    network: Network
    path: Float[Array, "points actions"]


@dataclass(frozen=True, kw_only=True)
class Published(DeepQ):
    """The paper's algorithm; make it with `Published.code()` or `Published.text()` and change what you like."""

    name: ClassVar[str] = "published"
    spends: ClassVar[bool] = True
    preset: Preset = option("code", "The algorithm as its authors ran it (code) or as the paper lists it (text).")
    sigma: float = option(
        0.32, "Standard deviation of the noise; the paper claims epsilon 0.9 at 0.32, 0.45 at 0.74.", not_negative
    )
    beta: float = option(1.0, "How quickly the noise forgets along the state.", positive)
    resets: int | None = option(None, "J, noise paths in a run; by default one a round (text) or an episode (code).")
    levels: int = option(
        10, "Noise paths are drawn on 2^levels cells; states are snapped to them.", partial(count, most=26)
    )

    @classmethod
    def code(cls, sigma: float = 0.32, **changes: Any) -> "Published":
        """Returns the algorithm as its authors' program runs it.

        Args:
            sigma: The standard deviation of the noise.
            changes: Settings that differ from the program's.

        """
        settings: dict[str, Any] = dict(  # noqa: C408
            preset="code",
            sigma=sigma,
            beta=1.0,
            widths=(16, 16),
            gamma=0.999,
            optimiser="rmsprop-pytorch",
            learning_rate=1e-2,
            loss="huber",
            clamp=1.0,
            replay=10_000,
            batch=128,
            start=128,
            train_every=1,
            target_every=10,
            explore_first=0.9,
            explore_last=0.05,
            explore_decay=200.0,
            bootstrap_truncated=False,
        )
        return cls(**(settings | changes))

    @classmethod
    def text(cls, sigma: float = 0.32, **changes: Any) -> "Published":
        """Returns the algorithm as the paper lists it, with the parameters of its appendix E.3: beta is 1/v.

        Args:
            sigma: The standard deviation of the noise.
            changes: Settings that differ from the paper's.

        """
        beta = PublishedTheorem(Budget(0.9, 5e-5)).beta
        settings: dict[str, Any] = dict(  # noqa: C408
            preset="text",
            sigma=sigma,
            beta=beta,
            levels=14,
            widths=(16, 16),
            gamma=0.999,
            optimiser="sgd",
            learning_rate=3e-4,
            loss="squared",
            replay=64,
            batch=64,
            start=64,
            train_every=64,
            target_every=1,
            explore_first=0.0,
            explore_last=0.0,
            bootstrap_truncated=True,
        )
        return cls(**(settings | changes))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.preset not in ("code", "text"):
            raise InvalidInput(f"preset must be 'code' or 'text', not {self.preset!r}.")
        if self.resets is not None:
            count("resets", self.resets)

    def core(self) -> "Published":
        return replace(self, sigma=1.0, beta=1.0)

    def check(self, spaces: EnvironmentSpaces, steps: int) -> None:
        if spaces.box.dimension != 1:
            raise InvalidInput(
                f"published adds noise along one coordinate, but this world has {spaces.box.dimension}: use 'reward'."
            )
        if self.preset == "text" and steps < self.batch:
            raise InvalidInput(f"steps must be at least one batch of {self.batch}, not {steps}.")

    def paths(self, spaces: EnvironmentSpaces, steps: int) -> int:
        """Returns how many noise paths a run uses: J, but at most one an episode (code) or a round (text)."""
        most = self._stretches(spaces, steps)
        return most if self.resets is None else min(self.resets, most)

    def _stretches(self, spaces: EnvironmentSpaces, steps: int) -> int:
        """Episodes that are begun, or rounds that are whole: within one, the noise stays as it is."""
        return -(-steps // spaces.steps) if self.preset == "code" else steps // self.batch

    def draw(self, spaces: EnvironmentSpaces, steps: int, entropy: Entropy) -> Noise:
        """Draws all paths of one run, on the grid; which is used when goes by episode (code) or by step (text).

        They are in float32, because nothing is certified that hangs on them.
        """
        # Lines 14 to 18 add to a path point by point, as states occur. A path does not depend on what is asked of it,
        # so that here all of it is drawn beforehand, one for each action; the code's two networks have one each.
        networks = 2 if self.preset == "code" else 1
        outputs = (self.paths(spaces, steps), networks, spaces.actions)
        paths = draw_grid(Exponential(self.beta), self.levels, outputs, entropy)
        # Lines 7 to 9: J paths in a row, each for as many stretches as the others, the last one for what is left over.
        stretches = max(self._stretches(spaces, steps), 1)
        number = np.arange(stretches) if self.preset == "code" else np.arange(steps) // self.batch
        index = number * outputs[0] // stretches
        return (self.sigma * paths).astype(np.float32), np.minimum(index, outputs[0] - 1).astype(np.int32)

    def init(self, spaces: EnvironmentSpaces, key: PRNGKeyArray, copies: int = 1) -> PublishedState:
        return PublishedState(super().init(spaces, key, copies), jnp.zeros((), jnp.int32))

    def act(self, state: PublishedState, observation: Float[Array, "copies d"], now: Moment) -> Int[Array, " copies"]:
        # Line 12: a_t = argmax_a Q(s_t, a) + g_a(s_t). The code takes random actions too, the text has a share of 0.
        values = jax.vmap(state.learner.network)(observation)
        return self.explore(values + self._at(state, observation, now, ACTING), now)

    def update(self, state: PublishedState, seen: Transition, now: Moment) -> PublishedState:
        # Line 13: what was seen is kept, by the text until the end of its round, by the code to be replayed.
        learner, copies = state.learner, seen.action.shape[0]
        buffer = memory.store(learner.replay, seen, now.step, self.bootstrap_truncated)

        def gradient(network: Network) -> Network:
            """That of (Q(s, a) + g(s, a) - r - gamma max_b (Q(s', b) + g(s', b)))^2, in the first Q alone."""
            if self.preset == "code":
                batch = memory.sample(buffer, self.batch, copies, now)
            else:
                batch = memory.rows(buffer, jnp.arange(self.batch))  # the last round, each once
            # Line 19: y = r + gamma max_b (Q(s', b) + g_b(s')), where the listing has g_a, outside of the maximum. The
            # code has a target network here, whose noise is its own; in the text both are those that act.
            following = jax.vmap(learner.target)(batch.next_state)
            following += self._at(state, batch.next_state, now, BOOTSTRAP)
            goals = batch.reward + self.gamma * jnp.where(batch.terminated, 0.0, following.max(axis=1))
            # Lines 20 to 22: the mean of l = (Q(s, a) + g_a(s) - y)^2 / 2 over the batch; the code has Huber's loss. g
            # does not depend on the parameters, so it may as well be taken from the goal.
            added = chosen(self._at(state, batch.state, now, ACTING), batch.action)
            return eqx.filter_grad(self.batch_loss)(network, lax.stop_gradient(goals - added), batch)

        # Line 22 is run after each round by the text (`train_every` is the batch), after each step by the code.
        ready = ((now.step + 1) * copies >= self.start) & ((now.step + 1) % self.train_every == 0)
        episode = state.episode + (seen.terminated | seen.truncated).sum().astype(jnp.int32)
        # The text has no target network: its target is copied after every step. The code copies by episodes.
        due = jnp.array(True)
        if self.preset == "code":
            due = (episode % self.target_every == 0) & (episode > state.episode)
        return PublishedState(self.descend(learner, buffer, gradient, ready, due), episode)

    def finish(self, state: PublishedState, noise: Noise) -> PublishedRelease:
        """Returns the network with the last noise of its own; as listed (line 24), the text's without any."""
        return self._noised(state, noise, noise[0].shape[1] - 1)

    def current(self, state: PublishedState, noise: Noise) -> PublishedRelease:
        return self._noised(state, noise, _of_episode(state, noise) if self.preset == "code" else 0)

    def _noised(self, state: PublishedState, noise: Noise, index: Array | int) -> PublishedRelease:
        path = noise[0][:, index, ACTING, :]
        return PublishedRelease(state.learner.network, path if self.preset == "code" else jnp.zeros_like(path))

    def values(self, released: PublishedRelease, observation: Float[Array, " d"]) -> Float[Array, " actions"]:
        return released.network(observation) + released.path[self._cell(released.network, observation)]

    def to_private(
        self, released: PublishedRelease, spaces: EnvironmentSpaces, certificate: Certificate
    ) -> PrivateNetwork:
        """Returns the sum of network and noise, on the noise's grid; the two apart stay behind."""
        grid = spaces.box.from_unit(np.linspace(0, 1, 2**self.levels + 1))[:, None]
        table = np.asarray(values_of_runs(self.core(), released, jnp.float32(grid)), np.float64).swapaxes(1, 2).copy()
        return PrivateNetwork("grid", len(grid), (table,), (), self.output, spaces.box, certificate)

    def from_private(self, private: PrivateNetwork, spaces: EnvironmentSpaces) -> PublishedRelease:
        if (private.form, private.size) != ("grid", 2**self.levels + 1):
            raise InvalidInput("The file's arrays do not fit its settings.")
        path = jnp.asarray(private.weights[0].swapaxes(1, 2), jnp.float32)
        nothing = LinearQ(jnp.zeros((private.runs, spaces.actions, 2)), spaces.box, 2)
        return PublishedRelease(nothing, path)

    def certificate(self, spaces: EnvironmentSpaces, steps: int) -> Certificate:
        if self.sigma == 0:
            return Certificate(method=self.name, standing="none", remarks=("Without noise there is no claim.",))
        certificate = PublishedTheorem(claimed_budget(self.sigma)).certificate(self.sigma)
        if self.preset == "text":
            return certificate
        other = (
            "This is the authors' program, another algorithm than the theorem's: replay, RMSprop, a target network, "
            f"and noise with beta {self.beta:g}, {self._redrawn(spaces, steps)}."
        )
        return msgspec.structs.replace(certificate, remarks=(*certificate.remarks, other))

    def _redrawn(self, spaces: EnvironmentSpaces, steps: int) -> str:
        paths = self.paths(spaces, steps)
        if paths == self._stretches(spaces, steps):
            return "redrawn every episode"
        return "one path for the whole run" if paths == 1 else f"{paths} paths in the whole run"

    def _at(
        self, state: PublishedState, states: Float[Array, "batch d"], now: Moment, network: int
    ) -> Float[Array, "batch actions"]:
        paths, index = now.noise
        path = _of_episode(state, now.noise) if self.preset == "code" else index[now.step]
        cells = jax.vmap(lambda s: self._cell(state.learner.network, s))(states)
        return paths[cells, path, min(network, paths.shape[2] - 1), :]

    def _cell(self, network: Network, state: Float[Array, " d"]) -> Int[Array, ""]:
        return jnp.round(in_unit_box(network.box, state)[0] * 2**self.levels).astype(jnp.int32)


def _of_episode(state: PublishedState, noise: Noise) -> Int[Array, ""]:
    """Returns which path belongs to the episode; after the last one, which has none of its own, still the last path."""
    _, index = noise
    return jnp.asarray(index)[jnp.minimum(state.episode, index.shape[0] - 1)]


@dataclass(frozen=True, kw_only=True)
class Baseline(DeepQ):
    """The authors' learner, without their noise, and with another's."""

    spends: ClassVar[bool] = True
    epsilon: float = option(0.9, "The target, by our reading of the paper's computation.")
    delta: float = option(1e-4, "The target's delta.")

    @classmethod
    def of(cls, epsilon: float, delta: float, **changes: Any) -> Any:
        """Returns the authors' program's settings; its target network is copied every tenth episode."""
        theirs = Published.code(0.0)
        settings: dict[str, Any] = {field.name: getattr(theirs, field.name) for field in fields(DeepQ) if field.init}
        settings["target_every"] = theirs.target_every * WALK.steps
        return cls(**settings | {"epsilon": epsilon, "delta": delta, **changes})

    def core(self) -> "Baseline":
        """Without the target, which is in the noise."""
        return replace(self, epsilon=1.0, delta=0.5)

    @abstractmethod
    def sigma(self, steps: int) -> float:
        """The noise's standard deviation by our reading of the paper, in units of the sensitivity that it assumes."""

    @abstractmethod
    def mu(self, steps: int) -> float:
        """The Gaussian-DP parameter of that noise for the paper's relation, by the theorem at the top."""

    def worth(self, steps: int) -> float:
        return epsilon_from_mu(self.mu(steps), self.delta)

    def certificate(self, spaces: EnvironmentSpaces, steps: int) -> Certificate:
        """Standing `none`: nothing but simulated noise can be had."""
        return Certificate(method=self.name, standing="none", remarks=("A baseline for simulation only.",))


def simulated(entropy: Entropy, shape: tuple[int, ...], scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Simulated normals, and their scale; real noise is refused."""
    if not isinstance(entropy, SeededEntropy):
        raise InvalidInput("The paper's baselines are for simulation: use simulate, or a method of quietq's own.")
    return entropy.normals(shape).astype(np.float32), np.asarray(scale, np.float32)
