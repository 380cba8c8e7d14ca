"""`rehearse`: what to expect of a release of sessions, from people who are simulated, before any is spent.

A draw makes people up, releases by simulation (`simulate=`), plans in the private world or clones, and scores the
policy in the simulator that the people came from. Nothing private is looked at, so it may be repeated, compared and
chosen by. It is as good as the simulator: people who behave otherwise need a rehearsal of their own.
"""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any

import gymnasium
import numpy as np
from scipy.stats import t

from quietq.feedback.sessions import Sessions
from quietq.mechanisms.candidates import privatise
from quietq.mechanisms.clone import clone
from quietq.noise import Box, Domain
from quietq.privacy import Budget, InvalidInput, PrivacyWarning
from quietq.privacy.checks import count, instance, real
from quietq.released.private_network import PrivatePolicy
from quietq.released.private_world import PrivateWorld
from quietq.released.publishable import Json
from quietq.released.world_model import WorldModel
from quietq.worlds.planning import plan_linear
from quietq.worlds.reader import observation_box

Behaviour = Callable[[np.ndarray, np.random.Generator], Any]
"""What a simulated person does: an action of the environment, for an observation and their own chance."""
WAYS: Mapping[str, WorldModel | None] = {"degree 1": WorldModel(), "degree 2": WorldModel(degree=2), "clone": None}
"""What is tried by default: a linear plan in a world of either degree, and a clone (None)."""
SCORED_EPISODES = 20
"""The number of episodes of the simulator that a policy is scored by."""


@dataclass(frozen=True, eq=False)
class MadeUpPeople:
    """People who act in a Gymnasium environment: their sessions, and what a policy is worth there."""

    env: gymnasium.Env[Any, Any]
    behaviour: Behaviour | None
    """None for actions at random."""
    box: Box
    rewards: tuple[float, float]
    steps: int
    """The most steps of an episode; everybody has one episode."""

    def __call__(self, people: int, seed: int) -> Sessions:
        """Returns the sessions of this number of people, the same for the same seed."""
        import polars as pl

        rng, space = np.random.default_rng(seed), self.env.action_space
        space.seed(seed)
        behaviour = self.behaviour or (lambda seen, rng: space.sample())
        rows = []
        for person in range(people):
            episode = self._episode(lambda seen: behaviour(seen, rng), int(rng.integers(2**31)))
            for number, step in enumerate(episode):
                rows.append((person, number, *np.concatenate([np.ravel(part).astype(float) for part in step])))
        before, after = ([f"{letter}{i}" for i in range(self.box.dimension)] for letter in "sn")
        acted = [f"a{i}" for i in range(int(np.prod(space.shape or ())))]
        frame = pl.DataFrame(rows, ["person", "step", *before, *acted, *after, "reward", "end"], orient="row")
        frame = frame.with_columns(pl.col("end").cast(pl.Int8))
        actions: Any = None
        if isinstance(space, gymnasium.spaces.Discrete):
            frame, actions = frame.with_columns(pl.col("a0").cast(pl.Int64)), list(range(int(space.n)))
        elif isinstance(space, gymnasium.spaces.Box):
            actions = list(zip(space.low.ravel().tolist(), space.high.ravel().tolist(), strict=True))
        return Sessions.read(
            frame,
            step="step",
            state=before,
            next_state=after,
            action="a0" if isinstance(space, gymnasium.spaces.Discrete) else acted,
            actions=actions,
            reward="reward",
            low=self.rewards[0],
            high=self.rewards[1],
            end="end",
            box=list(zip(self.box.low, self.box.high, strict=True)),
            people=people,
        )

    def score(self, policy: PrivatePolicy, seed: int) -> float:
        """The mean return of a policy in the simulator, by some episodes."""

        def act(seen: np.ndarray) -> Any:
            inside = np.clip(np.asarray(seen, np.float64), self.box.low, self.box.high)[None]
            action = policy.predict(inside)[0][0]
            return int(action) if isinstance(self.env.action_space, gymnasium.spaces.Discrete) else np.float32(action)

        seeds = np.random.default_rng((seed, 1)).integers(2**31, size=SCORED_EPISODES)
        return fmean(sum(float(reward) for *_, reward, _ in self._episode(act, int(one))) for one in seeds)

    def _episode(self, act: Callable[[np.ndarray], Any], seed: int) -> list[tuple[Any, ...]]:
        """The steps of an episode: observation, action, next observation, reward and whether it ended."""
        seen, _ = self.env.reset(seed=seed)
        found = []
        for _ in range(self.steps):
            action = act(seen)
            after, reward, ended, cut, _ = self.env.step(action)
            found.append((seen, action, after, reward, ended))
            seen = after
            if ended or cut:
                break
        return found


