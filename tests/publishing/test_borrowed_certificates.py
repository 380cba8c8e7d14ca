"""A certificate is for the numbers that it was released with: others are not published under it."""

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from releases import KINDS, make

import quietq as qq
from quietq.privacy import Code
from quietq.released.private_function import PrivateTable
from quietq.released.publishable import Labels
from quietq.worlds import WALK, plan_on_grid

BORROWED = "is not what was released under its certificate"
ISSUED = [kind for kind in KINDS if kind not in ("splines", "grid", "mlp", "policy")]


def made(kind: str) -> Any:
    return make(kind)


def invented(table: PrivateTable) -> PrivateTable:
    """The exact values of what is secret, as whole multiples of the step that the certificate states."""
    step = next(float(one.values[0]) for one in table.certificate.assumptions if one.code is Code.EXACT_NOISE)
    exact = np.rint(np.linspace(0.0, 1.0, table.values.size).reshape(table.values.shape) / step) * step
    return replace(table, values=exact)


def test_invented_numbers_do_not_leave_under_a_borrowed_certificate(tmp_path):
    table = made("table")
    by_hand = PrivateTable(table.values, table.levels, table.box, table.certificate)
    for other in (invented(table), by_hand):
        with pytest.raises(qq.InvalidInput, match=BORROWED):
            qq.publish(other, tmp_path / "reward.qq")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ISSUED)
def test_whatever_is_made_of_a_release_by_replacing_a_field_is_not_published(kind, tmp_path):
    released = made(kind)
    qq.publish(released, tmp_path / "whole.qq")
    loaded: Any = qq.load(tmp_path / "whole.qq")
    for other in (
        replace(released, labels=Labels()),
        replace(released, certificate=released.certificate.with_remark("As good as new.")),
        replace(loaded, labels=Labels()),
    ):
        with pytest.raises(qq.InvalidInput, match=BORROWED):
            qq.publish(other, tmp_path / "other.qq")
    assert not (tmp_path / "other.qq").exists()


def test_numbers_that_were_changed_where_they_lie_are_not_published(tmp_path):
    table = copy.deepcopy(made("table"))
    table.values.flags.writeable = True
    table.values[0] += 1.0
    with pytest.raises(qq.InvalidInput, match=BORROWED):
        qq.publish(table, tmp_path / "reward.qq")
    object.__setattr__(table, "values", made("table").values)
    with pytest.raises(qq.InvalidInput, match=BORROWED):  # another draw's
        qq.publish(table, tmp_path / "reward.qq")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_pickles_and_what_was_loaded_are_published(again, tmp_path):
    released = again(make("table"))
    name = qq.publish(released, tmp_path / "one.qq")
    assert qq.publish(again(qq.load(tmp_path / "one.qq")), tmp_path / "two.qq") == name


def test_what_is_made_of_borrowed_numbers_does_not_borrow_the_certificate_either(tmp_path):
    table = qq.privatise(lambda s: s, qq.Budget(0.9, 1e-4), noise="path", relation=qq.people(50, 0, 0.5, 1))
    qq.publish(plan_on_grid(WALK, table, cells=16), tmp_path / "plan.qq")
    for reward in (invented(table), replace(table, labels=Labels())):
        with pytest.raises(qq.InvalidInput, match=BORROWED):
            qq.publish(plan_on_grid(WALK, reward, cells=16), tmp_path / "other.qq")

    class Own:
        certificate = table.certificate

        def __call__(self, states):
            return np.zeros(len(states))

    with pytest.raises(qq.InvalidInput, match="a reward that has no certificate"):
        qq.publish(plan_on_grid(WALK, Own(), cells=16), tmp_path / "other.qq")
    plan = plan_on_grid(WALK, table, cells=16)
    with pytest.raises(qq.InvalidInput, match=BORROWED):
        qq.publish(replace(plan, values=np.zeros_like(plan.values)), tmp_path / "other.qq")
    assert not (tmp_path / "other.qq").exists()


def test_a_policy_is_not_made_in_a_world_that_nobody_released(tmp_path):
    world = made("world")
    options: Any = {"steps": 3, "iterations": 1, "candidates": 20, "episodes": 2}
    plan = qq.plan_linear(world, **options)
    qq.publish(plan, tmp_path / "policy.qq")
    altered = replace(world, weights=2 * world.weights)
    forged = (
        qq.plan_linear(replace(world, ends=None), **options),
        qq.plan_linear(altered, **options),
        replace(plan, made_in=altered),
        replace(plan, weights=(2 * plan.weights[0],)),
    )
    for one in forged:
        with pytest.raises(qq.InvalidInput, match=BORROWED):
            qq.publish(one, tmp_path / "other.qq")
