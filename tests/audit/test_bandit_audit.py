"""One person's answers or context cannot be told from noisy numbers; broken copies of the policies are caught."""

from functools import cached_property
from typing import Any

import numpy as np
import pytest
from broken_copies import SURE

from quietq import Budget, InvalidInput
from quietq.audit import Visit, audit_bandit, frozen_bandit
from quietq.audit.bandits import play
from quietq.noise.entropy import SeededEntropy
from quietq.online import Elimination, Episodes, Linear, TreeUCB
from quietq.online.elimination import Epoch
from quietq.privacy.norms import Answers

PURE, GAUSSIAN = Budget(1.5, 0.0), Budget.from_mu(2.5, 1e-4)


def crowd(n: int, context: Any = None) -> list[Visit]:
    generator = np.random.default_rng(5)
    return [Visit(context, tuple(generator.integers(0, 2, 2).astype(float).tolist())) for _ in range(n)]


def replaced(visits: list[Visit], at: int, visit: Visit) -> list[Visit]:
    return [visit if i == at else one for i, one in enumerate(visits)]


def in_features(n: int) -> tuple[list[Visit], list[Visit]]:
    """The first person's context and answer against a context at a right angle: as far apart as zz' can be."""
    generator, here = np.random.default_rng(6), []
    for _ in range(n):
        rows = generator.normal(size=(2, 3))
        answers = tuple(generator.integers(0, 2, 2).astype(float).tolist())
        here.append(Visit(rows / np.linalg.norm(rows, axis=1, keepdims=True), answers))
    one, other = np.array([[1.0, 0, 0]] * 2), np.array([[0, 1.0, 0]] * 2)
    return replaced(here, 0, Visit(one, (1.0, 1.0))), replaced(here, 0, Visit(other, (0.0, 0.0)))


class Unforgetful(Episodes):
    """Keeps an arm's old answers in its sums."""

    def _end_episode(self) -> None:
        kept = self.state.units[self.state.arm]
        arm = self.state.arm
        super()._end_episode()
        self.state.units[arm] = kept


class SameNoise:
    """Draws the same noise in every episode, epoch, node or visit."""

    simulate: int | None
    _simulated: SeededEntropy

    def _entropy(self) -> SeededEntropy:
        self._simulated.restart((self.simulate or 0) << 64)
        return self._simulated


class Short(Elimination):
    """With epochs short enough for a test, in which no arm goes."""

    @property
    def epoch(self) -> Epoch:
        return super().epoch._replace(answers=4 * self.state.epoch, sampling=1e9)


class UnforgetfulElimination(Short):
    """Keeps sums of old epochs."""

    def _end_epoch(self) -> None:
        kept = self.state.units.copy()
        super()._end_epoch()
        self.state.units[:] = kept


class ReusingEpisodes(SameNoise, Episodes):
    pass


class ReusingElimination(SameNoise, Short):
    pass


class ReusingTree(SameNoise, TreeUCB):
    pass


class ReusingLinear(SameNoise, Linear):
    pass


class Moved(Episodes):
    """Ends an episode when it has seen enough of what it likes."""

    @property
    def _needed(self) -> int:
        return super()._needed + int(self.state.units.sum() == 0)


