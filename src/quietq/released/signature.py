"""Who made a release: an Ed25519 signature of its hash, by the `cryptography` library.

The public key is in the file, so a signature that is right says only that whoever signed has the private key. Whose key
that is, one learns elsewhere: compare its fingerprint, or give the key (`quietq verify FILE --key KEY.pub`).
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from quietq.privacy import InvalidInput, MissingExtra
from quietq.released.publishable import InvalidRelease

# The points of order 1 to 8, without their sign (RFC 7748 and libsodium list them): one signature of theirs fits all.
_SMALL = frozenset(
    bytes.fromhex(text)
    for text in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)
_PURPOSE = b"quietq release signature 1\0"


def sign(content_hash: str, key: str | os.PathLike[str]) -> dict[str, str]:
    """The texts that sign a release's hash with the private key in a file."""
    ed25519, serialization = _library()
    data = _read(Path(key))
    private: Any = None
    with suppress(Exception):  # the library has many ways to refuse, and its error might quote the key
        private = serialization.load_pem_private_key(data, password=None)
    if not isinstance(private, ed25519.Ed25519PrivateKey):
        raise InvalidInput(f"{str(key)!r} is not an Ed25519 private key in PEM form without a password.")
    public = private.public_key().public_bytes_raw()
    return {"signature": private.sign(_PURPOSE + bytes.fromhex(content_hash)).hex(), "signer": public.hex()}


def checked(content_hash: str, signature: str, signer: str) -> bytes:
    """The signer's public key, if the signature is right; else raises InvalidRelease."""
    ed25519, _ = _library()
    from cryptography.exceptions import InvalidSignature

    try:
        public, signed = bytes.fromhex(signer), bytes.fromhex(signature)
        if public.hex() != signer or signed.hex() != signature:
            raise ValueError("not the one way to write it")
        if _is_small(public):
            raise ValueError("a key that signs everything")
        ed25519.Ed25519PublicKey.from_public_bytes(public).verify(signed, _PURPOSE + bytes.fromhex(content_hash))
    except (ValueError, InvalidSignature) as error:
        raise InvalidRelease("This is not a release: its signature is not that of its content.") from error
    return public


def fingerprint(public: bytes) -> str:
    """A public key in a form that two people can compare."""
    digest = hashlib.sha256(public).hexdigest()[:32]
    return " ".join(digest[i : i + 8] for i in range(0, 32, 8))


def signed_in_words(signer: bytes | None, key: bytes | None) -> str:
    """Says who made a release, as far as known; `key` is the public key that it was checked against, if any."""
    if signer is None:
        return "nobody signed this"
    if key is None:
        return f"signed by {fingerprint(signer)}, not checked against a key"
    return f"signed by the key given, {fingerprint(signer)}"


def require_signer(what: str, signer: bytes | None, key: bytes | None) -> None:
    """Refuses what this key did not sign; without a key, nothing."""
    if key is None or signer == key:
        return
    if signer is None:
        raise InvalidInput(f"{what} is whole, but nobody signed it.")
    raise InvalidInput(f"{what} is signed by another key, {fingerprint(signer)}.")


def read_public_key(path: str | os.PathLike[str]) -> bytes:
    ed25519, serialization = _library()
    data = _read(Path(path))
    try:
        key = serialization.load_pem_public_key(data)
    except Exception as error:  # the library has many ways to refuse
        raise InvalidInput(f"{str(path)!r} is not a public key in PEM form.") from error
    if not isinstance(key, ed25519.Ed25519PublicKey) or _is_small(key.public_bytes_raw()):
        raise InvalidInput(f"{str(path)!r} is not a sound Ed25519 key.")
    return key.public_bytes_raw()


def _is_small(public: bytes) -> bool:
    return len(public) == 32 and public[:-1] + bytes([public[-1] & 0x7F]) in _SMALL


def _read(path: Path) -> bytes:
    if not path.is_file() or path.stat().st_size > 2**16:
        raise InvalidInput(f"There is no key {str(path)!r}.")
    return path.read_bytes()


def _library() -> tuple[ModuleType, ModuleType]:
    try:
        import cryptography as cryptography
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingExtra.of("sign", "Signatures need cryptography") from error
    return ed25519, serialization
