"""`quietq serve`."""

from pathlib import Path
from typing import Annotated

import typer

import quietq as qq
from quietq.cli.app import AsJson, app

TOKEN = "File with the access token that requests must carry; else QUIETQ_TOKEN, else none is asked for."
NAMES = "Name that requests may ask for; may be repeated. Else any; on 127.0.0.1, this machine's only."


@app.command()
def serve(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Releases, which `quietq publish` wrote.")],
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on; by default reached from here only.")] = "127.0.0.1",
    workers: Annotated[int, typer.Option(help="Processes that answer; all give the same answers.")] = 1,
    token_file: Annotated[Path | None, typer.Option(help=TOKEN)] = None,
    allow_host: Annotated[list[str] | None, typer.Option(metavar="NAME", help=NAMES)] = None,
    key: Annotated[Path | None, typer.Option(help="Serve only what this public key's owner (.pub) signed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Answers for releases over HTTP: values, policies, certificates, a page at / and counters at /metrics."""
    from quietq.mechanisms.signature import read_public_key

    try:
        from quietq.publishing.server.run import read_token, serve as run
    except ImportError as error:
        raise qq.MissingExtra.of("serve", "Serving needs FastAPI and uvicorn") from error
    wanted = None if key is None else read_public_key(key)
    run(files, host, port, workers, read_token(token_file), allow_host or (), as_json, wanted)
