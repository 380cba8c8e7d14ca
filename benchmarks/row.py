"""One measured number and what it is held to."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Row:
    """Smaller is better; without a limit the number is only reported."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    aim: float | None = None

    @property
    def verdict(self) -> Literal["ok", "over", ""]:
        """Whether the limit is kept; NaN is over."""
        if self.limit is None:
            return ""
        return "ok" if self.value <= self.limit else "over"

    def cells(self) -> tuple[str, str, str, str, str]:
        """Name, measured, limit, aim, verdict as text."""
        return self.name, self._text(self.value), self._text(self.limit), self._text(self.aim), self.verdict

    def _text(self, number: float | None) -> str:
        if number is None:
            return ""
        digits = f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"
        return f"{digits} {self.unit}".strip()
