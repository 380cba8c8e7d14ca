"""What a hostile or careless caller tried on `release`, statistics and readers, and what became of it."""

import pickle
import subprocess
import sys
import threading
import traceback
import warnings

import gymnasium
import numpy as np
import polars as pl
import pytest

from quietq import Accountant, Budget, InvalidInput, PrivateReward, Ratings, people, privatise
from quietq.feedback.own_function import OwnFunction
from quietq.feedback.rows import pieces
from quietq.feedback.schema import Category, Schema
from quietq.feedback.statistic import Vector
from quietq.mechanisms.candidates import choose
from quietq.mechanisms.release import release
from quietq.noise.box import Box
from quietq.privacy import Relation
from quietq.privacy.account import Cost, Receipt
from quietq.privacy.certificate import Certificate

BUDGET = Budget(0.9, 1e-4)
ONE = {"box": (0, 1), "low": 0, "high": 1, "slope": 1}


def ratings(values, count=50, **options) -> Ratings:
    frame = pl.DataFrame({"person": range(len(values)), "state": [0.5] * len(values), "rating": values})
    return Ratings.read(frame, people=count, **ONE | options)


class Given(Vector):
    """A statistic that gives what it was told to."""

    size, bound = 2, 0.5

    def __init__(self, vectors):
        self.vectors = vectors

    def of_people(self, starts, columns):
        return self.vectors


def mean_of(vectors, people=2):
    statistic, columns = Given(vectors), {"x": np.zeros(people)}
    tally = statistic.empty()
    statistic.add(tally, np.arange(people), columns)
    return statistic.mean(tally, people)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
def test_vectors_of_any_type_keep_their_bound(dtype):
    assert np.linalg.norm(mean_of(np.full((2, 2), 100, dtype))) <= 0.5


@pytest.mark.parametrize(
    "vectors",
    [np.zeros((4, 2)), np.zeros((2, 1)), np.zeros(2), np.ma.masked_invalid([[np.nan, 1.0]] * 2), np.full((2, 2), "1")],
    ids=["rows", "narrow", "flat", "masked", "text"],
)  # fmt: skip
def test_what_is_not_one_vector_per_person_is_refused(vectors):
    with pytest.raises(InvalidInput):
        mean_of(vectors)


def test_noise_for_many_people_is_not_put_on_few():
    many = choose("path", OwnFunction(None, people(1_000_000, 0, 1, 1)), BUDGET)
    with pytest.raises(InvalidInput, match="is made for what 1000000 people gave"):
        release(many, ratings([1.0] * 50))
    wide = choose("path", OwnFunction(None, people(50, 0, 1, 1), box=Box.of((0, 2))), BUDGET)
    with pytest.raises(InvalidInput, match="is made for the box"):
        release(wide, ratings([1.0] * 50))


def test_what_is_charged_is_what_is_certified():
    """A cost that grows as it is asked for would be charged small and certified large."""
    mechanism = choose("path", OwnFunction(None, people(50, 0, 1, 1)), BUDGET)
    asked = []

    class Growing(type(mechanism)):
        @property
        def cost(self):
            asked.append(None)
            return Cost.gaussian(BUDGET.mu * (1 if len(asked) == 1 else 100))

    mechanism.__class__ = Growing
    account = Accountant(BUDGET)
    certificate = release(mechanism, ratings([1.0] * 50), account).certificate
    assert certificate.mu == pytest.approx(account.spending.spent_mu)


@pytest.mark.parametrize("noise", ["path", "knots", "k-norm"])
def test_no_refusal_hangs_on_a_last_place(noise):
    """Three times 0.1 over 3 is a last place above 0.1."""
    everybody = ratings([0.1] * 3, count=3, high=0.1)
    assert privatise(everybody, BUDGET, noise=noise).certificate.standing == "certified"


def test_no_warning_hangs_on_a_rating():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide = Given(np.zeros((2, 2)))
        wide.bound = 1e300
        wide.add(wide.empty(), np.arange(2), {"x": np.zeros(2)})


def test_a_blank_cell_does_not_change_everybodys_category():
    """It makes whole numbers floating-point ones, of which large ones are no longer what they were."""
    import pandas as pd

    schema = Schema("answers", "person", {"item": Category("item", "item", ("1", "2"))})
    blank = pd.DataFrame({"person": ["a", "b"], "item": [1, None]})
    with pytest.raises(InvalidInput, match="text or whole numbers"):
        list(pieces(blank, schema))
    with pytest.raises(InvalidInput, match="text or whole numbers"):
        schema.check_types({"person": pl.String, "item": pl.Float64})


