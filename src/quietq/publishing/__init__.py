"""What may leave: `publish` writes what was released and its certificate to one file, `load` reads it back."""

from quietq.mechanisms.private_network import PrivateNetwork as PrivateNetwork
from quietq.mechanisms.private_policy import PrivatePolicy as PrivatePolicy
from quietq.mechanisms.publishable import InvalidRelease as InvalidRelease
from quietq.mechanisms.release_file import OpenedFile as OpenedFile, load as load, open_release as open_release
from quietq.publishing.publish import publish as publish
