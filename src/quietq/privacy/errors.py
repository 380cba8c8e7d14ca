"""What can go wrong, in words that a user can act on."""

import importlib.metadata
import importlib.util
import json
import shlex
import shutil
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar
from urllib.parse import unquote, urlsplit

Given = ParamSpec("Given")
Made = TypeVar("Made")


class QuietqError(Exception):
    """Base of every error that quietq raises on purpose."""


class InvalidInput(QuietqError, ValueError):
    """A value was given that has no meaning here; the message names the field and what would be right."""


class BudgetExhausted(QuietqError, RuntimeError):
    """The privacy budget does not cover what was asked; nothing was drawn and nothing was released."""


class EngineFailed(QuietqError, RuntimeError):
    """The machines that hold people's rows failed; in a release, the message says whether anything was spent."""


class NoRkhsRadius(InvalidInput):
    """The relation is not bounded in this kernel's norm, so no finite amount of its noise protects it."""


class MissingExtra(QuietqError, ImportError):
    """An optional dependency is needed; the message says what to install."""

    @classmethod
    def of(cls, extra: str, needed: str) -> "MissingExtra":
        """Says what is `needed`, and the command that installs this extra into the Python that runs."""
        return cls(f"{needed}: {_installer()} {_source(extra)}")  # no full stop, which would be copied


class PrivacyWarning(UserWarning):
    """The guarantee holds but is weaker than it looks, e.g. delta is not small against 1/people."""


def shows_nothing(release: Callable[Given, Made]) -> Callable[Given, Made]:
    """A refusal carries no frames of `release` along, in which a log or a debugger would find private values."""

    @wraps(release)
    def refusing(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            return release(*args, **kwargs)
        except QuietqError as error:
            refusal = error.with_traceback(None)
        del args, kwargs
        raise refusal

    return refusing


def _installer() -> str:
    """Returns the command that installs into this Python, whose environment may not be activated."""
    python = shlex.quote(sys.executable)
    if importlib.util.find_spec("pip") is None:  # an environment that uv made has none
        return f"uv pip install --python {python}"
    own = Path(shutil.which("pip") or "").parent == Path(sys.executable).parent
    return "pip install" if own else f"{python} -m pip install"


def _source(extra: str) -> str:
    """Returns what pip is given for quietq with an extra: from where it was installed, because no index may have it."""
    checkout = Path(__file__).parents[3]
    project = checkout / "pyproject.toml"
    if project.is_file() and '\nname = "quietq"\n' in project.read_text(encoding="utf-8"):
        return "-e " + shlex.quote(f"{'.' if checkout == Path.cwd() else checkout}[{extra}]")
    try:
        origin = json.loads(importlib.metadata.distribution("quietq").read_text("direct_url.json") or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        origin = {}
    if "url" not in origin:
        return shlex.quote(f"quietq[{extra}]")
    place, kept = origin["url"], origin.get("vcs_info", {})
    if place.startswith("file:") and not kept and not Path(unquote(urlsplit(place).path)).exists():
        return f"-e {shlex.quote(f'.[{extra}]')}  # in the folder of quietq's sources"
    if kept:
        revision = kept.get("requested_revision")
        place = f"{kept['vcs']}+{place}{'@' + revision if revision else ''}"
    below = origin.get("subdirectory")
    return shlex.quote(f"quietq[{extra}] @ {place}{'#subdirectory=' + below if below else ''}")
