"""A plan of `plan_linear` as a policy that may leave: one layer, and the certificate of the world it was made in."""

from collections.abc import Sequence

import numpy as np

from quietq.mechanisms.private_policy import TRAINED, PrivatePolicy
from quietq.mechanisms.private_world import PrivateWorld
from quietq.privacy.errors import InvalidInput
from quietq.publishing.trained_on import certificate_of, release_behind, same_release, with_checks
from quietq.worlds.cross_entropy import FARTHEST, LinearPolicy, policy_shape
from quietq.worlds.independence import with_assumption
from quietq.worlds.plan_check import CheckedPlan


def policy_of_plan(plan: LinearPolicy, trained_on: object, checks: Sequence[CheckedPlan] = ()) -> PrivatePolicy:
    """The same policy, in the units of states and actions; the first of a list of actions scores 0."""
    own, world = certificate_of(trained_on), release_behind(trained_on)
    fits = isinstance(world, PrivateWorld) and world.spaces == plan.spaces
    elsewhere = plan.made_in is not None and not same_release(plan.made_in, world)
    if not fits or elsewhere or plan.weights.shape != policy_shape(plan.spaces):
        raise InvalidInput("trained_on must be the world that the plan was made in: plan_linear(world).")
    low, width = (np.array(side) for side in (plan.spaces.box.low, plan.spaces.box.width))
    weights, biases = plan.weights[1:].T, plan.weights[0]
    acting, ends = plan.spaces.action_box, None
    if acting is None:
        number = plan.spaces.actions or 1
        weights, biases = np.zeros((number, len(low))), np.zeros(number)
        weights[1:], biases[1:] = plan.weights[1:, : number - 1].T, plan.weights[0, : number - 1]
    else:  # -1 and 1 are the ends of an action's range
        ends = np.array([acting.low, acting.high])
        half = (ends[1] - ends[0]) / 2
        weights, biases = half[:, None] * weights, ends[0] + half * (1 + biases)
    return PrivatePolicy(
        "tanh", "values" if acting is None else "clipped", (weights,), (biases,), plan.spaces.box,
        with_assumption(with_checks(own, checks, trained_on, plan), TRAINED), ends,
        np.stack([low + plan.middle * width, plan.deviation * width]), FARTHEST,
    )  # fmt: skip
