"""Verdicts on the extensions follow the rows, on both sides of every rule."""

import pytest

from reproduction.extensions import EXTENSIONS, kernels, learners, worlds
from reproduction.extensions.kernels import LINE, SECTION, UNSTRUCTURED
from reproduction.extensions.learners import CHANGE


def verdicts(claims):
    return {claim.name: claim.verdict for claim in claims}


def changed(rows, quantity, value, setting=None):
    """The same rows, but for one quantity."""
    return [
        one | {"value": value} if one["quantity"] == quantity and setting in (None, one["setting"]) else one
        for one in rows
    ]


@pytest.fixture(scope="module")
def cheap_rows():
    slower = (learners.measure_learning, worlds.measure_plans, kernels.measure_releases)
    tasks = [task for task in EXTENSIONS.tasks(True) if task.measure not in slower]
    rows = [one for task in tasks for one in task.rows()]
    rows = changed(rows, "power of the number of queries", 1.0)  # no test depends on how fast a machine is
    return changed(rows, "power of the number of queries", 2.75, UNSTRUCTURED)


def test_verdicts_follow_the_rows(cheap_rows):
    claims = EXTENSIONS.claims({"extensions": cheap_rows})
    assert {claim.verdict for claim in claims} <= {"holds", "in part", "fails"}
    found = verdicts(claims)
    holds = ("actor-critic", "epsilon-greedy", "any bounded interval")
    assert found == {name: "holds" if name in holds else "in part" for name in found}
    assert len(found) == 8
    by_theorem = ("actor-critic", "epsilon-greedy", "experience replay")
    assert all(("not by attack" in claim.measured) == (claim.name in by_theorem) for claim in claims)
    for name, quantity, value, other in (
        ("actor-critic", "epsilon of the policy", 1.0, "fails"),
        ("epsilon-greedy", "epsilon of the policy", 1.0, "fails"),
        ("experience replay", "uses of a reward", 1.0, "holds"),
        ("any bounded interval", "largest difference of the releases", 0.1, "fails"),
        ("several dimensions", "the same in standard errors", 7.0, "fails"),
        ("actor-critic on raw rewards", CHANGE, 0.0, "fails"),
        ("band-limited functions", "the same in standard errors", 7.0, "fails"),
        ("band-limited functions", SECTION, 1.1, "fails"),
        ("band-limited functions", LINE, 0.2, "holds"),
        ("time for other kernels", "power of the number of queries", 2.0, "holds"),
        ("time for other kernels", "power of the number of queries", 1.0, "fails"),
    ):
        rows = changed(cheap_rows, quantity, value)
        assert verdicts(EXTENSIONS.claims({"extensions": rows}))[name] == other
    allowed = [one | {"sentence": None} if one["quantity"] == "refused" else one for one in cheap_rows]
    raw = {claim.name: claim for claim in EXTENSIONS.claims({"extensions": allowed})}["actor-critic on raw rewards"]
    assert raw.verdict == "in part"  # what this library refuses is no evidence about the paper
    assert raw.measured.endswith("This library does not refuse it.")
