"""Warnings that come from the raw data: for the operator's eyes, and never a refusal.

Whether such a warning is there depends on what people gave. Where warnings are errors (`python -W error`) it would end
the program for some people's data and not for others', which others may notice. So then it is only printed.
"""

import sys
import warnings
from contextlib import suppress


def warn_of_raw_data(sentence: str, stacklevel: int = 2) -> None:
    """Warns as `warnings.warn` does, but goes on whatever filters make of that."""
    try:
        warnings.warn(sentence, UserWarning, stacklevel=stacklevel + 1)
        return
    except Exception:
        pass
    with suppress(Exception):
        if sys.stderr is not None:
            print(f"Warning: {sentence}", file=sys.stderr)
