"""Budgets by source: what is booked, refused, kept and told, in SQLite and PostgreSQL alike."""

import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from quietq import (
    Accountant,
    Budget,
    BudgetExhausted,
    Evaluation,
    Features,
    GaussianProcessMechanism,
    InvalidInput,
    LipschitzBall,
    PrivateReward,
    RkhsBall,
    SupBall,
    Trajectories,
    people,
    privatise,
    publish,
)
from quietq.learning.trajectories import Cells
from quietq.ledger import Ledger
from quietq.noise.entropy import SystemEntropy

BUDGET = Budget(0.9, 1e-4)
FIFTY = people(50, 0, 0.5, 1)
HASH = "ab" * 32


@pytest.fixture
def ledger(url: str) -> Ledger:
    ledger = Ledger.create(url)
    ledger.open("ratings", BUDGET, Budget(0.3, 1e-6))
    return ledger


def test_squares_add_up_over_processes_lifetimes_and_no_further(ledger: Ledger, url: str):
    for _ in range(4):
        Ledger(url).account("ratings").charge(BUDGET.mu / 2, relation=FIFTY)
    balance = Ledger(url).balance("ratings")
    assert balance.spent_mu == pytest.approx(BUDGET.mu)
    assert balance.remaining_mu < 1e-6
    with pytest.raises(BudgetExhausted, match="nothing was booked"):
        Ledger(url).account("ratings").charge(1e-3, relation=FIFTY)
    assert len(Ledger(url).balance("ratings").charges) == 4
    assert len(balance.without_release) == 4
    assert balance.promised == (pytest.approx(1.2), pytest.approx(1.01e-4))


def test_what_remains_can_be_spent(ledger: Ledger):
    account = ledger.account("ratings")
    account.charge(BUDGET.mu / math.sqrt(78), rounds=77, relation=FIFTY)
    account.charge(account.remaining_mu, relation=FIFTY)
    assert account.get_epsilon(1e-4) == pytest.approx(0.9)
    assert account.get_epsilon(1e-4) <= 0.9
    assert account.get_delta(0.9) == pytest.approx(1e-4)
    assert account.relation is None


def test_what_has_no_mu_is_booked_apart_and_adds_up_as_decimal_numbers(ledger: Ledger):
    account = ledger.account("ratings")
    for _ in range(3):
        account.charge_apart(0.1, relation=FIFTY)  # 0.1 + 0.1 + 0.1 > 0.3 in floating point
    balance = ledger.balance("ratings")
    assert balance.spent_apart == (0.3, 0.0)
    assert balance.remaining_apart == (0.0, 1e-6)
    assert balance.remaining_mu == BUDGET.mu
    assert account.get_epsilon(1e-5) == 0.3
    with pytest.raises(
        BudgetExhausted, match=r"epsilon = 0 of 0.3 and delta = 1e-06 of 1e-06 left, and epsilon = 1e-09"
    ):
        account.charge_apart(1e-9, relation=FIFTY)
    account.charge(0.2, relation=FIFTY)
    assert account.get_epsilon(1e-4) == pytest.approx(0.3 + 0.6016, abs=1e-4)
    with pytest.raises(InvalidInput, match="no event for that"):
        account.to_event()


def test_deltas_add_up_too(ledger: Ledger):
    account = ledger.account("ratings")
    account.charge_apart(0.1, 6e-7, FIFTY)
    with pytest.raises(BudgetExhausted, match="delta = 4e-07 of 1e-06 left"):
        account.charge_apart(0.1, 6e-7, FIFTY)
    account.charge_apart(*ledger.balance("ratings").remaining_apart, FIFTY)
    assert ledger.balance("ratings").remaining_apart == (0.0, 0.0)


def test_a_source_may_have_only_one_part(ledger: Ledger):
    ledger.open("gaussian", BUDGET)
    ledger.open("pure", None, Budget(1.0, 0))
    with pytest.raises(BudgetExhausted, match="nothing set apart"):
        ledger.account("gaussian").charge_apart(0.1, relation=FIFTY)
    with pytest.raises(BudgetExhausted, match="no budget for Gaussian noise"):
        ledger.account("pure").charge(0.1, relation=FIFTY)
    ledger.account("pure").charge_apart(1.0, relation=FIFTY)
    assert ledger.balance("pure").promised == (1.0, 0.0)
    assert ledger.account("pure").spent_mu == 0 == ledger.account("pure").remaining_mu


@pytest.mark.parametrize(
    ("source", "budget", "apart", "sentence"),
    [
        ("a", None, None, "needs a budget"),
        ("a", Budget(1, 0), None, "give a delta above 0, or give this amount as apart"),
        ("a", Budget(1, 0.6), Budget(1, 0.6), "below 1 together"),
        ("", BUDGET, None, "source must be one printable line"),
        (" a", BUDGET, None, "without spaces"),
        ("a\nb", BUDGET, None, "printable"),
        ("a" * 201, BUDGET, None, "1 to 200 letters"),
        ("ratings", BUDGET, None, "a budget is set once"),
    ],
)
def test_sources_that_cannot_be(
    ledger: Ledger, source: str, budget: Budget | None, apart: Budget | None, sentence: str
):
    with pytest.raises(InvalidInput, match=sentence):
        ledger.open(source, budget, apart)
    assert list(ledger.balances()) == ["ratings"]


