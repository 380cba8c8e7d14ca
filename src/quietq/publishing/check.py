"""`check`: asks people, privately and for a price, what they say of what was released, before anybody acts by it.

A check is a release of its own about the same people. Policies are checked by `worlds.policy_check`
(docs/theory.md#policy-check), rewards by `mechanisms.reward_check` (docs/theory.md#reward-check).
"""

import warnings
from typing import Any, overload

from quietq.feedback.comparisons import Comparisons
from quietq.feedback.feedback import Feedback
from quietq.feedback.ratings import Ratings
from quietq.feedback.sessions import Sessions
from quietq.mechanisms.release import release_or_simulate
from quietq.mechanisms.reward_check import CheckedReward, RewardCheck
from quietq.noise import Box
from quietq.privacy import Account, Budget, InvalidInput
from quietq.privacy.checks import instance
from quietq.privacy.errors import shows_nothing
from quietq.publishing.publish import is_model, release_behind, same_release
from quietq.released.private_function import PrivateFunction
from quietq.released.private_network import PrivatePolicy
from quietq.released.private_world import PrivateWorld
from quietq.released.publishable import Publishable
from quietq.worlds.policy_check import ENOUGH, GO, CheckedPolicy, PolicyCheck


@overload
def check(
    released: PrivateFunction,
    feedback: Ratings | Comparisons,
    budget: Budget,
    *,
    account: Account | None = None,
    simulate: int | None = None,
) -> CheckedReward: ...


@overload
def check(
    released: object,
    feedback: Sessions,
    budget: Budget,
    wanted: float | None = None,
    *,
    trained_on: object = None,
    steps: int = 300,
    returns: tuple[float, float] | None = None,
    go: float = GO,
    account: Account | None = None,
    simulate: int | None = None,
) -> CheckedPolicy: ...


@shows_nothing
def check(
    released: object,
    feedback: Feedback,
    budget: Budget,
    wanted: float | None = None,
    *,
    trained_on: object = None,
    steps: int = 300,
    returns: tuple[float, float] | None = None,
    go: float = GO,
    account: Account | None = None,
    simulate: int | None = None,
) -> CheckedPolicy | CheckedReward:
    """Asks these people what their own rows say of a policy or of a reward, once.

    Args:
        released: A policy that can be published: a private policy, such as a plan of `plan_linear` or a clone, or a
            model of Stable-Baselines3; or a private reward, and then what follows on `budget` is left out.
        feedback: The people who are asked: their sessions, or for a reward their ratings or comparisons.
        budget: The (epsilon, delta) that the check may cost; a tenth of what was released (of mu squared) is usual.
        wanted: The return that the policy must be worth in a person's own world, if it is played in one.
        trained_on: What the policy was trained on, as `publish` takes it; if that is a private world, people vote by
            worlds of their own around it. A plan knows its world.
        steps: How many steps the policy is played for.
        returns: The public range of people's own returns; by default all that `steps` steps can come to.
        go: From which share of the people on their votes are for the policy; say it beforehand, from public knowledge.
        account: An Accountant, or a source's account in a Ledger, which is charged before the draw.
        simulate: A seed to draw from instead, for experiments: protects nobody and is not charged.

    """
    instance("feedback", feedback, Feedback, "what Sessions.read, Ratings.read or Comparisons.read gives")
    instance("budget", budget, Budget, "a Budget(epsilon, delta)")
    if budget.is_pure:
        raise InvalidInput("A check has Gaussian noise: delta must be above 0.")
    mechanism: PolicyCheck | RewardCheck
    world: PrivateWorld | None = None
    if isinstance(feedback, Sessions):
        released, world = _policy_of(released, trained_on, feedback.box)
        mechanism = PolicyCheck(
            released, feedback, budget, world=world, wanted=wanted, steps=steps, returns=returns, threshold=go
        )
        if mechanism.worlds is None and feedback.people * budget.mu < ENOUGH:
            warnings.warn(
                f"{feedback.people} people times mu = {budget.mu:.3g} is below {ENOUGH:g}, where medians, and so "
                "signs, are mostly noise.",
                UserWarning,
                stacklevel=3,
            )
    else:
        if (wanted, trained_on, returns) != (None, None, None):
            raise InvalidInput("wanted, trained_on and returns are for policies: leave them out.")
        if not isinstance(released, PrivateFunction):
            raise InvalidInput(f"released must be a private reward, not a {type(released).__name__}.")
        mechanism = RewardCheck(released, feedback, budget)
    for one in (world, released):
        if isinstance(one, Publishable) and one.certificate.standing != "certified" and simulate is None:
            raise InvalidInput(
                f"A {type(one).__name__} that is not private cannot be checked: people's answers would give away what "
                "it was made of. Check what was released, or simulate the check too (simulate=0); nothing was spent."
            )
    return release_or_simulate(mechanism, feedback, account, simulate)


def _policy_of(released: Any, trained_on: object, box: Box) -> tuple[PrivatePolicy, PrivateWorld | None]:
    """Returns what of it would be published, and the private world that it was trained in, if it was one."""
    if is_model(released):
        from quietq.publishing.stable_baselines import policy_of  # needs that library, which the caller has

        policy = policy_of(released, trained_on, box)
    elif type(released) is PrivatePolicy:
        released.check()
        policy, own = released, released.made_in
        trained_on = own if trained_on is None else trained_on
        if own is not None and not same_release(own, release_behind(trained_on)):
            raise InvalidInput("trained_on must be the world that the policy was made in: leave it out.")
    else:
        raise InvalidInput(
            "released must be a policy that can be published: a private policy, such as a plan of plan_linear or a "
            f"clone, or a model of Stable-Baselines3, not a {type(released).__name__}."
        )
    behind = None if trained_on is None else release_behind(trained_on)
    return policy, behind if isinstance(behind, PrivateWorld) else None
