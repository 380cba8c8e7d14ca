"""Relations and kernels in plain English, from their JSON.

Certificates are read back from files, so this takes whatever JSON there is: an unknown kind is spelled out field by
field.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]
_UNKNOWN = (LookupError, TypeError, ValueError, AttributeError)


def relation_in_words(record: Record) -> str:
    """A relation's `describe()` as a phrase.

    >>> relation_in_words({"kind": "sup-ball", "radius": 1.0, "people": None})
    'rewards that differ by at most 1 anywhere'
    """
    try:
        return _RELATIONS[record["kind"]](record) + _of_people(record.get("people"))
    except _UNKNOWN:
        return _spelled_out(record)


def kernel_in_words(record: Record) -> str:
    """A kernel's `describe()` as a phrase.

    >>> kernel_in_words({"kind": "exponential", "beta": 4.0})
    'the exponential kernel with beta 4'
    """
    try:
        return _KERNELS[record["kind"]](record)
    except _UNKNOWN:
        return _spelled_out(record)


def norm_in_words(record: Record) -> str:
    """A certificate's norm as a phrase: what sensitivity and noise are measured in.

    >>> norm_in_words({"kind": "exponential", "beta": 4.0})
    'the norm of the exponential kernel with beta 4'
    """
    try:
        if record["kind"] in _KERNELS:
            return f"the norm of {_KERNELS[record['kind']](record)}"
        return _MEASURES[record["kind"]](record)
    except _UNKNOWN:
        return _spelled_out(record)


def plural(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun.

    >>> plural(1, "release"), plural(2, "person", "people")
    ('1 release', '2 people')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def _lipschitz(r: Record) -> str:
    return (
        f"rewards that differ by at most {r['radius']:g}, with a difference of slope at most "
        f"{r['lipschitz']:g} per width of the box{_each(r['actions'])}"
    )


def _rkhs(r: Record) -> str:
    kernel, norm = kernel_in_words(r["kernel"]), _NORMS.get(r["kernel"]["kind"], "")
    return f"rewards whose difference has norm at most {r['radius']:g}{norm} in {kernel}{_each(r['actions'])}"


def _trajectories(r: Record) -> str:
    length = "" if r["horizon"] is None else f", at most {plural(r['horizon'], 'step')} each"
    return (
        f"sets of {plural(r['count'], 'trajectory', 'trajectories')} that differ in one, of which any state and reward "
        f"may differ (rewards within {r['largest_reward']:g} of 0{length})"
    )


def _each(actions: int) -> str:
    return "" if actions == 1 else f" for each of {actions:d} actions"


def _of_people(people: int | None) -> str:
    if people is None:
        return ""
    return " (replacing the one person)" if people == 1 else f" (replacing any one of {people:d} people)"


def _listed(values: Sequence[float]) -> str:
    words = [f"{value:g}" for value in values]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _spelled_out(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_spelled_out(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, list | tuple):
        return "(" + "; ".join(_spelled_out(item) for item in value) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)


_RELATIONS = {
    "sup-ball": lambda r: f"rewards that differ by at most {r['radius']:g} anywhere",
    "lipschitz-ball": _lipschitz,
    "rkhs-ball": _rkhs,
    "replace-trajectory": _trajectories,
}
_NORMS = {  # of the parts or weights as they are given: other ones may have the same sum, and can be told apart
    "additive": " (the parts' own norms, squared and summed)",
    "features": " (the norm of the weights)",
}
_KERNELS = {
    "exponential": lambda k: f"the exponential kernel with beta {k['beta']:g}",
    "additive": lambda k: f"the additive kernel with beta {_listed([part['beta'] for part in k['parts']])}",
    "product": lambda k: f"the product kernel with beta {_listed(k['betas'])}",
    "features": lambda k: f"the kernel of {plural(k['rank'], 'feature')} ({k['phi']})",
    "band-limited": lambda k: (
        f"the band-limited kernel with half-width {k['half_width']:g} ({plural(k['rank'], 'term')})"
    ),
}
_MEASURES = {
    "knots": lambda n: f"the shape of the noise at {len(n['shape'])} knots",
    "increments": lambda n: (
        f"the gauge of what differences of at most {n['radius']:g}, of slope at most {n['lipschitz']:g}, can do to "
        f"{plural(n['pieces'], 'increment')} between knots"
    ),
    "rewards": lambda n: f"the Euclidean norm of {plural(n['count'], 'observed reward')} together",
    "mean-rewards": lambda n: (
        f"units of the root of the number of mean rewards in a round, of {plural(n['rounds'], 'round')} together"
    ),
    "reward-gradients": lambda n: (
        f"units of what rewards that differ by {n['radius']:g} do to a round's gradient, of "
        f"{plural(n['rounds'], 'round')} together"
    ),
    "clipped-gradients": lambda n: (
        f"units of what rewards that differ by {n['radius']:g} do to a gradient step, of "
        f"{plural(n['rounds'], 'step')} together"
    ),
    "values": lambda n: (
        f"the Euclidean norm of {plural(n['count'], 'value')} at knots, with discount {n['discount']:g}"
    ),
    "smooth-bound": lambda n: (
        f"units of a smooth bound for {plural(n['weights'], 'weight')}, which follows the data and is not released"
    ),
    "gaussian-queries": lambda n: f"units of the noise of {plural(len(n['of']), 'query', 'queries')}, together",
    "pure-queries": lambda n: f"units of the noise of {plural(len(n['of']), 'query', 'queries')}, added up",
}
