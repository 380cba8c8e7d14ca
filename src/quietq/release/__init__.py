"""What may leave: `publish` writes what was released and its certificate to one file, `load` reads it back."""

from quietq.release.checks import InvalidRelease
from quietq.release.loading import Release, load, open_release
from quietq.release.network import PrivateNetwork
from quietq.release.publishing import publish

__all__ = ["InvalidRelease", "PrivateNetwork", "Release", "load", "open_release", "publish"]
