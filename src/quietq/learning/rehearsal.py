"""What can be found out before anything is drawn or spent, so that no budget is lost to what could never work."""

from collections.abc import Callable
from typing import Any

from quietq.privacy.errors import QuietqError


def refused_early(rehearse: Callable[..., None], *arguments: Any) -> None:
    """Traces a program; where that fails, says that nothing was spent."""
    try:
        rehearse(*arguments)
    except QuietqError:
        raise
    except Exception as error:
        error.add_note("This was a rehearsal, before the training: nothing was drawn or spent.")
        raise