def test_numbers_that_fail_say_nothing():
    class Device:
        def __init__(self, states):
            self.states = states

        def __array__(self, *_, **__):
            raise RuntimeError("failed at value 0.123456789")

    with pytest.raises(InvalidInput) as refused:
        privatise(Device, BUDGET, relation=people(50, 0, 1, 1))  # type: ignore[arg-type]
    assert "0.1234" not in str(refused.value)


def test_threads_share_one_path_and_one_charge():
    env = gymnasium.make("quietq.worlds:quietq/Walk-v0")
    charged = []

    class Counted(Accountant):
        def charge(self, cost: Cost, relation: Relation | None = None) -> Receipt:
            charged.append(cost)
            return super().charge(cost, relation)

    own = PrivateReward.of(env, people(50, 0, 0.5, 1), BUDGET, account=Counted(BUDGET))
    own.reset(seed=0)
    threads = [threading.Thread(target=own.step, args=(i % 2,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(charged) == 1


# Files and certificates


@pytest.mark.parametrize(
    ("method", "match"),
    [("none", "proves nothing"), ("published/x", "proves nothing"), ("reward/published", "proves nothing"),
     ("gradient", "is not measured in")],
)  # fmt: skip
def test_a_method_that_promises_nothing_is_not_certified(method, match):
    record = privatise(ratings([1.0] * 50), BUDGET, noise="path").certificate.to_dict()
    with pytest.raises(InvalidInput, match=match):
        Certificate.from_dict(record | {"method": method})


@pytest.mark.parametrize(
    "loud",
    [
        {"text": "Settings were CHOSEN  WITHOUT the private data.", "enforced": True},
        {"code": "chosen-without-data", "values": [], "enforced": True},
        {"code": "CHOSEN-without-data", "values": []},
        {"code": "chosen-without-data", "values": ["and enforced"]},
        {"code": "chosen-without-data"},
    ],
)
def test_what_no_code_can_see_stays_trusted_however_it_is_spelt(loud):
    record = privatise(ratings([1.0] * 50), BUDGET, noise="path").certificate.to_dict()
    with pytest.raises(InvalidInput, match="no certificate"):
        Certificate.from_dict(record | {"assumptions": [*record["assumptions"], loud]})


def test_deep_nesting_is_no_certificate():
    record = privatise(ratings([1.0] * 50), BUDGET, noise="path").certificate.to_dict()
    nested: list = []
    for _ in range(900):
        nested = [nested]
    with pytest.raises(InvalidInput):
        Certificate.from_dict(record | {"domain": nested})


def test_a_pickle_knows_of_releases_before_it(tmp_path):
    """In another process, whose ledger never heard of the first release."""
    people = ratings([1.0] * 50)
    privatise(people, BUDGET, noise="path")
    (tmp_path / "people.pickle").write_bytes(pickle.dumps(people))
    code = (
        "import pickle, sys; from quietq import Budget, Ledger, privatise, BudgetExhausted\n"
        "people = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "ledger = Ledger.create(sys.argv[2]); ledger.open('people', Budget(5, 1e-3))\n"
        "try: privatise(people, Budget(0.9, 1e-4), noise='path', account=ledger.account('people'))\n"
        "except BudgetExhausted as refusal: print(refusal)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "people.pickle"), str(tmp_path / "books.db")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "was released already" in done.stdout


def test_accounts_show_what_was_spent_and_let_nobody_write_it():
    account = Accountant(BUDGET)
    account.charge(Cost.gaussian(BUDGET.mu / 2))
    with pytest.raises(AttributeError):
        account.spending.costs.clear()  # type: ignore[attr-defined]


def test_a_lazy_frame_that_fails_shows_no_value():
    """Its own functions run while it is read, and may say anything about a cell."""
    secret = 0.123456789
    lazy = pl.LazyFrame({"person": range(50), "state": [0.5] * 50, "rating": [secret] * 50})

    def fails(given):
        raise ValueError(f"cannot read {given}")

    column = pl.col("rating")
    for frame in (
        lazy.with_columns(column.map_elements(fails, return_dtype=pl.Float64)),
        lazy.with_columns(column.map_batches(fails, return_dtype=pl.Float64)),
        lazy.map_batches(lambda rows: fails(rows["rating"][0])),
        lazy.with_columns((column.cast(pl.String) + "x").cast(pl.Float64)),
        pl.LazyFrame({str(secret): [0.5]}).select("rating"),
    ):
        with pytest.raises(InvalidInput, match=r"^The ratings could not be read: it failed with \w+\.$") as refused:
            Ratings.read(frame, people=50, **ONE)
        shown = "".join(traceback.format_exception(refused.value))
        assert str(secret) not in shown
