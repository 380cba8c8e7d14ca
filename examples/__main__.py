"""`python -m examples`: runs the notebooks of this folder, all of them or those that are named.

    python -m examples voters students                  # their files go to runs/voters and runs/students
    python -m examples voters --set DRAWS=5             # with another setting in place of the notebook's own
    python -m examples voters --keep                    # what is shown goes into the notebook, as it is committed

`make examples` installs what they need and runs them all.
"""

import argparse
import ast
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in HERE.glob("*.ipynb")))


def run(
    name: str, folder: Path, settings: Mapping[str, object] = {}, tell: Callable[[str], None] = lambda text: None
) -> Any:
    """The notebook with what its cells show, which `tell` hears as they come; its files go to a folder in `folder`.

    Settings take the place of those in the cell that is tagged "parameters", while it runs.
    """
    notebook = nbformat.read(HERE / f"{name}.ipynb", as_version=4)
    (cell,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    written = cell.source
    for key in settings:
        if not re.search(rf"\b{re.escape(key)}\b", written):
            raise KeyError(f"{name}.ipynb has no setting {key}")
    cell.source += "".join(f"\n{key} = {value!r}" for key, value in settings.items())
    folder.mkdir(parents=True, exist_ok=True)
    paths = [str(HERE.parent), str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
    # What a notebook shows must not depend on the terminal or on a backend that somebody has chosen.
    around = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "100"}
    around.pop("MPLBACKEND", None)
    client = NotebookClient(
        notebook, timeout=1800, kernel_name="python3", record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        on_cell_executed=lambda cell, **_: [tell(text) for text in texts_of(cell)],
    )  # fmt: skip
    manager = client.create_kernel_manager()
    with TemporaryDirectory() as sockets:  # of this user alone, instead of ports
        manager.transport, manager.ip = "ipc", f"{sockets}/kernel"
        try:
            client.execute(env=around)
        finally:
            cell.source = written
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
    return notebook


def texts_of(cell: Any) -> list[str]:
    """What a cell printed, or showed in letters; pictures are in the folder."""
    shown = [one.text if one.output_type == "stream" else one.get("data", {}) for one in cell.get("outputs", ())]
    texts = [one if isinstance(one, str) else one.get("text/plain", "") for one in shown]
    return [text.rstrip("\n") for text in texts if text and not text.startswith("<Figure")]


def main() -> None:
    parser = argparse.ArgumentParser("python -m examples", description="Runs notebooks; each publishes its files.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(NAMES)}; all if none is named")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="where each has a folder for its files")
    parser.add_argument("--set", nargs="+", default=(), metavar="NAME=VALUE", help="settings, for one notebook")
    parser.add_argument("--keep", action="store_true", help="write what is shown into the notebooks themselves")
    asked = parser.parse_args()
    for name in asked.names:
        if name not in NAMES:
            parser.error(f"there is no notebook {name!r}: choose from {', '.join(NAMES)}")
    pairs = [pair.partition("=") for pair in asked.set]
    try:
        settings = {key: ast.literal_eval(value) for key, _, value in pairs}
    except (SyntaxError, ValueError):
        parser.error(f"--set takes NAME=VALUE, a number or a 'text' in quotes, not {' '.join(asked.set)!r}")
    names = asked.names or NAMES
    for number, name in enumerate(names, 1):
        print(f"== {name}, notebook {number} of {len(names)}", file=sys.stderr, flush=True)
        try:
            notebook = run(name, asked.out, settings, lambda text: print(text, flush=True))
        except KeyError as error:
            parser.error(str(error.args[0]))
        if asked.keep:
            nbformat.write(notebook, HERE / f"{name}.ipynb")
        print(f"Its files are in {asked.out / name}.", flush=True)


if __name__ == "__main__":
    main()
