"""The agent: one method in one world, with Stable-Baselines3's verbs.

What `predict`, `q_values` and `save` reveal comes from what was released, and is covered by its certificate.
What uses the true reward is under `not_private` and in `evaluate`: for the operator only. Of what the file of an
agent says of its training nothing is believed before it was checked.
"""

import math
import os
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv
from jaxtyping import Float, Int

from quietq.paper.agents import gymnasium_loop as loop, trainer
from quietq.paper.agents.gymnasium_loop import Environment, rows_of, spaces_of_env
from quietq.paper.agents.hyper_parameters import options_of
from quietq.paper.agents.in_loop_method import InLoopMethod, UnitNoise
from quietq.paper.agents.method import EnvironmentSpaces, Method, Released, values_of_runs
from quietq.paper.agents.places import find_place
from quietq.paper.agents.reward_learner import ReleasedValues, RewardLearner
from quietq.paper.agents.training import Training, episode_returns, programs_in_memory
from quietq.privacy import (
    Account,
    BudgetExhausted,
    Certificate,
    Code,
    InvalidInput,
    PrivacyWarning,
    SupBall,
)
from quietq.privacy.account import Issued
from quietq.privacy.checks import count, instance, shown
from quietq.privacy.norms import TRAINED_METHODS
from quietq.released.private_network import HowTrained, PrivateNetwork, observed
from quietq.released.publishable import UNNAMED, Labels
from quietq.released.release_file import open_release, write_release
from quietq.worlds import (
    WALK,
    WORLDS,
    World,
    mean_return,
    normalise,
    policy_return,
    rewards_at,
    score,
)

CELLS = 2048
LONGEST = 100_000  # steps of an episode, after which it is taken for endless


class NotPrivate(NamedTuple):
    """Returns and scores under the true reward, one a run. They look at it: never publish them beside a release."""

    returns: list[float]
    scores: list[float] | None
    """On the walk 0 is the worst and 1 the best policy; elsewhere 0 is random and 1 the best known; None if unknown."""


def evaluate(
    world: World | Environment,
    reward: object,
    q_values: Callable[[np.ndarray, int], np.ndarray],
    members: int,
    episodes: int | None,
    seed: int,
) -> NotPrivate:
    if reward is not None and not callable(reward):
        raise InvalidInput(
            "reward must be a function of many states at once, or None for the environment's own, not "
            f"{type(reward).__name__}."
        )
    # Worlds play all episodes at once, in less than a second; environments some thousands of steps a second.
    played = (2000 if isinstance(world, World) else 20) if episodes is None else episodes
    count("episodes", played)
    policies = [lambda states, i=i: np.asarray(q_values(states, i).argmax(axis=-1)) for i in range(members)]
    if not isinstance(world, World):
        return NotPrivate([_play(world, reward, choose, played, seed) for choose in policies], None)
    own: dict[str, Any] = {} if reward is None else {"reward": reward}
    if world == WALK:
        grid = np.linspace(0, 1, CELLS + 1)
        actions = [choose(grid[:, None]) for choose in policies]
        return NotPrivate(
            [policy_return(chosen, cells=CELLS, **own) for chosen in actions],
            [score(chosen, cells=CELLS, **own) for chosen in actions],
        )
    returns = [mean_return(world, choose, episodes=played, seed=seed, **own) for choose in policies]
    return NotPrivate(returns, None if reward is not None else [normalise(world, one) for one in returns])


def _play(env: Environment, reward: Any, choose: Callable[[np.ndarray], np.ndarray], episodes: int, seed: int) -> float:
    """Returns the mean return of this number of episodes; of a vector environment's copies, each plays its share.

    Taking those that end first instead would prefer short ones.
    """
    rows = rows_of(env, seed)
    observation = next(rows)
    copies = len(observation)
    share = (episodes + np.arange(copies)[::-1]) // copies
    totals, finished, lengths, gained = np.zeros(copies), np.zeros(copies, int), np.zeros(copies, int), 0.0
    while (finished < share).any():
        seen, observation, new = rows.send(choose(observation))
        states = seen.next_state.astype(np.float64)
        given = seen.reward if reward is None else rewards_at(states, reward)
        totals += np.where(new, given, 0.0)
        lengths += new
        over = (seen.terminated | seen.truncated) & new
        counted = over & (finished < share)
        gained += totals[counted].sum()
        finished += over
        totals[over] = lengths[over] = 0
        if lengths.max() > LONGEST:
            raise InvalidInput(
                f"An episode is not over after {LONGEST:,} steps: give the agent's environment an end, e.g. "
                "gymnasium.wrappers.TimeLimit(env, 500)."
            )
    return float(gained / episodes)


