"""The comparison that should have been there: every certified method at the same promise, by the number of people."""

from paper.comparison.plan import Comparing

__all__ = ["Comparing"]
