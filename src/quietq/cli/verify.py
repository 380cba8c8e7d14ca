"""`quietq verify`."""

from pathlib import Path
from typing import Annotated

import typer

from quietq.cli.app import AsJson, app, print_json


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="A release, as `publish`, `reward`, `train` or `demo` wrote it.")],
    key: Annotated[Path | None, typer.Option(help="The public key (.pub) that it must be signed with.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a release: is it whole, who signed it, what does it promise? Exit code 2 if it is not one."""
    from quietq.mechanisms.signature import fingerprint, read_public_key, require_signer, signed_in_words
    from quietq.publishing import open_release

    wanted = None if key is None else read_public_key(key)
    release = open_release(file)
    require_signer(repr(str(file)), release.signer, wanted)
    signer = None if release.signer is None else fingerprint(release.signer)
    signed = signed_in_words(release.signer, wanted)
    if as_json:
        print_json(
            {
                "privacy": "certified" if release.private else "NOT PRIVATE", "what": release.what,
                "hash": release.hash, "signer": signer, "signer_checked": wanted is not None, "signed": signed,
                "version": release.version, "certificate": release.certificate.to_dict(),
            }
        )  # fmt: skip
        return
    if not release.private:
        print("NOT PRIVATE: no promise covers this file.")
    print(f"Whole: {release.function}")
    print(f"Hash: {release.hash}")
    if wanted is not None:
        print(f"{signed.capitalize()}.")
    elif signer is None:
        print("Nobody signed this: the file is whole, but anybody could have made it.")
    else:
        print(f"{signed.capitalize()} (--key): whose key that is, the file cannot tell.")
    print(f"\n{release.certificate}")
    if release.private and wanted is None:
        print(f"- {signed}: whoever made the file says all of this")
