"""Balances and entries for people to read, and for programs as JSON."""

import json
from typing import Any

from quietq.ledger.balance import Balance
from quietq.ledger.chain import Entry
from quietq.ledger.refusal import in_epsilon
from quietq.privacy.budget import Budget


def pair(amounts: tuple[float, float]) -> str:
    """Epsilon and delta, four digits each.

    >>> pair((0.9, 0.0001))
    '(0.9, 0.0001)'
    """
    return f"({amounts[0]:.4g}, {amounts[1]:.4g})"


def rows_of(balance: Balance) -> list[tuple[str, ...]]:
    """A source's caps, one row each: the source, the cap, what was spent, what is left, charges, and since when."""
    rows, gaussian = [], sum(booking.mu is not None for booking in balance.bookings)
    if balance.budget is not None:
        cap = f"{pair((balance.budget.epsilon, balance.budget.delta))}, mu {balance.spending.mu:.4g}"
        left = f"mu {balance.spending.remaining_mu:.4g}{in_epsilon(balance)}"
        rows.append((cap, f"mu {balance.spending.spent_mu:.4g}", left, str(gaussian)))
    if balance.apart is not None:
        cap = f"apart {pair((balance.apart.epsilon, balance.apart.delta))}"
        apart = str(len(balance.bookings) - gaussian)
        rows.append((cap, pair(balance.spending.spent_apart), pair(balance.spending.remaining_apart), apart))
    return [(balance.source, *row, balance.opened[:10]) for row in rows]


def line_of(row: dict[str, Any]) -> str:
    """An entry's JSON in one line."""
    if row["what"] == "open":
        caps = [(name, row[key]) for name, key in (("", "budget"), ("apart ", "apart")) if row[key] is not None]
        text = ", ".join(f"{name}{pair((cap['epsilon'], cap['delta']))}" for name, cap in caps)
    elif row["what"] == "reserve":
        text = f"mu {row['mu']:.4g}" if row["mu"] is not None else f"apart {pair((row['epsilon'], row['delta']))}"
        text += f", id {row['id']}" + (f", {row['method']}" if row["method"] else "")
    else:
        text = f"id {row['id']}, release {row['release']}"
    return f"{row['number']}  {row['at']}  {row['what']} {row['source']!r}: {text}; hash {row['hash'][:12]}"


def entry_in_json(entry: Entry) -> dict[str, Any]:
    """An entry with what it says."""
    return {"number": entry.number, "source": entry.source, **json.loads(entry.body), "hash": entry.hash}


def in_json(balance: Balance) -> dict[str, Any]:
    """A source with its caps, what was spent, what is left, and every booking."""
    return {
        "source": balance.source,
        "opened": balance.opened,
        "protects": balance.unit,
        "promised": _amounts(balance.spending.promised),
        "budget": _budget(balance.budget),
        "mu": balance.spending.mu,
        "spent_mu": balance.spending.spent_mu,
        "remaining_mu": balance.spending.remaining_mu,
        "apart": _budget(balance.apart),
        "spent_apart": _amounts(balance.spending.spent_apart),
        "remaining_apart": _amounts(balance.spending.remaining_apart),
        "bookings": [vars(booking) for booking in balance.bookings],
        "without_release": [booking.id for booking in balance.without_release],
    }


def _budget(budget: Budget | None) -> dict[str, float] | None:
    return None if budget is None else _amounts((budget.epsilon, budget.delta))


def _amounts(values: tuple[float, float]) -> dict[str, float]:
    return {"epsilon": values[0], "delta": values[1]}
