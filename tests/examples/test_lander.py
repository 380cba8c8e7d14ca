"""Landers whose logs are cut at the first contact: the plan of a private world lands."""

import pytest

pytest.importorskip("Box2D")
pytest.importorskip("pygame")
from examples.lander import plan, returns


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_plan_reaches_what_the_page_on_sessions_says():
    """A hundred is far more than people reach, who crash; nine of the ten draws that the page tells of reached it."""
    policy = plan(simulate=0)
    found = returns(lambda states: policy.predict(states)[0])
    assert len(found) == 50
    assert sum(found) / 50 >= 100
