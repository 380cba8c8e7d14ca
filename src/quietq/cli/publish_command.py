"""`quietq publish`, `verify` and `serve`: the file of a release, who signed it, and answers from it."""

from pathlib import Path
from typing import Annotated

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import answer, app, warn
from quietq.cli.options import AsJson

PANEL = "Publish"


@app.command(rich_help_panel=PANEL)
def publish(
    agent: Annotated[Path, typer.Argument(help="A trained agent (agent.qq), the folder of its run, or any release.")],
    out: Annotated[Path, typer.Option(help="File of the release, e.g. value.qq.")],
    sign: Annotated[Path | None, typer.Option(help="Sign with this private key (Ed25519, in PEM form).")] = None,
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Write also what is not private, marked as such wherever it is shown.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the one file of an agent that can be published; nothing that its certificate does not cover is in it."""
    from quietq.publishing.publish import copy_release
    from quietq.released.release_file import check_target

    source = agent / folder.AGENT if agent.is_dir() else agent
    check_target(out)
    if out.resolve() == source.resolve():
        raise qq.InvalidInput(f"--out must not be the file that is read, {str(source)!r}.")
    if not source.is_file():
        raise qq.InvalidInput(f"There is no agent {str(source)!r}: train one with `quietq paper train`.")
    if out.exists():
        warn(f"{out} is replaced.")
    name = copy_release(source, out, not_private=not_private, sign=sign)
    certificate = qq.load(source).certificate
    may = "May be published" if certificate.standing == "certified" else "NOT PRIVATE, and says so"
    record = {"out": str(out), "hash": name, "certificate": certificate.to_dict()}
    answer(as_json, record, certificate, f"\n{may}: {out}", f"Hash: {name}")


@app.command(rich_help_panel=PANEL)
def verify(
    file: Annotated[Path, typer.Argument(help="A release, as `publish`, `reward`, `train` or `demo` wrote it.")],
    key: Annotated[Path | None, typer.Option(help="The public key (.pub) that it must be signed with.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a release: is it whole, who signed it, what does it promise? Exit code 2 if it is not one."""
    from quietq.released import open_release
    from quietq.released.signature import fingerprint, read_public_key, require_signer, signed_in_words

    wanted = None if key is None else read_public_key(key)
    release = open_release(file)
    require_signer(repr(str(file)), release.signer, wanted)
    signer = None if release.signer is None else fingerprint(release.signer)
    certified = release.privacy == "certified"
    signed = signed_in_words(release.signer, wanted)
    record = {
        "privacy": release.privacy,
        "what": release.what,
        "hash": release.hash,
        "signer": signer,
        "signer_checked": wanted is not None,
        "signed": signed,
        "version": release.version,
        "certificate": release.certificate.to_dict(),
    }
    lines = [] if certified else ["NOT PRIVATE: no promise covers this file."]
    lines += [f"Whole: {release.function}", f"Hash: {release.hash}"]
    if wanted is not None:
        lines.append(f"{signed.capitalize()}.")
    elif signer is None:
        lines.append("Nobody signed this: the file is whole, but anybody could have made it.")
    else:
        lines.append(f"{signed.capitalize()} (--key): whose key that is, the file cannot tell.")
    lines.append(f"\n{release.certificate}")
    if certified and wanted is None:
        lines.append(f"- {signed}: whoever made the file says all of this")
    answer(as_json, record, *lines)


@app.command(rich_help_panel=PANEL)
def serve(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Releases, which `quietq publish` wrote.")],
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on; by default reached from here only.")] = "127.0.0.1",
    workers: Annotated[int, typer.Option(help="Processes that answer; all give the same answers.")] = 1,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the access token that requests must carry; else QUIETQ_TOKEN, else none is required."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name that requests may ask for; may be repeated. Else any; on 127.0.0.1, this machine's only.",
        ),
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Serve only what this public key's owner (.pub) signed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Answers for releases over HTTP: values, policies, certificates, a page at / and counters at /metrics."""
    from quietq.released.signature import read_public_key

    try:
        from quietq.publishing.server.run import read_token, serve as run
    except ImportError as error:
        raise qq.MissingExtra.of("serve", "Serving needs FastAPI and uvicorn") from error
    wanted = None if key is None else read_public_key(key)
    run(files, host, port, workers, read_token(token_file), allow_host or (), as_json, wanted)
