"""What one request may ask for, and how a request that cannot be answered is refused."""

MOST_STATES = 65_536
"""States in one request."""
MOST_VALUES = 1_048_576
"""States times outputs: what one answer may hold."""
MOST_BYTES = 8 * 2**20
"""Bytes of a request's body, however they arrive."""
SECONDS_TO_SEND = 30.0
"""Within them a body must have arrived."""
MOST_HEAD = 2**16
"""Bytes of a request's head: its address and its headers."""
MOST_WAITING = 64
"""Large requests that wait in one worker until a thread is free."""
SECONDS_TO_TAKE, LEAST_TAKEN = 30.0, 2**20
"""A client that takes fewer bytes than that of its answer within so many seconds is hung up on."""
MOST_UNTAKEN = 256 * 2**20
"""Bytes of answers that a worker holds for clients which do not take them; then who waited longest is hung up on."""
LEAST_TOKEN = 16
"""Characters of an access token."""


class Refusal(Exception):
    """A request that is refused: 4xx, or 503 if only the moment is wrong. The sentence names what would be right."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