class HalfTheLevels(TreeUCB):
    @property
    def norm(self) -> Answers:
        return Answers(self.levels // 2)

    @cached_property
    def sensitivity(self) -> float:
        return self.levels // 2


class HalfTheColumn(Linear):
    """Noise for an encoder whose squares come to half of what they are."""

    @cached_property
    def sensitivity(self) -> float:
        return super().sensitivity / np.sqrt(2)


def streams() -> tuple[list[Visit], list[Visit]]:
    visits = crowd(127)
    return replaced(visits, 0, Visit(None, (0.0, 0.0))), replaced(visits, 0, Visit(None, (1.0, 1.0)))


@pytest.mark.parametrize(
    ("make", "least"),
    [
        (lambda seed: Episodes(2, PURE, simulate=seed), 1.0),
        (lambda seed: Episodes(2, GAUSSIAN, simulate=seed), 1.0),
        (lambda seed: TreeUCB(2, PURE, arrivals=127, simulate=seed), 0.6),
    ],
    ids=["pure", "gaussian", "tree"],
)
def test_one_answer_moves_what_is_noised_by_no_more_than_stated(make: Any, least: float) -> None:
    movement = frozen_bandit(make, *streams())
    assert not movement.exceeds
    assert movement.share >= least - 1e-6


def test_elimination_uses_an_answer_once() -> None:
    movement = frozen_bandit(lambda seed: Short(2, PURE, arrivals=1000, simulate=seed), *streams())
    assert movement.share == pytest.approx(1.0, abs=1e-9)


def linear(seed: int) -> Linear:
    return Linear(2, GAUSSIAN, dimension=3, arrivals=64, simulate=seed)


def test_one_person_moves_running_sums_by_no_more_than_stated() -> None:
    before, after = in_features(64)
    movement = frozen_bandit(linear, before, after)
    assert not movement.exceeds
    # |zz'|^2 without the square of y, at a right angle: 2 (1 + 1/2) of the 2 (5/4)^2 that are stated
    assert movement.share == pytest.approx(np.sqrt(3 / 3.125), rel=2e-3)


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: Unforgetful(2, PURE, simulate=seed),
        lambda seed: Unforgetful(2, GAUSSIAN, simulate=seed),
        lambda seed: UnforgetfulElimination(2, PURE, arrivals=1000, simulate=seed),
        lambda seed: HalfTheLevels(2, PURE, arrivals=127, simulate=seed),
    ],
    ids=["episodes", "Gaussian episodes", "epochs", "half the levels"],
)
def test_what_is_noised_more_often_than_stated_is_found(make: Any) -> None:
    assert frozen_bandit(make, *streams()).exceeds


def test_half_the_noise_of_running_sums_is_found() -> None:
    make = lambda seed: HalfTheColumn(2, GAUSSIAN, dimension=3, arrivals=64, simulate=seed)  # noqa: E731
    assert frozen_bandit(make, *in_features(64)).exceeds


@pytest.mark.parametrize("of", ["context", "answers"])
def test_a_context_or_an_answer_alone_moves_less(of: str) -> None:
    before, after = in_features(64)
    alone = replaced(before, 0, before[0]._replace(**{of: getattr(after[0], of)}))
    movement = frozen_bandit(linear, before, alone)
    assert not movement.exceeds
    # the context turns: 2 of xx' and 1 of sqrt(2) xy; the answer alone: sqrt(2) times 1
    squares = {"context": 2 + 1, "answers": 2}[of]
    assert movement.share == pytest.approx(np.sqrt(squares / 3.125), rel=2e-3)


def regulars(context: tuple[Any, Any] = (None, None)) -> tuple[list[Visit], list[Visit]]:
    """Somebody who comes at every fourth of 64 visits, and answers 0 to everything, or 1 after two times nothing."""
    generator, here, there = np.random.default_rng(7), list[Visit](), list[Visit]()
    for t in range(64):
        if t % 4:
            rows = None if context[0] is None else generator.normal(size=(2, 3))
            here.append(Visit(rows, tuple(generator.integers(0, 2, 2).astype(float).tolist()), t))
            there.append(here[-1])
        else:
            here.append(Visit(context[0], (0.0, 0.0), "regular"))
            there.append(Visit(context[1], (1.0, 1.0) if t > 4 else (None, None), "regular"))
    return here, there


