"""The one file of a release: what was released and its certificate, by allow-list.

A policy has the certificate of the one release that it was made of, and of the checks that spoke for it.

Theorem (composition). World and checks are releases of the same people, each check given the world and the checks
before. They are mu_i-GDP, so all together, and whatever follows from them, are sqrt(sum of mu_i^2)-GDP. A policy that
is made in the world alone has the world's promise. But one that is published *because* of what checks said tells
something of each of them too: being there at all does, and so does being there instead of another. Then its promise is
that of all.

Proof: docs/theory.md#adaptive-composition.
"""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from quietq.noise import Domain
from quietq.privacy import Certificate, Code, InvalidInput, PrivacyWarning, QuietqError
from quietq.privacy.certificate import together
from quietq.privacy.checks import instance
from quietq.released import signature
from quietq.released.private_network import PrivateNetwork, PrivatePolicy
from quietq.released.publishable import Publishable
from quietq.released.release_file import digest_of, open_bytes, pack, read, replace_file, unpack, write_release
from quietq.worlds.guards import inner_environments
from quietq.worlds.own_reward import OwnReward
from quietq.worlds.policy_check import CheckedPolicy
from quietq.worlds.private_env import PrivateWorldEnv, WorldCopies
from quietq.worlds.private_reward import PrivateReward

FilePath = str | os.PathLike[str]
Protected = Publishable | PrivateReward | OwnReward | PrivateWorldEnv | WorldCopies
"""What has a certificate: a release, or an environment of one."""
NO_GO = "NO GO: the people who were asked did not speak for this policy."
"""What a certificate remarks of a policy that is published though its check said no."""


def publish(
    thing: Any,
    path: FilePath,
    *,
    trained_on: object = None,
    check: object = None,
    box: Domain | None = None,
    not_private: bool = False,
    sign: FilePath | None = None,
) -> str:
    """Writes a release to one file, whole or not at all, and returns its hash.

    Only what a certificate covers can be published. A file of that name is replaced if it is a release. If an account
    was charged for the thing, it notes the hash.

    Args:
        thing: A private function, world or policy, such as a plan of `plan_linear`, an agent, or a model of
            Stable-Baselines3, which is written as its policy.
        path: The file.
        trained_on: What a model was trained on: the private reward or world, or an environment of either with any
            wrappers. Its certificate goes along; that nothing else private was used is your word.
        check: The check that spoke for the policy, or the list of all checks of the policies that were compared: what
            they cost is then part of the promise.
        box: The observations that a model is for, where its environment gives them no bounds.
        not_private: Writes also what no certificate covers, such as a simulation, marked as NOT PRIVATE.
        sign: The file of a private key (Ed25519, in PEM form).

    >>> import tempfile
    >>> from quietq import Budget, GaussianProcessMechanism, load, people
    >>> mechanism = GaussianProcessMechanism.for_relation(people(50, low=0, high=0.5, slope=1), Budget(0.9, 1e-4))
    >>> private = mechanism.apply(lambda s: 0.5 - abs(s - 0.5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = publish(private, folder + "/reward.qq")
    ...     bool(load(folder + "/reward.qq")(0.3) == private(0.3)), len(name)
    (True, 64)

    """
    if is_model(thing):
        from quietq.publishing.stable_baselines import policy_of  # needs that library, which the caller has

        thing = with_checks(policy_of(thing, trained_on, box), _checks(check), trained_on).issued()
    elif trained_on is not None or box is not None:
        raise InvalidInput(f"trained_on and box are for models of Stable-Baselines3, not for a {type(thing).__name__}.")
    elif check is not None:
        instance("thing", thing, PrivatePolicy, "a policy, where there is a check of it")
        thing.require_as_issued()
        thing = with_checks(thing, _checks(check), thing.made_in).issued(thing.receipt)
    function = function_of(thing, not_private)
    name = write_release(function, path, sign)
    try:
        if thing.receipt is not None:
            thing.receipt.commit(name)
    except QuietqError as error:
        warnings.warn(
            f"The release is written and charged, but the account could not note its hash: {error}",
            PrivacyWarning,
            stacklevel=2,
        )
    return name


def is_model(thing: object) -> bool:
    """Says whether it is one of Stable-Baselines3, by its classes' names: importing that library takes seconds."""
    return any(
        kind.__name__ == "BaseAlgorithm" and kind.__module__.startswith("stable_baselines3.")
        for kind in type(thing).__mro__
    )


def _checks(check: Any) -> tuple[CheckedPolicy, ...]:
    """Each check that was looked at, once."""
    if check is None:
        return ()
    every: Sequence[Any] = check if isinstance(check, list | tuple) else (check,)
    for one in every:
        instance("check", one, CheckedPolicy, "what qq.check(policy, ...) gave, or a list of that")
    return tuple(dict.fromkeys(every))


