"""Who made a release: an Ed25519 signature of its hash, by the `cryptography` library.

The public key is in the file, so a signature that is right says only that whoever signed has the private key. Whose key
that is, one learns elsewhere: compare its fingerprint, or give the key (`quietq verify FILE --key KEY.pub`).
"""

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from quietq.mechanisms.publishable import InvalidRelease
from quietq.privacy.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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
    private = _private_key(Path(key))
    public = private.public_key().public_bytes_raw()
    return {"signature": private.sign(_PURPOSE + bytes.fromhex(content_hash)).hex(), "signer": public.hex()}


def checked(content_hash: str, signature: str, signer: str) -> bytes:
    """The signer's public key, if the signature is right; else raises InvalidRelease."""
    _require()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        public = bytes.fromhex(signer)
        if public.hex() != signer or bytes.fromhex(signature).hex() != signature:
            raise ValueError("not the one way to write it")
        if _is_small(public):
            raise ValueError("a key that signs everything")
        Ed25519PublicKey.from_public_bytes(public).verify(
            bytes.fromhex(signature), _PURPOSE + bytes.fromhex(content_hash)
        )
    except (ValueError, InvalidSignature) as error:
        raise InvalidRelease("This is not a release: its signature is not that of its content.") from error
    return public


def fingerprint(public: bytes) -> str:
    """A public key in a form that two people can compare.

    >>> fingerprint(bytes(32))
    '66687aad f862bd77 6c8fc18b 8e9f8e20'
    """
    digest = hashlib.sha256(public).hexdigest()[:32]
    return " ".join(digest[i : i + 8] for i in range(0, 32, 8))


def signed_in_words(signer: bytes | None, key: bytes | None) -> str:
    """What is known of who made a release; `key` is the public key that it was checked against, if there was one.

    >>> signed_in_words(None, None)
    'nobody signed this'
    """
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


def create_key(path: str | os.PathLike[str]) -> tuple[Path, Path, str]:
    """A new private key in `path`, readable by its owner only, and its public key in `path`.pub; never overwrites."""
    _require()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private_path, public_path = Path(path), Path(f"{os.fspath(path)}.pub")
    if not private_path.absolute().parent.is_dir():
        raise InvalidInput(f"path must name a file in a folder that exists, not {str(private_path)!r}.")
    for there in (private_path, public_path):
        if there.exists():
            raise InvalidInput(f"{str(there)!r} exists, and a key is never overwritten: choose another name.")
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with open(private_path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as stream:
        stream.write(pem)
    public = key.public_key()
    public_path.write_bytes(
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return private_path, public_path, fingerprint(public.public_bytes_raw())


def read_public_key(path: str | os.PathLike[str]) -> bytes:
    """The raw public key in a PEM file."""
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    data = _read(Path(path))
    try:
        key = load_pem_public_key(data)
    except Exception as error:  # the library has many ways to refuse
        raise InvalidInput(f"{str(path)!r} is not a public key in PEM form.") from error
    if not isinstance(key, Ed25519PublicKey) or _is_small(key.public_bytes_raw()):
        raise InvalidInput(f"{str(path)!r} is not a sound Ed25519 key.")
    return key.public_bytes_raw()


def _private_key(path: Path) -> "Ed25519PrivateKey":
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = _read(path)
    failed = False
    try:
        key = load_pem_private_key(data, password=None)
    except Exception:
        key, failed = None, True
    if failed or not isinstance(key, Ed25519PrivateKey):  # outside of `except`: its error might quote the key
        raise InvalidInput(f"{str(path)!r} is not an Ed25519 private key in PEM form without a password.")
    return key


def _is_small(public: bytes) -> bool:
    return public[:-1] + bytes([public[-1] & 0x7F]) in _SMALL if len(public) == 32 else False


def _read(path: Path) -> bytes:
    if not path.is_file() or path.stat().st_size > 2**16:
        raise InvalidInput(f"There is no key {str(path)!r}.")
    return path.read_bytes()


def _require() -> None:
    try:
        import cryptography as cryptography
    except ImportError as error:
        raise MissingExtra.of("sign", "Signatures need cryptography") from error
