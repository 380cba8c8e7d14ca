"""What may leave: `publish` writes a private function and its certificate to one file, `load` reads it back."""

from quietq.release.container import InvalidRelease
from quietq.release.file import load, publish

__all__ = ["InvalidRelease", "load", "publish"]
