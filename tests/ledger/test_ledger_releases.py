"""A release is charged before it is drawn, for good, and noted once, whatever draws it, in any thread or process."""

import math
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from ledger_cases import BUDGET, FIFTY

from quietq import (
    Accountant,
    Budget,
    BudgetExhausted,
    GaussianProcessMechanism,
    InvalidInput,
    PrivateReward,
    Trajectories,
    privatise,
    publish,
)
from quietq.feedback.cells import Cells
from quietq.ledger import Ledger
from quietq.noise.entropy import SystemEntropy
from quietq.noise.exact import LazyUniform
from quietq.noise.exact_gaussian import Chance
from quietq.paper import Evaluation
from quietq.privacy import Cost
from quietq.privacy.account import Once

HASH = "ab" * 32


def test_a_release_is_noted_once(ledger: Ledger):
    account = ledger.account("ratings")
    receipt = account.charge(Cost.gaussian(0.1), FIFTY)
    receipt.commit(HASH)
    account.receipt(str(receipt.id)).commit(HASH)
    with pytest.raises(InvalidInput, match="was for another release"):
        receipt.commit("cd" * 32)
    with pytest.raises(InvalidInput, match="SHA-256"):
        receipt.commit("release.qq")
    assert [charge.release for charge in ledger.balance("ratings").bookings] == [HASH]
    assert len(ledger.history()) == 3
    with pytest.raises(BudgetExhausted):
        account.charge(Cost.gaussian(1.0), FIFTY)
    with pytest.raises(InvalidInput, match="has no reservation"):
        ledger.commit("ratings", "ab" * 16, HASH)


def test_threads_of_one_account_do_not_mix_up_their_releases(ledger: Ledger):
    account, together = ledger.account("ratings"), threading.Barrier(4)

    def release(number: int) -> str:
        together.wait()
        receipt = account.charge(Cost.gaussian(0.01 * (1 + number)), FIFTY)
        together.wait()
        receipt.commit(f"{number:064x}")
        return str(receipt.id)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(release, range(4)))) == 4
    noted = {charge.cost.mu: charge.release for charge in ledger.balance("ratings").bookings}
    assert noted == {0.01 * (1 + number): f"{number:064x}" for number in range(4)}


def test_rewards_are_charged_before_they_are_drawn_and_noted(ledger: Ledger, tmp_path: Path):
    account = ledger.account("ratings")
    share = Budget.from_mu(0.1, 1e-4)
    f = lambda x: 0.2 + 0.1 * np.sin(x)  # noqa: E731
    for noise in ("path", "knots", "auto"):
        private = privatise(
            f, share, relation=FIFTY, noise=noise, pieces=None if noise == "path" else 4, account=account
        )
        publish(private, tmp_path / noise)
    privatise(f, Budget(0.1, 0), relation=FIFTY, account=account)
    privatise(f, Budget(0.1, 1e-4), relation=FIFTY, noise="k-norm", account=account)
    charges = ledger.balance("ratings").bookings
    assert [charge.cost.mu is None for charge in charges] == [False, False, False, True, True]
    assert [(charge.cost.epsilon, charge.cost.delta) for charge in charges[3:]] == [(0.1, 0.0)] * 2
    assert [charge.release is None for charge in charges] == [False, False, False, True, True]
    privatise(f, share, relation=FIFTY, account=account, simulate=3)
    assert len(ledger.balance("ratings").bookings) == 5


def test_evaluations_are_booked_apart(ledger: Ledger):
    ledger.open("walks", None, Budget(1.0, 1e-6))
    walks = [([0, 1, 2], [0.0, 0.0, 1.0])] * 300
    everyone = Trajectories(count=300, largest_reward=1.0, horizon=3)
    evaluation = Evaluation(budget=Budget(1.0, 1e-6), relation=everyone, gamma=0.5, cells=Cells.states(3))
    evaluation.release(walks, account=ledger.account("walks"))
    evaluation.release(walks, account=ledger.account("walks"), simulate=0)
    with pytest.raises(BudgetExhausted, match="'walks'"):
        evaluation.release(walks, account=ledger.account("walks"))
    with pytest.raises(BudgetExhausted, match="nothing was set apart"):
        evaluation.release(walks, account=Accountant(BUDGET))
    assert ledger.balance("walks").unit == "any one trajectory"


class Fails(RuntimeError):
    """Somebody's own code."""


