"""The commands, nothing else: results on stdout (one JSON object with --json), everything else on stderr."""

from quietq.cli import audit, calibrate, demo, limits, methods, reconstruct, reproduce, reward, train, worlds
from quietq.cli.app import app, main

__all__ = [
    "app", "audit", "calibrate", "demo", "limits", "main", "methods", "reconstruct", "reproduce", "reward", "train",
    "worlds",
]  # fmt: skip
