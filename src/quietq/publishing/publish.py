"""One file that may leave: what was released and its certificate, by allow-list; and the way back."""

import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from quietq.mechanisms.container import pack, read, replace_file, unpack
from quietq.mechanisms.private_network import PrivateNetwork
from quietq.mechanisms.publishable import InvalidRelease, Publishable
from quietq.mechanisms.release_file import OpenedFile, open_bytes, open_file, write_release
from quietq.noise.kernels import Features
from quietq.privacy.errors import InvalidInput, PrivacyWarning, QuietqError
from quietq.publishing import signature

FilePath = str | os.PathLike[str]


def publish(thing: Any, path: FilePath, *, not_private: bool = False, sign: FilePath | None = None) -> str:
    """Writes an agent, a private reward or a private function to a file, whole or not at all; gives its hash.

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
    function = function_of(thing, not_private)
    name = write_release(function, path, None if sign is None else lambda hash: signature.sign(hash, sign))
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


def function_of(thing: Any, not_private: bool) -> Publishable:
    """What of a thing may leave; refused if nothing covers it, unless it is to be marked."""
    if not hasattr(thing, "as_function"):
        raise InvalidInput(
            f"Only an agent, a private reward or a private function can be published, not {type(thing).__name__}."
        )
    function: Publishable = thing.as_function()
    if isinstance(function, PrivateNetwork) and function.draws > 1:
        raise InvalidInput(
            f"These are {function.draws} simulated releases, and what is published is one: train with simulate=1, or "
            "keep them for yourself with Agent.save."
        )
    if function.certificate is None:
        raise InvalidInput("This fitted reward has no certificate: fit it to released rewards that have one.")
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
    opened = verified(open_bytes(data))
    function_of(opened.function, not_private)
    signed = unpacked.signed if sign is None else signature.sign(unpacked.hash, sign)
    replace_file(Path(path), pack(unpacked.text, unpacked.arrays, signed))
    return unpacked.hash


def load(path: FilePath, *, features: Features | None = None) -> Publishable:
    """The private function in a file that `publish` wrote; InvalidRelease for any other file. It needs no JAX.

    Weights of a Features kernel need that kernel again, as `features`, because its feature map is code; it is checked
    against what the map gave at a few public points.
    """
    return open_release(path, features=features).function


def open_release(path: FilePath, *, features: Features | None = None) -> OpenedFile:
    """The same with what else is known of the file: its hash, what it is, who signed it."""
    return verified(open_file(path, features))


def verified(opened: OpenedFile) -> OpenedFile:
    """With its signer, if it was signed; refused if the signature is not that of its content, or it is several."""
    function = opened.function
    if isinstance(function, PrivateNetwork) and function.draws > 1:
        raise InvalidRelease(f"This file holds {function.draws} simulated releases, which only Agent.load reads.")
    if opened.signed is None:
        return opened
    return replace(opened, signer=signature.checked(opened.hash, **opened.signed))