def test_refusal_says_what_is_left_and_when_it_was_spent(ledger: Ledger):
    with pytest.raises(BudgetExhausted, match="Nothing was spent of it yet: it is too small"):
        ledger.account("ratings").charge(1.0, relation=FIFTY)
    for month in range(5):
        ledger.account("ratings", f"month {month}").charge(0.1, relation=FIFTY)
    times = [charge.at for charge in ledger.balance("ratings").charges]
    with pytest.raises(BudgetExhausted) as refused:
        ledger.account("ratings").charge(0.25, relation=FIFTY)
    assert str(refused.value) == (
        "Source 'ratings' has mu = 0.178... of 0.28596 left, and mu = 0.25 was asked for; nothing was booked. "
        f"It was spent on 2 earlier releases, {times[2]} (month 2, mu 0.1), {times[3]} (month 3, mu 0.1) and "
        f"{times[4]} (month 4, mu 0.1)."
    ).replace("0.178...", f"{ledger.balance('ratings').remaining_mu:g}").replace("0.28596", f"{BUDGET.mu:g}")


def test_all_releases_of_a_source_protect_the_same_unit(ledger: Ledger):
    account = ledger.account("ratings")
    account.charge(0.1, relation=FIFTY)
    account.charge(0.1, relation=people(500, 0, 1, 2))  # one person is one person
    account.charge_apart(0.1, relation=SupBall(0.01, people=70))
    for other, words in (
        (SupBall(0.01), "rewards that differ by at most 0.01 anywhere"),
        (Trajectories(50, 1.0, 10), "any one trajectory"),
    ):
        with pytest.raises(InvalidInput, match=f"protect any one person, and a sum with one that protects {words}"):
            account.charge(0.01, relation=other)
    assert len(ledger.balance("ratings").charges) == 3


def test_radii_that_look_alike_are_not_the_same_unit(ledger: Ledger):
    account = ledger.account("ratings")
    account.charge(0.1, relation=LipschitzBall(0.01, 0.04))
    account.charge(0.1, relation=LipschitzBall(0.01, 0.04))
    with pytest.raises(InvalidInput, match="would mean nothing"):
        account.charge(0.1, relation=LipschitzBall(0.01 + 1e-9, 0.04))


def test_what_is_protected_must_be_said(ledger: Ledger):
    with pytest.raises(InvalidInput, match=r"relation must say what the release protects.*Nothing was booked"):
        ledger.account("ratings").charge(0.1)
    assert ledger.balance("ratings").charges == ()


def test_a_relation_in_any_kernel_is_kept(ledger: Ledger):
    features = Features(lambda x: np.stack([x[:, 0], x[:, 0] ** 2], axis=-1), dimension=1, rank=2)
    ledger.account("ratings").charge(0.1, relation=RkhsBall(0.02, features))
    assert str(ledger.balance("ratings").unit).startswith("rewards whose difference has norm")


def test_a_release_is_noted_once(ledger: Ledger):
    account = ledger.account("ratings")
    with pytest.raises(InvalidInput, match="Nothing was charged"):
        account.committed(HASH)
    account.charge(0.1, relation=FIFTY)
    account.committed(HASH)
    account.committed(HASH)
    with pytest.raises(InvalidInput, match="was for another release"):
        account.committed("cd" * 32)
    with pytest.raises(InvalidInput, match="SHA-256"):
        account.committed("release.qq")
    assert [charge.release for charge in ledger.balance("ratings").charges] == [HASH]
    assert len(ledger.history()) == 3
    with pytest.raises(BudgetExhausted):
        account.charge(1.0, relation=FIFTY)
    with pytest.raises(InvalidInput, match="Nothing was charged"):  # a refused charge has no release
        account.committed(HASH)
    with pytest.raises(InvalidInput, match="has no reservation"):
        ledger.commit("ratings", "ab" * 16, HASH)


def test_threads_of_one_account_do_not_mix_up_their_releases(ledger: Ledger):
    account, together = ledger.account("ratings"), threading.Barrier(4)

    def release(number: int) -> str:
        together.wait()
        account.charge(0.01 * (1 + number), relation=FIFTY)
        together.wait()
        account.committed(f"{number:064x}")
        return str(account.reservation)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(release, range(4)))) == 4
    noted = {charge.mu: charge.release for charge in ledger.balance("ratings").charges}
    assert noted == {0.01 * (1 + number): f"{number:064x}" for number in range(4)}


