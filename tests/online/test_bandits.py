"""Policies for live traffic: what they take, what they count, what they save, what they promise."""

import math
import os
import stat
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from bandit_cases import GAUSSIAN, MAKE, PURE, step

from quietq import Accountant, Budget, BudgetExhausted, InvalidInput
from quietq.online import Elimination, Episodes, Linear, LocalUCB, TreeUCB, resume, save
from quietq.online.policy import MOST_ARRIVALS, UNITS
from quietq.online.running_sums import PARTS, Factors, spreads
from quietq.online.ucb import keeps
from quietq.privacy import Arrivals, Code
from quietq.privacy.norms import longest_column


def small_linear(**more: Any) -> Linear:
    return Linear(2, GAUSSIAN, dimension=2, arrivals=1000, simulate=0, **more)


@pytest.mark.parametrize("name", MAKE)
def test_a_saved_policy_goes_on_exactly(name: str, tmp_path: Path) -> None:
    one, generator = MAKE[name](simulate=7), np.random.default_rng(0)
    for _ in range(20):
        step(one, generator)
    path = save(one, tmp_path)
    other = resume(tmp_path)
    assert path.name.startswith("PRIVATE")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert other.certificate == one.certificate
    assert type(other) is type(one)
    first, second = np.random.default_rng(1), np.random.default_rng(1)
    assert [step(one, first) for _ in range(30)] == [step(other, second) for _ in range(30)]


@pytest.mark.parametrize("name", ["elimination", "episodes", "linear", "tree"])
def test_answers_without_noise_leave_a_file_once(name: str, tmp_path: Path) -> None:
    policy, generator = MAKE[name](simulate=7), np.random.default_rng(0)
    for _ in range(21):
        step(policy, generator)
    save(policy, tmp_path)
    secret = "secret" if hasattr(policy.state, "secret") else "units"
    assert getattr(resume(tmp_path).state, secret).any()
    again = resume(tmp_path)
    assert not getattr(again.state, secret).any()
    step(again, generator)
    if name == "linear":  # it goes on from the noisy sum
        assert np.array_equal(again.state.before, policy._sums.total(policy.state))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", MAKE)
def test_a_saved_policy_learns_no_more_and_is_not_saved_again(name: str, tmp_path: Path) -> None:
    """Else its answers that wait for noise would be noised here, and again where it is resumed."""
    policy, generator = MAKE[name](), np.random.default_rng(0)
    step(policy, generator)
    save(policy, tmp_path)
    for again in (lambda: step(policy, generator), lambda: save(policy, tmp_path / "other")):
        with pytest.raises(BudgetExhausted, match="was saved"):
            again()
    step(resume(tmp_path), generator)


def test_a_policy_that_could_not_be_saved_goes_on_and_is_saved_elsewhere(tmp_path: Path) -> None:
    policy, generator = Episodes(2, PURE), np.random.default_rng(0)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        save(policy, tmp_path / "file" / "folder")
    step(policy, generator)
    with mock.patch("os.replace", side_effect=OSError("full")), pytest.raises(OSError, match="full"):
        save(policy, tmp_path / "folder")
    step(policy, generator)
    save(policy, tmp_path / "folder")
    step(resume(tmp_path / "folder"), generator)


def test_a_policy_learns_no_more_if_saving_failed_once_the_file_was_there(tmp_path: Path) -> None:
    policy, generator = Episodes(2, PURE), np.random.default_rng(0)

    def replace_and_fail(source: Path, target: Path) -> None:
        os.rename(source, target)
        raise OSError("too late")

    with mock.patch("os.replace", side_effect=replace_and_fail), pytest.raises(OSError, match="too late"):
        save(policy, tmp_path)
    with pytest.raises(BudgetExhausted, match="was saved"):
        step(policy, generator)


