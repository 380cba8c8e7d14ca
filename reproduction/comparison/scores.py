"""Scores of one method in one world, by the number of people behind the reward, all with the same protection.

Gaussian noise, which all but one have, is certified for (0.9, 1e-4). K-norm noise is pure: at the same epsilon a
guesser would be right in 71 of 100 cases, and not in 56. So it has the epsilon at which they are right as often, 0.23.

The relation is the same for every method, "replace one of N people"; each method uses what it can of it. What is smooth
gets noise that knows the declared slope; methods that noise as they go know only how far one person moves one reward.

Score: 0 is the worst policy and 1 the best, in every world: exact on the walk, and elsewhere by the same 500 episodes
for the policy, the best known and the worst known. With those, what scores S for a preference scores 1 - S for its
opposite, to the last digit, so that the caps hold for exactly this number.

Caps: what no algorithm can do at this promise. In every world here the opposite preference, c - r, is one that people
could have: turn each person round, and they still keep to what is declared of them. Episodes have a fixed length, so a
policy's returns for the two add up to a constant and what scores S for the one scores 1 - S for the other. That is the
condition of `quietq.privacy.limits`. It caps the worse of the two scores; a method may be lucky with one of them. Steps
from r to its opposite: if all N people think alike, replacing them one by one takes N.
"""

from functools import cache
from typing import Any

import numpy as np

import quietq as qq
from quietq import paper, worlds
from quietq.paper.agents import NoNoise, RewardNoise
from quietq.paper.methods import METHODS
from quietq.paper.observed import observe
from quietq.privacy.budget import pure_epsilon
from quietq.privacy.limits import cap_any_dp, cap_gdp
from quietq.privacy.relations import LipschitzBall, SupBall
from quietq.worlds import WALK, World, find_world, mean_return
from quietq.worlds.planning import best_return
from reproduction.experiment import Row

EPSILON, DELTA = 0.9, 1e-4
"""The promise of the paper's comparison."""
EPISODES = 500
PIECES = {"walk": 5, "thermostat": 6}
"""Of k-norm and knots. With these no knot lies on the peak, which would flatter noise on knots."""
WIDTHS = {"walk": 0.5, "thermostat": 1.0, "navigation": 0.8}
"""How far apart two people's rewards can be at one state, by what each world declares of a person."""


def measure(
    world: str, method: str, noise: str | None, people: int | None, draws: int, steps: int = 5000, first: int = 0
) -> list[Row]:
    """So many simulated draws, numbered from the first on; `none` and `random` have no people."""
    private = people is not None
    promise = budget(noise) if private else None
    common = {
        "world": world,
        "method": method,
        "noise": noise,
        "standing": "certified" if private else "none",
        "people": people,
        "epsilon": None if promise is None else promise.epsilon,
        "delta": None if promise is None else promise.delta,
        "steps": steps,
    }
    there, numbers = find_world(world), range(first, first + draws)
    scores = [random_score(there)] if method == "random" else scores_of(there, method, noise, people, numbers, steps)
    return [{**common, "draw": draw, "score": score} for draw, score in zip(numbers, scores, strict=True)]


def scores_of(
    world: World, method: str, noise: str | None, people: int | None, numbers: range, steps: int
) -> list[float]:
    if people is None:
        agent = paper.Agent(world, NoNoise(), seed=numbers[0]).learn(steps, seeds=len(numbers))
    elif method == "reward":
        rewards = [private_reward(world, noise, people, number, steps) for number in numbers]
        agent = paper.Agent(world, RewardNoise(rewards), seed=numbers[0]).learn(steps)
    else:
        promise: dict[str, Any] = {"relation": bounded(world, people), "budget": budget()}
        chosen = METHODS[method](**promise)
        agent = paper.Agent(world, chosen, seed=numbers[0]).learn(steps, simulate=len(numbers))
    found = agent.evaluate(episodes=EPISODES)
    if world == WALK:
        assert found.scores is not None
        return [float(score) for score in found.scores]
    worst, best = ends(world)
    return [float(np.clip((one - worst) / (best - worst), 0.0, 1.0)) for one in found.returns]


def private_reward(world: World, noise: Any, people: int, draw: int, steps: int) -> Any:
    """Simulated; the draw of a number has the same normals for any number of people."""
    if noise == "observed":
        ball, high = SupBall(WIDTHS[world.name] / people, people), WIDTHS[world.name]
        return observe(world, ball, budget(), low=0.0, high=high, rewards=steps, simulate=draw, seed=draw)
    return qq.privatise(
        world.mean_reward(),
        budget(noise),
        simulate=draw,
        noise=noise,
        relation=world.relation(people),
        domain=world.box,
        pieces=None if noise == "path" else PIECES.get(world.name),
    )


def name_of(method: str, noise: str | None) -> str:
    """As tables and pictures have it.

    >>> name_of("reward", "path"), name_of("input", None)
    ('reward, path', 'input')
    """
    return method if noise is None else f"{method}, {noise}"


def budget(noise: str | None = None) -> qq.Budget:
    """Of Gaussian noise; and of K-norm noise, with which a guesser is right as often.

    >>> round(budget("k-norm").epsilon, 4), budget("k-norm").delta
    (0.2284, 0.0)
    """
    gaussian = qq.Budget(EPSILON, DELTA)
    return qq.Budget(pure_epsilon(gaussian.mu), 0.0) if noise == "k-norm" else gaussian


def bounded(world: World, people: int) -> LipschitzBall | SupBall:
    """Replace one of so many people, for methods that know only how far one reward moves.

    In one dimension it is the world's own relation. Elsewhere the world's own is about norms, and would make them pay
    for more than a person can do.

    >>> bounded(find_world("navigation"), 100).radius
    0.008
    """
    own = world.relation(people)
    return own if isinstance(own, LipschitzBall) else SupBall(WIDTHS[world.name] / people, people)


@cache
def ends(world: World) -> tuple[float, float]:
    if world == WALK:
        return worlds.worst_return(), best_return()
    liked = world.reward_at
    worst = worlds.plan_on_grid(world, lambda states: -np.asarray(liked(states)))
    low, high = (mean_return(world, one, episodes=EPISODES) for one in (worst, worlds.plan_on_grid(world)))
    return low, high


def random_score(world: World) -> float:
    worst, best = ends(world)
    found = (
        worlds.random_return() if world == WALK else mean_return(world, worlds.uniform_policy(world), episodes=EPISODES)
    )
    return float((found - worst) / (best - worst))


def measure_caps(world: str, people: tuple[int, ...]) -> list[Row]:
    return [
        {
            "world": world,
            "people": number,
            "epsilon": EPSILON,
            "delta": DELTA,
            "gaussian": cap_gdp(budget().mu, number),
            "any": cap_any_dp(budget(), number),
        }
        for number in people
    ]


def fewest_people(score: float, gaussian: bool) -> int:
    """The fewest with which the score is not ruled out, in any of the worlds.

    >>> fewest_people(0.9, gaussian=True), fewest_people(0.9, gaussian=False)
    (9, 3)
    """

    def possible(people: int) -> bool:
        return (cap_gdp(budget().mu, people) if gaussian else cap_any_dp(budget(), people)) >= score

    return next(people for people in range(1, 10**6) if possible(people))
