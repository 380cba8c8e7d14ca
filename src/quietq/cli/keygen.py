"""`quietq keygen`."""

from pathlib import Path
from typing import Annotated

import typer

from quietq.cli.app import AsJson, app, print_json


@app.command()
def keygen(
    key: Annotated[Path, typer.Argument(help="File for the new private key; the public key goes beside it, as .pub.")],
    as_json: AsJson = False,
) -> None:
    """Make a pair of keys to sign releases with (Ed25519)."""
    from quietq.mechanisms.signature import create_key

    private, public, fingerprint = create_key(key)
    if as_json:
        print_json({"private": str(private), "public": str(public), "fingerprint": fingerprint})
        return
    print(f"Keep to yourself: {private}")
    print(f"Give to everybody: {public}")
    print(f"Fingerprint: {fingerprint}")
