"""What may leave: `publish` writes what was released and its certificate to one file, `load` reads it back."""

from quietq.publishing.checks import InvalidRelease as InvalidRelease
from quietq.publishing.loading import Release as Release, load as load, open_release as open_release
from quietq.publishing.network import PrivateNetwork as PrivateNetwork
from quietq.publishing.publishing import publish as publish
