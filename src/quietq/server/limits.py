"""What one request may ask for, and how a request that cannot be answered is refused."""

MOST_STATES = 65_536
"""States in one request."""
MOST_VALUES = 1_048_576
"""States times outputs: what one answer may hold."""
MOST_BYTES = 8 * 2**20
"""Bytes of a request's body, however they arrive."""
SECONDS_TO_SEND = 30.0
"""Within them a body must have arrived."""
LEAST_TOKEN = 16
"""Characters of an access token."""


class Refusal(Exception):
    """A request that gets an answer of status 4xx; the sentence names what would be right."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
