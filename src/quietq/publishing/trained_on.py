"""What a policy was made of: the one release behind a reward, world or environment, and the checks that spoke for it.

Theorem (composition). World and checks are releases of the same people, each check given the world and the checks
before. They are mu_i-GDP, so all together, and whatever follows from them, are sqrt(sum of mu_i^2)-GDP. A policy that
is made in the world alone has the world's promise. But one that is published *because* of what checks said tells
something of each of them too: being there at all does, and so does being there instead of another. Then its promise is
that of all.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from quietq.privacy.assumptions import Code
from quietq.privacy.certificate import Certificate, together
from quietq.privacy.errors import InvalidInput
from quietq.released.publishable import Publishable
from quietq.worlds.guards import inner_environments
from quietq.worlds.own_reward import OwnReward
from quietq.worlds.plan_check import CheckedPlan
from quietq.worlds.planning import LinearPolicy
from quietq.worlds.private_env import PrivateWorldEnv, WorldCopies
from quietq.worlds.private_reward import PrivateReward

Protected = Publishable | PrivateReward | OwnReward | PrivateWorldEnv | WorldCopies
"""What has a certificate: a release, or an environment of one."""


def certificate_of(trained_on: object) -> Certificate:
    """The certificate of what a policy was trained on: an environment may add to that of the release behind it."""
    return _one(trained_on).certificate


def release_behind(trained_on: object) -> object:
    """The release itself that a policy was trained on."""
    return _source(_one(trained_on))


def _one(trained_on: object) -> Protected:
    """The first of those that have a certificate, however many layers of environments lie around them."""
    if trained_on is None:
        raise InvalidInput(
            "A policy has no certificate of its own: say with trained_on which private reward, private world or "
            "environment of these it was trained on."
        )
    every = list(_protected(trained_on))
    found = [one for one in every if one is not None]
    if not found or len(found) < len(every):
        raise InvalidInput(
            "trained_on must be the private reward or world that it was trained on, as privatise returns it, or an "
            f"environment of it, not {type(trained_on).__name__}."
        )
    first, *others = map(_source, found)
    if not all(same_release(first, other) for other in others):
        raise InvalidInput(
            f"trained_on holds {len(found)} environments of several releases, whose promises add up: train on copies "
            "of one release, and give that."
        )
    return found[0]


def with_checks(
    certificate: Certificate, checks: Sequence[CheckedPlan], trained_on: object, plan: LinearPolicy | None = None
) -> Certificate:
    """What is promised if a policy that was made of the one was published because of what all of the others said.

    Where that policy is a `plan`, one of the checks must be of it.
    """
    if not checks:
        return certificate
    if certificate.standing != "certified":
        raise InvalidInput(
            f"What a check cost can only be added to a certified promise, and the standing of what trained_on gives is "
            f"{certificate.standing!r}: leave check out."
        )
    _belong(certificate, checks, release_behind(trained_on), plan)
    return together([certificate, *(one.certificate for one in checks)], Code.CHECKS_COUNTED(len(checks)))


def _belong(certificate: Certificate, checks: Sequence[CheckedPlan], world: object, plan: LinearPolicy | None) -> None:
    """Refuses checks of other people, of another world, or none of which is of the plan."""
    for check in checks:
        own = check.certificate
        if own.standing != "certified":
            raise InvalidInput("check is a simulation, which protects nobody: publish with a check that was released.")
        if certificate.relation != own.relation or certificate.mu is None or own.mu is None:
            raise InvalidInput(
                "check must be of the people that the world was made of, as check_plan(world, ...) gives it."
            )
        if check.played is None or not same_release(check.played.world, world):
            raise InvalidInput(
                "check must be of a plan in the world that trained_on gives, as check_plan(world, ...) gives it: what "
                "another world cost would not be counted."
            )
    if plan is not None and not any(check.played and _same_plan(check.played.policy, plan) for check in checks):
        raise InvalidInput(
            "check must be of the plan that is published; where several were compared, give all of their checks: "
            "check=[...]."
        )


def _same_plan(one: LinearPolicy, other: LinearPolicy) -> bool:
    arrays = ("weights", "middle", "deviation")
    return one.spaces == other.spaces and all(np.array_equal(getattr(one, a), getattr(other, a)) for a in arrays)


def _protected(thing: object) -> Iterator[Protected | None]:
    """From the outermost layer down: the first thing on each way that has a certificate; None where there is none."""
    if isinstance(thing, Protected):
        yield thing
    elif inner := inner_environments(thing):
        for one in inner:
            yield from _protected(one)
    else:
        yield None


def _source(protected: Protected) -> object:
    """The release itself, of which there may be several environments."""
    if isinstance(protected, PrivateWorldEnv):
        return protected.world
    if isinstance(protected, WorldCopies):
        return protected.one.world
    return protected.released if isinstance(protected, PrivateReward) else protected


def same_release(one: object, other: object) -> bool:
    """Whether they are one release: the same object, or a copy with the same numbers."""
    if one is other:
        return True
    if type(one) is not type(other) or not isinstance(one, Publishable) or not isinstance(other, Publishable):
        return False
    if one.certificate != other.certificate:
        return False
    (details, arrays), (others, numbers) = one.to_arrays(), other.to_arrays()
    return (details, set(arrays)) == (others, set(numbers)) and all(
        np.array_equal(array, numbers[name]) for name, array in arrays.items()
    )
