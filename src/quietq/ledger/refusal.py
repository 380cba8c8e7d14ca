"""Why a charge was refused: what was asked, what is left, and when the rest was spent."""

from quietq.ledger.balance import Balance, Booking
from quietq.privacy.cost import Cost
from quietq.privacy.gaussian import epsilon_from_mu
from quietq.privacy.words import plural

SHOWN = 3
"""Charges that a refusal lists."""


def refusal(balance: Balance, cost: Cost) -> str:
    """One sentence of each."""
    gaussian = cost.mu is not None
    if gaussian and balance.budget is None:
        return (
            f"Source {balance.source!r} has no budget for Gaussian noise, only for releases without a mu: use pure "
            "noise, or a source opened with a budget; nothing was booked."
        )
    if not gaussian and balance.apart is None:
        return (
            f"Source {balance.source!r} has nothing set apart for releases without a mu, such as pure noise: use "
            "Gaussian noise, or a source opened with apart=Budget(epsilon, delta); nothing was booked."
        )
    if gaussian:
        left = f"mu = {balance.spending.remaining_mu:g} of {balance.spending.mu:g}{in_epsilon(balance)}"
    else:
        assert balance.apart is not None
        (e, d), cap = balance.spending.remaining_apart, balance.apart
        left = f"epsilon = {e:g} of {cap.epsilon:g} and delta = {d:g} of {cap.delta:g}"
    return (
        f"Source {balance.source!r} has {left} left, and {cost} was asked for; nothing was booked. "
        f"{_spent([booking for booking in balance.bookings if (booking.mu is not None) == gaussian])}"
    )


def in_epsilon(balance: Balance) -> str:
    """What is left for Gaussian releases, as one budget at the source's delta; nothing if nothing is left."""
    if balance.budget is None or balance.spending.remaining_mu == 0:
        return ""
    epsilon = epsilon_from_mu(balance.spending.remaining_mu, balance.budget.delta)
    return f" (epsilon {epsilon:.4g} at delta {balance.budget.delta:g})"


def _spent(bookings: list[Booking]) -> str:
    if not bookings:
        return "Nothing was spent of it yet: it is too small for this release."
    *earlier, last = bookings[-SHOWN:]
    more = len(bookings) - len(earlier) - 1
    listed = [f"{plural(more, 'release')} before {earlier[0].at if earlier else last.at}"] if more else []
    listed += [_one(booking) for booking in earlier]
    return f"It was spent on {', '.join(listed)}{' and ' if listed else ''}{_one(last)}."


def _one(booking: Booking) -> str:
    size = f"mu {booking.mu:g}" if booking.mu is not None else f"epsilon {booking.epsilon:g}"
    return f"{booking.at} ({booking.method + ', ' if booking.method else ''}{size})"