def fail(*_: object, **__: object) -> None:
    raise Fails


@pytest.mark.parametrize("noise", ["path", "knots", "k-norm", "mechanism"])
def test_an_error_after_the_charge_gives_nothing_back(ledger: Ledger, noise: str, monkeypatch: pytest.MonkeyPatch):
    account, share = ledger.account("ratings"), Budget(0.2, 1e-5)
    seen: list[int] = []

    def looked_at(self: object, shape: object) -> None:
        seen.append(len(ledger.balance("ratings").bookings))  # from a connection of its own: it is there for good
        raise Fails

    monkeypatch.setattr(Chance, "digits", looked_at)
    monkeypatch.setattr(SystemEntropy, "uniforms", looked_at)
    monkeypatch.setattr(LazyUniform, "refine", looked_at)
    mechanism = GaussianProcessMechanism.for_relation(FIFTY, share, levels=4, account=account)
    releases = {
        "mechanism": lambda: mechanism.apply(np.sin),
        "path": lambda: privatise(np.sin, share, relation=FIFTY, noise="path", account=account),
        "knots": lambda: privatise(np.sin, share, relation=FIFTY, noise="knots", pieces=4, account=account),
        "k-norm": lambda: privatise(np.sin, share, relation=FIFTY, noise="k-norm", pieces=4, account=account),
    }
    with pytest.raises(Fails):
        releases[noise]()
    assert seen == [1]
    assert len(ledger.balance("ratings").bookings) == 1


def test_an_environment_that_fails_after_the_charge_gives_nothing_back(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    env = gymnasium.make("quietq.worlds:quietq/Walk-v0", disable_env_checker=True)
    private = PrivateReward.of(env, FIFTY, Budget(0.2, 1e-5), account=ledger.account("ratings"))
    private.reset(seed=0)
    private.step(0)
    monkeypatch.setattr(env.unwrapped, "step", fail)
    with pytest.raises(Fails):
        private.step(0)
    assert len(ledger.balance("ratings").bookings) == 1


def test_wrong_input_is_refused_before_anything_is_booked(ledger: Ledger):
    account = ledger.account("ratings")
    for f in (lambda x: x * math.nan, lambda x: x[:2]):
        for noise in ("path", "knots", "k-norm"):
            with pytest.raises(InvalidInput):
                privatise(f, Budget(0.2, 1e-5), relation=FIFTY, noise=noise, account=account)
    assert ledger.balance("ratings").bookings == ()


def test_a_fork_charges_the_same_book(ledger: Ledger):
    account = ledger.account("ratings")
    child = os.fork()
    if child == 0:
        try:
            account.charge(Cost.gaussian(0.2), FIFTY)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(BudgetExhausted):
        account.charge(Cost.gaussian(0.25), FIFTY)
    assert account.spending.spent_mu == pytest.approx(0.2)


def test_a_copy_of_a_ledger_is_another_book(tmp_path: Path):
    """Or what was released for all of one cap would be released again for all of the other's."""
    ledger = Ledger.create(tmp_path / "a.db")
    ledger.open("ratings", BUDGET)
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    once = Once("These people's reward")
    cost = Cost.gaussian(BUDGET.mu)
    once.spend(ledger.account("ratings"), cost, FIFTY)
    with pytest.raises(BudgetExhausted, match="charged to another account"):
        once.spend(Ledger(tmp_path / "b.db").account("ratings"), cost, FIFTY)
    again = Ledger(tmp_path / "a.db").account("ratings")
    assert again.book == ledger.account("ratings").book


def test_an_account_that_is_pointed_elsewhere_pays_no_second_time(tmp_path: Path):
    ledgers = [Ledger.create(tmp_path / name) for name in ("first.db", "second.db")]
    for ledger in ledgers:
        ledger.open("ratings", BUDGET)
    account, secret = ledgers[0].account("ratings"), Once("These people's reward")
    secret.spend(account, Cost.gaussian(BUDGET.mu), FIFTY)
    with pytest.raises(InvalidInput, match="not begun anew"):
        account.__init__(ledgers[1], "ratings")
    account.ledger = ledgers[1]
    with pytest.raises(BudgetExhausted, match="charged to another account"):
        secret.spend(account, Cost.gaussian(BUDGET.mu), FIFTY)
    assert not ledgers[1].balance("ratings").bookings
