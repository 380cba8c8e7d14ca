"""The commands, nothing else: results on stdout (one JSON object with --json), everything else on stderr."""

from quietq.cli import reward  # noqa: F401, I001 (in the order of the help)
from quietq.cli import world, evaluate_policies, plan, train, audit, publish, ledger, demo, calibrate, reconstruct  # noqa: F401
from quietq.cli.app import app, main

__all__ = ["app", "main"]
