"""Releases are rehearsed on people who are made up: in Gymnasium, in a private world, or by a function."""

import json
from typing import Any

import gymnasium
import numpy as np
import pytest

from quietq import Budget, InvalidInput, Sessions, WorldModel, privatise, publish, rehearse
from quietq.mechanisms import moments, rounds
from quietq.released.private_network import PrivatePolicy
from quietq.worlds.planning import linear_policy
from quietq.worlds.rehearse import ExpectedScore, MadeUpPeople, Rehearsal

pytest.importorskip("polars")
BUDGET, ONE_WAY = Budget(4.0, 1e-5), {"degree 1": WorldModel()}


class Push(gymnasium.Env):
    """A point that is pushed: 1 for each step on the right."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)

    def __init__(self, numbers: bool = False, **others: Any) -> None:
        self.action_space: Any = gymnasium.spaces.Box(-1, 1, (1,)) if numbers else gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-0.2, 0.2, 1)
        return self.x.copy(), {}

    def step(self, action: Any) -> Any:
        push = float(np.ravel(action)[0]) if isinstance(self.action_space, gymnasium.spaces.Box) else 2 * action - 1
        self.x = np.clip(self.x + 0.2 * push, -1, 1)
        return self.x.copy(), float(self.x[0] > 0), False, False, {}


gymnasium.register("rehearsed/Push-v0", Push)  # type: ignore[arg-type]
gymnasium.register("rehearsed/PushBy-v0", Push, kwargs={"numbers": True})  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "SETTINGS", rounds.RoundSettings(rounds=3))
    fewer = moments.MomentSettings(rounds=3, first_rounds=2, rate_rounds=2)
    monkeypatch.setattr(moments, "SETTINGS", fewer)


@pytest.mark.parametrize("name", ["Push-v0", "PushBy-v0"])
def test_what_to_expect_of_people_in_gymnasium(name):
    told, done = [], []
    found = rehearse(
        f"rehearsed/{name}", BUDGET, people=100, wanted=8, rewards=(0, 1), steps=10, sizes=[50], draws=2,
        ways={"plan": WorldModel(), "clone": None}, tell=told.append, progress=lambda *both: done.append(both),
    )  # fmt: skip
    assert [(one.way, one.people, len(one.scores)) for one in found.expected] == [
        (way, size, 2) for size in (50, 100) for way in ("plan", "clone")
    ]
    assert found.best.way == "plan"
    assert found.best.score > 8
    assert found.needed == 50
    assert (len(told), done[-1]) == (1, (8, 8))
    assert json.loads(json.dumps(found.to_dict()))["take"] == "plan"
    assert str(found).endswith("Take plan for 100 people.")


def test_people_can_come_from_a_private_world_and_from_a_function():
    people = MadeUpPeople(Push(), lambda seen, rng: int(rng.random() < 0.7), *_declared())
    world = privatise(people(100, 1), BUDGET, simulate=0)
    options: Any = {"people": 60, "steps": 10, "sizes": (), "draws": 1, "ways": ONE_WAY}
    assert rehearse(world, BUDGET, **options).best.score > 5
    scored: list[int] = []

    def score(policy: PrivatePolicy, seed: int) -> float:
        scored.append(seed)
        return people.score(policy, seed)

    assert rehearse(people, BUDGET, score=score, **options).best.score > 8
    assert len(set(scored)) == 2  # one of few people first, by which it is told how long it takes


def _declared() -> Any:
    from quietq import Box

    return Box((-1.0,), (1.0,)), (0.0, 1.0), 10


def test_the_same_seed_makes_the_same_people_and_another_one_others():
    people = MadeUpPeople(Push(), None, *_declared())
    first, again, others = (people(5, seed) for seed in (1, 1, 2))
    assert isinstance(first, Sessions)
    assert first.not_private["transitions"] == 50
    one, same, other = (privatise(each, BUDGET, simulate=0).weights for each in (first, again, others))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_people_act_by_their_behaviour():
    right = MadeUpPeople(Push(), lambda seen, rng: 1, *_declared())(20, 0)
    world = privatise(right, Budget(100.0, 1e-5), simulate=0)
    assert world.first is not None
    rewarded = MadeUpPeople(Push(), lambda seen, rng: 1, *_declared()).score
    assert rewarded(linear_policy(world, np.array([[1.0], [0.0]])), 0) > 8


def test_it_stops_when_time_is_up_and_tells_what_was_made():
    found = rehearse(
        "rehearsed/Push-v0", BUDGET, people=50, rewards=(0, 1), steps=5, sizes=(), draws=50, minutes=1e-6, ways=ONE_WAY
    )
    assert [len(one.scores) for one in found.expected] == [1]
    assert (found.needed, found.best.spread) == (None, 0.0)


def test_the_smallest_number_that_works():
    each = [ExpectedScore("a", 50, (1.0, 3.0)), ExpectedScore("b", 50, (4.0,)), ExpectedScore("a", 100, (9.0, 7.0))]
    found = Rehearsal(tuple(each), BUDGET, 50, 5.0)
    assert (found.needed, found.best.way) == (100, "b")
    assert each[0].spread == pytest.approx(2**0.5)
    assert each[0].interval == pytest.approx((2 - 12.706 * 3**0.5, 2 + 12.706 * 3**0.5), rel=1e-4)
    assert each[1].interval is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rewards": None}, "rewards must be the smallest and the largest reward"),
        ({"make_people": "CartPole-v1"}, "have no bounds, or no width, in coordinate 1 and 3: give `box`"),
        ({"make_people": lambda people, seed: None}, "a function that comes with score"),
        ({"people": 1}, "people must be"),
        ({"wanted": float("nan")}, "wanted must be"),
    ],
)
def test_mistakes_are_told_before_anything_is_made(change, words):
    given: Any = {"make_people": "rehearsed/Push-v0", "budget": BUDGET, "people": 50, "rewards": (0, 1)} | change
    with pytest.raises(InvalidInput, match=words):
        rehearse(**given)


def test_on_the_command_line(quietq, tmp_path):
    pytest.importorskip("matplotlib")
    people = MadeUpPeople(Push(), None, *_declared())
    publish(privatise(people(100, 1), BUDGET), "world.qq")
    words = "plan sessions --people 50 --epsilon 4 --env world.qq --steps 5 --draws 1 --wanted 1 --quick"
    code, out, err = quietq(f"{words} --plot rehearsed.png --json")
    assert code == 0
    assert "This takes about" in err
    assert [one["people"] for one in json.loads(out)["expected"]] == [50, 50, 50]
    assert (tmp_path / "rehearsed.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = quietq(words)
    assert code == 0
    assert "From 50 people on it works." in out
    for wrong, said in (
        ("plan sessions --people 50 --epsilon 4", "--env must say where people act"),
        ("plan ratings --people 50 --epsilon 4 --env world.qq", "--env is for sessions"),
    ):
        code, out, err = quietq(wrong)
        assert (code, out) == (2, "")
        assert said in err
