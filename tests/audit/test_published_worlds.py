"""Somebody who has published worlds and nothing else: whose sessions were they made of?

Two neighbours, of whom one person's sessions are the worst that a search finds, are released again and again. A score
of all numbers in the file is learned on some of the releases and judged on the others.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from broken_copies import STRONG, altered, both, check, halve_draws
from test_worst_sessions import DYNAMICS, Unnoised, _few_rounds, made_up, read  # noqa: F401

from quietq import PrivateWorld, WorldModel
from quietq.audit.finding import Movement
from quietq.audit.worst_rows import Neighbourhood, WorstRows, numbers_in_file, worst_rows
from quietq.mechanisms import moments
from quietq.mechanisms.moments import Moments
from quietq.mechanisms.release import simulate

FEW, MANY = 200, 600
"""Releases a side."""
NEAR, FAR = (0, 0, 0.0, 0.0, 0, 0.0, 0), (0, 0, 1.0, 0.0, 1, 1.0, 1)
"""One step each, of visit, step, x, after, push, reward and end: at rest, or from one end of the box to the other."""


def mechanism(kind: type[Moments] = Moments, model: WorldModel | None = DYNAMICS) -> Any:
    return kind(read(made_up()), STRONG, model)


def neighbours(one: Any, *rows: Any) -> WorstRows:
    """By hand, and nearly as far apart as those that a search finds."""
    crowd = Neighbourhood(read, made_up())
    before, after = (crowd.with_rows(list(own)) for own in rows)
    return WorstRows(one, before, after, Movement("by hand", 1.0, 1.0, "hand"))


def test_all_numbers_of_a_file_are_seen():
    world: PrivateWorld = simulate(mechanism(model=None), read(made_up()), 0)
    seen = set(numbers_in_file(world).tolist())
    learned = [one for one in world.errors.to_dict().values() if one is not None]
    stated = np.hstack(learned).tolist()
    assert {world.rate, *stated} <= seen
    parts = [part for part in (world.reward, world.ends) if part is not None]
    arrays = [getattr(world, name) for name in ("weights", "gram", "residual", "left", "right", "first", "spread")]
    for array in (*arrays, *(part.weights for part in parts), *(part.offset for part in parts)):
        assert set(np.ravel(array).tolist()) <= seen
    assert len(parts) == 2


@both
def test_published_worlds_keep_the_promise_unless_whitening_looks_at_people(broken, monkeypatch):
    """By few releases, and at the usual confidence; the slow tests are surer."""
    monkeypatch.setattr(moments, "SETTINGS", moments.MomentSettings(rounds=2))
    found = neighbours(mechanism(Unnoised if broken else Moments), [NEAR], [FAR])
    assert found.audit_file(60 if broken else 40, seed=1).verdict == ("refuted" if broken else "consistent")


@pytest.mark.slow
def test_whitening_that_looks_at_people_is_seen_in_a_file():
    check(neighbours(mechanism(Unnoised), [NEAR], [FAR]).audit_file(FEW, seed=1), True)


@pytest.mark.slow
@both
@pytest.mark.parametrize("model", [DYNAMICS, None], ids=["dynamics", "whole"])
def test_half_the_noise_is_seen_in_a_file(broken, model):
    """Of the worst person that a search finds."""
    sound = mechanism(model=model)
    found = worst_rows(read, made_up(), STRONG, mechanism=sound, tries=16)
    one = altered(sound, halve_draws) if broken else sound
    finding = replace(found, mechanism=one).audit_file(MANY, seed=1, confidence=0.999)
    assert finding.verdict == ("refuted" if broken else "consistent")
    assert finding.mu_lower > 0.8
