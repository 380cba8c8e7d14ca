"""Releases over HTTP: `quietq serve` answers from the files alone, so every worker and every replica says the same."""

from quietq.server.catalogue import Catalogue, Entry
from quietq.server.limits import MOST_BYTES, MOST_STATES, MOST_VALUES

__all__ = ["MOST_BYTES", "MOST_STATES", "MOST_VALUES", "Catalogue", "Entry"]
