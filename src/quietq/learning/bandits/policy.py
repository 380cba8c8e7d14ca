"""Policies for people who come by: choose, show, learn from the answer.

`arm = policy.choose(context)`, and later, in whatever order answers come in, `policy.learn(context, arm, reward)`.
"""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.checks import Check, Checked, count, optional, real, shown

UNITS = 2**20
"""An answer is a whole number of these parts of its range, so that sums of up to 2^33 of them are exact in float64."""


def _range(name: str, value: Any) -> tuple[float, float]:
    low, high = (real(name, one) for one in value)
    if not low < high:
        raise InvalidInput(f"{name} must be a range, lower end first, not {shown(value)}.")
    return low, high


@dataclass(eq=False)
class Policy(Checked, ABC):
    """What all policies share; one that is only this promises nothing."""

    fields: ClassVar[Mapping[str, Check]] = {
        "arms": partial(count, least=2, most=10**6), "rewards": _range,
        "simulate": optional(partial(count, least=0, most=None)),
    }  # fmt: skip
    name: ClassVar[str]
    arms: int
    """Numbered from 0."""
    _: KW_ONLY
    rewards: tuple[float, float] = (0.0, 1.0)
    """The public range of an answer. What lies outside is taken for the nearer end, and no answer for the middle."""
    simulate: int | None = None
    """A seed, for simulation: then nothing is promised."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._drawn, self._lock = 0, threading.RLock()
        self.state: Any = self._start()  # PRIVATE
        self.certificate = self._certify()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dataclass_fields__ and hasattr(self, "certificate"):
            raise AttributeError(f"{name} was promised by the policy's certificate, and is not changed: make another.")
        super().__setattr__(name, value)

    @abstractmethod
    def _start(self) -> Any:
        """A dataclass of whole numbers and arrays: all that there is to be saved."""

    @abstractmethod
    def choose(self, context: Any = None) -> int:
        """What to show to whoever came by."""

    def learn(self, context: Any, arm: int, reward: Any, person: Any = None) -> None:
        """An answer that came in, now or much later; None for one that never will."""
        self.learn_batch([context], [arm], [reward], [person])

    def learn_batch(self, contexts: Any, arms: Any, rewards: Any, people: Iterable[Any] | None = None) -> None:
        """Many answers at once: the same as one after the other. If one is refused, none is learned."""
        contexts = [None] * len(arms) if contexts is None else contexts
        people = [None] * len(arms) if people is None else list(people)
        with self._lock:
            given = [
                (self._shown(context, count("arm", arm, 0, self.arms - 1)), self._units(reward))
                for context, arm, reward, _ in zip(contexts, arms, rewards, people, strict=True)
            ]
            for (about, units), counts in zip(given, self._admit(people), strict=True):
                if counts:
                    self._take(about, units)
                else:
                    self._skip(about)

    def _shown(self, context: Any, arm: int) -> Any:
        """What an answer is about, as `_take` wants it."""
        return arm

    def _units(self, reward: Any) -> int:
        """An answer as a whole number. Nothing is refused: that would depend on the answer."""
        low, high = self.rewards
        with suppress(Exception):
            part = (min(max(float(reward), low), high) - low) / (high - low)
            if not math.isnan(part):
                return round(UNITS * min(max(part, 0.0), 1.0))
        return UNITS // 2

    def _admit(self, people: list[Any]) -> list[bool]:
        """Whether each one's answer counts; a refusal comes before any was counted."""
        if any(person is not None for person in people):
            raise InvalidInput("person must be left out, unless the policy counts visits by name: named=True.")
        return [True] * len(people)

    @abstractmethod
    def _take(self, shown: Any, units: int) -> None:
        """One answer."""

    def _skip(self, shown: Any) -> None:
        """One that does not count, because this person gave too many."""
        self._take(shown, UNITS // 2)

    def _forget(self) -> None:
        """Drops all answers that were not noised yet: all, where none ever is."""
        self.state = self._start()

    def _entropy(self) -> Entropy:
        self._drawn += 1  # a seeded stream of its own for each draw: resuming needs to know only how many there were
        return SystemEntropy() if self.simulate is None else SeededEntropy((self.simulate << 64) + self._drawn)

    def _certify(self) -> Certificate:
        remark = "It learns from answers as they are, to compare with."
        return Certificate(method=f"bandit/{self.name}", standing="none", remarks=(remark,))

    def __reduce__(self) -> str:
        raise TypeError("A policy is not copied or pickled, for a copy would spend its budget again: save it.")