Place = str | World | gymnasium.Env | VectorEnv


class Agent(Issued):
    """Learns with a method in a world.

    Args:
        world: One of quietq's worlds (its name, its Gymnasium id or itself: compiled), or any Gymnasium environment or
            vector environment with a bounded Box of observations and Discrete actions.
        method: The method, e.g. `RewardNoise(private)`.
        seed: Makes training repeatable; noise that protects comes from the operating system whatever the seed.
        reward: Replaces the world's own reward.
        account: An `Accountant`, or a source's account in a `Ledger`, which is charged before the draw.

    >>> from quietq.paper.agents import NoNoise
    >>> agent = Agent("walk", NoNoise(widths=(8,)), seed=1).learn(200, seeds=2)
    >>> agent.q_values([[0.1], [0.9]]).shape, agent.certificate.standing
    ((2, 2), 'none')

    """

    def __init__(
        self,
        world: Place,
        method: Method,
        *,
        seed: int | None = None,
        reward: object = None,
        account: Account | None = None,
    ) -> None:
        instance("method", method, Method, "one of quietq's methods, e.g. NoNoise()")
        instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
        self.world = _find(world)
        self.method = method
        self.spaces = trainer.spaces_of(self.world) if isinstance(self.world, World) else spaces_of_env(self.world)
        self.seed = int.from_bytes(os.urandom(4)) if seed is None else count("seed", seed, 0)
        self._reward, self._account = reward, account
        self._spent, self._training = False, threading.Lock()
        self._released: Released = None
        self._draws = self._seeds = 1
        self.steps = self._promised = 0  # taken, and those that the certificate is for
        self._certificate: Certificate | None = None
        self._loaded_from: HowTrained | None = None
        self.not_private: dict[str, list[list[float]]] = {}
        """What training saw of the true reward: episode returns, one list a run. For the operator only."""

    def learn(
        self,
        steps: int,
        *,
        seeds: int = 1,
        simulate: int | None = None,
    ) -> "Agent":
        """Trains from the beginning.

        Args:
            steps: The number of steps of the world.
            seeds: The number of trainings side by side; a method that noises as it goes has one, because each would be
                a release.
            simulate: The number of simulated noise draws, for experiments: seeded, they are not private.

        """
        if not self._training.acquire(blocking=False):
            raise InvalidInput("This agent is being trained already: wait for it, or make another one.")
        try:
            training = self.check(steps, seeds=seeds, simulate=simulate)
            run = trainer.run if isinstance(self.world, World) else loop.run
            try:
                released, seen, self.steps = run(training)
            finally:  # what was drawn stays drawn, whatever happened then
                self._spent |= training.charged and training.releases
        finally:
            self._training.release()
        self._loaded_from = None
        self._released, self._certificate = released, training.certificate()
        self.issued(training.receipt)
        self._draws, self._seeds, self._promised = training.draws, training.seeds, training.steps
        returns = {"episode_returns": episode_returns(seen)}
        self.not_private = returns if self.method.uses_true_reward else {}
        return self

    def check(self, steps: int, *, seeds: int = 1, simulate: int | None = None) -> Training:
        """Refuses what `learn` would refuse, before anything is drawn, charged or spent."""
        if self._spent:
            raise BudgetExhausted("This agent's budget is spent: train another agent, under another budget.")
        return Training(
            world=self.world,
            spaces=self.spaces,
            method=self.method,
            reward=self._reward,
            seed=self.seed,
            account=self._account,
            steps=steps,
            seeds=seeds,
            simulate=simulate,
        )

    @property
    def certificate(self) -> Certificate:
        """What is promised of everything that this agent answers."""
        if self._certificate is None:
            return self.method.certificate(self.spaces, 1) if not self.method.spends else self._missing()
        return self._certificate

    @property
    def released(self) -> Released:
        """What was released: a pytree of arrays with a leading axis, one entry per run."""
        return self._missing() if self._released is None else self._released

    @property
    def spent(self) -> bool:
        """Whether noise that protects was drawn, and its budget with it, even if nothing was released then."""
        return self._spent

    @property
    def draws(self) -> int:
        return self._draws

    @property
    def members(self) -> int:
        return self._draws * self._seeds

    def q_values(self, observation: object, member: int | None = None) -> Float[np.ndarray, "... actions"]:
        """Returns the released values of all actions at one or many observations, shape (d,) or (points, d).

        Several seeds are averaged. Simulated draws are different releases: pick one.

        Args:
            observation: The observation, or one per row.
            member: The run, if it is to be one of several.

        """
        points = observed(observation, self.spaces.box)
        if member is None and self._draws > 1:
            raise InvalidInput(f"These are {self._draws} simulated releases: name the member, 0 to {self.members - 1}.")
        chosen = slice(None) if member is None else slice(self._member(member), member + 1)
        released = jax.tree.map(lambda leaf: leaf[chosen], self.released)
        asked = jnp.asarray(np.atleast_2d(points), jnp.float32)
        values = np.asarray(values_of_runs(self.method.core(), released, asked)).mean(axis=0)
        return values if points.ndim == 2 else values[0]

    def predict(
        self,
        observation: object,
        state: None = None,
        episode_start: None = None,
        deterministic: bool = True,
        member: int | None = None,
    ) -> tuple[Int[np.ndarray, "..."], None]:
        """Returns the best action by the released values, and None for the state, as Stable-Baselines3 does.

        Args:
            observation: The observation, or one per row.
            state: Not used.
            episode_start: Not used.
            deterministic: Not used: how an agent explores is not released.
            member: The run, if it is to be one of several.

        """
        return np.asarray(self.q_values(observation, member).argmax(axis=-1)), None

    def evaluate(self, reward: object = None, *, episodes: int | None = None, seed: int = 0) -> NotPrivate:
        """Computes the returns of the released policies under the *true* reward. NOT private: for the operator only.

        Args:
            reward: A function of many states at once, in the place of the reward that the agent was made with, or of
                the world's own.
            episodes: By default 2000 in quietq's worlds and 20 in environments; the walk is solved exactly.
            seed: Makes the episodes repeatable.

        """
        true = self._reward if reward is None else reward
        with programs_in_memory():  # the reward may be a function that compiles something
            return evaluate(self.world, true, self.q_values, self.members, episodes, seed)

    def released_values(self, member: int = 0) -> ReleasedValues:
        """Returns the values of one run, for methods that learn from a release: the certificate is this agent's."""
        one = jax.tree.map(lambda leaf: leaf[self._member(member)], self.released)
        return ReleasedValues(self.method.core(), one, self.spaces.box, self.certificate)

    def as_function(self) -> PrivateNetwork:
        """Returns what can be published: released values and public settings, without seeds, returns and steps."""
        network = self.method.to_private(self.released, self.spaces, self.certificate)
        training = self._loaded_from or HowTrained(
            world=self.world.name if isinstance(self.world, World) else None,
            episode=self.spaces.steps,
            steps=self._promised if self.method.spends else None,
            settings=self.method.settings(),
        )
        named = Labels(actions=self.world.action_names) if isinstance(self.world, World) else UNNAMED
        made = replace(network, draws=self._draws, training=training, labels=named)
        noised = TRAINED_METHODS.get(self.certificate.method)
        if self.method.spends or noised is None or noised.norm is None:
            return made.issued()
        # It learned from what another method released, which no file can show.
        return replace(made, certificate=made.certificate.with_assumption(Code.COVERED())).issued()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what was released, the certificate and the settings, and nothing else, as `quietq.publish` does.

        What is not certified is marked as NOT PRIVATE.

        Args:
            path: The file.

        """
        write_release(self.as_function(), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], world: Place | None = None) -> "Agent":
        """Reads an agent that was saved or published: it answers, and can be evaluated.

        Args:
            path: The file.
            world: The environment, if it is not known by name.

        """
        network = open_release(path).function
        if not isinstance(network, PrivateNetwork) or network.training is None:
            raise InvalidInput(f"{str(path)!r} is a release, but not of an agent that was saved.")
        check_form(network.training.settings, network)
        method = method_from(network.training.settings)
        if network.output != method.output:
            raise InvalidInput(f"The file's network gives {network.output}, which {method.name!r} does not release.")
        place = find_name(network.training.world) if world is None else world
        agent = cls(place, method, seed=0)
        if agent.spaces.box != network.box or agent.spaces.actions != network.outputs:
            raise InvalidInput(
                "The world has other observations or actions than the one that the agent was trained in."
            )
        check_promise(method, network)
        agent._released, agent._certificate = method.from_private(network, agent.spaces), network.certificate
        agent._draws, agent._seeds = network.draws, network.runs // network.draws
        agent._loaded_from, agent._spent = network.training, method.spends
        return agent

    def __repr__(self) -> str:
        trained = "not trained" if self._released is None else f"{self.members} run(s), {self.certificate.standing}"
        return f"Agent({_name(self.world)}, {self.method.name}, {trained})"

    def _member(self, member: int) -> int:
        if not 0 <= count("member", member, 0) < self.members:
            raise InvalidInput(f"member must lie between 0 and {self.members - 1}, not {member!r}.")
        return member

    def _missing(self) -> NoReturn:
        raise InvalidInput("This agent has not been trained: call learn first.")


def _find(world: Place) -> World | gymnasium.Env | VectorEnv:
    if isinstance(world, str):
        return find_place(world)
    instance("world", world, World | gymnasium.Env | VectorEnv, "a world's name, a World or a Gymnasium environment")
    return world


def _name(world: World | gymnasium.Env | VectorEnv) -> str:
    return world.name if isinstance(world, World) else str(world.spec.id if world.spec else world)


MOST_BYTES = 2**30  # of the noise of one run in float32
MOST_STEPS = 10**8


def find_name(world: str | None) -> str:
    """The world that a file names, if it is one of quietq's: a name of Gymnasium's could import any module."""
    if world is None:
        raise InvalidInput("This agent was trained in an environment without a name: give it as `world`.")
    if world not in WORLDS:
        raise InvalidInput(f"The file names a world that is not one of quietq's, {shown(world)}.")
    return world


def method_from(settings: Mapping[str, object]) -> Method:
    """A method of these hyper-parameters, without budget or data: enough to answer with."""
    name = settings.get("method")
    from quietq.paper.methods import METHODS  # which hold the agents that this module belongs to

    kind = METHODS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidInput(f"There is no method called {shown(name)}.")
    known = {name: settings[name] for name in options_of(kind) if name in settings}
    if unknown := sorted(set(settings) - set(known) - {"method", "private"}):
        raise InvalidInput(f"The file's settings name what {shown(name)} does not have: {shown(unknown[0])}.")
    try:
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in known.items()})
    except InvalidInput:
        raise
    except Exception as error:  # of whatever kind: a setting that nobody thought of may fail anywhere
        raise InvalidInput("The file's settings are not those of an agent that was saved.") from error


def check_form(settings: Mapping[str, object], network: PrivateNetwork) -> None:
    """Settings that speak of the network must be its own; before anything is built by them."""
    widths = [weights.shape[1] for weights in network.weights[:-1]]
    for name, found in (("network", network.form), ("widths", widths if network.form == "mlp" else None)):
        if network.form != "grid" and found is not None and settings.get(name, found) != found:
            raise InvalidInput(f"The setting {name!r} in the file is not that of its network.")


def check_promise(method: Method, network: PrivateNetwork) -> None:
    """A method's agents have the certificates that the method gives for these settings, and no other."""
    certificate, training = network.certificate, network.training
    assert training is not None
    if certificate.standing != "certified" or isinstance(method, RewardLearner):  # which has its source's
        return
    if not isinstance(method, InLoopMethod) or certificate.method != method.name:
        raise InvalidInput(f"A certificate of {shown(certificate.method)} does not belong to {method.name!r}.")
    steps = count("The file's steps", training.steps, most=MOST_STEPS)
    spaces = EnvironmentSpaces(
        network.box, network.outputs, count("The file's episode", training.episode, most=MOST_STEPS)
    )
    assert certificate.relation is not None
    assert certificate.budget is not None
    relation = certificate.relation
    ball = SupBall(relation.sup_radius, people=relation.people)  # all that these methods see of it
    again = replace(method, relation=ball, budget=certificate.budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        again.check(spaces, steps)
        if 4 * math.prod(again.noise_shape(spaces, steps)) > MOST_BYTES:
            raise InvalidInput("The file's steps and settings ask for more noise than a training can hold.")
        noise = again.draw(spaces, steps, UnitNoise())
    norm = again.norm(spaces, steps, noise)
    found = [(query.norm, query.sensitivity) for query in certificate.queries]
    if found != [(norm, norm.sensitivity(relation))]:
        raise InvalidInput("The file's certificate is not the one that its method gives for its settings and steps.")
    if not set(again.conditions(steps)) <= set(certificate.assumptions):
        raise InvalidInput("The file's certificate does not state what its method does with these settings.")
    if certificate.sigma is None or certificate.sigma < float(noise.scale) * float(noise.normals.min()):
        raise InvalidInput("The file's certificate states less noise than its method draws for its settings and steps.")
