"""What commands do with a ledger besides charging it: they note which release a charge was for.

A note in the run's folder says which charge that is. It is for `commit` alone: a run that was interrupted before its
noise was kept draws anew when it goes on, and is charged anew, because nobody knows what the first draw was used for.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import quietq as qq
from quietq.cli import run_directory as run

if TYPE_CHECKING:
    from quietq.ledger import Account


def located(url: str | None) -> str | None:
    """The ledger's address, such that it is the same from any folder."""
    if url is None or ("://" in url and not url.startswith("sqlite:///")):
        return url
    return str(Path(url.removeprefix("sqlite:///")).absolute())


def note(account: "Account", release: str) -> None:
    """Notes the release of this process's last charge."""
    try:
        account.committed(release)
    except qq.QuietqError as error:
        _warn(error)


def commit(folder: Path, release: str) -> None:
    """Notes the release of a run's charge; a run without a ledger has none."""
    path = folder / run.LEDGER
    if not path.exists():
        return
    from quietq.ledger import Ledger

    try:
        record = json.loads(path.read_text())
        Ledger(record["ledger"]).commit(record["source"], record["reservation"], release)
    except (OSError, ValueError, KeyError, TypeError, qq.QuietqError) as error:
        _warn(error)


def _warn(error: Exception) -> None:
    """The release is there and paid for; only the ledger does not know its name."""
    print(f"quietq: warning: the release is written and charged, but the ledger could not note its hash: {error}",
          file=sys.stderr)  # fmt: skip
