"""What a promise stands on: sentences, each enforced by the code or trusted to somebody."""

from dataclasses import dataclass

from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput

_NEVER_ENFORCED = (
    "chosen without the private data",
    "Neighbouring inputs are",
    "and changes as the relation says",
    "depend on the reward through",
    "depend on its reward through",
    "depend on the private reward through",
    "random bits are fair",
    "taken for ideal",
    "computed to within",
    "gave one trajectory",
    "never fail",
    "under two names",
    "from what this certificate covers",
    "whatever the data is",
    "checked",
    "No account was given",
)
"""Words of assumptions that are trusted by their nature, in whichever room they are stated."""


class InvalidCertificate(InvalidInput):
    """The certificate would claim more than its parts support, or the text is not one."""


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise InvalidCertificate(sentence)


def line(name: str, value: object) -> str:
    """Line breaks and control characters could forge lines of what is printed."""
    if isinstance(value, str) and value.isprintable():
        return value
    raise InvalidCertificate(f"{name} must be printable text in one line, not {shown(value)}.")


def flag(name: str, value: object) -> object:
    require(isinstance(value, bool), f"{name} must be True or False, not {shown(value)}.")
    return value


@dataclass(frozen=True)
class Assumption:
    """Something the promise stands on: `enforced` by this code, or else trusted to the caller."""

    text: str
    enforced: bool

    def __post_init__(self) -> None:
        text = line("An assumption's text", self.text)
        require(bool(text.strip()), f"An assumption's text must be a sentence, not {shown(text)}.")
        flag("An assumption's enforced", self.enforced)


CHOSEN = Assumption(
    "Box or items, bounds, numbers of people, settings and budget were chosen without the private data.", enforced=False
)
"""No code can see it, so every certified promise trusts somebody for it, in these words."""
FAIR = Assumption("The operating system's random bits are fair, independent and known to nobody.", enforced=False)
"""What all noise that protects is made of."""


def check_assumptions(assumptions: tuple[Assumption, ...]) -> None:
    """What no code can see is trusted, and one such thing is behind every promise.

    Sentences are plain ASCII, so that none can look like another and be read differently.
    """
    require(bool(assumptions), "A certified promise must state what it assumes, even if all of it is enforced.")
    for one in assumptions:
        require(one.text.isascii(), f"A certified assumption must be plain ASCII text, not {shown(one.text)}.")
        text = " ".join(one.text.lower().split())
        by_nature = any(words.lower() in text for words in _NEVER_ENFORCED)
        require(not (one.enforced and by_nature), f"No code can enforce this, so it must be trusted: {one.text}")
    require(CHOSEN in assumptions, f"A certified promise must trust somebody for this, in these words: {CHOSEN.text}")
