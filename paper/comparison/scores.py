"""Scores of one method in one world, by the number of people behind the reward, at one certified promise for all.

The relation is the same for every method, "replace one of N people"; each method uses what it can of it. What is smooth
gets noise that knows the declared slope; methods that noise as they go know only how far one person moves one reward.

Score: 0 is the worst policy and 1 the best, in every world: exact on the walk, and elsewhere by the same 500 episodes
for the policy, the best known and the worst known. With those, what scores S for a preference scores 1 - S for its
opposite, to the last digit, so that the caps hold for exactly this number.

Caps: what no algorithm can do at this promise. In every world here the opposite preference, c - r (for the recommender
-r), is one that people could have: turn each person round, and they still keep to what is declared of them. Episodes
have a fixed length, or end by chance alone, so a policy's returns for the two add up to a constant and what scores S
for the one scores 1 - S for the other. That is the condition of `quietq.privacy.limits`. It caps the worse of the two
scores; a method may be lucky with one of them. Steps from r to its opposite: if all N people think alike, replacing
them one by one takes N. For the recommender the mean weights have length `strength`, their opposite is 2 strength away,
and one person moves 2/N.
"""

from functools import cache
from typing import Any

import numpy as np

import quietq as qq
from paper.experiment import Row
from quietq import worlds
from quietq.learning import METHODS, NoNoise, RewardNoise
from quietq.privacy.limits import cap_any_dp, cap_gdp, steps_between
from quietq.privacy.relations import LipschitzBall, SupBall
from quietq.worlds import WALK, RecommenderWorld, World, find_world, mean_return
from quietq.worlds.observed import observe
from quietq.worlds.planning import MOST_ON_A_GRID
from quietq.worlds.returns import best_return

EPSILON, DELTA = 0.9, 1e-4
"""The promise of the paper's comparison."""
EPISODES = 500
PIECES = {"walk": 5, "thermostat": 6}
"""Of k-norm and knots. With these no knot lies on the peak, which would flatter noise on knots."""
WIDTHS = {"walk": 0.5, "thermostat": 1.0, "navigation": 0.8, "recommender": 2.0}
"""How far apart two people's rewards can be at one state, by what each world declares of a person."""
SETTINGS = {("recommender", "input"): {"knots": 3}, ("recommender", "gradient"): {"features": 3}}
"""Hyper-parameters that differ from the defaults: seven knots a coordinate would be 343 in three dimensions."""


def measure(
    world: str, method: str, noise: str | None, people: int | None, draws: int, steps: int = 5000, first: int = 0
) -> list[Row]:
    """So many simulated draws, numbered from the first on; `none` and `random` have no people."""
    private = people is not None
    promise = (EPSILON, 0.0 if noise == "k-norm" else DELTA) if private else (None, None)
    common = {
        "world": world, "method": method, "noise": noise, "standing": "certified" if private else "none",
        "people": people, "epsilon": promise[0], "delta": promise[1], "steps": steps,
    }  # fmt: skip
    there, numbers = find_world(world), range(first, first + draws)
    scores = [random_score(there)] if method == "random" else scores_of(there, method, noise, people, numbers, steps)
    return [{**common, "draw": draw, "score": score} for draw, score in zip(numbers, scores, strict=True)]


def scores_of(
    world: World, method: str, noise: str | None, people: int | None, numbers: range, steps: int
) -> list[float]:
    if people is None:
        agent = qq.Agent(world, NoNoise(), seed=numbers[0]).learn(steps, seeds=len(numbers))
    elif method == "reward":
        rewards = [private_reward(world, noise, people, number, steps) for number in numbers]
        agent = qq.Agent(world, RewardNoise(rewards), seed=numbers[0]).learn(steps)
    else:
        further: dict[str, Any] = {"relation": bounded(world, people), "budget": budget()}
        chosen = METHODS[method](**further, **SETTINGS.get((world.name, method), {}))
        agent = qq.Agent(world, chosen, seed=numbers[0]).learn(steps, simulate=len(numbers))
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
        world.mean_reward(), qq.Budget(EPSILON, 0.0) if noise == "k-norm" else budget(), simulate=draw,
        noise="ball" if world.name == "recommender" else noise,
        relation=world.relation(people), domain=world.box, pieces=None if noise == "path" else PIECES.get(world.name),
    )  # fmt: skip


def name_of(method: str, noise: str | None) -> str:
    """As tables and pictures have it.

    >>> name_of("reward", "path"), name_of("input", None)
    ('reward, path', 'input')
    """
    return method if noise is None else f"{method}, {noise}"


def budget() -> qq.Budget:
    return qq.Budget(EPSILON, DELTA)


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
    on_grid = max(world.box.dimension, world.draws) <= MOST_ON_A_GRID
    worst = (worlds.plan_on_grid if on_grid else worlds.look_ahead)(world, lambda states: -np.asarray(liked(states)))
    low, high = (mean_return(world, one, episodes=EPISODES) for one in (worst, worlds.best_known(world)))
    return low, high


def random_score(world: World) -> float:
    worst, best = ends(world)
    found = (
        worlds.random_return() if world == WALK else mean_return(world, worlds.uniform_policy(world), episodes=EPISODES)
    )
    return float((found - worst) / (best - worst))


def measure_caps(world: str, people: tuple[int, ...]) -> list[Row]:
    steps = {number: steps_to_opposite(find_world(world), number) for number in people}
    return [
        {"world": world, "people": number, "epsilon": EPSILON, "delta": DELTA, "steps": taken,
         "gaussian": cap_gdp(budget().mu, taken), "any": cap_any_dp(budget(), taken)}
        for number, taken in steps.items()
    ]  # fmt: skip


def steps_to_opposite(world: World, people: int) -> int:
    """How many people must be replaced, one by one, to turn the preference round.

    >>> steps_to_opposite(find_world("walk"), 50), steps_to_opposite(find_world("recommender"), 50)
    (50, 15)
    """
    return steps_between(2 * world.strength, 2 / people) if isinstance(world, RecommenderWorld) else people


def fewest_people(world: World, score: float, gaussian: bool) -> int:
    """The fewest with which the score is not ruled out.

    >>> fewest_people(find_world("walk"), 0.9, gaussian=True), fewest_people(find_world("walk"), 0.9, gaussian=False)
    (9, 3)
    """

    def possible(people: int) -> bool:
        steps = steps_to_opposite(world, people)
        return (cap_gdp(budget().mu, steps) if gaussian else cap_any_dp(budget(), steps)) >= score

    return next(people for people in range(1, 10**6) if possible(people))
