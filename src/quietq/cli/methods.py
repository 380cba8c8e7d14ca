"""`quietq methods`."""

from quietq.cli.app import AsJson, app, print_json
from quietq.methods import ENTRIES


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods: what they promise and where their noise enters."""
    if as_json:
        names = ("name", "standing", "noise", "summary")
        print_json({"methods": [{name: getattr(entry, name) for name in names} for entry in ENTRIES]})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Methods")
    for heading in ("name", "standing", "where the noise enters"):
        table.add_column(heading, no_wrap=True)
    for entry in ENTRIES:
        table.add_row(entry.name, entry.standing, entry.noise)
    Console().print(table)
    print("certified: a theorem covers what is released. claimed: the paper's theorem, which does not hold.")
    for entry in ENTRIES:
        print(f"{entry.name}: {entry.summary}")
