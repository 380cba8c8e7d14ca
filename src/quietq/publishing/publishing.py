"""One file that may leave: what was released and its certificate, by allow-list."""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from quietq.mechanisms.model import FittedReward
from quietq.mechanisms.private_function import PrivateFunction, PrivateWeights
from quietq.noise.kernels import FeatureKernel
from quietq.privacy.account import Receipted
from quietq.privacy.errors import InvalidInput, PrivacyWarning, QuietqError
from quietq.publishing import signature
from quietq.publishing.container import hash_of, pack, replace_file, unpack
from quietq.publishing.kinds import Released, taken_apart
from quietq.publishing.loading import FORMAT, NOT_PRIVATE, opened, read
from quietq.publishing.network import PrivateNetwork
from quietq.version import __version__

if TYPE_CHECKING:
    from quietq.learning import Agent
    from quietq.mechanisms.evaluation import ReleasedValue


def publish(
    thing: "Released | ReleasedValue | Agent", path: str | os.PathLike[str], *, not_private: bool = False,
    sign: str | os.PathLike[str] | None = None,
) -> str:  # fmt: skip
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
    function, what = released_part(thing, not_private)
    certificate = function.certificate
    assert certificate is not None
    kind, details, arrays = taken_apart(function)
    record = {
        "format": FORMAT,
        "version": __version__,
        "privacy": "certified" if certificate.standing == "certified" else NOT_PRIVATE,
        "what": what,
        "kind": kind,
        "box": [[float(low), float(high)] for low, high in zip(function.box.low, function.box.high, strict=True)],
        "details": details,
        "certificate": certificate.to_dict(),
    }
    text = json.dumps(record, allow_nan=False)
    data = pack(text, arrays, None if sign is None else signature.sign(hash_of(text, arrays), sign))
    phi = (
        function.kernel if isinstance(function, PrivateWeights) and isinstance(function.kernel, FeatureKernel) else None
    )
    checked = opened(data, phi)  # what load would refuse is not written
    replace_file(Path(path), data)
    _commit(thing, checked.hash)
    return checked.hash


def _commit(thing: Receipted, name: str) -> None:
    """Tells the account that was charged which release that was for; nothing is lost if it cannot be told."""
    try:
        if thing.receipt is not None:
            thing.receipt.commit(name)
    except QuietqError as error:
        warnings.warn(
            f"The release is written and charged, but the account could not note its hash: {error}",
            PrivacyWarning,
            stacklevel=3,
        )


def copy_release(
    source: str | os.PathLike[str], path: str | os.PathLike[str], *, not_private: bool = False,
    sign: str | os.PathLike[str] | None = None,
) -> str:  # fmt: skip
    """Writes a release once more, to sign it: its content and its hash stay; without `sign`, so does a signature."""
    data = read(source)
    unpacked = unpack(data)
    checked = opened(data, None)
    _check_standing(checked.certificate.standing, not_private)
    signed = unpacked.signed if sign is None else signature.sign(unpacked.hash, sign)
    replace_file(Path(path), pack(unpacked.text, unpacked.arrays, signed))
    return unpacked.hash


def _check_standing(standing: str, not_private: bool) -> None:
    if standing != "certified" and not not_private:
        raise InvalidInput(
            f"Only a certified release may leave, and this one's standing is {standing!r}; "
            "publish(..., not_private=True) writes it marked as NOT PRIVATE (--not-private on the command line)."
        )


def released_part(thing: object, not_private: bool) -> tuple[Released, Literal["agent", "function"]]:
    """What of a thing may leave, and what it is; refused if nothing covers it, unless it is to be marked."""
    if _is_a(thing, "quietq.learning.agent", "Agent"):
        from quietq.publishing.from_agent import function_of

        function, what = function_of(thing), "agent"  # pyright: ignore[reportArgumentType]
    elif _is_a(thing, "quietq.mechanisms.evaluation", "ReleasedValue"):
        from quietq.publishing.cells import function_of_value

        function, what = function_of_value(thing), "function"  # pyright: ignore[reportArgumentType]
    elif isinstance(thing, PrivateFunction | FittedReward):
        function, what = thing, "agent" if isinstance(thing, PrivateNetwork) else "function"
    else:
        raise InvalidInput(
            f"Only an agent, a private reward or a private function can be published, not {type(thing).__name__}."
        )
    if function.certificate is None:
        raise InvalidInput("This fitted reward has no certificate: fit it to released rewards that have one.")
    _check_standing(function.certificate.standing, not_private)
    return function, what


def _is_a(thing: object, module: str, kind: str) -> bool:
    """Whether it is of a kind that needs JAX: if its module was never loaded, it is not."""
    there = sys.modules.get(module)
    return there is not None and isinstance(thing, getattr(there, kind))
