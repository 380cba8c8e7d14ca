"""What may leave: `publish` writes what was released and its certificate to one file, `load` reads it back."""

from quietq.release.checks import InvalidRelease
from quietq.release.file import Release, load, open_release, publish
from quietq.release.network import PrivateNetwork

__all__ = ["InvalidRelease", "PrivateNetwork", "Release", "load", "open_release", "publish"]