def test_a_fork_can_neither_learn_nor_save(tmp_path: Path) -> None:
    policy = Episodes(2, PURE)
    policy.state.length[:] = 8  # in the middle of an episode, where nothing is noised yet
    policy._process += 1  # as a child sees it
    for refused in (lambda: policy.learn(None, 0, 1.0), lambda: save(policy, tmp_path)):
        with pytest.raises(BudgetExhausted, match="another process"):
            refused()
    assert not list(tmp_path.iterdir())


def test_threads_that_learn_at_once_use_each_answer_once() -> None:
    policy, seen = Episodes(2, PURE, simulate=0), []
    draw = policy._noised

    def noised(numbers: np.ndarray) -> np.ndarray:
        seen.append(float(numbers[0]))
        time.sleep(1e-4)  # as long as the others need to get in
        return draw(numbers)

    policy._noised = noised  # type: ignore[method-assign]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: policy.learn(None, policy.choose(), 1.0), range(400)))
    assert sum(seen) + policy.state.units.sum() / 2**20 == 400


def test_a_file_that_is_no_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no state"):
        resume(tmp_path)
    (tmp_path / "PRIVATE-bandit.npz").write_bytes(b"nothing")
    for _ in range(2):
        with pytest.raises(InvalidInput, match="not the state"):
            resume(tmp_path)


@pytest.mark.parametrize("name", MAKE)
def test_certificates_say_what_is_promised_to_whom(name: str) -> None:
    certificate, linear = MAKE[name]().certificate, "linear" in name
    assert certificate.standing == "certified"
    assert (certificate.epsilon, certificate.delta) == (1.0, 1e-5 if linear or name == "gaussian" else 0.0)
    assert ("joint differential privacy" in str(certificate)) == linear
    assert ("Local differential privacy" in str(certificate)) == (name == "local")
    assert Code.FAIR() in certificate.assumptions
    said = {one.text.partition(",")[0].partition(":")[0]: one.enforced for one in certificate.assumptions}
    secret = "The policy's state and statistics of its success are kept secret"
    if name != "local":  # which is covered from the person's device on
        assert [sure for text, sure in said.items() if text.startswith("What is shown depends on people's")] == [True]
        assert not said[secret]
        assert ("the person's own context" in str(certificate)) == linear
    assert MAKE[name](simulate=1).certificate.standing == "none"


def test_noise_is_as_large_as_visits_ask_for() -> None:
    once, often = (Episodes(2, PURE, visits=visits).certificate.queries[0] for visits in (1, 3))
    assert often.sensitivity == 3
    assert often.size == pytest.approx(3 * once.size)
    linear = [Linear(2, GAUSSIAN, dimension=2, arrivals=1000, visits=visits).law.sigma for visits in (1, 3)]
    assert linear[1] == pytest.approx(3 * linear[0])
    with pytest.raises(InvalidInput):
        Arrivals(visits=0)


def test_names_are_counted_and_answers_beyond_the_bound_are_left_out() -> None:
    policy = Episodes(2, PURE, visits=2, named=True, simulate=0)
    policy.state.length[:] = 8  # in the middle of an episode
    for reward in (1.0, 1.0):
        policy.learn(None, 0, reward, person="anna")
    for said in ("1 of 3 answers were left out, because their people had given 2 answers before", "2 of 4"):
        with pytest.warns(UserWarning, match=said):
            policy.learn(None, 0, 0.0, person="anna")
    assert policy.state.answers[0] == 2
    assert policy.state.units[0] == 2 * 2**20
    assert policy.left_out == 2
    assert "anna" not in str(policy._seen)
    with pytest.raises(InvalidInput, match="name"):
        policy.learn(None, 0, 1.0)
    with pytest.raises(InvalidInput, match="named=True"):
        Episodes(2, PURE).learn(None, 0, 1.0, person="anna")
    enforced = [one.text for one in Episodes(2, PURE, named=True).certificate.assumptions if one.enforced]
    assert any("Of each name at most 1 answers counted" in text for text in enforced)


