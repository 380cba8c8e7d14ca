"""`--ledger` on the commands that draw noise: charged before, once, whatever happens then."""

import json

import pytest

pytest.importorskip("jax")
pytest.importorskip("sqlalchemy")

import quietq as qq
from quietq.paper.agents import trainer

TINY = "--steps 100 --set widths=8 --set batch=16 --set start=16 --set replay=100 --seeds 3"  # as in test_cli_train
PROMISE = "--people 50 --epsilon 0.4 --delta 1e-4"
OUTPUT = "output walk --steps 200"


@pytest.fixture
def ledger(quietq, tmp_path):
    assert quietq("ledger create books.db --source walkers --epsilon 0.9 --delta 1e-4 --apart-epsilon 0.5")[0] == 0
    return qq.Ledger(tmp_path / "books.db")


def release(path) -> str:
    return qq.released.open_release(path).hash  # type: ignore[attr-defined]


def test_an_agent_that_noises_as_it_goes_is_the_release(quietq, ledger, tmp_path):
    code, _, err = quietq(f"paper train {OUTPUT} {PROMISE} --ledger books.db --source walkers --out run")
    assert (code, err) == (0, "")
    (charge,) = ledger.balance("walkers").bookings
    assert charge.release == release(tmp_path / "run" / "agent.qq")


@pytest.mark.parametrize(
    ("after", "charges", "said"),
    [("advance", 1, "the budget was charged already"), ("rehearse", 0, "nothing was spent")],
)
def test_an_interrupted_training_says_whether_it_was_charged(quietq, ledger, monkeypatch, after, charges, said):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("quietq.privacy.account._spent", {})  # as in a process of its own
    monkeypatch.setattr(trainer, after, interrupt)
    code, _, err = quietq(f"paper train {OUTPUT} {PROMISE} --ledger books.db --out run")
    assert (code, said in err) == (130, True)
    bookings = ledger.balance("walkers").bookings
    assert [charge.release for charge in bookings] == [None] * charges


def test_a_charge_that_was_interrupted_in_the_ledger_is_told(quietq, ledger, monkeypatch):
    reserve = qq.Ledger.reserve

    def interrupt(*arguments, **named):
        reserve(*arguments, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(qq.Ledger, "reserve", interrupt)
    code, _, err = quietq(f"paper train {OUTPUT} {PROMISE} --ledger books.db --out run")
    assert (code, "the budget was charged already" in err) == (130, True)
    assert len(ledger.balance("walkers").bookings) == 1


def test_an_error_after_the_charge_gives_nothing_back(quietq, ledger, monkeypatch):
    def fail(*_, **__):
        raise qq.InvalidInput("something broke")

    monkeypatch.setattr(qq, "publish", fail)
    assert quietq(f"paper train {OUTPUT} {PROMISE} --ledger books.db --out run")[0] == 2
    assert len(ledger.balance("walkers").bookings) == 1


def test_an_exhausted_budget_leaves_nothing_behind(quietq, ledger, tmp_path):
    code, out, err = quietq(f"paper train {OUTPUT} --people 50 --epsilon 1.5 --delta 1e-4 --ledger books.db --out run")
    assert (code, out) == (2, "")
    assert "nothing was booked" in err
    assert not list((tmp_path / "run").iterdir())
    assert not ledger.balance("walkers").bookings


def test_what_draws_nothing_takes_no_ledger(quietq, ledger, tmp_path):
    for arguments, words in (
        (f"none walk {TINY} --ledger books.db", "'none' has no --ledger"),
        (f"published walk {TINY} --ledger books.db", "'published' has no --ledger"),
        (f"{OUTPUT} {PROMISE} --simulate 2 --ledger books.db", "draws none"),
        (f"reward walk --reward reward.qq {TINY} --ledger books.db", "paid for when it was made"),
        (f"{OUTPUT} {PROMISE} --ledger nothing.db", "There is no ledger"),
        (f"{OUTPUT} {PROMISE} --ledger books.db --source nobody", "no source 'nobody'"),
        (f"{OUTPUT} {PROMISE} --source walkers", "--ledger"),
    ):
        code, out, err = quietq(f"paper train {arguments} --out run")
        assert (code, out) == (2, "")
        assert words in err
        assert not (tmp_path / "run").exists()
    assert not ledger.balance("walkers").bookings


def test_what_is_pure_is_booked_apart(quietq, ledger, tmp_path):
    write_ratings(tmp_path)
    code, _, err = quietq(f"reward ratings.csv {BOUNDS} --epsilon 0.4 --delta 0 --ledger books.db --out reward.qq")
    assert (code, err) == (0, "")
    (charge,) = ledger.balance("walkers").bookings
    assert (charge.cost.mu, charge.cost.epsilon, charge.cost.delta) == (None, 0.4, 0.0)


BOUNDS = "--box 0 1 --low 0 --high 1 --slope 1 --people 50"


def write_ratings(folder):
    rows = [f"{person},{state / 4},{person % 2}" for person in range(50) for state in range(5)]
    (folder / "ratings.csv").write_text("\n".join(["person,state,rating", *rows]) + "\n")


def test_a_reward_from_ratings_is_charged(quietq, ledger, tmp_path):
    write_ratings(tmp_path)
    command = f"reward ratings.csv {BOUNDS} --epsilon 0.7 --delta 1e-4 --ledger books.db"
    code, out, err = quietq(f"{command} --out reward.qq --json")
    assert (code, err) == (0, "")
    (charge,) = ledger.balance("walkers").bookings
    assert charge.release == json.loads(out)["hash"] == release(tmp_path / "reward.qq")
    code, out, err = quietq(f"{command} --out books.db")
    assert (code, out) == (2, "")
    assert "is there and not a release" in err
    assert len(ledger.balance("walkers").bookings) == 1
    code, out, err = quietq(f"{command} --out second.qq")
    assert (code, out) == (2, "")
    assert charge.reserved.at in err  # when it was spent
    assert not (tmp_path / "second.qq").exists()