@dataclass(frozen=True)
class ExpectedScore:
    """What one way reaches with a number of people, draw by draw."""

    way: str
    people: int
    scores: tuple[float, ...]

    @property
    def score(self) -> float:
        return fmean(self.scores)

    @property
    def spread(self) -> float:
        """The standard deviation between releases; 0 if there is one draw only."""
        return stdev(self.scores) if len(self.scores) > 1 else 0.0

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where 95 of 100 further releases are expected, by Student's t; None if there is one draw only."""
        number = len(self.scores)
        if number == 1:
            return None
        half = float(t.ppf(0.975, number - 1)) * self.spread * sqrt(1 + 1 / number)
        return self.score - half, self.score + half


@dataclass(frozen=True)
class Rehearsal:
    """What to expect of a release, for each way and each number of people that was tried."""

    expected: tuple[ExpectedScore, ...]
    budget: Budget
    people: int
    wanted: float | None
    """The score from which on a policy works, if that was said."""

    @property
    def best(self) -> ExpectedScore:
        """The way with the highest expected score, for the number of people that one has."""
        return max((one for one in self.expected if one.people == self.people), key=lambda one: one.score)

    @property
    def needed(self) -> int | None:
        """The smallest number of people among those tried with which some way works; None if there is none."""
        works = [one.people for one in self.expected if self.wanted is not None and one.score >= self.wanted]
        return min(works, default=None)

    def to_dict(self) -> Json:
        each = [
            {
                "way": one.way,
                "people": one.people,
                "score": one.score,
                "spread": one.spread,
                "interval": one.interval,
                "scores": list(one.scores),
            }
            for one in self.expected
        ]
        asked = {"people": self.people, "wanted": self.wanted, **self.budget.to_dict()}
        return {**asked, "take": self.best.way, "needed": self.needed, "expected": each}

    def __str__(self) -> str:
        lines = [
            f"{one.people} people, {one.way}: expected score {one.score:.4g}, spread {one.spread:.2g}"
            for one in self.expected
        ]
        return "\n".join([*lines, f"Take {self.best.way} for {self.people} people."])


