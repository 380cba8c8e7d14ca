"""`quietq ledger`, and how other commands find the account to charge."""

import json
from pathlib import Path

import pytest

from quietq import Budget, InvalidInput, people
from quietq.cli.ledger_command import open_account
from quietq.ledger import Ledger
from quietq.privacy import Cost

CREATE = "ledger create ledger.db --source ratings --epsilon 0.9 --delta 1e-4"
FIFTY = people(50, 0, 0.5, 1)


def test_create_show_history_verify(quietq, tmp_path: Path):
    code, out, err = quietq(f"{CREATE} --apart-epsilon 0.3")
    assert (code, err) == (0, "")
    assert "everything released under it is (1.2, 0.0001)-DP together" in out
    head = out.split()[-1]
    one = Ledger("ledger.db").account("ratings", "quietq reward")
    one.charge(Cost.gaussian(0.1), FIFTY).commit("ab" * 32)
    one.charge(Cost.gaussian(0.1), FIFTY)
    one.charge(Cost.apart(0.1), FIFTY)

    code, out, err = quietq("ledger show ledger.db --json")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    source = shown["sources"][0]
    assert source["spent_mu"] == pytest.approx(0.1 * 2**0.5)
    assert source["remaining_apart"] == {"epsilon": 0.2, "delta": 0.0}
    assert source["protects"] == "any one person"
    assert source["spent"] == {"epsilon": pytest.approx(0.5074, abs=1e-4), "delta": 1e-4}
    assert source["without_release"] == [charge["id"] for charge in source["bookings"][1:]]
    assert shown["head"] != head

    code, out, err = quietq("ledger show ledger.db")
    assert (code, err) == (0, "")
    assert "Those of 'ratings' so far are (0.50745, 0.0001)-DP together, if none" in out.replace("\n", " ")
    assert "2 charges of 'ratings' without a noted release, charged all the same" in out
    assert shown["head"] in out

    code, out, _ = quietq("ledger history ledger.db --source ratings --json")
    entries = json.loads(out)["entries"]
    assert code == 0
    assert [entry["what"] for entry in entries] == ["open", "reserve", "commit", "reserve", "reserve"]
    assert entries[1]["method"] == "quietq reward"
    code, out, _ = quietq("ledger history ledger.db")
    assert code == 0
    assert out.count(" reserve 'ratings': ") == 3
    assert f"commit 'ratings': id {entries[1]['id']}, release {'ab' * 32}; hash {entries[2]['hash'][:12]}" in out

    code, out, _ = quietq(f"ledger verify ledger.db --head {head} --json")
    assert (code, json.loads(out)) == (0, {"head": shown["head"], "noted": head, "entries": 5})
    assert quietq("ledger verify ledger.db")[0] == 0


def test_a_second_source_and_one_without_gaussian_noise(quietq):
    quietq(CREATE)
    code, out, _ = quietq("ledger create ledger.db --source votes --apart-epsilon 1 --json")
    assert code == 0
    assert json.loads(out)["source"]["promised"] == {"epsilon": 1.0, "delta": 0.0}
    code, out, _ = quietq("ledger show ledger.db")
    assert code == 0
    assert "ratings" in out
    assert "votes" in out
    assert "ratings" not in quietq("ledger show ledger.db --source votes")[1]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("ledger show nothing.db", "There is no ledger at"),
        ("ledger verify nothing.db", "There is no ledger at"),
        (CREATE, "a budget is set once"),
        ("ledger show ledger.db --source votes", "no source 'votes'; it has: ratings"),
        ("ledger history ledger.db --source votes", "no source 'votes'"),
        (f"ledger verify ledger.db --head {'ab' * 32}", "cut off or it was written anew"),
        ("ledger verify ledger.db --head abc", "head must be a SHA-256 hash"),
        ("ledger create ledger.db --source a --epsilon 1", "--epsilon and --delta must be given together"),
        ("ledger create ledger.db --source a --apart-delta 0.1", "--apart-delta needs --apart-epsilon"),
        ("ledger create ledger.db --source a", "There must be a budget, or something set apart"),
        ("ledger create ledger.db --source a --epsilon 1 --delta 0", "give a delta above 0"),
        ("ledger create other.db --source a --epsilon -1 --delta 0.1", "epsilon must be above 0"),
        ("ledger show postgresql://me:hunter2@host/name", "PGPASSWORD or ~/.pgpass"),
        ("ledger show postgresql://me@host/name?password=hunter2", "PGPASSWORD or ~/.pgpass"),
        ("ledger show mysql://host/name", "url must be a file"),
    ],
)
def test_wrong_input(quietq, command: str, sentence: str, tmp_path: Path):
    quietq(CREATE)
    code, out, err = quietq(command)
    assert (code, out) == (2, "")
    assert err.startswith("quietq: ")
    assert err.count("\n") == 1
    assert sentence in err
    assert "hunter2" not in err
    assert not (tmp_path / "other.db").exists()


def test_a_changed_ledger_is_told_in_a_sentence(quietq, tmp_path: Path):
    import sqlite3

    quietq(CREATE)
    connection = sqlite3.connect(tmp_path / "ledger.db")
    with connection:
        connection.execute("DROP TRIGGER quietq_ledger_no_update")
        connection.execute("UPDATE quietq_ledger SET body = replace(body, '0.9', '9.9')")
    connection.close()
    for command in ("show", "history", "verify"):
        code, out, err = quietq(f"ledger {command} ledger.db")
        assert (code, out) == (2, "")
        assert err == (
            "quietq: Entry 1 of the ledger was changed, or one before it is missing: nothing is spent from it.\n"
        )


def test_names_are_shown_as_they_are(quietq):
    Ledger.create("ledger.db").open("[red]votes[/red]", Budget(1, 1e-5))
    assert "[red]votes" in quietq("ledger show ledger.db")[1]


def test_help_without_a_command(quietq):
    code, out, _ = quietq("ledger")
    assert code == 0
    assert all(command in out for command in ("create", "show", "history", "verify"))


def test_the_account_of_other_commands(quietq):
    assert open_account(None, None) is None
    with pytest.raises(InvalidInput, match="--ledger"):
        open_account(None, "ratings")
    quietq(CREATE)
    one = open_account("ledger.db", None, "quietq reward")
    assert one is not None
    assert (one.source, one.method) == ("ratings", "quietq reward")
    quietq(CREATE.replace("ratings", "votes"))
    with pytest.raises(InvalidInput, match="it has: ratings, votes"):
        open_account("ledger.db", None)
    chosen = open_account("ledger.db", "votes")
    assert chosen is not None
    assert chosen.source == "votes"
    with pytest.raises(InvalidInput, match="PGPASSWORD"):
        open_account("postgresql://me:hunter2@host/name", None)
