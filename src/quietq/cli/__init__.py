"""The commands, nothing else: results on stdout (one JSON object with --json), everything else on stderr."""

from quietq.cli import releasing  # noqa: F401, I001 (in the order of the help)
from quietq.cli import (  # noqa: F401
    demo_command,
    planning_commands,
    publish_command,
    ledger_command,
    audit_command,
    paper_commands,
)
from quietq.cli.app import app, main

__all__ = ["app", "main"]
