"""Whether another method needs more people than Algorithm 1 made sound.

There are two ways to make it sound, `value` on a grid of knots and `value-network` for a network, and the paper does
not choose between them. A verdict is one only if it is the same against both.
"""

from collections.abc import Mapping, Sequence

from paper.comparison.needed import TARGET, Crossing, Curve, crossing
from paper.experiment import Claim, Verdict

REPAIRED = ("value", "value-network")
"""Algorithm 1 made sound, in either way."""


def compared(name: str, printed: str, curve: Curve, others: Mapping[str, Curve], remark: str = "") -> Claim:
    """Holds if clearly more people are needed than by both, fails if clearly fewer, and is `in part` otherwise."""
    here, verdicts, words = crossing(curve), list[Verdict](), list[str]()
    for repaired in REPAIRED:
        if repaired not in others:
            verdicts.append("in part")
            words.append(f"`{repaired}` was not run")
            continue
        there = crossing(others[repaired])
        verdicts.append(needs_more(here, there))
        words.append(f"`{repaired}` {in_words(there)} ({_scores(curve, others[repaired])})")
    measured = (
        f"For a score of {TARGET} on the walk `{curve.name}` needs {in_words(here)}; Algorithm 1 made sound, at the "
        f"same certified epsilon 0.9, delta 1e-4: {'; '.join(words)}. Clearly: the 80 % intervals do not overlap."
    )
    return Claim(
        name, printed, f"{measured} {remark}".strip(), verdicts[0] if len(set(verdicts)) == 1 else "in part",
        "python -m paper comparison",
    )  # fmt: skip


def needs_more(here: Crossing, there: Crossing) -> Verdict:
    """`holds` if clearly more people are needed here, `fails` if clearly fewer.

    >>> needs_more(Crossing(35.0, 30, 40, 29.0, 40.0), Crossing(36.0, 30, 40, 25.0, 51.0))
    'in part'
    """
    return "holds" if here.low > there.high else "fails" if here.high < there.low else "in part"


def in_words(place: Crossing) -> str:
    """How many people, with the interval; `at most` where the smallest number tried is enough."""
    if place.above is None:
        return f"more than {place.below} people"
    if place.below is None:
        return f"at most {place.above} people"
    upper = f"{place.high:.0f}" if place.high < float("inf") else "more"
    return f"about {place.people:.0f} people (80 % interval {place.low:.0f} to {upper})"


def _scores(curve: Curve, repaired: Curve) -> str:
    """Mean scores of both, with numbers of people that tell them apart."""
    shared = [int(people) for people in curve.people if people in repaired.people]
    means = [{int(people): float(mean) for people, mean in zip(one.people, one.mean, strict=True)}
             for one in (curve, repaired)]  # fmt: skip
    told = (f"{means[0][people]:.3f} against {means[1][people]:.3f} with {people}" for people in _telling(shared))
    return f"mean scores {', '.join(told)}"


def _telling(people: Sequence[int]) -> list[int]:
    """Numbers between too few for anybody and enough for everybody: three around the middle."""
    middle = len(people) // 2
    return list(people[max(middle - 2, 0) : middle + 1])
