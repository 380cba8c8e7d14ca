"""The commands, nothing else: results on stdout (one JSON object with --json), everything else on stderr."""

from quietq.cli import reward_command  # noqa: F401, I001 (in the order of the help)
from quietq.cli import (  # noqa: F401
    world_command,
    evaluate_policies_command,
    plan_command,
    audit_command,
    publish_command,
    ledger_command,
    demo_command,
    calibrate_command,
    paper_group,
    train_command,
    paper_audit_command,
    reconstruct_command,
)
from quietq.cli.app import app, main

__all__ = ["app", "main"]
