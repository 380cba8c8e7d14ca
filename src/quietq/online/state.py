"""Where a policy stands, on disk: to go on exactly there, once.

A state is PRIVATE: it holds sums of answers without noise. It is readable by its owner only, and its name says so.

Theorem. A policy that was saved learns no more, and `resume` takes the sums without noise out of the file before it
hands the policy over: what is left goes on from noised numbers alone, which is post-processing. So of all processes
that go on from one file one can use an answer that was not noised yet, and no answer is noised twice. Copies that
somebody makes of the file are outside of this, and the certificate says that the state is private.

A file that no run can have left, by its own settings, is refused. Numbers that some run could have left are believed:
whoever can write the file can also change what it promises (`docs/bandits.md`).

Proof: docs/theory.md#saving.
"""

import dataclasses
import io
import os
import warnings
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from quietq.online.elimination import Elimination
from quietq.online.episodes import Episodes
from quietq.online.linear import Linear
from quietq.online.policy import MOST, PrivateBandit
from quietq.online.ucb import LocalUCB, TreeUCB
from quietq.privacy import Budget, Certificate, InvalidInput
from quietq.privacy.assumptions import ABOUT_ACCOUNTS
from quietq.released.release_file import write_whole

POLICIES: tuple[type[PrivateBandit], ...] = (Elimination, Episodes, TreeUCB, LocalUCB, Linear)
"""All that a saved state may name."""
NAME = "PRIVATE-bandit.npz"
_EDITED = "the file was edited or damaged, or is of another version of quietq."
_TRUST = "PRIVATE: this file holds people's answers. Keep it where only the policy can read it, and do not copy it."


class StateHeader(msgspec.Struct, forbid_unknown_fields=True):
    """All that a file says beside the numbers of the state."""

    note: str
    policy: str
    settings: dict[str, Any]
    drawn: Annotated[int, msgspec.Meta(ge=0, le=10**15)]
    seen: dict[Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")], Annotated[int, msgspec.Meta(ge=1, le=MOST)]]
    certificate: dict[str, Any]


def save(policy: PrivateBandit, directory: str | Path) -> Path:
    """Writes the policy to a folder, whole or not at all; it goes on only where it is resumed.

    Args:
        policy: Any bandit of `quietq.online`.
        directory: The folder, made if it is not there; a state in it is replaced.

    """
    with policy._lock:
        before = _file_at(Path(directory) / NAME)
        policy._hand_over()
        try:
            return _write(policy, Path(directory))
        except Exception:
            if _file_at(Path(directory) / NAME) == before:  # nothing was written, so nobody else can go on
                policy._handed_over = False
            raise


def _file_at(path: Path) -> tuple[int, int] | None:
    """Returns which file it is; one that is written whole is always another."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def resume(directory: str | Path) -> PrivateBandit:
    """Gives the policy back as `save` left it, the first time; after that, what was noised of it and nothing else.

    Args:
        directory: The folder that `save` was given.

    """
    path, taken = Path(directory) / NAME, Path(directory) / f".{NAME}.taken-{os.getpid()}"
    try:
        os.rename(path, taken)  # one process gets it
    except OSError:
        raise InvalidInput(f"There is no state in {str(directory)!r} to go on from.") from None
    try:
        rest, policy = (_read(taken) for _ in range(2))
        rest._forget()
        rest._forget_visits()
        _write(rest, Path(directory))
    except BaseException:
        os.replace(taken, path)  # nothing was handed over
        raise
    taken.unlink()
    return policy


def _write(policy: PrivateBandit, directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    header = StateHeader(
        note=_TRUST,
        policy=policy.name,
        settings={name: getattr(policy, name) for name in _settings_of(type(policy))},
        drawn=policy._drawn,
        seen=policy._seen,
        certificate=policy.certificate.to_dict(),
    )
    stream, text = io.BytesIO(), msgspec.json.encode(header)
    np.savez(stream, allow_pickle=False, header=np.frombuffer(text, np.uint8), **vars(policy.state))
    write_whole(directory / NAME, stream.getvalue(), 0o600)
    return directory / NAME


def _settings_of(kind: type[PrivateBandit]) -> list[str]:
    """The account was charged when the policy was made, and is not charged again where it is resumed."""
    return [field.name for field in dataclasses.fields(kind) if field.name != "account"]


def _read(path: Path) -> PrivateBandit:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            header = msgspec.json.decode(stored["header"].tobytes(), type=StateHeader)
            arrays = {name: stored[name] for name in stored.files if name != "header"}
        policy = _made(header)
        certificate = Certificate.from_dict(header.certificate)
    except InvalidInput:
        raise
    except Exception as error:  # of whatever kind
        raise InvalidInput(f"{NAME} is not the state of a policy, or a damaged one.") from error
    policy._drawn = header.drawn
    policy._replace(state=_filled(policy.state, arrays))
    policy._count(Counter(header.seen))
    with np.errstate(all="ignore"):
        impossible = next((name for name, possible in policy._possible() if not possible), None)
    if impossible is not None:
        raise InvalidInput(f"The state's {impossible} is what no run of a policy of these settings leaves: {_EDITED}")
    if _stated(certificate) != _stated(policy.certificate):
        policy._forget_visits()
    if _stated(certificate) != _stated(policy.certificate):
        raise InvalidInput(f"The state's certificate is not that of its settings: {_EDITED}")
    policy._replace(certificate=certificate)
    return policy


def _made(header: StateHeader) -> PrivateBandit:
    """A policy of these settings, which are all there and no others."""
    kind = next(one for one in POLICIES if one.name == header.policy)
    settings = header.settings
    if set(settings) != set(_settings_of(kind)):
        raise ValueError
    settings |= {"rewards": tuple(settings["rewards"]), "budget": Budget(**settings["budget"])}
    with warnings.catch_warnings():  # of which it warned when it was made
        warnings.simplefilter("ignore")
        return kind(**settings)


def _stated(certificate: Certificate) -> dict[str, object]:
    """All of it that follows from a policy's settings: not whether it was charged, nor the version of the code."""
    kept = [one for one in certificate.assumptions if one.code not in ABOUT_ACCOUNTS]
    unstated = {"version": None, "assumptions": [*map(str, kept), len(certificate.assumptions)]}
    return {**certificate.to_dict(), **unstated}


def _filled(state: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The state with these numbers, if they fit."""
    if set(arrays) != set(vars(state)):
        raise InvalidInput(f"The state must have the fields {', '.join(vars(state))}, and no others: {_EDITED}")
    found = {}
    for name, now in vars(state).items():
        given = arrays[name]
        if (given.shape, given.dtype) != (np.shape(now), np.asarray(now).dtype):
            raise InvalidInput(f"The state's {name} does not fit a policy of these settings: {_EDITED}")
        found[name] = given.item() if given.ndim == 0 else given
    return type(state)(**found)
