"""What can be published: `publish` writes what was released and its certificate to one file, `load` reads it back."""

from quietq.publishing.check import check as check
from quietq.publishing.minari_export import to_minari as to_minari
from quietq.publishing.publish import publish as publish