def rehearse(
    make_people: str | PrivateWorld | Callable[[int, int], Sessions],
    budget: Budget,
    *,
    people: int,
    wanted: float | None = None,
    score: Callable[[Any, int], float] | None = None,
    behaviour: Behaviour | None = None,
    box: Domain | None = None,
    rewards: tuple[float, float] | None = None,
    steps: int = 300,
    ways: Mapping[str, WorldModel | None] = WAYS,
    sizes: Sequence[int] | None = None,
    draws: int = 5,
    minutes: float = float("inf"),
    seed: int = 0,
    tell: Callable[[float], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Rehearsal:
    """Tells what to expect of a release of sessions, by releases of simulated people; nothing is spent.

    Args:
        make_people: Where people come from: a Gymnasium id, a private world, or a function of a number of people and a
            seed that gives Sessions; with a function, give `score` too.
        budget: The (epsilon, delta) that the release may cost.
        people: The number of people that one has.
        wanted: The score, a mean return, from which on a policy works.
        score: What a policy is worth, a function of it and a seed.
        behaviour: What people do, a function of an observation and a generator; by default actions at random.
        box: Where observations lie, a pair for each coordinate, if the environment does not say.
        rewards: The smallest and the largest reward of a step; needed for a Gymnasium id.
        steps: The most steps of an episode.
        ways: What is tried, by name: a model of a world to plan in, or None for a clone.
        sizes: The numbers of people that are tried besides; by default half and twice as many.
        draws: How many releases there are of each way and size.
        minutes: The time after which no further draw is begun; the first is always made.
        seed: Makes it repeatable.
        tell: Is called beforehand with about how many minutes it takes, by a draw of few people.
        progress: Is called with how many releases were made, and how many there are to be.

    """
    instance("budget", budget, Budget, "a Budget(epsilon, delta)")
    people, steps, draws = count("people", people, 2), count("steps", steps), count("draws", draws)
    makes = make_people
    if isinstance(makes, str | PrivateWorld):
        makes = _made_up(makes, behaviour, box, rewards, steps)
        score = makes.score
    if score is None:
        raise InvalidInput("make_people must be a Gymnasium id, a private world, or a function that comes with score=.")
    if wanted is not None:
        real("wanted", wanted)
    tried = sorted({people, *(sizes if sizes is not None else (people // 2, 2 * people))} - {0, 1})
    few, began = min(50, *tried), time.monotonic()
    for model in ways.values():
        _try(makes, score, budget, model, few, steps, seed)
    taken = time.monotonic() - began
    # Making people up and releasing takes about as long as there are people, and planning the same for all.
    ahead = draws * sum(max(1.0, size / few) for size in tried) * taken / 60
    if tell is not None:
        tell(min(ahead, minutes))
    found: dict[tuple[int, str], list[float]] = {(size, way): [] for size in tried for way in ways}
    done = 0
    for draw in range(draws):
        if draw and (time.monotonic() - began) * (draw + 1) / draw > 60 * minutes:
            break
        for size, way in found:
            found[size, way].append(_try(makes, score, budget, ways[way], size, steps, seed + draw + 1))
            done += 1
            if progress is not None:
                progress(done, draws * len(found))
    expected = tuple(ExpectedScore(way, size, tuple(scores)) for (size, way), scores in found.items())
    return Rehearsal(expected, budget, people, wanted)


def _made_up(
    source: str | PrivateWorld,
    behaviour: Behaviour | None,
    box: Domain | None,
    rewards: tuple[float, float] | None,
    steps: int,
) -> MadeUpPeople:
    """People who act in a Gymnasium environment of that id, or in a private world."""
    if isinstance(source, PrivateWorld):
        ends = source.spaces.low, source.spaces.high
        return MadeUpPeople(source.env(steps=steps), behaviour, source.box, ends, steps)
    if rewards is None:
        raise InvalidInput("rewards must be the smallest and the largest reward of a step, a pair (low, high).")
    env = gymnasium.make(source)
    return MadeUpPeople(env, behaviour, observation_box(env.observation_space, box), rewards, steps)


def _try(
    makes: Callable[[int, int], Sessions],
    score: Callable[[Any, int], float],
    budget: Budget,
    model: WorldModel | None,
    people: int,
    steps: int,
    seed: int,
) -> float:
    """One draw of one way: people, a release, a policy, and its score."""
    sessions = makes(people, seed)
    if sessions.people != people:
        raise InvalidInput(
            f"make_people must make as many people as it is asked for, {people}, not {sessions.people}: nothing is "
            "rehearsed on real people."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # nobody is there to protect
        warnings.simplefilter("ignore", UserWarning)
        if model is None:
            low, high = sessions.spaces.low, sessions.spaces.high
            ends = min(low * steps, low), max(high * steps, high)
            return score(clone(sessions, budget, returns=ends, simulate=seed), seed)
        world = privatise(sessions, budget, world=model, simulate=seed)
        return score(plan_linear(world, steps=steps, seed=seed), seed)
