"""`quietq paper`: the system of Wang & Hegde (2019)."""

import typer

from quietq.cli.app import AsJson, Commands, answer, app, show_help, show_table
from quietq.paper.method_table import METHOD_TABLE

paper = typer.Typer(
    cls=Commands,
    help="The system of Wang & Hegde (2019): train agents by its algorithm, its baselines and what repairs it, attack "
    "them, and read rewards off them.",
)
app.add_typer(paper, name="paper")
paper.callback()(show_help)


@paper.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods: what they promise and where their noise enters."""
    if as_json:
        shown = ("standing", "noise", "summary")
        listed = [{"name": name} | {word: getattr(one, word) for word in shown} for name, one in METHOD_TABLE.items()]
        return answer(True, {"methods": listed})
    headings = ("name", "standing", "where the noise enters")
    show_table("Methods", headings, [(name, one.standing, one.noise) for name, one in METHOD_TABLE.items()], headings)
    print("certified: a theorem covers what is released. claimed: the paper's theorem, which does not hold.")
    print("\n".join(f"{name}: {one.summary}" for name, one in METHOD_TABLE.items()))