def test_visits_that_may_be_unknown_are_trusted_after_a_second_resuming(tmp_path: Path) -> None:
    save(Episodes(2, PURE, named=True), tmp_path)
    first, second = resume(tmp_path), resume(tmp_path)
    assert "Of each name" in str(first.certificate)
    assert "Of each name" not in str(second.certificate)
    assert "be it under two names" in str(second.certificate)


def test_a_batch_is_learned_whole_or_not_at_all() -> None:
    """So that whoever tries again does not give an answer twice."""
    context = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
    for name, make in MAKE.items():
        named = {"named": True, "simulate": 0}
        policy = make(**named)
        good: list[Any] = [context, 0, 1, "anna"]
        wrong = [(1, 3), (3, 1.5)]
        with pytest.raises(InvalidInput, match="equally many"):
            policy.learn_batch([context] * 2, [0, 1], [1, 0, 1], ["anna", "ben"])
        for place, value in wrong:
            bad = [value if i == place else one for i, one in enumerate(good)]
            with pytest.raises(InvalidInput):
                policy.learn_batch(*zip(good, bad, strict=True))
        assert not policy._seen
        arrays = vars(policy.state).values()
        assert not any(np.any(one) for one in arrays if np.asarray(one).dtype != bool) or name == "elimination"


@pytest.mark.filterwarnings("ignore:.* answers were left out")
def test_names_of_any_letters_are_counted() -> None:
    policy = Episodes(2, PURE, named=True, simulate=0)
    for person in ("\ud800", "", "é", 7, "7", -1, 10**30):
        policy.learn(None, 0, 1.0, person=person)
    for seven in (np.int64(7), np.uint8(7)):  # as a column has them
        policy.learn(None, 0, 1.0, person=seven)
    assert policy.left_out == 3
    assert len(policy._seen) == 6  # the number 7 and its digits are one name
    for person in (10**5000, 7.0, b"7"):
        with pytest.raises(InvalidInput, match="a name or a whole number"):
            policy.learn(None, 0, 1.0, person=person)


def test_contexts_that_differ_in_their_last_bits_are_the_same() -> None:
    """Parts of 2^-32 are what is added up, so no sum tells them apart."""
    rows = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]])
    sums = []
    for context in (rows, np.nextafter(rows, 0.0), rows.astype(np.longdouble), rows.tolist()):
        policy = MAKE["linear"](simulate=1)
        policy.learn(context, 0, 1.0)
        sums.append(policy.state.secret)
    assert all(np.array_equal(sums[0], one) for one in sums[1:])


def test_too_few_arrivals_are_told_before_anything_is_charged() -> None:
    account = Accountant(Budget(5.0, 1e-5))
    with pytest.warns(UserWarning, match="Hardly anything can be learned from 100 arrivals"):
        Linear(2, GAUSSIAN, dimension=20, arrivals=100, simulate=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="Hardly"):
            Linear(2, GAUSSIAN, dimension=20, arrivals=100, account=account)
        assert account.spending.spent == Accountant(Budget(5.0, 1e-5)).spending.spent
        Linear(2, GAUSSIAN, dimension=2, arrivals=10**4, account=account)
    with pytest.raises(InvalidInput, match="arrivals"):
        Linear(2, GAUSSIAN, dimension=2, arrivals=2**31)


def test_the_fullest_node_of_a_tree_is_exact() -> None:
    """Of as many arrivals as there may be, all with the highest answer."""
    policy = TreeUCB(2, PURE, arrivals=MOST_ARRIVALS, simulate=0)
    level = MOST_ARRIVALS.bit_length() - 1
    policy.state.answers[0] = 2**level - 1
    policy.state.units[0, :level] = UNITS << np.arange(level)
    policy.learn(None, 0, 1.0)
    assert policy.state.units[0].tolist() == [0] * level + [2**level * UNITS] + [0] * (policy.levels - level - 1)
    assert abs(policy.state.nodes[0, level] - 2**level) < 1e4


