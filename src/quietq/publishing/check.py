"""`check`: asks people, privately and for a price, what they say of what was released, before anybody acts by it.

A check is a release of its own about the same people. Policies are checked by `worlds.policy_check`
(docs/theory.md#policy-check).
"""

import warnings
from typing import Any

from quietq.feedback.sessions import Sessions
from quietq.mechanisms.release import release, simulate as simulate_release
from quietq.noise.own_values import shows_nothing
from quietq.privacy import Account, Budget, InvalidInput, PrivacyWarning, weak_promise
from quietq.privacy.checks import instance
from quietq.publishing.publish import is_model, policy_of_plan, release_behind
from quietq.released.private_network import PrivatePolicy
from quietq.released.private_world import PrivateWorld
from quietq.worlds.planning import LinearPolicy
from quietq.worlds.policy_check import ENOUGH, GO, CheckedPolicy, PolicyCheck


@shows_nothing
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
) -> CheckedPolicy:
    """Asks these people what their own rows say of a policy, once.

    Args:
        released: A policy that can be published: a plan of `plan_linear`, a model of Stable-Baselines3, or a private
            policy such as a clone.
        feedback: The people who are asked: their sessions.
        budget: The (epsilon, delta) that the check may cost; a tenth of what was released (of mu squared) is usual.
        wanted: The return that the policy must be worth in a person's own world, if it is played in one.
        trained_on: What the policy was trained on, as `publish` takes it; if that is a private world, people vote by
            worlds of their own around it. A plan knows its world.
        steps: How many steps the policy is played for.
        returns: The public range of people's own returns; by default all that so many steps can come to.
        go: From which share of the people on their votes are for the policy; say it beforehand, from public knowledge.
        account: An Accountant, or a source's account in a Ledger, which is charged before the draw.
        simulate: A seed to draw from instead, for experiments: protects nobody and is not charged.

    """
    instance("feedback", feedback, Sessions, "Sessions.read(...)")
    instance("budget", budget, Budget, "a Budget(epsilon, delta)")
    instance("account", account, Account | None, "an Accountant, or a source's account, Ledger(url).account(source)")
    if budget.is_pure:
        raise InvalidInput("A check has Gaussian noise: delta must be above 0.")
    if sentence := weak_promise(budget, feedback.people):
        warnings.warn(sentence, PrivacyWarning, stacklevel=3)
    policy, behind = _policy_of(released, trained_on)
    world = behind if isinstance(behind, PrivateWorld) else None
    mechanism = PolicyCheck(
        policy, feedback, budget, world=world, wanted=wanted, steps=steps, returns=returns, threshold=go
    )
    if mechanism.worlds is None and feedback.people * budget.mu < ENOUGH:
        warnings.warn(
            f"{feedback.people} people times mu = {budget.mu:.3g} is below {ENOUGH:g}, where medians, and so signs, "
            "are mostly noise.",
            UserWarning,
            stacklevel=3,
        )
    if simulate is not None:
        return simulate_release(mechanism, feedback, simulate)
    return release(mechanism, feedback, account)


def _policy_of(released: Any, trained_on: object) -> tuple[PrivatePolicy, object]:
    """What of it would be published, and the release that it was trained on, if that is known."""
    if type(released) is LinearPolicy:
        trained_on = released.made_in if trained_on is None else trained_on
        return policy_of_plan(released, trained_on), release_behind(trained_on)
    if is_model(released):
        from quietq.publishing.stable_baselines import policy_of  # needs that library, which the caller has

        return policy_of(released, trained_on), release_behind(trained_on)
    if type(released) is PrivatePolicy:
        return released, None if trained_on is None else release_behind(trained_on)
    raise InvalidInput(
        "released must be a policy that can be published: a plan of plan_linear, a model of Stable-Baselines3 or a "
        f"private policy, not a {type(released).__name__}."
    )
