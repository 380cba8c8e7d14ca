"""The comparison that should have been there: every certified method at the same promise, by the number of people."""

from quietq.experiments.honest.plan import Honest

__all__ = ["Honest"]
