"""The same people are released once, unless an account adds up; and every certificate says which it was."""

import contextlib
import copy
import dataclasses
import multiprocessing
import pickle
import threading
from typing import Any

import numpy as np
import polars as pl
import pytest

from quietq import (
    Accountant,
    Budget,
    BudgetExhausted,
    GaussianProcessMechanism,
    InvalidInput,
    SupBall,
    people,
)
from quietq.feedback import Ratings
from quietq.ledger import Ledger
from quietq.mechanisms import privatise
from quietq.noise.exact import LazyUniform
from quietq.noise.exact_gaussian import Chance
from quietq.privacy import Cost, Receipt

BUDGET = Budget(0.9, 1e-4)
SECOND = "These people's reward was released already, and releases add up"
NONE = "No account was given: other releases of the same data add up."
RATINGS = pl.DataFrame(
    {"person": np.arange(50), "state": np.linspace(0, 1, 50), "other": np.linspace(1, 0, 50), "rating": [0.25] * 50}
)


def crowd(**more: Any) -> Ratings:
    return Ratings.read(RATINGS, **{"box": (0, 1), "low": 0, "high": 0.5, "slope": 1, "people": 50, **more})


def test_averaging_releases_is_stopped_at_the_second() -> None:
    group, states, released = crowd(), np.linspace(0, 1, 9), []
    for _ in range(300):
        with contextlib.suppress(BudgetExhausted):
            released.append(privatise(group, BUDGET, noise="path")(states))
    assert len(released) == 1


@pytest.mark.parametrize("noise", ["path", "knots", "k-norm"])
def test_whatever_the_noise(noise: Any) -> None:
    group = crowd()
    privatise(group, BUDGET, noise=noise)
    for other in ("path", "knots", "k-norm", "auto"):
        with pytest.raises(BudgetExhausted, match=SECOND):
            privatise(group, BUDGET, noise=other)  # type: ignore[arg-type]


def test_several_dimensions() -> None:
    both = {"state": ["state", "other"], "box": [(0, 1), (0, 1)]}
    group = crowd(**both, slope=None)
    privatise(group, BUDGET)
    with pytest.raises(BudgetExhausted, match=SECOND):
        privatise(group, BUDGET)


def test_the_advice_works(tmp_path: Any) -> None:
    group = crowd()
    privatise(group, BUDGET, noise="k-norm")
    with pytest.raises(BudgetExhausted, match=r"from the first on, the same account, `account=Accountant\(Budget"):
        privatise(group, BUDGET)
    group, account = crowd(), Accountant(Budget(1.5, 1e-4))
    for _ in range(2):
        assert privatise(group, BUDGET, account=account).certificate.standing == "certified"
    with pytest.raises(BudgetExhausted, match="is more than what is left"):
        privatise(group, BUDGET, account=account)
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.open("ratings", Budget(3, 1e-3), apart=Budget(2, 0))
    other = crowd()
    for noise in ("k-norm", "path"):  # a ledger's account is the same however often it is asked for
        privatise(other, Budget(0.5, 1e-5), noise=noise, account=ledger.account("ratings"))  # type: ignore[arg-type]
    with pytest.raises(BudgetExhausted, match=SECOND):
        privatise(other, BUDGET)


def test_a_new_account_every_time_is_no_account() -> None:
    group = crowd()
    privatise(group, BUDGET, account=Accountant(BUDGET))
    fresh = Accountant(BUDGET)
    with pytest.raises(BudgetExhausted, match=r"charged to another account, .* give this release the same account"):
        privatise(group, BUDGET, account=fresh)
    assert fresh.spending.spent_mu == 0


def test_an_account_does_not_make_an_earlier_release_undone() -> None:
    """Two releases would be worth 0.404, and the account would say 0.286."""
    group, account = crowd(), Accountant(BUDGET)
    privatise(group, BUDGET)
    with pytest.raises(BudgetExhausted, match=SECOND):
        privatise(group, BUDGET, account=account)
    assert account.spending.spent_mu == 0


def test_a_refused_charge_does_not_forget_a_release_made_meanwhile() -> None:
    """One thread's charge is refused while another's release goes through: the people are released all the same."""
    group = crowd()

    class Busy(Accountant):
        refuses = True

        def charge(self, cost: Any, relation: Any = None) -> Receipt:
            if not self.refuses:
                return super().charge(cost, relation)
            self.refuses = False
            privatise(group, BUDGET, account=self)  # as another thread might, just now
            raise BudgetExhausted("too late")

    with pytest.raises(BudgetExhausted, match="too late"):
        privatise(group, BUDGET, account=Busy(BUDGET))
    for account in (None, Accountant(BUDGET)):
        with pytest.raises(BudgetExhausted, match="released"):
            privatise(group, BUDGET, account=account)


def test_simulations_are_free() -> None:
    group = crowd()
    for seed in range(3):
        assert privatise(group, BUDGET, simulate=seed).certificate.standing == "none"
    privatise(group, BUDGET)
    privatise(group, BUDGET, simulate=0)


def test_what_failed_before_the_draw_does_not_count() -> None:
    group = crowd()
    for wrong in ({"noise": "path", "pieces": 3}, {"noise": "k-norm", "pieces": 99}, {"relation": people(9, 0, 1, 1)}):
        with pytest.raises(InvalidInput):
            privatise(group, BUDGET, **wrong)  # type: ignore[arg-type]
    spent = Accountant(BUDGET)
    spent.charge(Cost.gaussian(BUDGET.mu))
    with pytest.raises(BudgetExhausted, match="what is left"):
        privatise(group, BUDGET, account=spent)
    privatise(group, BUDGET)


