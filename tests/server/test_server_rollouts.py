"""Episodes in released worlds: the worlds' own steps, drawn from a seed, bounded, and marked as what they came from."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from serving import Asked
from stages import BOX, cart, driver
from test_server_fuzz import BODY
from test_server_refusals import refused

from quietq.privacy.certificate import Certificate
from quietq.publishing import load, publish

MIDDLE = [0.0] * 4


def roll(ask, name, **question):
    answer = ask.post(ask.url(name, "rollout"), json=question)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_each_step_is_one_of_the_released_world(stage, stages):
    world: Any = load(stages["cart"])
    found = roll(stage, "cart", steps=60, start=MIDDLE)
    states, actions = np.array(found["states"]), np.array(found["actions"])
    assert states[0].tolist() == pytest.approx(MIDDLE, abs=1e-12)
    expected = world(states[:-1]).reshape(len(actions), 2, 4)[np.arange(len(actions)), actions]
    deviation = np.sqrt(np.diag(world.residual)) * np.array(world.box.width) / 2
    assert (np.abs(states[1:] - expected) <= 7 * deviation).all()  # of some 240 numbers: far in the tail
    assert len(states) == len(actions) + 1 == len(found["rewards"]) + 1
    assert set(actions.tolist()) == {0, 1}
    if found["ending"] == "steps":
        assert len(actions) == 60


def test_a_seed_names_one_episode(stage):
    one, again, other = (roll(stage, "cart", steps=20, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one["states"][0] != other["states"][0]


def test_simple_policies_and_served_ones(stage, stages):
    assert set(roll(stage, "cart", policy=1, steps=9, start=MIDDLE)["actions"]) == {1}
    pushed = roll(stage, "pushed", policy=[0.25], steps=9)
    assert {tuple(action) for action in pushed["actions"]} == {(0.25,)}
    spread = np.array(roll(stage, "pushed", steps=40)["actions"])
    assert spread.min() < 0 < spread.max()
    assert np.abs(spread).max() <= 1
    driven = roll(stage, "cart", policy=stage.entries["driver"].record.id, steps=30, start=MIDDLE)
    states = np.array(driven["states"][:-1])
    agent: Any = load(stages["driver"])
    assert driven["actions"] == agent.predict(states)[0].tolist()
    whole = stage.entries["driver"].record.hash
    assert roll(stage, "cart", policy=whole, steps=30, start=MIDDLE) == driven


def test_what_was_known_is_left_out_and_said(stage):
    listed = {each["name"]: each for each in stage.get("/v1/releases").json()["releases"]}
    assert listed["cart.qq"]["what"] == "world"
    assert listed["cart.qq"]["stage"]["policies"] == [stage.entries["driver"].record.id]
    assert listed["cart.qq"]["stage"]["unknown"] == []
    assert listed["pushed.qq"]["stage"]["unknown"] == ["reward", "end", "start"]
    assert listed["pushed.qq"]["stage"]["policies"] == []
    assert listed["five.qq"]["stage"] is None
    found = roll(stage, "pushed", steps=5)
    assert found["rewards"] is None
    assert found["states"][0] == pytest.approx(listed["pushed.qq"]["stage"]["start"], abs=1e-9)
    refused(stage.post(stage.url("still", "rollout"), json={}), 409, "with_known")


def test_it_is_halted_where_nobody_was(stage):
    found = roll(stage, "pushed", steps=50, start=[1.9, 2.9, 0.9, 1.9])
    assert (found["ending"], len(found["actions"])) == ("halted", 1)
    assert "where nobody was" in found["reason"]


def test_what_is_not_private_makes_the_episode_so(tmp_path):
    world = cart()
    nothing = dataclasses.replace(driver(world), certificate=Certificate(method="m", standing="none"))
    publish(world, tmp_path / "world.qq")
    publish(nothing, tmp_path / "open.qq", not_private=True)
    ask = Asked({name: tmp_path / f"{name}.qq" for name in ("world", "open")})
    answer = ask.post(ask.url("world", "rollout"), json={"policy": ask.entries["open"].record.id})
    assert answer.json()["privacy"] == answer.headers["X-Quietq-Privacy"] == "NOT PRIVATE"
    assert roll(ask, "world")["privacy"] == "certified"


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": 501}, "500"),
        ({"steps": 10**400}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**32}, "seed"),
        ({"start": [0.0]}, "4 numbers within"),
        ({"start": [9.0] * 4}, "4 numbers within"),
        ({"start": [0.0] * 9}, "4 numbers within"),
        ({"policy": "nobody"}, "must be one that fits this world"),
        ({"policy": 2}, "from 0 to 1"),
        ({"policy": -1}, "from 0 to 1"),
        ({"policy": [0.5]}, "the number of an action"),
        ({"policy": True}, "policy"),
        ({"policy": None}, "policy"),
        ({"more": 1}, "not permitted"),
    ],
)
def test_questions_that_are_refused(stage, question, words):
    refused(stage.post(stage.url("cart", "rollout"), json=question), 422, words)


def test_other_refusals(stage):
    refused(stage.post(stage.url("five", "rollout"), json={}), 409, "no world")
    refused(stage.post(stage.url("driver", "rollout"), json={}), 409, "no world")
    refused(stage.post(stage.url("pushed", "rollout"), json={"policy": 0}), 422, "1 number")
    refused(stage.post(stage.url("pushed", "rollout"), json={"policy": [1.5]}), 422, "1 number within")
    refused(stage.post(stage.url("cart", "rollout"), content=b"{}"), 415, "application/json")
    body = b'{"start": [' + b"0," * 40_000 + b"0]}"
    sent = {"Content-Type": "application/json"}
    refused(stage.post(stage.url("cart", "rollout"), content=body, headers=sent), 413, "65536")
    refused(stage.post("/v1/releases/0000000000000000/rollout", json={}), 404)
    assert stage.get(stage.url("cart", "rollout")).status_code == 405


def test_an_agent_of_other_states_or_actions_does_not_fit(stage, stages):
    from quietq.publishing.server.stages import acts_in

    world: Any = load(stages["cart"])
    agent: Any = stage.entries["driver"].release
    assert acts_in(agent, world)
    narrow = dataclasses.replace(agent.function, box=type(BOX).of([(-1.0, 1.0)] * 4))
    three = dataclasses.replace(
        agent.function, weights=(agent.function.weights[0], np.zeros((3, 8))), biases=(np.zeros(8), np.zeros(3))
    )
    for other in (narrow, three):
        assert not acts_in(dataclasses.replace(agent, function=other), world)
    assert not acts_in(stage.entries["five"].release, world)


fields = st.fixed_dictionaries(
    {},
    optional={
        "policy": st.sampled_from(["random", 0, 1, [0.5]]) | st.text(max_size=5) | st.integers(),
        "steps": st.integers(-2, 4) | st.floats(),
        "seed": st.integers(-1, 2**33),
        "start": st.none() | st.lists(st.floats(-3, 3), min_size=3, max_size=5),
    },
)


@settings(max_examples=40)
@given(st.sampled_from(["cart", "pushed", "still", "five"]), fields)
def test_any_question(stage, name, question):
    headers = {"Content-Type": "application/json"}
    answer = stage.post(stage.url(name, "rollout"), content=json.dumps(question).encode(), headers=headers)
    assert answer.status_code in (200, 409, 422), answer.text
    if answer.status_code == 200:
        assert np.isfinite(answer.json()["states"]).all()


@settings(max_examples=30)
@given(BODY)
def test_any_body_of_a_question(stage, body):
    headers = {"Content-Type": "application/json"}
    answer = stage.post(stage.url("cart", "rollout"), content=body, headers=headers)
    assert answer.status_code in (200, 422)
