"""The commands, nothing else: results on stdout (one JSON object with --json), everything else on stderr."""

from quietq.cli import (
    audit,
    calibrate,
    demo,
    keygen,
    ledger,
    limits,
    methods,
    publish,
    reconstruct,
    reward,
    serve,
    train,
    verify,
    worlds,
)
from quietq.cli.app import app, main

__all__ = [
    "app", "audit", "calibrate", "demo", "keygen", "ledger", "limits", "main", "methods", "publish", "reconstruct",
    "reward", "serve", "train", "verify", "worlds",
]  # fmt: skip