@pytest.mark.parametrize("noise", ["path", "knots", "k-norm"])
def test_what_failed_after_the_draw_does(noise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*_: Any) -> Any:
        raise KeyboardInterrupt

    group = crowd()
    monkeypatch.setattr(Chance, "digits", cut)
    monkeypatch.setattr(LazyUniform, "refine", cut)
    with pytest.raises(KeyboardInterrupt):
        privatise(group, BUDGET, noise=noise)
    monkeypatch.undo()
    with pytest.raises(BudgetExhausted, match=SECOND):
        privatise(group, BUDGET, noise=noise)


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, dataclasses.replace, lambda group: pickle.loads(pickle.dumps(group))],
    ids=["copy", "deepcopy", "replace", "pickle"],
)
def test_copies_are_the_same_people(duplicate: Any) -> None:
    for first, second in ((0, 1), (1, 0)):
        group = crowd()
        pair = group, duplicate(group)  # made before either is released
        privatise(pair[first], BUDGET)
        with pytest.raises(BudgetExhausted, match=SECOND):
            privatise(pair[second], BUDGET)
    kept = pickle.dumps(group)
    del group, pair
    with pytest.raises(BudgetExhausted, match=SECOND):
        privatise(pickle.loads(kept), BUDGET)


def test_one_of_many_threads_gets_it() -> None:
    group, got, start = crowd(), [], threading.Barrier(8)

    def attempt() -> None:
        start.wait()
        try:
            privatise(group, BUDGET, noise="knots", pieces=4)
        except BudgetExhausted:
            return
        got.append(1)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1


def _release_in_child(group: Ratings, answer: Any) -> None:
    try:
        privatise(group, BUDGET, noise="knots", pieces=4)
    except BudgetExhausted as error:
        answer.send(str(error))
    else:
        answer.send("released")


@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")
def test_another_process_is_refused(tmp_path: Any) -> None:
    group, fork = crowd(), multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    child = fork.Process(target=_release_in_child, args=(group, there))
    child.start()
    assert here.poll(60)
    assert "belongs to another process, which may have released it, and only a ledger counts" in here.recv()
    child.join()
    stale = dataclasses.replace(group, once=dataclasses.replace(group.once, process=("other", group.once.process[1])))
    with pytest.raises(BudgetExhausted, match="another process"):  # as from a pickle of an earlier one
        privatise(stale, BUDGET)
    with pytest.raises(BudgetExhausted, match="another process"):  # whose account would know nothing of the first
        privatise(stale, BUDGET, account=Accountant(BUDGET))
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.open("ratings", BUDGET)
    privatise(stale, BUDGET, noise="path", account=ledger.account("ratings"))


def last(certificate: Any) -> tuple[str, bool]:
    return certificate.assumptions[-1].text, certificate.assumptions[-1].enforced


def test_certificates_say_whether_an_account_was_charged(tmp_path: Any) -> None:
    from quietq import Trajectories
    from quietq.feedback.cells import Cells
    from quietq.paper.baselines.balle import Evaluation
    from quietq.paper.observed import observe
    from quietq.worlds import WALK

    ledger = Ledger.create(tmp_path / "ledger.db")
    share, walks = Budget(0.1, 1e-6), [([0, 1], [0.0, 1.0])] * 99
    evaluation = Evaluation(budget=share, relation=Trajectories(99, 1.0, 2), gamma=0.5, cells=Cells.states(2))
    releases: dict[str, Any] = {
        "mechanism": lambda account: GaussianProcessMechanism.for_relation(
            people(50, 0, 0.5, 1), share, account=account
        ).apply(np.sin),
        "observed": lambda account: observe(WALK, SupBall(0.01), share, low=0, high=0.5, rewards=9, account=account),
        "evaluation": lambda account: evaluation.release(walks, account=account),
    }
    kinds: list[Any] = ["path", "knots", "k-norm"]
    for noise in kinds:
        releases[noise] = lambda account, noise=noise: privatise(crowd(), share, noise=noise, account=account)
        releases[f"own {noise}"] = lambda account, noise=noise: privatise(
            np.sin, share, relation=people(50, 0, 1, 1), noise=noise, account=account
        )
    for name, release in releases.items():
        ledger.open(name, Budget(1, 1e-4), apart=Budget(1, 1e-4))
        assert last(release(None).certificate) == (NONE, False), name
        text, enforced = last(release(ledger.account(name)).certificate)
        assert (text, enforced) == ("The release was charged to a source's account in a ledger before the draw.", True)
        assert str(tmp_path) not in text
        if "k-norm" in name or name == "evaluation":
            continue
        said = last(release(Accountant(Budget(1, 1e-4))).certificate)
        assert said == ("The release was charged to an Accountant in memory before the draw.", True)


def test_an_account_of_one_s_own_making_is_trusted() -> None:
    class Generous(Accountant):
        def charge(self, cost: Any, relation: Any = None) -> Receipt:
            """Books nothing."""
            return Receipt()

    text, enforced = last(privatise(crowd(), BUDGET, account=Generous(BUDGET)).certificate)
    assert not enforced
    assert "of the caller's own kind" in text
    patched = Accountant(BUDGET)
    patched.charge = lambda *_, **__: Receipt()  # type: ignore[method-assign]
    assert not last(privatise(crowd(), BUDGET, account=patched).certificate)[1]