NAMED: dict[str, tuple[Any, Any]] = {
    "episodes": (lambda seed, **more: Episodes(2, PURE, simulate=seed, **more), (None, None)),
    "Gaussian episodes": (lambda seed, **more: Episodes(2, GAUSSIAN, simulate=seed, **more), (None, None)),
    "elimination": (lambda seed, **more: Short(2, PURE, arrivals=1000, simulate=seed, **more), (None, None)),
    "tree": (lambda seed, **more: TreeUCB(2, PURE, arrivals=64, simulate=seed, **more), (None, None)),
    "factors": (
        lambda seed, **more: Linear(2, GAUSSIAN, dimension=3, arrivals=64, weights=1e3, simulate=seed, **more),
        ("no context", [[0, 1.0, 0]] * 2),
    ),
    "factors, one without a context": (
        lambda seed, **more: Linear(2, GAUSSIAN, dimension=3, arrivals=64, weights=1e3, simulate=seed, **more),
        ([[1.0, 0, 0]] * 2, None),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.* answers were left out")
@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("visits", [1, 3, 16])
def test_all_visits_of_a_regular_together_move_no_more_than_stated(name: str, visits: int) -> None:
    """Sixteen of them, of which so many count; two of them without an answer, and some with no usable context."""
    make, context = NAMED[name]
    movement = frozen_bandit(lambda seed: make(seed, visits=visits, named=True), *regulars(context))
    assert not movement.exceeds
    assert movement.share > 0.1


class Uncounted:
    """Learns from every visit of everybody."""

    def _admit(self, names: list[Any]) -> list[bool]:
        return [True] * len(names)


class FreeMisses:
    """An answer that does not come uses up no visit, so that it decides which later ones count."""

    _seen: Any

    def learn(self, context: Any, arm: int, reward: Any, person: Any = None) -> None:
        super().learn(context, arm, reward, person)  # type: ignore[misc]
        if reward is None:
            self._seen.clear()


class UncountedEpisodes(Uncounted, Episodes):
    pass


class UncountedTree(Uncounted, TreeUCB):
    pass


class FreeEpisodes(FreeMisses, Episodes):
    pass


class FreeTree(FreeMisses, TreeUCB):
    pass


@pytest.mark.filterwarnings("ignore:.* answers were left out")
def test_visits_that_are_not_counted_are_found() -> None:
    assert frozen_bandit(lambda seed: UncountedEpisodes(2, PURE, simulate=seed, named=True), *regulars()).exceeds
    make = lambda seed: UncountedTree(2, PURE, arrivals=64, simulate=seed, named=True)  # noqa: E731
    assert frozen_bandit(make, *regulars()).exceeds


@pytest.mark.filterwarnings("ignore:.* answers were left out")
def test_missing_answers_that_use_up_no_visit_are_found() -> None:
    """By how often something is noised, or because others' answers come to be in other sums."""
    from quietq.audit.finding import Unprotected

    assert frozen_bandit(lambda seed: FreeEpisodes(2, PURE, simulate=seed, named=True), *regulars()).exceeds
    with pytest.raises(Unprotected, match="changes when"):
        frozen_bandit(lambda seed: FreeTree(2, PURE, arrivals=64, simulate=seed, named=True), *regulars())


def test_streams_that_differ_in_two_people_are_refused() -> None:
    here, there = regulars()
    make: Any = lambda seed: Episodes(2, PURE, simulate=seed, named=True)  # noqa: E731
    for wrong, said in (
        (replaced(there, 1, there[1]._replace(answers=(0.5, 0.5))), "of one person, not of 2"),
        (replaced(there, 1, there[1]._replace(person="another")), "the same people in the same order"),
        (here, "of one person, not of 0"),
    ):
        with pytest.raises(InvalidInput, match=said):
            frozen_bandit(make, here, wrong)


def test_an_end_of_an_episode_that_follows_answers_is_found() -> None:
    from quietq.audit.finding import Unprotected

    with pytest.raises(Unprotected):
        frozen_bandit(lambda seed: Moved(2, PURE, simulate=seed), *streams())


SMALL, LINEAR = Budget(0.5, 0.0), Budget(0.5, 1e-4)
REUSING: dict[str, tuple[Any, Any, int, int]] = {
    "episodes": (lambda seed: ReusingEpisodes(2, SMALL, simulate=seed), streams, 4, 2),
    "elimination": (lambda seed: ReusingElimination(2, SMALL, arrivals=1000, simulate=seed), streams, 24, 3),
    "tree": (lambda seed: ReusingTree(2, SMALL, arrivals=4, simulate=seed), streams, 4, 2),
    "factors": (
        lambda seed: ReusingLinear(2, LINEAR, dimension=3, arrivals=4, simulate=seed, weights=1e3),
        lambda: in_features(4), 4, 27,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REUSING)
def test_noise_that_is_used_twice_is_found_by_telling_plays_apart(name: str) -> None:
    """Two numbers with the same noise differ by answers alone."""
    make, both, visits, most = REUSING[name]
    before, after = (stream[:visits] for stream in both())
    finding = audit_bandit(make, before, after, runs=100, most=most)
    assert finding.at(SURE).verdict == "refuted"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Episodes, Unforgetful])
@pytest.mark.parametrize("budget", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
def test_many_plays_cannot_be_told_apart_unless_answers_are_kept(kind: Any, budget: Budget) -> None:
    visits = [stream[:31] for stream in streams()]
    finding = audit_bandit(lambda seed: kind(2, budget, simulate=seed), visits[0], visits[1], runs=8000, most=8)
    assert finding.at(SURE).verdict == ("consistent" if kind is Episodes else "refuted")


def test_what_is_looked_at_are_sums_of_the_episode_alone() -> None:
    visits = [Visit(None, (1.0, 0.0))] * 40
    seen, _ = play(Episodes(2, PURE, simulate=3), visits)
    looked = np.concatenate(seen)
    assert set(looked) <= {0.0, 1.0, 2.0, 4.0, 8.0, 16.0}
