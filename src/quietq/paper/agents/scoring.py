"""How good released policies are under the true reward: NOT private, for the operator only."""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from quietq.paper.agents.environments import Environment, rows_of
from quietq.privacy import InvalidInput
from quietq.privacy.checks import count
from quietq.progress import progress_bar
from quietq.worlds import WALK, World, mean_return, normalise, policy_return, rewards_at, score

CELLS = 2048
IN_WORLDS = 2000  # episodes by default: all at once, in less than a second
IN_ENVIRONMENTS = 20  # episodes by default: one step after the other, some thousands of them a second
LONGEST = 100_000  # steps of an episode, after which it is taken for endless


class NotPrivate(NamedTuple):
    """Returns and scores under the true reward, one a run. They look at it: never publish them beside a release."""

    returns: list[float]
    scores: list[float] | None
    """On the walk 0 is the worst and 1 the best policy; elsewhere 0 is random and 1 the best known; None if unknown."""


def evaluate(
    world: World | Environment, reward: object, q_values: Callable[[np.ndarray, int], np.ndarray], members: int,
    episodes: int | None, seed: int, progress: bool | None = None,
) -> NotPrivate:  # fmt: skip
    if reward is not None and not callable(reward):
        raise InvalidInput(
            "reward must be a function of many states at once, or None for the environment's own, not "
            f"{type(reward).__name__}."
        )
    played = (IN_WORLDS if isinstance(world, World) else IN_ENVIRONMENTS) if episodes is None else episodes
    count("episodes", played)
    policies = [lambda states, i=i: np.asarray(q_values(states, i).argmax(axis=-1)) for i in range(members)]
    if not isinstance(world, World):
        with progress_bar(sys.stderr.isatty() if progress is None else progress) as shown:
            task = shown.add_task("Evaluating", total=members * played)
            tell = lambda ended: shown.advance(task, ended)  # noqa: E731
            return NotPrivate([_play(world, reward, choose, played, seed, tell) for choose in policies], None)
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


def _play(
    env: Environment, reward: Any, choose: Callable[[np.ndarray], np.ndarray], episodes: int, seed: int,
    tell: Callable[[int], None],
) -> float:  # fmt: skip
    """The mean return of so many episodes; of a vector environment's copies, each plays its share.

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
        tell(int(counted.sum()))
        finished += over
        totals[over] = lengths[over] = 0
        if lengths.max() > LONGEST:
            raise InvalidInput(
                f"An episode is not over after {LONGEST:,} steps: give the agent's environment an end, e.g. "
                "gymnasium.wrappers.TimeLimit(env, 500)."
            )
    return float(gained / episodes)