def test_rewards_are_charged_before_they_are_drawn_and_noted(ledger: Ledger, tmp_path: Path):
    account = ledger.account("ratings")
    share = Budget.from_mu(0.1, 1e-4)
    f = lambda x: 0.2 + 0.1 * np.sin(x)  # noqa: E731
    for noise in ("path", "knots", "auto"):
        private = privatise(
            f, share, relation=FIFTY, noise=noise, pieces=None if noise == "path" else 4, ledger=account
        )
        account.committed(publish(private, tmp_path / noise))
    privatise(f, Budget(0.1, 0), relation=FIFTY, ledger=account)
    privatise(f, Budget(0.1, 1e-4), relation=FIFTY, noise="k-norm", ledger=account)
    charges = ledger.balance("ratings").charges
    assert [charge.mu is None for charge in charges] == [False, False, False, True, True]
    assert [(charge.epsilon, charge.delta) for charge in charges[3:]] == [(0.1, 0.0)] * 2
    assert [charge.release is None for charge in charges] == [False, False, False, True, True]
    privatise(f, share, relation=FIFTY, ledger=account, simulate=3)
    assert len(ledger.balance("ratings").charges) == 5


def test_weights_of_features_and_evaluations_are_booked_apart(ledger: Ledger):
    features = Features(lambda x: x, dimension=3, rank=3)
    ball, share = RkhsBall.of_people(100, features, 1.0), Budget(0.1, 0)
    privatise(np.array([0.1, 0.2, 0.3]), share, relation=ball, domain=[(-1, 1)] * 3, ledger=ledger.account("ratings"))
    assert ledger.balance("ratings").spent_apart == (0.1, 0.0)

    ledger.open("walks", None, Budget(1.0, 1e-6))
    walks = [([0, 1, 2], [0.0, 0.0, 1.0])] * 300
    everyone = Trajectories(count=300, largest_reward=1.0, horizon=3)
    evaluation = Evaluation(budget=Budget(1.0, 1e-6), relation=everyone, gamma=0.5, cells=Cells.states(3))
    evaluation.release(walks, ledger=ledger.account("walks"))
    evaluation.release(walks, ledger=ledger.account("walks"), simulate=0)
    with pytest.raises(BudgetExhausted, match="'walks'"):
        evaluation.release(walks, ledger=ledger.account("walks"))
    with pytest.raises(InvalidInput, match="booked apart"):
        evaluation.release(walks, ledger=Accountant(BUDGET))
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
        seen.append(len(ledger.balance("ratings").charges))  # from a connection of its own: it is there for good
        raise Fails

    monkeypatch.setattr(SystemEntropy, "normals", looked_at)
    monkeypatch.setattr(SystemEntropy, "uniforms", looked_at)
    mechanism = GaussianProcessMechanism.for_relation(FIFTY, share, levels=4, accountant=account)
    releases = {
        "mechanism": lambda: mechanism.apply(np.sin),
        "path": lambda: privatise(np.sin, share, relation=FIFTY, noise="path", ledger=account),
        "knots": lambda: privatise(np.sin, share, relation=FIFTY, noise="knots", pieces=4, ledger=account),
        "k-norm": lambda: privatise(np.sin, share, relation=FIFTY, noise="k-norm", pieces=4, ledger=account),
    }
    with pytest.raises(Fails):
        releases[noise]()
    assert seen == [1]
    assert len(ledger.balance("ratings").charges) == 1


def test_an_environment_that_fails_after_the_charge_gives_nothing_back(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    env = gymnasium.make("quietq/Walk-v0", disable_env_checker=True)
    private = PrivateReward.of(env, FIFTY, Budget(0.2, 1e-5), ledger=ledger.account("ratings"))
    private.reset(seed=0)
    private.step(0)
    monkeypatch.setattr(env.unwrapped, "step", fail)
    with pytest.raises(Fails):
        private.step(0)
    assert len(ledger.balance("ratings").charges) == 1


def test_wrong_input_is_refused_before_anything_is_booked(ledger: Ledger):
    account = ledger.account("ratings")
    for f in (lambda x: x * math.nan, lambda x: x[:2]):
        for noise in ("path", "knots", "k-norm"):
            with pytest.raises(InvalidInput):
                privatise(f, Budget(0.2, 1e-5), relation=FIFTY, noise=noise, ledger=account)
    assert ledger.balance("ratings").charges == ()


def test_a_fork_charges_the_same_book(ledger: Ledger):
    account = ledger.account("ratings")
    child = os.fork()
    if child == 0:
        try:
            account.charge(0.2, relation=FIFTY)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(BudgetExhausted):
        account.charge(0.25, relation=FIFTY)
    assert account.spent_mu == pytest.approx(0.2)


def test_names_that_are_not_there(ledger: Ledger):
    with pytest.raises(InvalidInput, match="no source 'votes'; it has: ratings"):
        ledger.account("votes")
    with pytest.raises(InvalidInput, match="no source 'votes'"):
        ledger.reserve("votes", mu=0.1, relation=FIFTY)
    for mu, epsilon in ((None, None), (0.1, 0.1)):
        with pytest.raises(InvalidInput, match="Either mu or epsilon"):
            ledger.reserve("ratings", relation=FIFTY, mu=mu, epsilon=epsilon)
