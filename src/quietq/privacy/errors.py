"""What can go wrong, in words that a user can act on."""


class QuietqError(Exception):
    """Base of every error that quietq raises on purpose."""


class InvalidInput(QuietqError, ValueError):
    """A value was given that has no meaning here; the message names the field and what would be right."""


class BudgetExhausted(QuietqError, RuntimeError):
    """The privacy budget does not cover what was asked; nothing was drawn and nothing was released."""


class NoRkhsRadius(InvalidInput):
    """The relation is not bounded in this kernel's norm, so no finite amount of its noise protects it."""


class MissingExtra(QuietqError, ImportError):
    """An optional dependency is needed; the message says what to install."""


class PrivacyWarning(UserWarning):
    """The guarantee holds but is weaker than it looks, e.g. delta is not small against 1/people."""
