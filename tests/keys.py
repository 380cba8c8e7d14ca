"""Pairs of Ed25519 keys, as `openssl genpkey` and `openssl pkey -pubout` write them."""

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def make_keys(path: Path) -> tuple[Path, Path]:
    """The private key in this file, and the public one beside it, as .pub."""
    key, pem, public = Ed25519PrivateKey.generate(), serialization.Encoding.PEM, path.with_name(f"{path.name}.pub")
    path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return path, public
