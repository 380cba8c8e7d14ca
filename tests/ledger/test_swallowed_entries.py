"""A rule of the database's own that swallows entries: charges are not taken for booked."""

import pytest
from ledger_cases import FIFTY, execute

from quietq.ledger import Ledger, TamperedLedger
from quietq.privacy import Cost


def test_an_entry_that_is_not_kept_is_not_booked(url: str, ledger: Ledger):
    if "://" in url:
        execute(url, "CREATE RULE swallow AS ON INSERT TO quietq_ledger DO INSTEAD NOTHING")
    else:
        execute(url, "CREATE TRIGGER swallow BEFORE INSERT ON quietq_ledger BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(TamperedLedger, match="did not keep the entry"):
        ledger.account("ratings").charge(Cost.gaussian(0.1), FIFTY)
    assert not ledger.balance("ratings").bookings
