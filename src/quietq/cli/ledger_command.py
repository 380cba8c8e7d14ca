"""`quietq ledger`, and how other commands find the account that they charge."""

import math
from typing import TYPE_CHECKING, Annotated

import typer

import quietq as qq
from quietq.cli.app import answer, app, show_help, show_table
from quietq.cli.options import AsJson

if TYPE_CHECKING:
    from quietq.ledger import SourceAccount

Url = Annotated[str, typer.Argument(help="The ledger: a file, or postgresql://host/name.")]
Source = Annotated[str | None, typer.Option(help="This source only.")]

ledger = typer.Typer(
    help="Keep budgets that persist and cannot be overspent.", callback=show_help, invoke_without_command=True
)
app.add_typer(ledger, name="ledger", rich_help_panel="Keep budgets")


def open_account(url: str | None, source: str | None, method: str = "") -> "SourceAccount | None":
    """The account that a command charges, before noise is drawn; None if no ledger was named."""
    if url is None:
        if source is not None:
            raise qq.InvalidInput("--source names a source in a ledger: say which one with --ledger.")
        return None
    from quietq.ledger import Ledger

    books = Ledger(_without_password(url))
    if source is None:
        known = sorted(books.balances())
        if len(known) != 1:
            listed = ", ".join(known) or "none yet"
            raise qq.InvalidInput(f"--source must say which source of the ledger to charge; it has: {listed}.")
        source = known[0]
    return books.account(source, method)


@ledger.command()
def create(
    url: Url,
    source: Annotated[str, typer.Option(help="Name of the new source: whose data it is.")],
    epsilon: Annotated[float | None, typer.Option(help="Cap on all Gaussian releases together, with --delta.")] = None,
    delta: Annotated[float | None, typer.Option(help="Its delta, well below 1/people.")] = None,
    apart_epsilon: Annotated[float | None, typer.Option(help="Cap on the sum of releases without a mu.")] = None,
    apart_delta: Annotated[float | None, typer.Option(help="Its delta; 0 for pure releases only.")] = None,
    as_json: AsJson = False,
) -> None:
    """Open a source, and make the ledger if it is not there. A budget is set once and never grows."""
    from quietq.ledger import Ledger
    from quietq.ledger.entries import one_line
    from quietq.privacy.account import check_caps

    if (epsilon is None) != (delta is None):
        raise qq.InvalidInput("--epsilon and --delta must be given together.")
    if apart_epsilon is None and apart_delta is not None:
        raise qq.InvalidInput("--apart-delta needs --apart-epsilon.")
    budget = None if epsilon is None or delta is None else qq.Budget(epsilon, delta)
    apart = None if apart_epsilon is None else qq.Budget(apart_epsilon, apart_delta or 0.0)
    one_line("source", source)  # before a file is made
    check_caps(budget, apart)
    books = Ledger.create(_without_password(url))
    books.open(source, budget, apart)
    head, balance = books.verify(), books.balance(source)
    opened = f"Source {source!r} is open: everything released under it is {_pair(*balance.spending.promised)} together."
    answer(as_json, {"head": head, "source": balance.to_json()}, opened, _noted(head))


@ledger.command()
def show(url: Url, source: Source = None, as_json: AsJson = False) -> None:
    """Show how each source stands: its budget, what was spent of it, and what is left."""
    from quietq.ledger import Ledger
    from quietq.privacy.checks import plural

    books = Ledger(_without_password(url))
    found = list(books.balances().values()) if source is None else [books.balance(source)]
    head, lines = books.verify(), []
    if not as_json:
        headings = ("source", "budget", "spent", "left", "charges", "since")
        show_table("", headings, [row for balance in found for row in balance.rows()], headings)
    for balance in found:
        if balance.unit is not None:
            lines.append(f"Releases of {balance.source!r} protect {balance.unit}.")
        if balance.bookings and None not in (balance.budget, balance.apart):
            lines.append(
                f"Those of {balance.source!r} so far are {_pair(*balance.spending.spent)} together, if none of them "
                f"was decided by what came out of others; else {_pair(*balance.spending.promised)}, as was promised."
            )
        if balance.without_release:
            times = ", ".join(f"{charge.reserved.at} (id {charge.reserved.id})" for charge in balance.without_release)
            charges = plural(len(balance.without_release), "charge")
            lines.append(f"{charges} of {balance.source!r} without a noted release, charged all the same: {times}")
    answer(as_json, {"head": head, "sources": [balance.to_json() for balance in found]}, *lines, _noted(head))


@ledger.command()
def history(url: Url, source: Source = None, as_json: AsJson = False) -> None:
    """List all entries: what was opened, charged and released, and when."""
    from quietq.ledger import Ledger

    books = Ledger(_without_password(url))
    if source is not None:
        books.balance(source)  # refuses a name that is not there
    entries = books.history()
    listed = [entry for entry in entries if source in (None, entry.source)]
    head = entries[-1].hash if entries else books.verify()
    rows = [entry.to_json() for entry in listed]
    answer(as_json, {"head": head, "entries": rows}, *map(str, listed), _noted(head))


@ledger.command()
def verify(
    url: Url,
    head: Annotated[str | None, typer.Option(help="A head that was noted elsewhere: is it still in the chain?")] = None,
    as_json: AsJson = False,
) -> None:
    """Check the chain of entries, and with --head that none was cut off since."""
    from quietq.ledger import Ledger

    books = Ledger(_without_password(url))
    found = books.verify(head)
    record = {"head": found, "noted": head, "entries": len(books.history())}
    whole = "Every entry follows from the one before" + (", and the noted one is among them." if head else ".")
    answer(as_json, record, whole, _noted(found))


def _pair(epsilon: float, delta: float) -> str:
    """Five digits, and never fewer than there are: rounded up."""
    shown = f"{epsilon:.5g}"
    if float(shown) < epsilon:
        shown = f"{epsilon + 10.0 ** (math.floor(math.log10(epsilon)) - 4):.5g}"
    return f"({shown}, {delta:g})-DP"


def _noted(head: str) -> str:
    return f"Head, to be noted elsewhere: {head}"


def _without_password(url: str) -> str:
    """Command lines are seen by others and kept in records."""
    _, scheme, rest = url.partition("://")
    if scheme and (":" in rest.rpartition("@")[0] or "password" in rest.lower()):  # however strange: no parser decides
        raise qq.InvalidInput(
            "The ledger's address must not hold a password, for others can read it here: give it by PGPASSWORD or "
            "~/.pgpass."
        )
    return url
