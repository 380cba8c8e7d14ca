"""An account that leaves the id of its charge in a run's folder."""

from pathlib import Path

from quietq.cli import run_directory as run
from quietq.ledger import Account
from quietq.privacy.relations import Relation


class NotedAccount(Account):
    """An account that leaves the id of its charge in a run's folder."""

    def __init__(self, account: Account, url: str, folder: Path) -> None:
        super().__init__(account.ledger, account.source, account.method)
        self._url, self._folder = url, folder

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
        run.write_json(self._folder / run.LEDGER, record)
