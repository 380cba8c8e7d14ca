"""Trainings of an audit: the same for the same settings, and alike in all but the reward."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quietq import Budget, InvalidInput, SupBall
from quietq.audit.distinguisher import Seen
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.candidates import choose
from quietq.noise.entropy import SeededEntropy
from quietq.paper import InputNoise, NetworkValueNoise
from quietq.paper.agents import NoNoise
from quietq.paper.agents.trainer import spaces_of
from quietq.paper.algorithm import ACTING, Published
from quietq.paper.attacks import on_trainings
from quietq.paper.attacks.on_trainings import Trainings, View, audit_training
from quietq.paper.attacks.pairs import neighbours
from quietq.worlds import WALK

METHOD = InputNoise(relation=SupBall(0.5), budget=Budget(0.9, 1e-4), knots=3)
PAIR = neighbours(WALK, SupBall(0.5), "shift")
VIEW = View(queries=3)


def trainings(**changes: Any) -> Trainings:
    return Trainings(**({"method": METHOD, "pair": PAIR, "view": VIEW, "steps": 30} | changes))


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_trainings, "BATCH", 8)


def same(one: Seen, other: Seen) -> bool:
    return bool((one.first == other.first).all() and (one.second == other.second).all())


def test_runs_are_as_many_as_asked_for_and_more_begin_with_fewer() -> None:
    heard: list[tuple[int, int]] = []
    whole = trainings().run(10, lambda done, of: heard.append((done, of)))
    assert heard == [(1, 3), (2, 3), (3, 3)]
    assert whole.first.shape == whole.second.shape == (10, 6)
    assert whole.first.dtype == np.float32
    assert len(np.unique(np.concatenate([whole.first, whole.second]), axis=0)) == 20  # no run is another's copy
    assert same(trainings().run(5), whole.split(5)[0])


class Other(InputNoise):
    """Goes by the name of what it was made from."""


def network(optimiser: Any) -> NetworkValueNoise:
    return NetworkValueNoise(relation=SupBall(0.5), budget=Budget(0.9, 1e-4), optimiser=optimiser)


def test_another_configuration_has_noise_of_its_own() -> None:
    promise: dict[str, Any] = {"relation": SupBall(0.5), "budget": Budget(0.9, 1e-4)}
    relation, budget = WALK.relation(50), Budget(0.9, 1e-4)
    private = [choose("knots", OwnFunction(None, relation, box=WALK.box), budget, pieces=pieces) for pieces in (4, 5)]
    ones = [
        trainings(), trainings(steps=31), trainings(seed=1), trainings(view=View(queries=4)),
        trainings(view=View("policy", queries=3)), trainings(view=View("every", queries=3, moments=3)),
        trainings(pair=neighbours(WALK, SupBall(0.5), "zigzag")),
        trainings(pair=neighbours(WALK, SupBall(0.4), "shift")),
        trainings(method=InputNoise(**promise, knots=4)), trainings(method=InputNoise(**promise, knots=3, gamma=0.5)),
        trainings(method=InputNoise(relation=SupBall(0.5), budget=Budget(0.8, 1e-4), knots=3)),
        trainings(method=InputNoise(relation=SupBall(0.4), budget=Budget(0.9, 1e-4), knots=3)),
        trainings(method=Other(**promise, knots=3)), trainings(method=NoNoise()),
        *(trainings(method=NoNoise(), private=one) for one in private), trainings(method=network("sgd")),
        trainings(method=network("adam")), trainings(public_walk=True),
    ]  # fmt: skip
    streams = [one._stream(0, 0) for one in ones]
    assert len(set(streams)) == len(ones)
    assert trainings()._stream(0, 0) == streams[0]


def test_on_a_public_walk_only_the_noise_differs() -> None:
    loud = InputNoise(relation=SupBall(1e-3), budget=Budget(1e4, 1e-4), knots=3, spread=None)  # next to no noise
    secret, public = (trainings(method=loud, public_walk=public).run(8) for public in (False, True))
    assert np.ptp(secret.first, axis=0).max() > 0.05
    assert np.ptp(public.first, axis=0).max() < 0.01


def test_what_is_no_number_counts_as_zero() -> None:
    method = NoNoise(network="splines", features=3)
    network = method.init(spaces_of(WALK), jax.random.key(0)).network
    broken = jax.tree.map(lambda leaf: jnp.full((2, *leaf.shape), jnp.nan), network)
    assert not View(queries=3).seen(method, broken, WALK.box).any()


def test_worlds_differ_in_the_reward_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a batch is of each world, and all runs have keys and noise of their own, of one and the same law."""
    given: list[Any] = []

    def noting(self: Trainings, core: Any, runs: Any) -> np.ndarray:
        given.append(runs)
        return np.zeros((8, 1), np.float32)

    monkeypatch.setattr(Trainings, "_looks", noting)
    for number in range(2):
        trainings()._batch(number)
    for one in given:
        (sides,) = one.reward.numbers
        assert sides.tolist() == [0.0] * 4 + [1.0] * 4
        assert jax.tree.structure(one.reward) == jax.tree.structure(given[0].reward)
        assert len(set(one.noise.scale.tolist())) == len(set(one.noise.largest.tolist())) == 1
    keys = np.concatenate([jax.random.key_data(one.keys) for one in given])
    normals = np.concatenate([one.noise.normals for one in given])
    assert len(np.unique(keys, axis=0)) == len(np.unique(normals, axis=0)) == 16
    assert np.abs(np.corrcoef(normals) - np.eye(16)).max() < 0.9
    again = trainings()._batch(0)
    assert again.shape == (2, 4, 1)
    assert (given[2].noise.normals == given[0].noise.normals).all()


