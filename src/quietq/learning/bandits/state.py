"""Where a policy stands, on disk: to go on exactly there, once.

A state is PRIVATE: it holds sums of answers without noise. It is readable by its owner only, and its name says so.

Theorem. A policy that was saved learns no more, and `resume` takes the sums without noise out of the file before it
hands the policy over: what is left goes on from noised numbers alone, which is post-processing. So of all processes
that go on from one file one can use an answer that was not noised yet, and no answer is noised twice. Copies that
somebody makes of the file are outside of this, and the certificate says that the state is private.
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

from quietq.learning.bandits.elimination import Elimination
from quietq.learning.bandits.episodes import Episodes
from quietq.learning.bandits.lin_ucb import LinUCB
from quietq.learning.bandits.linear import Linear, LinearTree
from quietq.learning.bandits.local_flips import LocalUCB
from quietq.learning.bandits.policy import Policy
from quietq.learning.bandits.private_policy import PrivatePolicy
from quietq.learning.bandits.references import UCB, Thompson
from quietq.learning.bandits.tree_ucb import TreeUCB
from quietq.mechanisms.container import write_whole
from quietq.noise.feature_maps import FeatureMap, is_data, map_of
from quietq.privacy import Budget, Certificate, InvalidInput
from quietq.privacy.kinds import thaw

POLICIES: tuple[type[Policy], ...] = (
    Elimination, Episodes, TreeUCB, LocalUCB, UCB, Thompson, Linear, LinearTree, LinUCB,
)  # fmt: skip
"""All that a saved state may name."""
NAME = "PRIVATE-bandit.npz"
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
                policy._handed_over = False
            raise


def _file_at(path: Path) -> tuple[int, int] | None:
    """Which file it is; one that is written whole is always another."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def resume(directory: str | Path, features: Any = None) -> Policy:
    """A policy as `save` left it, the first time; after that, what was noised of it and nothing else.

    `features` is the map of one's own that it was made with, if it was.
    """
    path, taken = Path(directory) / NAME, Path(directory) / f".{NAME}.taken-{os.getpid()}"
    try:
        os.rename(path, taken)  # one process gets it
    except OSError:
        raise InvalidInput(f"There is no state in {str(directory)!r} to go on from.") from None
    try:
        rest, policy = (_read(taken, features) for _ in range(2))
        rest._forget()
        if isinstance(rest, PrivatePolicy):
            rest._forget_visits()
        _write(rest, Path(directory))
    except BaseException:
        os.replace(taken, path)  # nothing was handed over
        raise
    taken.unlink()
    return policy


def _write(policy: Policy, directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    names = [field.name for field in dataclasses.fields(policy) if field.name != "account"]
    header = {
        "note": _TRUST, "policy": policy.name, "settings": {name: getattr(policy, name) for name in names},
        "drawn": policy._drawn, "seen": policy._seen if isinstance(policy, PrivatePolicy) else {},
        "certificate": policy.certificate.to_dict(),
    }  # fmt: skip
    stream, text = io.BytesIO(), json.dumps(header, default=_record).encode()
    np.savez(stream, allow_pickle=False, header=np.frombuffer(text, np.uint8), **vars(policy.state))
    write_whole(directory / NAME, stream.getvalue(), 0o600)
    return directory / NAME


def _record(setting: Any) -> dict[str, Any] | None:
    """A setting that is no number: a budget, or a map of features, of which one's own is not written."""
    if isinstance(setting, Budget):
        return {"epsilon": setting.epsilon, "delta": setting.delta}
    return setting.describe() if isinstance(setting, FeatureMap) and is_data(setting) else {}


def _read(path: Path, features: Any) -> Policy:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            arrays = {name: stored[name] for name in stored.files if name != "header"}
        kind = next(one for one in POLICIES if one.name == header["policy"])
        settings = dict(header["settings"])
    except (OSError, ValueError, KeyError, EOFError, StopIteration, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{str(path)!r} is not the state of a policy, or a damaged one.") from error
    settings["rewards"] = tuple(settings["rewards"])
    if "budget" in settings:
        settings["budget"] = Budget(**settings["budget"])
    described = settings.get("features")
    if described is not None:
        if not described and features is None:
            raise InvalidInput("features must be given again: the policy was made with a map of your own.")
        settings["features"] = map_of(described) if described else features
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
    for name, now in vars(state).items():
        given = arrays.get(name)
        if given is None or (given.shape, given.dtype) != (np.shape(now), np.asarray(now).dtype):
            raise InvalidInput(f"The state's {name} does not fit a policy of these settings.")
        found[name] = given.item() if given.ndim == 0 else given
    return dataclasses.replace(state, **found)
