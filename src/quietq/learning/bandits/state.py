"""Where a policy stands, on disk: to go on exactly there, once.

A state is PRIVATE: it holds sums of answers without noise. It is readable by its owner only, and its name says so.

Theorem. A policy that was saved learns no more, and `resume` takes the sums without noise out of the file before it
hands the policy over: what is left goes on from noised numbers alone, which is post-processing. So whichever processes
go on from one file, of all of them one can use an answer that was not noised yet, and no answer is noised twice. Copies
that somebody makes of the file are outside of this, and the certificate says that the state is private.
"""

import dataclasses
import io
import json
import os
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from quietq.learning.bandits.policy import Policy, PrivatePolicy
from quietq.mechanisms.container import write_whole
from quietq.noise.feature_maps import FeatureMap, is_data, map_of
from quietq.privacy import Budget, Certificate, InvalidInput
from quietq.privacy.kinds import thaw

NAME = "PRIVATE-bandit.npz"
_OWN = "own"
_TRUST = "PRIVATE: this file holds people's answers. Keep it where only the policy can read it, and do not copy it."


def save(policy: Policy, directory: str | Path) -> Path:
    """Writes all that there is of a policy over what was there, whole or not at all; it goes on where it is resumed."""
    with policy._lock:
        if not isinstance(policy, PrivatePolicy):
            return _write(policy, Path(directory))
        before = _file_at(Path(directory) / NAME)
        policy._hand_over()
        try:
            return _write(policy, Path(directory))
        except Exception:
            if _file_at(Path(directory) / NAME) == before:  # nothing was written, so nobody else can go on
                policy._take_back()
            raise


def _file_at(path: Path) -> tuple[int, int] | None:
    """Which file it is; one that is written whole is always another."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _write(policy: Policy, directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    header = {
        "note": _TRUST, "policy": policy.name, "settings": _settings(policy), "drawn": policy._drawn,
        "certificate": policy.certificate.to_dict(),
    }  # fmt: skip
    if isinstance(policy, PrivatePolicy):
        header["seen"] = dict(policy._seen)
    arrays = {field.name: np.asarray(getattr(policy.state, field.name)) for field in dataclasses.fields(policy.state)}
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    write_whole(directory / NAME, stream.getvalue(), 0o600)
    return directory / NAME


def resume(directory: str | Path, policies: tuple[type[Policy], ...], features: Any = None) -> Policy:
    """The policy as it was saved, the first time; after that, what was noised of it and nothing else."""
    path, taken = Path(directory) / NAME, Path(directory) / f".{NAME}.taken-{os.getpid()}"
    try:
        os.rename(path, taken)  # one process gets it
    except OSError:
        raise InvalidInput(f"There is no state in {str(directory)!r} to go on from.") from None
    try:
        rest, policy = (_read(taken, policies, features) for _ in range(2))
        rest._forget()
        if isinstance(rest, PrivatePolicy):
            rest._forget_visits()
        _write(rest, Path(directory))
    except BaseException:
        os.replace(taken, path)  # nothing was handed over
        raise
    taken.unlink()
    return policy


def _read(path: Path, policies: tuple[type[Policy], ...], features: Any) -> Policy:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            arrays = {name: stored[name] for name in stored.files if name != "header"}
        kind = next(one for one in policies if one.name == header["policy"])
        settings = dict(header["settings"])
    except (OSError, ValueError, KeyError, EOFError, StopIteration, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{str(path)!r} is not the state of a policy, or a damaged one.") from error
    settings["rewards"] = tuple(settings["rewards"])
    if "budget" in settings:
        settings["budget"] = Budget(**settings["budget"])
    if "features" in settings:
        described = settings["features"]
        if described == _OWN and features is None:
            raise InvalidInput("features must be given again: the policy was made with a map of your own.")
        settings["features"] = map_of(described) if isinstance(described, dict) else features
    policy = kind(**settings)  # without an account: what it is charged was charged when it was made
    policy.state = _filled(policy.state, arrays)
    policy._drawn = header["drawn"]
    again, policy.certificate = policy.certificate, Certificate.from_dict(header["certificate"])
    if thaw(again.norm) != thaw(policy.certificate.norm):
        raise InvalidInput("This code makes running sums by other factors than the one that saved the state.")
    if isinstance(policy, PrivatePolicy):
        policy._seen = Counter(header["seen"])
    return policy


def _filled(state: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The state with these numbers, if they fit."""
    found = {}
    for field in dataclasses.fields(state):
        now, given = np.asarray(getattr(state, field.name)), arrays.get(field.name)
        if given is None or given.shape != now.shape or given.dtype != now.dtype:
            raise InvalidInput(f"The state's {field.name} does not fit a policy of these settings.")
        found[field.name] = given.item() if given.ndim == 0 else given
    return dataclasses.replace(state, **found)


def _settings(policy: Policy) -> dict[str, Any]:
    """What the policy was made with, in JSON."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        if isinstance(value, Budget):
            value = {"epsilon": value.epsilon, "delta": value.delta}
        elif field.name == "features":
            value = value.describe() if isinstance(value, FeatureMap) and is_data(value) else value and _OWN
        if field.name != "account":
            found[field.name] = value
    return found
