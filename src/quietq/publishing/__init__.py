"""What may leave: `publish` writes what was released and its certificate to one file, `load` reads it back."""

from quietq.publishing.publish import publish as publish
