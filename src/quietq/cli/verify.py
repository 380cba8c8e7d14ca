"""`quietq verify`."""

import json
from pathlib import Path
from typing import Annotated

import typer

import quietq as qq
from quietq.cli.app import AsJson, app


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="A release, as `publish`, `reward`, `train` or `demo` wrote it.")],
    key: Annotated[Path | None, typer.Option(help="The public key (.pub) that it must be signed with.")] = None,
    as_json: AsJson = False,
) -> None:
    """Checks a release: is it whole, is it signed and by whom, what does it promise? Exit code 2 if it is not one."""
    from quietq.release import open_release
    from quietq.release.signature import fingerprint, read_public_key

    wanted = None if key is None else read_public_key(key)
    release = open_release(file)
    if wanted is not None and release.signer is None:
        raise qq.InvalidInput(f"{str(file)!r} is whole, but nobody signed it.")
    if wanted is not None and release.signer != wanted:
        assert release.signer is not None
        raise qq.InvalidInput(f"{str(file)!r} is signed by another key, {fingerprint(release.signer)}.")
    signer = None if release.signer is None else fingerprint(release.signer)
    if as_json:
        record = {
            "privacy": "certified" if release.private else "NOT PRIVATE", "what": release.what, "hash": release.hash,
            "signer": signer, "signer_checked": wanted is not None, "version": release.version,
            "certificate": release.certificate.to_dict(),
        }  # fmt: skip
        print(json.dumps(record))
        return
    if not release.private:
        print("NOT PRIVATE: no promise covers this file.")
    print(f"Whole: {release.function}")
    print(f"Hash: {release.hash}")
    if signer is None:
        print("Signed by nobody: the file is whole, but anybody could have made it.")
    elif wanted is None:
        print(f"Signed by the key {signer}; whose that is, this file cannot tell (--key).")
    else:
        print(f"Signed by the key given, {signer}.")
    print(f"\n{release.certificate}")
