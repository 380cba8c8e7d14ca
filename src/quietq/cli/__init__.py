"""The commands, nothing else: results on stdout (one JSON object with --json), everything else on stderr."""

from quietq.cli import calibrate, limits, reward
from quietq.cli.app import app, main

__all__ = ["app", "calibrate", "limits", "main", "reward"]
