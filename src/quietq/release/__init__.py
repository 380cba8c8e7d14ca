"""What may leave: `publish` writes a private function and its certificate to one file, `load` reads it back."""

from quietq.release.file import InvalidRelease, load, publish

__all__ = ["InvalidRelease", "load", "publish"]
