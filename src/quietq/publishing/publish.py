"""One file that may leave: what was released and its certificate, by allow-list."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quietq.noise.box import Domain
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import instance
from quietq.privacy.errors import InvalidInput, PrivacyWarning, QuietqError
from quietq.publishing.trained_on import certificate_of, release_behind, same_release, with_checks
from quietq.released import signature
from quietq.released.container import pack, read, replace_file, unpack
from quietq.released.private_network import PrivateNetwork, PrivatePolicy
from quietq.released.private_world import PrivateWorld
from quietq.released.publishable import Publishable
from quietq.released.release_file import open_bytes, write_release
from quietq.worlds.plan_check import CheckedPlan
from quietq.worlds.planning import MOST_DEVIATIONS, LinearPolicy, policy_shape

FilePath = str | os.PathLike[str]


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
    """Writes an agent, a private reward or a private function to a file, whole or not at all; gives its hash.

    A model of Stable-Baselines3, and a plan of `plan_linear`, leave as their policy: `trained_on` is the private reward
    or world (or an environment of either, with any wrappers around it) that they were trained on, whose certificate
    goes along. That nothing else private was used is then your word. If it is published because `check_plan` spoke for
    it, give that as `check`, and where several plans were compared, the list of all checks that were looked at: what
    they cost is then part of the promise. `box` are the observations that a model
    may be asked about, where its environment gives them no bounds.

    Only what a certificate covers may leave. `not_private` writes anything else, a simulation for instance, and marks
    it as NOT PRIVATE, in the file and once it is loaded. `sign` is the file of a private key (`quietq keygen`). A file
    of that name is replaced if it is a release. If an account was charged for the thing, it notes the hash.

    >>> import tempfile
    >>> from quietq import Budget, GaussianProcessMechanism, load, people
    >>> mechanism = GaussianProcessMechanism.for_relation(people(50, low=0, high=0.5, slope=1), Budget(0.9, 1e-4))
    >>> private = mechanism.apply(lambda s: 0.5 - abs(s - 0.5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = publish(private, folder + "/reward.qq")
    ...     bool(load(folder + "/reward.qq")(0.3) == private(0.3)), len(name)
    (True, 64)
    """
    if _is_model(thing):
        from quietq.publishing.stable_baselines import policy_of  # needs that library, which the caller has

        thing = policy_of(thing, trained_on, box, _checks(check))
    elif type(thing) is LinearPolicy:
        if box is not None:
            raise InvalidInput("box is for models of Stable-Baselines3; that of a plan is its world's: leave it out.")
        thing = _policy_of_plan(thing, trained_on, _checks(check))
    elif any(one is not None for one in (trained_on, check, box)):
        raise InvalidInput(
            "trained_on, check and box are for models of Stable-Baselines3 and plans of plan_linear, not for a "
            f"{type(thing).__name__}."
        )
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


def _is_model(thing: object) -> bool:
    """Whether it is one of Stable-Baselines3, by its classes' names: importing that library takes seconds."""
    return any(
        kind.__name__ == "BaseAlgorithm" and kind.__module__.startswith("stable_baselines3.")
        for kind in type(thing).__mro__
    )


def _checks(check: Any) -> tuple[CheckedPlan, ...]:
    """Each check that was looked at, once."""
    if check is None:
        return ()
    every: Sequence[Any] = check if isinstance(check, list | tuple) else (check,)
    for one in every:
        instance("check", one, CheckedPlan, "what check_plan(world, ...) gave, or a list of that")
    return tuple(dict.fromkeys(every))


def _policy_of_plan(plan: LinearPolicy, trained_on: object, checks: Sequence[CheckedPlan]) -> PrivatePolicy:
    """The same policy as one layer, in the units of states and actions; the first of a list of actions scores 0."""
    own, world = certificate_of(trained_on), release_behind(trained_on)
    fits = isinstance(world, PrivateWorld) and world.spaces == plan.spaces
    elsewhere = plan.made_in is not None and not same_release(plan.made_in, world)
    if not fits or elsewhere or plan.weights.shape != policy_shape(plan.spaces):
        raise InvalidInput("trained_on must be the world that the plan was made in: plan_linear(world).")
    low, width = np.array(plan.spaces.box.low), np.array(plan.spaces.box.width)
    weights, biases = plan.weights[1:].T, plan.weights[0]
    acting, ends = plan.spaces.action_box, None
    if acting is None:
        others = (plan.spaces.actions or 1) - 1
        weights = np.concatenate([np.zeros((1, len(low))), weights[:others]])
        biases = np.concatenate([np.zeros(1), biases[:others]])
    else:  # -1 and 1 are the ends of an action's range
        ends = np.array([acting.low, acting.high])
        half = (ends[1] - ends[0]) / 2
        weights, biases = half[:, None] * weights, ends[0] + half * (1 + biases)
    return PrivatePolicy(
        "tanh",
        "values" if acting is None else "clipped",
        (weights,),
        (biases,),
        plan.spaces.box,
        with_checks(own, checks, trained_on, plan).with_assumption(Code.TRAINED()),
        ends,
        np.stack([low + plan.middle * width, plan.deviation * width]),
        MOST_DEVIATIONS,
    )


def function_of(thing: Any, not_private: bool) -> Publishable:
    """What of a thing may leave; refused if nothing covers it, unless it is to be marked."""
    if not hasattr(thing, "as_function"):
        raise InvalidInput(
            "Only an agent, a private reward, function or world, a plan of plan_linear or a model of Stable-Baselines3 "
            f"can be published, not {type(thing).__name__}."
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
            f"Only a certified release may leave, and this one's standing is {standing!r}; "
            "publish(..., not_private=True) writes it marked as NOT PRIVATE (--not-private on the command line)."
        )
    return function


def copy_release(source: FilePath, path: FilePath, *, not_private: bool = False, sign: FilePath | None = None) -> str:
    """Writes a release once more, to sign it: its content and its hash stay; without `sign`, so does a signature."""
    data = read(source)
    unpacked = unpack(data)
    function_of(open_bytes(data).function, not_private)
    signed = unpacked.signed if sign is None else signature.sign(unpacked.hash, sign)
    replace_file(Path(path), pack(unpacked.text, unpacked.arrays, signed))
    return unpacked.hash
