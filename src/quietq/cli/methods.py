"""`quietq methods`."""

from quietq.cli.app import AsJson, app, print_json
from quietq.registry import METHODS


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods: what they promise and where their noise enters."""
    if as_json:
        print_json(
            {
                "methods": [
                    {"name": name, "standing": m.standing, "noise": m.noise, "summary": m.summary}
                    for name, m in METHODS.items()
                ]
            }
        )
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Methods")
    for heading in ("name", "standing", "where the noise enters"):
        table.add_column(heading, no_wrap=True)
    for name, entry in METHODS.items():
        table.add_row(name, entry.standing, entry.noise)
    Console().print(table)
    print("certified: a theorem covers what is released. claimed: the paper's theorem, which does not hold.")
    for name, entry in METHODS.items():
        print(f"{name}: {entry.summary}")