def test_what_is_seen_is_as_much_as_the_view_says() -> None:
    final = trainings().run(4)
    policy = trainings(view=View("policy", queries=3)).run(4)
    every = trainings(view=View("every", queries=3, moments=4)).run(4)
    assert final.first.shape == (4, 6)
    one_hot = policy.second.reshape(4, 3, 2)
    assert set(one_hot.ravel().tolist()) == {0.0, 1.0}
    assert (one_hot.sum(axis=2) == 1).all()  # where values are equal too
    assert every.first.shape == (4, 4 * 6)
    looks = every.first.reshape(4, 4, 6)
    assert (np.abs(np.diff(looks, axis=1)).max(axis=(0, 2)) > 0).all()


def test_a_view_asks_at_equal_distances() -> None:
    assert View(queries=3).states(WALK.box).tolist() == [[0.0], [0.5], [1.0]]
    assert (View().looks, View("policy", moments=7).looks, View("every", moments=7).looks) == (1, 1, 7)


def test_wrong_input_is_refused_in_a_sentence() -> None:
    view = View()
    object.__setattr__(view, "kind", "rewards")  # past the type checker
    with pytest.raises(InvalidInput, match="view must be one of final, policy, every, not 'rewards'"):
        view.__post_init__()
    for wrong in (0, 10_001):
        with pytest.raises(InvalidInput, match="queries must be"):
            View(queries=wrong)
        with pytest.raises(InvalidInput, match="moments must be"):
            View(moments=wrong)
    with pytest.raises(InvalidInput, match="runs must be a whole number of at least 40, not 39"):
        audit_training(METHOD, WALK, 39)
    with pytest.raises(InvalidInput, match="audit the private reward instead"):
        audit_training(NoNoise(), WALK, 40)


def test_the_published_code_shows_the_noise_of_its_episode() -> None:
    method, spaces = Published.code(widths=(4,), levels=3), spaces_of(WALK)
    paths, _ = noise = method.draw(spaces, 3 * spaces.steps, SeededEntropy(0))
    state = method.init(spaces, jax.random.key(0))
    place = jnp.array([0.5])
    for episode, path in ((0, 0), (1, 1), (2, 2), (3, 2)):  # beyond the last, the last
        released = method.current(state._replace(episode=jnp.array(episode)), noise)
        assert (released.path == paths[:, path, ACTING]).all()
        shown = method.values(released, place) - state.learner.network(place)
        np.testing.assert_allclose(shown, paths[4, path, ACTING], atol=1e-6)
    assert (method.finish(state, noise).path == paths[:, -1, ACTING]).all()
    text = Published.text(widths=(4,), levels=3)
    assert not text.current(state, text.draw(spaces, 128, SeededEntropy(0))).path.any()
