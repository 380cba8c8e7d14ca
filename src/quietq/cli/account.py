"""What commands do with a ledger besides charging it: they note which release a charge was for.

A note in the run's folder says which charge that is. It is for the release's hash alone: a run that was interrupted
before its noise was kept draws anew when it goes on, and is charged anew, because nobody knows what the first draw was
used for.
"""

import json
from pathlib import Path

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import warn
from quietq.ledger import Account, Ledger
from quietq.privacy.relations import Relation


class RunAccount(Account):
    """An account that leaves the id of its charge in a run's folder."""

    def __init__(self, account: Account, url: str, out: Path) -> None:
        super().__init__(account.ledger, account.source, account.method)
        self._url, self._out = url, out

    def charge(self, mu: float, rounds: int = 1, relation: Relation | None = None) -> None:
        """Charges, then notes."""
        super().charge(mu, rounds, relation)
        self._note()

    def charge_apart(self, epsilon: float, delta: float = 0.0, relation: Relation | None = None) -> None:
        """Charges, then notes."""
        super().charge_apart(epsilon, delta, relation)
        self._note()

    def _note(self) -> None:
        record = {"ledger": self._url, "source": self.source, "reservation": self.reservation}
        folder.write_json(self._out / folder.LEDGER, record)


def note_release(account: Account, release: str) -> None:
    """Notes the release of this process's last charge, or of the charge that the run's folder tells of."""
    try:
        if not isinstance(account, RunAccount):
            account.committed(release)
        elif (path := account._out / folder.LEDGER).exists():
            record = json.loads(path.read_text())
            Ledger(record["ledger"]).commit(record["source"], record["reservation"], release)
    except (OSError, ValueError, KeyError, TypeError, qq.QuietqError) as error:
        warn(f"the release is written and charged, but the ledger could not note its hash: {error}")
