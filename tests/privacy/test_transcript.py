"""The transcript: charged before the first draw, held to the cap; and nothing else charges or certifies."""

import ast
import copy
import pickle
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import quietq
from quietq import Accountant, Budget, BudgetExhausted, Certificate, InvalidInput
from quietq.noise.entropy import SeededEntropy
from quietq.noise.exact_gaussian import Whitened
from quietq.noise.laws import BallNoise, Gaussian
from quietq.privacy import Code, Cost, Query, Transcript
from quietq.privacy.norms import Answers, MeanOfPeople
from quietq.privacy.relations import Arrivals, OnePerson

BUDGET, PEOPLE = Budget(0.9, 1e-4), OnePerson(100)
PACKAGE = Path(quietq.__file__).parent
opened = partial(Transcript, largest=2.0, error=1e-12)


def query(share: float = 1.0, in_parts: bool = False) -> Query:
    """A mean of people's vectors of length 1, for this share of the budget's squared mu."""
    sensitivity = 2 / 100
    law = Gaussian(sensitivity / (BUDGET.mu * np.sqrt(share)), MeanOfPeople(2.0))
    return Query(lambda feedback: np.zeros(3), sensitivity, law, in_parts)


def names_and_calls(file: Path) -> tuple[set[str], set[str]]:
    """All names that a file uses, and all methods that it calls."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    calls = {
        node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    return names, calls


def test_one_module_charges_and_one_certifies() -> None:
    """By the syntax trees of all of the package."""
    certify, charge, standing = set(), set(), set()
    for file in PACKAGE.rglob("*.py"):
        place = file.relative_to(PACKAGE).as_posix()
        names, calls = names_and_calls(file)
        if names & {"certifying", "_certifying"}:
            certify.add(place)
        if calls & {"reserve", "spend"}:
            charge.add(place)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.keyword) or node.arg != "standing":
                continue
            if isinstance(node.value, ast.Constant) and node.value.value == "certified":
                standing.add(place)
    # a certificate is read back, and added to, where it is defined; a transcript alone makes one
    assert certify == {"privacy/certificate.py", "privacy/transcript.py"}
    assert standing == {"privacy/transcript.py"}
    # a ledger's account books in the ledger, and marks of data that is released once charge for the transcript
    assert charge == {"privacy/transcript.py", "ledger/ledger.py"}


def test_nothing_is_charged_before_the_first_draw_and_all_of_it_then() -> None:
    account = Accountant(BUDGET)
    transcript = opened(PEOPLE, BUDGET, account)
    asked = query(0.5)
    transcript.ask(asked)
    transcript.certificate("reward/rounds", None)
    assert account.spending.spent_mu == 0
    transcript.answer(asked, np.zeros(3))
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)
    transcript.answer(query(0.5), np.zeros(3))
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)
    assert len(transcript.certificate("reward/rounds", None).queries) == 2


def test_the_same_query_twice_is_two_queries() -> None:
    """Whatever object it is: only parts of one query, which are bounded together, are counted once."""
    transcript = opened(PEOPLE, BUDGET)
    whole = query()
    transcript.answer(whole, np.zeros(3))
    with pytest.raises(InvalidInput, match="more than the"):
        transcript.answer(whole, np.zeros(3))
    with pytest.raises(InvalidInput, match="more than the"):
        transcript.ask(whole)
    assert len(transcript.certificate("reward/rounds", None).queries) == 1
    parts = opened(PEOPLE, BUDGET)
    streamed = query(in_parts=True)
    for _ in range(5):
        parts.answer(streamed, np.zeros(3))
    assert len(parts.queries) == 1
    with pytest.raises(InvalidInput, match="more than the"):
        parts.answer(query(in_parts=True), np.zeros(3))  # another one, with parts of its own


def test_a_query_beyond_the_cap_is_refused_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(Gaussian, "add_exactly", lambda self, numbers: drawn.append(numbers) or numbers)
    account = Accountant(BUDGET)
    transcript = opened(PEOPLE, BUDGET, account)
    with pytest.raises(InvalidInput, match="it needs more noise"):
        transcript.answer(query(1.01), np.zeros(3))
    assert (drawn, account.spending.spent_mu) == ([], 0)
    pure = Query(np.atleast_1d, 1.0, BallNoise(0.5, 1, Answers()))
    with pytest.raises(InvalidInput, match="more than the mu"):  # pure noise under a cap for Gaussian noise
        opened(Arrivals(), BUDGET).ask(pure)


def test_an_account_that_refuses_keeps_noise_from_being_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(Gaussian, "add_exactly", lambda self, numbers: drawn.append(numbers) or numbers)
    account = Accountant(BUDGET)
    account.charge(Cost.gaussian(BUDGET.mu), PEOPLE)
    with pytest.raises(BudgetExhausted):
        opened(PEOPLE, BUDGET, account).answer(query(), np.zeros(3))
    assert drawn == []


def test_numbers_that_rounding_would_show_are_refused_and_not_told() -> None:
    transcript = opened(PEOPLE, BUDGET)
    for numbers in ([1e300], [np.nan], ["0.1234"], [0.1234, None]):
        with pytest.raises(InvalidInput) as refused:
            transcript.answer(query(), numbers)
        assert "0.1234" not in str(refused.value)


def test_sensitivity_below_the_theorem_is_not_certified() -> None:
    law = Gaussian(1.0, MeanOfPeople(2.0))
    transcript = opened(PEOPLE, BUDGET)
    transcript.answer(Query(np.atleast_1d, 0.01, law), np.zeros(3))  # two people are 0.02 apart
    with pytest.raises(InvalidInput, match=r"sensitivity 0\.01 is below 0\.02"):
        transcript.certificate("reward/rounds", None)


def test_a_seed_promises_nothing_and_charges_nobody() -> None:
    account = Accountant(BUDGET)
    transcript = opened(PEOPLE, BUDGET, account, simulated=SeededEntropy(1))
    transcript.answer(query(), np.zeros(3))
    certificate = transcript.certificate("reward/rounds", None)
    assert (certificate.standing, certificate.reproducible, certificate.epsilon) == ("none", True, None)
    assert account.spending.spent_mu == 0


def test_threads_charge_once() -> None:
    account = Accountant(BUDGET)
    transcript = opened(PEOPLE, BUDGET, account)
    streamed = query(in_parts=True)
    threads = [threading.Thread(target=transcript.answer, args=(streamed, np.zeros(3))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)
    assert len(transcript.queries) == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_is_not_copied(copied) -> None:
    with pytest.raises(TypeError, match="not copied or pickled"):
        copied(opened(PEOPLE, BUDGET))


def test_what_an_account_adds_up_is_said() -> None:
    class Own(Accountant):
        pass

    Own.__module__ = "mine"
    for account, code in (
        (None, Code.NO_ACCOUNT),
        (Accountant(BUDGET), Code.CHARGED_IN_MEMORY),
        (Own(BUDGET), Code.OTHER_ACCOUNT),
    ):
        transcript = opened(PEOPLE, BUDGET, account)
        transcript.answer(query(), np.zeros(3))
        certificate = transcript.certificate("reward/rounds", None)
        assert certificate.assumptions[-1].code is code
        assert Certificate.from_json(certificate.to_json()) == certificate


class Understated(float):
    """A number that is itself in a certificate, and nothing in a product."""

    def __mul__(self, other: float) -> float:
        return 1e-9 * float(other)

    __rmul__ = __mul__


def test_a_number_that_is_not_what_it_seems_is_refused_or_made_plain() -> None:
    law = Gaussian(Understated(query().law.sigma), MeanOfPeople(2.0))
    assert type(law.sigma) is float
    assert type(BallNoise(Understated(0.5), 1, Answers()).rate) is float
    with pytest.raises(InvalidInput, match="sensitivity must be a plain number"):
        opened(PEOPLE, BUDGET).ask(query()._replace(sensitivity=Understated(0.02)))
    odd = Gaussian(1.0, MeanOfPeople(2.0))
    object.__setattr__(odd, "size", Understated(1.0))
    with pytest.raises(InvalidInput, match="size must be a plain number"):
        opened(PEOPLE, BUDGET).ask(query()._replace(law=odd))


def test_noise_of_ones_own_is_told() -> None:
    class Seeded(Gaussian):
        def add_exactly(self, numbers: np.ndarray) -> np.ndarray:
            return numbers

    class Silent(Gaussian):
        def whiten(self, numbers: np.ndarray, step: float) -> Whitened:
            return super().whiten(0 * numbers, step)

    Seeded.__module__ = Seeded.__qualname__ = "quietq.noise.laws"  # as it says of itself
    plain = query()
    patched = Gaussian(plain.law.sigma, MeanOfPeople(2.0))
    object.__setattr__(patched, "add_exactly", lambda numbers: numbers)
    own = (
        Seeded(plain.law.sigma, MeanOfPeople(2.0)),
        Silent(plain.law.sigma, MeanOfPeople(2.0)),
        patched,
    )
    for law in own:
        transcript = opened(PEOPLE, BUDGET)
        transcript.ask(plain._replace(law=law))
        assert Code.OWN_CODE() in transcript.certificate("reward/mine", None).assumptions
    transcript = opened(PEOPLE, BUDGET)
    transcript.ask(plain)
    assert Code.OWN_CODE() not in transcript.certificate("reward/mine", None).assumptions


def test_parts_that_nobody_of_quietq_bounds_are_told() -> None:
    transcript = opened(PEOPLE, BUDGET)
    transcript.answer(query(in_parts=True), np.zeros(3))
    assert Code.OWN_CODE() in transcript.certificate("reward/mine", None).assumptions
    bounded = transcript.certificate("reward/mine", None, (Code.SHOWN_FROM_NOISED(),))
    assert Code.OWN_CODE() not in bounded.assumptions


def test_a_certificate_says_whether_anything_was_charged() -> None:
    account = Accountant(BUDGET)
    transcript = opened(PEOPLE, BUDGET, account)
    transcript.ask(query())
    before = transcript.certificate("reward/mine", None)
    assert Code.NOT_CHARGED_YET() in before.assumptions
    assert Code.CHARGED_IN_MEMORY() not in before.assumptions
    transcript.charge()
    assert Code.CHARGED_IN_MEMORY() in transcript.certificate("reward/mine", None).assumptions


def test_threads_book_no_more_than_the_cap() -> None:
    transcript = opened(PEOPLE, BUDGET)
    refused = []

    def ask() -> None:
        try:
            transcript.ask(query())
        except InvalidInput as error:
            refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(transcript.queries), len(refused)) == (1, 15)


def test_nobody_vouches_for_the_relation_unless_it_is_said() -> None:
    transcript = opened(PEOPLE, BUDGET)
    transcript.ask(query())
    assert Code.NEIGHBOURS() in transcript.certificate("reward/mine", None).assumptions
    vouched = (Code.ONE_OF_DECLARED(100), Code.NAMES())
    assert Code.NEIGHBOURS() not in transcript.certificate("reward/mine", None, vouched).assumptions
    with pytest.raises(InvalidInput, match="says otherwise than its assumption 'one-of-declared-people'"):
        transcript.certificate("reward/mine", None, (Code.ONE_OF_DECLARED(1000), Code.NAMES()))
