"""A private reward of one of quietq's worlds: its own preference, with the noise that fits what must stay hidden."""

from typing import Any

from quietq.mechanisms import privatise
from quietq.paper.observed import observe
from quietq.privacy import (
    Account,
    Budget,
    Relation,
    SupBall,
    cap_any_dp,
    cap_gdp,
    people_needed,
    steps_between,
)
from quietq.worlds import World


def privatise_world(
    world: World, relation: Relation, budget: Budget, *, noise: str | None = None, pieces: int | None = None,
    rewards: int | None = None, seed: int | None = None, simulate: int | None = None,
    account: Account | None = None,
) -> Any:  # fmt: skip
    """The world's preference made private: as a function, or for a SupBall from so many noised `rewards`.

    The noise is by default what "auto" takes. `seed` makes the walk to the rewards repeatable, not the noise;
    `simulate` is a seed for the noise, which then protects nobody.
    """
    if isinstance(relation, SupBall):
        return observe(
            world, relation, budget, low=0.0, high=range_of_one(world), rewards=rewards or 5000, simulate=simulate,
            seed=seed, account=account,
        )  # fmt: skip
    return privatise(
        world.mean_reward(), budget, noise=noise or "auto", pieces=pieces, relation=relation, domain=world.box,
        simulate=simulate, account=account,
    )  # fmt: skip


def range_of_one(world: World) -> float:
    """The width of the range that one person's reward lies in."""
    return world.relation(1).radius  # pyright: ignore[reportAttributeAccessIssue]


def out_of_reach(world: World, radius: float, budget: Budget, gaussian: bool, hoped: float = 0.9) -> str | None:
    """A sentence if the score that one hopes for is out of reach of any algorithm with this promise.

    >>> from quietq.worlds import WALK
    >>> out_of_reach(WALK, 0.01, Budget(0.9, 1e-4), gaussian=True) is None
    True
    """
    width = range_of_one(world)
    steps = steps_between(width, radius)
    cap = cap_gdp(budget.mu, steps) if gaussian else cap_any_dp(budget, steps)
    if cap >= hoped:
        return None
    people = people_needed(hoped, budget, distance=width, width=width, gaussian=gaussian)
    return (
        f"no algorithm with this promise can score above {cap:.2f} both for a preference and for its opposite (0 is "
        f"the worst policy, 1 the best); {hoped:g} takes at least {people} people, a radius of at most "
        f"{width / people:.3g}."
    )