def function_of(thing: Any, not_private: bool) -> Publishable:
    """Returns what of a thing can be published; refused if nothing covers it, unless it is to be marked."""
    if not hasattr(thing, "as_function"):
        raise InvalidInput(
            "Only an agent, a private reward, function, world or policy, or a model of Stable-Baselines3 can be "
            f"published, not {type(thing).__name__}."
        )
    function: Publishable = thing.as_function()
    if isinstance(function, PrivateNetwork) and function.draws > 1:
        raise InvalidInput(
            f"These are {function.draws} simulated releases, and what is published is one: train with simulate=1, or "
            "keep them for yourself with Agent.save."
        )
    standing = function.certificate.standing
    if standing != "certified" and not not_private:
        raise InvalidInput(
            f"Only a certified release can be published, and this one's standing is {standing!r}; "
            "publish(..., not_private=True) writes it marked as NOT PRIVATE (--not-private on the command line)."
        )
    function.require_as_issued()
    return function


def copy_release(source: FilePath, path: FilePath, *, not_private: bool = False, sign: FilePath | None = None) -> str:
    """Writes a release once more, to sign it: its content and its hash stay; without `sign`, so does a signature."""
    data = read(source)
    unpacked = unpack(data)
    function_of(open_bytes(data).function, not_private)
    signed = unpacked.signed if sign is None else signature.sign(unpacked.hash, sign)
    replace_file(Path(path), pack(unpacked.text, unpacked.arrays, signed))
    return unpacked.hash


# What a policy was made of


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
    every = _protected(trained_on)
    found = [one for one in every if one is not None]
    if len(found) < len(every):
        raise InvalidInput(
            "trained_on must be the private reward or world that it was trained on, as privatise returns it, or an "
            f"environment of it, not {type(trained_on).__name__}."
        )
    first, *others = map(_source, found)
    if isinstance(first, Publishable):
        first.require_as_issued()
    if not all(same_release(first, other) for other in others):
        raise InvalidInput(
            f"trained_on holds {len(found)} environments of several releases, whose promises add up: train on copies "
            "of one release, and give that."
        )
    return found[0]


def with_checks(policy: PrivatePolicy, checks: Sequence[CheckedPolicy], trained_on: object) -> PrivatePolicy:
    """The policy with what is promised if it was published because of what all of the checks said; one is of it.

    A no-go is no refusal, but it is not passed over: a warning says it here, and a remark in the certificate.
    """
    if not checks:
        return policy
    certificate = policy.certificate
    if certificate.standing != "certified":
        raise InvalidInput(
            f"What a check cost can only be added to a certified promise, and the standing of the policy's is "
            f"{certificate.standing!r}: leave check out."
        )
    own = _own_checks(policy, checks, None if trained_on is None else release_behind(trained_on))
    certificate = together([certificate, *(one.certificate for one in checks)], Code.CHECKS_COUNTED(len(checks)))
    if any(one.go is False for one in own):
        warnings.warn(f"{NO_GO} It is published all the same.", UserWarning, stacklevel=3)
        certificate = certificate.with_remark(NO_GO)
    return replace(policy, certificate=certificate)


def _own_checks(policy: PrivatePolicy, checks: Sequence[CheckedPolicy], world: object) -> list[CheckedPolicy]:
    """The checks of this policy; refused if there is none, or if one is of other people or of another world."""
    certificate = policy.certificate
    for check in checks:
        own = check.certificate
        if own.standing != "certified":
            raise InvalidInput("check is a simulation, which protects nobody: publish with a check that was released.")
        if check.seal is None or not check.is_as_issued():
            raise InvalidInput("check must be what qq.check gave, unchanged: this one says other numbers.")
        if certificate.relation != own.relation or certificate.mu is None or own.mu is None:
            raise InvalidInput(
                "check must be of the people that the policy was made of, as qq.check(policy, sessions, ...) gives it."
            )
        if check.share is not None and (world is None or not same_release(check.world, world)):
            raise InvalidInput(
                "check must be of a policy in the world that it was made in, or in none: what another world cost would "
                "not be counted."
            )
    digest = digest_of(policy)
    found = [check for check in checks if check.policy == digest]
    if not found:
        raise InvalidInput(
            "check must be of the policy that is published; where several were compared, give all of their checks: "
            "check=[...]."
        )
    return found


def _protected(thing: object) -> list[Protected | None]:
    """Returns the first layer with a certificate on each way, from the outermost down; None where there is none."""
    if isinstance(thing, Protected):
        return [thing]
    return [found for one in inner_environments(thing) for found in _protected(one)] or [None]


def _source(protected: Protected) -> object:
    """The release itself, of which there may be several environments."""
    if isinstance(protected, PrivateWorldEnv):
        return protected.world
    if isinstance(protected, WorldCopies):
        return protected.one.world
    return protected.released if isinstance(protected, PrivateReward) else protected


def same_release(one: object, other: object) -> bool:
    """Says whether they are one release: the same object, or a copy with the same numbers."""
    if type(one) is not type(other) or not isinstance(one, Publishable) or not isinstance(other, Publishable):
        return one is other
    return one is other or one.fingerprint() == other.fingerprint() is not None
