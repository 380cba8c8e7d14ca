"""A signature says that the file is from whoever has the key, and nothing else."""

import json

import pytest
from keys import make_keys
from releases import arrays_of, header_of, make, record_of, rewrite

from quietq import InvalidInput
from quietq.privacy.errors import MissingExtra
from quietq.publishing import publish
from quietq.released import InvalidRelease, load, open_release, signature
from quietq.released.release_file import pack


@pytest.fixture
def key(tmp_path):
    return make_keys(tmp_path / "key")[0]


def test_signed_and_read(tmp_path, key):
    private = make("table")
    plain = publish(private, tmp_path / "plain.qq")
    signed = publish(private, tmp_path / "signed.qq", sign=key)
    assert plain == signed  # the content is the same
    release = open_release(tmp_path / "signed.qq")
    assert release.signer == signature.read_public_key(f"{key}.pub")
    assert open_release(tmp_path / "plain.qq").signer is None
    assert set(header_of(tmp_path / "signed.qq")[0]["__metadata__"]) == {"quietq", "sha256", "signature", "signer"}


def test_the_key_stays_at_home(tmp_path, key):
    publish(make("table"), tmp_path / "signed.qq", sign=key)
    secret = key.read_text().splitlines()[1]
    assert secret.encode() not in (tmp_path / "signed.qq").read_bytes()


def test_a_forged_signature_is_no_release(tmp_path, key):
    path = tmp_path / "signed.qq"
    publish(make("table"), path, sign=key)
    header, data = header_of(path)
    texts = header["__metadata__"]
    other, _ = make_keys(tmp_path / "other")
    theirs = signature.sign(texts["sha256"], other)
    for change in (
        {"signature": theirs["signature"]},
        {"signer": theirs["signer"]},
        {"signature": "00" * 64},
        {"signer": "00" * 32},
        {"signature": "xx"},
        {"signature": texts["signature"].upper()},
        {"signature": texts["signature"] + " "},
        {"signer": ""},
    ):
        rewrite(path, {**header, "__metadata__": {**texts, **change}}, data)
        with pytest.raises(InvalidRelease, match="signature"):
            load(path)
    rewrite(path, {**header, "__metadata__": {**texts, **theirs}}, data)  # somebody else may sign it too
    assert open_release(path).signer == bytes.fromhex(theirs["signer"])


def test_changed_content_is_not_what_was_signed(tmp_path, key):
    path = tmp_path / "signed.qq"
    publish(make("table"), path, sign=key)
    texts, record, arrays = header_of(path)[0]["__metadata__"], record_of(path), arrays_of(path)
    signed = {name: texts[name] for name in ("signature", "signer")}
    path.write_bytes(pack(json.dumps({**record, "version": "9"}), arrays, signed))
    with pytest.raises(InvalidRelease, match="signature"):
        load(path)
    path.write_bytes(pack(json.dumps(record), {"values": arrays["values"] + 1}, signed))
    with pytest.raises(InvalidRelease, match="signature"):
        load(path)


def test_what_is_not_a_key_is_refused(tmp_path, key):
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    def pem(private, encryption: form.KeySerializationEncryption) -> bytes:
        return private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encryption)

    wrong = tmp_path / "wrong"
    for text in (
        b"secret words",
        pem(ec.generate_private_key(ec.SECP256R1()), form.NoEncryption()),
        pem(ed25519.Ed25519PrivateKey.generate(), form.BestAvailableEncryption(b"x")),
    ):
        wrong.write_bytes(text)
        with pytest.raises(InvalidInput, match="not an Ed25519 private key") as caught:
            publish(make("table"), tmp_path / "reward.qq", sign=wrong)
        assert caught.value.__context__ is None  # an error of the library might quote what it read
        assert not (tmp_path / "reward.qq").exists()
    with pytest.raises(InvalidInput, match="no key"):
        publish(make("table"), tmp_path / "reward.qq", sign=tmp_path / "nothing")
    with pytest.raises(InvalidInput, match="not a public key"):
        signature.read_public_key(key)


def test_a_fingerprint_is_the_beginning_of_a_hash():
    assert signature.fingerprint(bytes(32)) == "66687aad f862bd77 6c8fc18b 8e9f8e20"


def test_a_signed_file_is_not_read_without_looking_at_its_signature(tmp_path, key, monkeypatch):
    publish(make("table"), tmp_path / "signed.qq", sign=key)
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    with pytest.raises(MissingExtra, match="Signatures need cryptography"):
        load(tmp_path / "signed.qq")


@pytest.mark.parametrize("signer", ["01" + "00" * 31, "01" + "00" * 30 + "80", "ee" + "ff" * 30 + "7f"])
def test_a_key_that_signs_everything_signs_nothing(tmp_path, signer):
    path = tmp_path / "signed.qq"
    publish(make("table"), path)
    header, data = header_of(path)
    anything = {"signature": "01" + "00" * 63, "signer": signer}
    rewrite(path, {**header, "__metadata__": {**header["__metadata__"], **anything}}, data)
    with pytest.raises(InvalidRelease, match="signature"):
        load(path)
