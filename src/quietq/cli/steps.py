"""The steps of a long command: which one is under way, and about how much time is left."""

import sys
import time
from collections.abc import Mapping


class ProgressSteps:
    """Tells on stderr. On a terminal a line is rewritten while a step goes on; elsewhere there is one now and then.

    `expected` has the seconds that each step takes on an idle machine. The time left is what it says of the steps that
    are to come, times how much longer than expected everything took so far: an estimate, and called "about".
    """

    def __init__(self, expected: Mapping[str, float], shown: bool, before: float = 0.0) -> None:
        """`before` are seconds that were expected for what happened until now, since the process began."""
        self._expected, self._titles, self._shown = dict(expected), list(expected), shown
        self._began, self._done, self._step = time.monotonic() - _age(), before, 0
        self._terminal, self._told = sys.stderr.isatty(), 0.0

    def begin(self) -> None:
        """The next step."""
        if self._step > 0:
            self._done += self._expected[self._titles[self._step - 1]]
        self._wipe()
        title, number = self._titles[self._step], len(self._titles)
        self._step += 1
        self._told = time.monotonic()
        self._tell(f"{self._step}/{number} {title} (about {self.left(0.0)} left)\n")

    def left(self, share: float) -> str:
        """Of everything, if so much of this step is done."""
        now = self._expected[self._titles[self._step - 1]]
        done = self._done + share * now
        to_come = sum(self._expected.values()) - sum(self._expected[title] for title in self._titles[: self._step - 1])
        slower = (time.monotonic() - self._began) / done if done > 0 else 1.0
        return words(slower * (to_come - share * now))

    def progress(self, done: int, total: int) -> None:
        """So much of the step that is under way is done."""
        now = time.monotonic()
        if now - self._told < (0.2 if self._terminal else 10.0):
            return
        self._told = now
        line = f"    {done / total:.0%} of this step, about {self.left(done / total)} left"
        self._tell(f"\r{line}\x1b[K" if self._terminal else f"{line}\n")

    def end(self) -> None:
        self._wipe()

    @property
    def where(self) -> str:
        return f"step {self._step} of {len(self._titles)}"

    def _wipe(self) -> None:
        if self._terminal:
            self._tell("\r\x1b[K")

    def _tell(self, text: str) -> None:
        if self._shown:
            print(text, end="", file=sys.stderr, flush=True)


def words(seconds: float) -> str:
    """An estimate, in round numbers.

    >>> words(0.2), words(7.4), words(43), words(150)
    ('1 second', '7 seconds', '45 seconds', '3 minutes')
    """
    if seconds > 100:
        return f"{max(2, -(-seconds // 60)):.0f} minutes"
    rounded = max(1, round(seconds)) if seconds < 15 else 5 * round(seconds / 5)
    return f"{rounded} second{'s' if rounded > 1 else ''}"


def _age() -> float:
    """Seconds since this process began to run Python, about: its imports are part of what one waits for."""
    return time.process_time()
