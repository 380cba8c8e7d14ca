"""What an audit found, in a small JSON file beside the release that it attacked."""

import json
import math
import stat
from pathlib import Path
from typing import Any

from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput

MOST_AUDIT_BYTES = 2**16


def audit_beside(path: Path) -> Path:
    """Where the audit of a release's file lies."""
    return path.with_name(f"{path.stem}.audit.json")


def read_audit_beside(path: Path) -> bytes | None:
    """The audit's bytes; a link is refused, for whoever may write there could have any file shown by it."""
    audit = audit_beside(path)
    try:
        kind = audit.lstat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(kind):
        raise InvalidInput(f"its audit, {shown(audit.name)}, must be a plain file, not a link or a folder.")
    with audit.open("rb") as stream:
        return stream.read(MOST_AUDIT_BYTES + 1)


def parse_audit(data: bytes, release_hash: str) -> dict[str, Any]:
    """What an audit found: a small, flat JSON object, because the page shows it to people who did not write it."""
    if len(data) > MOST_AUDIT_BYTES:
        raise InvalidInput(f"its audit must have at most {MOST_AUDIT_BYTES} bytes.")
    try:
        found = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidInput("its audit must be a JSON object in UTF-8.") from error
    if not isinstance(found, dict) or not all(map(_is_plain, (*found, *found.values()))):
        raise InvalidInput("its audit must be a JSON object of finite numbers, texts, true, false and null only.")
    if found.get("release") != release_hash:
        raise InvalidInput(
            f"its audit must name this release by its hash in the field release, not {shown(found.get('release'))}; "
            "`quietq audit ... --release FILE` writes such an audit."
        )
    return found


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return value.isprintable()  # no control characters, no half of a pair
    return value is None or (isinstance(value, int | float) and abs(value) <= 2**53 and math.isfinite(value))
