"""`quietq publish`."""

from pathlib import Path
from typing import Annotated

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import AsJson, app, print_json, warn

Sign = Annotated[Path | None, typer.Option(help="Sign with this private key, which `quietq keygen` made.")]


@app.command()
def publish(
    agent: Annotated[Path, typer.Argument(help="A trained agent (agent.qq), the folder of its run, or any release.")],
    out: Annotated[Path, typer.Option(help="The file that may leave, e.g. value.qq; or .onnx for other programs.")],
    sign: Sign = None,
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Write even what protects nobody; it says so wherever it is shown.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the one file of an agent that may leave; nothing that its certificate does not cover is in it."""
    from quietq.mechanisms.container import check_target
    from quietq.publishing.publish import copy_release

    source = agent / folder.AGENT if agent.is_dir() else agent
    check_target(out)
    if out.resolve() == source.resolve():
        raise qq.InvalidInput(f"--out must not be the file that is read, {str(source)!r}.")
    if not source.is_file():
        raise qq.InvalidInput(f"There is no agent {str(source)!r}: train one with `quietq train`.")
    if out.exists():
        warn(f"{out} is replaced.")
    if out.suffix == ".onnx":
        if sign is not None:
            raise qq.InvalidInput("An ONNX file cannot be signed: publish a .qq file, and sign that.")
        from quietq.publishing.onnx_export import export_onnx

        export_onnx(qq.load(source), out, not_private=not_private)
        name = None
    else:
        name = copy_release(source, out, not_private=not_private, sign=sign)
    certificate = qq.load(source).certificate
    assert certificate is not None
    if as_json:
        print_json({"out": str(out), "hash": name, "certificate": certificate.to_dict()})
        return
    print(certificate)
    may = "May be published" if certificate.standing == "certified" else "NOT PRIVATE, and says so"
    print(f"\n{may}: {out}")
    if name is not None:
        print(f"Hash: {name}")