def test_the_expected_error_is_that_of_values_at_the_end() -> None:
    """Noise on the vector of sums, over as much as each direction was seen: of 20 policies, 20 directions each."""
    d, arrivals, values = 20, 80, []
    context = np.eye(d)
    policies = [
        Linear(d, GAUSSIAN, dimension=d, arrivals=arrivals, simulate=seed, weights=1000.0) for seed in range(20)
    ]
    for policy in policies:
        policy.learn_batch([context] * arrivals, np.arange(arrivals) % d, [None] * arrivals)
        values.append(policy._sums.total(policy.state)[-d:] / math.sqrt(2) / (arrivals / d))
    policy = policies[0]
    deviation = policy.law.sigma * math.sqrt(policy._sums.variance(arrivals))
    assert np.std(values) == pytest.approx(policy.expected_error(), rel=6 / math.sqrt(2 * d * len(values)))
    assert policy.expected_error() == pytest.approx(deviation / math.sqrt(2) / (arrivals / d))


@pytest.mark.parametrize("reward", [None, math.nan, "text", object(), [1, 2], 1j])
def test_what_is_no_answer_counts_as_the_middle(reward: Any) -> None:
    policy = Elimination(2, PURE, arrivals=1000, rewards=(-1.0, 3.0), simulate=0)
    policy.learn(None, 0, reward)
    assert policy.state.units[0] == 2**19
    for far, units in ((1e300, 2**20), (-math.inf, 0), (np.float32(0.0), 2**18)):
        policy.learn(None, 1, far)
        assert policy.state.units[1] == units
        policy.state.units[1] = 0


def test_late_answers_and_batches_are_the_same_as_one_by_one() -> None:
    one, other, late = (Episodes(2, PURE, simulate=4) for _ in range(3))
    arms, rewards = [0, 1, 0, 0, 1, 1, 0, 0, 1], [1, 0, 1, None, 1, 0, 1, 1, 0]
    for arm, reward in zip(arms, rewards, strict=True):
        one.learn(None, arm, reward)
    other.learn_batch(None, arms, rewards)
    for each in ("arm", "means", "units", "length"):
        assert np.array_equal(getattr(one.state, each), getattr(other.state, each))
    shown = [late.choose() for _ in range(50)]  # fifty people before the first answer
    late.learn_batch(None, shown, [1.0] * 50)
    assert late.state.length.sum() + late.state.answers.sum() == 50  # each was used, once


def test_elimination_waits_for_all_answers_of_an_epoch_and_ends_with_one_arm() -> None:
    policy, means = Elimination(3, Budget(5.0, 0.0), arrivals=1000, simulate=1), (1.0, 0.4, 0.0)
    assert [policy.choose() for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    while policy.state.left.sum() > 1:
        answers = policy.epoch.answers
        for arm in np.flatnonzero(policy.state.left):
            policy._take(int(arm), round(means[arm] * answers) * 2**20, answers)
    assert policy.choose() == 0
    policy.learn(None, 0, 0.0)
    assert not policy.state.units.any()  # nothing waits for answers any more


def test_an_account_is_charged_once_and_refuses_what_it_does_not_cover() -> None:
    account = Accountant(None, apart=Budget(1.5, 0.0))
    policy = Elimination(2, PURE, arrivals=100, account=account)
    assert account.spending.spent_apart[0] == 1.0
    assert "charged to an Accountant" in str(policy.certificate)
    with pytest.raises(BudgetExhausted):
        Elimination(2, PURE, arrivals=100, account=account)
    with pytest.raises(TypeError):
        policy.__reduce__()


def test_what_cannot_be_promised_is_refused() -> None:
    refused: list[Any] = [
        lambda: Elimination(2, PURE),
        lambda: TreeUCB(2, PURE),
        lambda: Linear(2, PURE, dimension=2, arrivals=10),
        lambda: Linear(2, GAUSSIAN, arrivals=10),
        lambda: Episodes(1, PURE),
        lambda: Episodes(2, PURE, rewards=(1.0, 0.0)),
        lambda: Episodes(2, PURE).learn(None, 2, 1.0),
        lambda: LocalUCB(2, PURE).learn(None, 0, 0.5),
        lambda: Linear(2, GAUSSIAN, dimension=3, arrivals=1000, simulate=0).rows([[1.0, 2.0]]),
        lambda: Episodes(2, PURE).choose([1.0, 2.0]),
    ]
    for build in refused:
        with pytest.raises(InvalidInput):
            build()


def test_more_arrivals_than_declared_are_not_learned_from() -> None:
    policy = Linear(2, Budget(1000.0, 1e-5), dimension=2, arrivals=2, simulate=0)
    context = [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(BudgetExhausted, match="no room for 3 more"):
        policy.learn_batch([context] * 3, [0, 1, 0], [1.0, 0.0, 1.0])
    assert policy.state.steps == 0
    policy.learn_batch([context] * 2, [0, 1], [1.0, 0.0])
    with pytest.raises(BudgetExhausted):
        policy.learn(context, 0, 1.0)
    assert policy.choose(context) in (0, 1)


def test_rows_are_held_to_length_one_whatever_they_are() -> None:
    policy = small_linear()
    assert policy.rows([[1e200, 1e200], [0.3, 0.4]]) == pytest.approx(np.array([[0.5**0.5] * 2, [0.3, 0.4]]))
    assert not policy.rows([[math.nan, 1.0], [math.inf, 0.0]]).any()
    blocks = Linear(2, GAUSSIAN, dimension=4, arrivals=1000, simulate=0).rows([0.6, 0.8])
    assert blocks.tolist() == [[0.6, 0.8, 0, 0], [0, 0, 0.6, 0.8]]


def test_flips_are_exact_at_the_threshold() -> None:
    """u against e/(1 + e), with bits that agree with it in the first hundred places and then do not."""
    from decimal import Decimal, getcontext

    getcontext().prec = 80
    place = int(Decimal(1).exp() / (1 + Decimal(1).exp()) * 2**228)
    for off, kept in ((-1, True), (1, False)):
        bits = iter(format(place + off * 2**20, "0228b") + "0" * 10_000)
        assert keeps(1.0, lambda n, bits=bits: int("".join(next(bits) for _ in range(n)), 2)) is kept
    policy = LocalUCB(2, PURE, simulate=0)
    ones = np.mean([policy.report(1.0) for _ in range(4000)])
    assert ones == pytest.approx(math.e / (1 + math.e), abs=6 * 0.5 / math.sqrt(4000))


def test_running_sums_are_those_of_their_matrices() -> None:
    """What is noised is C v by a dense matrix; sums are right but for the noise, whose variance is as stated."""
    n, way = 13, Factors(13, 2, 1.0)
    generator = np.random.default_rng(0)
    vectors, noises = generator.normal(size=(n, 2)), []
    exact, noisy = way.start(), way.start()

    def noised(numbers: np.ndarray) -> np.ndarray:
        noises.append(generator.normal(size=2))
        return numbers + noises[-1]

    for t, vector in enumerate(np.rint(vectors * PARTS)):
        way.add(exact, vector, lambda numbers: numbers)
        way.add(noisy, vector, noised)
        assert way.total(exact) == pytest.approx(vectors[: t + 1].sum(axis=0), abs=1e-8)
    k = np.subtract.outer(np.arange(n), np.arange(n))
    column = lambda j: (np.array(way.scales) * np.array(way.decays) ** (j - 1)).sum()  # noqa: E731
    encoder = np.vectorize(lambda j: 1.0 if j == 0 else column(j) if j > 0 else 0.0)(k)
    decoder = np.tril(np.ones((n, n))) @ np.linalg.inv(encoder)
    assert longest_column(way.scales, way.decays, n) == pytest.approx(np.linalg.norm(encoder[:, 0]))
    assert way.total(noisy) - vectors.sum(axis=0) == pytest.approx(decoder[-1] @ np.array(noises), abs=1e-8)
    assert spreads(way.scales, way.decays, np.arange(1, n + 1)) == pytest.approx((decoder**2).sum(axis=1))


def test_several_visits_move_running_sums_by_no_more_than_stated() -> None:
    """Matrices zz' of a person's three visits against others', one after the other and spread out."""
    generator = np.random.default_rng(2)
    worst = 0.0
    for places in ((0, 1, 2), (0, 5, 9), (3, 4, 11)):
        for turned in (True, False):
            way = Factors(16, 9, 1.0)
            looked: list[list[np.ndarray]] = []
            axes = np.linalg.qr(generator.normal(size=(3, 3)))[0]
            for side in (0, 1):
                sums, seen = way.start(), []
                for t in range(16):
                    z = axes[side if turned else 0] if t in places else np.zeros(3)
                    way.add(sums, np.rint(np.outer(z, z).ravel() * PARTS), lambda v, seen=seen: seen.append(v) or v)
                looked.append(seen)
            worst = max(worst, float(np.linalg.norm(np.concatenate(looked[0]) - np.concatenate(looked[1]))))
    stated = math.sqrt(2) * 3 * longest_column(way.scales, way.decays, 16)
    assert 0.8 * stated < worst <= stated * (1 + 1e-8)


SPELLINGS = ("Ann", "ann", "ANN ", " Ann", "Ann\u200b", "\uff21nn", "A\u00adnn")
NUMBERS = (7, "7", "007", "7.0", "+7", "7e0")


@pytest.mark.parametrize("spellings", [SPELLINGS, NUMBERS])
def test_one_person_however_spelt_has_one_number_of_visits(spellings: tuple[object, ...]) -> None:
    policy = Episodes(2, PURE, named=True, visits=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        policy.learn_batch(None, [0] * len(spellings), [1.0] * len(spellings), spellings)
        policy.learn(None, 0, 1.0, "\ud800")  # no text, and somebody all the same
    assert policy.left_out == len(spellings) - 1


@pytest.mark.parametrize("name", ["state", "law", "certificate", "visits"])
def test_what_was_promised_is_not_replaced(name: str) -> None:
    """A state that is put back would have its answers noised again."""
    policy = Episodes(2, PURE)
    policy.learn(None, 0, 0.7)
    with pytest.raises(AttributeError, match=f"{name} was promised"):
        setattr(policy, name, getattr(policy, name))


def test_an_interrupted_end_of_an_epoch_noises_no_answer_twice() -> None:
    """Whatever of the end was done when Ctrl-C came, the first epoch's answers are in one noised sum at the most."""
    for interrupted_call in range(2):
        policy = Elimination(2, Budget(50.0, 0.0), arrivals=4000)
        needed = policy.epoch.answers
        sums: list[float] = []
        noised = policy._noised

        def watched(numbers: np.ndarray, noised: Any = noised, sums: list[float] = sums) -> np.ndarray:
            answer = noised(numbers)
            sums.append(float(numbers.sum()))
            return answer

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        vars(policy)["_noised"] = watched
        for arm in (0, 1):
            for _ in range(needed - arm):
                policy.learn(None, arm, 1.0)
        # The last answer ends the epoch; it is interrupted before the draw, or as soon as the noise is there.
        patched = {
            0: mock.patch.object(Elimination, "_forget", interrupt),
            1: mock.patch.object(np, "flatnonzero", interrupt),
        }
        with patched[interrupted_call], pytest.raises(KeyboardInterrupt):
            policy.learn(None, 1, 1.0)
        for arm in (0, 1):
            for _ in range(2 * policy._epoch(2, 2).answers):
                policy.learn(None, arm, 0.0)
        assert sum(sums) <= 2 * needed
