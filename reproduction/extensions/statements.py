"""What the Discussion says of each extension, beside what the rows say; each verdict would be another with others."""

import math
from collections.abc import Sequence

from reproduction.experiment import Decision, Row, decide, statement, where
from reproduction.extensions import rows as read
from reproduction.extensions.kernels import LINE, PRODUCT, SECTION, UNSTRUCTURED
from reproduction.extensions.learners import CHANGE
from reproduction.extensions.rows import ACTOR_CRITIC, BAND_LIMITED, DIMENSIONS, EXPLORATION, INTERVAL, QUERIES, REPLAY

FAR = 6.0
"""Standard errors that no covariance of right draws is off by."""
LINEAR, QUADRATIC = 1.5, 2.25
"""A power of the number of queries below the first is nearer to 1 than to 2; above the second it is not taken for 2."""


@statement("actor-critic")
def actor_critic(rows: Sequence[Row]) -> Decision:
    before, after = (
        read.by_setting(rows, ACTOR_CRITIC, words) for words in ("epsilon of the source", "epsilon of the policy")
    )
    covered = bool(before) and all(after[source] <= epsilon for source, epsilon in before.items())
    return decide(covered, after=read.listed(after), scores=read.scores(rows, ACTOR_CRITIC, 50))


@statement("actor-critic on raw rewards")
def raw_rewards(rows: Sequence[Row]) -> Decision:
    """That noise on the policy would mend it was not tried, so it cannot be found to hold as a whole."""
    words, moved = (
        read.sentences(rows, ACTOR_CRITIC),
        read.most(rows, ACTOR_CRITIC, CHANGE),
    )
    ours = f"refuses it: {' / '.join(words)}" if words and all(words) else "does not refuse it."
    tells = "tells" if moved else "cannot tell"
    return "in part" if moved else "fails", {"moved": moved, "tells": tells, "ours": ours}


@statement("experience replay")
def replay(rows: Sequence[Row]) -> Decision:
    found = {
        name: read.mean(rows, REPLAY, "published program", quantity)
        for name, quantity in (
            ("uses", "uses of a reward"),
            ("made", "gradient steps"),
            ("counted", "rounds counted by the theorem"),
            ("true", "epsilon if all were counted"),
        )
    }
    words = {"asked": _asked(rows), "scores": read.scores(rows, REPLAY, 50)}
    words["multipliers"] = read.listed(read.by_setting(rows, REPLAY, "noise multiplier"))
    paid = found["uses"] > 1 and found["made"] > found["counted"]
    return "fails" if not _same_promise(rows, REPLAY) else "in part" if paid else "holds", found | words


@statement("epsilon-greedy")
def exploration(rows: Sequence[Row]) -> Decision:
    return decide(_same_promise(rows, EXPLORATION), scores=read.scores(rows, EXPLORATION, 50))


@statement("any bounded interval")
def interval(rows: Sequence[Row]) -> Decision:
    quantities = ("sigma", "norm of the reward", "epsilon of the certificate")
    found = [list(read.by_setting(rows, INTERVAL, one).values()) for one in quantities]
    apart = max((max(numbers) - min(numbers)) / abs(max(numbers)) for numbers in found)
    differs = read.most(rows, INTERVAL, "largest difference of the releases")
    words = {"sigmas": read.listed(read.by_setting(rows, INTERVAL, "sigma")), "scores": read.scores(rows, INTERVAL)}
    return decide(apart < 1e-9 and differs < 1e-5 * min(found[0]), apart=apart, differs=differs, **words)


@statement("several dimensions")
def several_dimensions(rows: Sequence[Row]) -> Decision:
    off = read.most(rows, DIMENSIONS, "the same in standard errors")
    peak, unit, tanh = (growth(rows, f"{PRODUCT}, {name}") for name in ("smooth peak", "ReLU unit", "tanh unit"))
    words = read.sentences(rows, DIMENSIONS)
    quiet = read.most(rows, DIMENSIONS, "noise left in the quietest direction")
    # A norm that grows by less than this when cells are halved is taken for bounded.
    return "fails" if not off < FAR else "holds" if unit < 1.05 and not any(words) else "in part", {
        "off": off,
        "peak": peak,
        "unit": unit,
        "tanh": tanh,
        "quiet": quiet,
        "refused": words[-1] if words else "nothing",
        "sigmas": read.listed(read.by_setting(rows, DIMENSIONS, "sigma")),
        "scores": read.scores(rows, DIMENSIONS, 100),
    }


@statement("band-limited functions")
def band_limited(rows: Sequence[Row]) -> Decision:
    off = read.most(rows, BAND_LIMITED, "the same in standard errors")
    norm = "norm of the reward as it is, projected", "norm of the reward without high frequencies"
    terms, raw, kept = (read.listed(read.by_setting(rows, BAND_LIMITED, one)) for one in ("terms", *norm))
    line, section = (read.values(rows, BAND_LIMITED, None, quantity) for quantity in (LINE, SECTION))
    settled, wrong = max(line) < 2 * line[0], not off < FAR or max(section) > 1 + 1e-6
    return "fails" if wrong else "holds" if settled else "in part", {
        "off": off,
        "terms": terms,
        "raw": raw,
        "kept": kept,
        "first": line[0],
        "last": line[-1],
        "section": max(section),
        "inside": "seem to be" if settled else "are not",
        "sigmas": read.listed(read.by_setting(rows, BAND_LIMITED, "sigma", 100)),
        "scores": read.scores(rows, BAND_LIMITED, 50),
    }


@statement("time for other kernels")
def queries(rows: Sequence[Row]) -> Decision:
    powers = read.by_setting(rows, QUERIES, "power of the number of queries")
    unused = powers.pop(UNSTRUCTURED, math.nan)
    parts = unused > LINEAR, LINEAR < unused < QUADRATIC, bool(powers) and min(powers.values()) > LINEAR
    return decide(*parts, unused=unused, powers=read.listed(powers))


STATEMENTS = (
    actor_critic,
    raw_rewards,
    replay,
    exploration,
    interval,
    several_dimensions,
    band_limited,
    queries,
)


def _same_promise(rows: Sequence[Row], extension: str) -> bool:
    found = read.values(rows, extension, None, "epsilon of the policy")
    return bool(found) and all(one == _asked(rows) for one in found)


def _asked(rows: Sequence[Row]) -> float:
    return next(
        (one["epsilon"] for one in where(rows, extension=ACTOR_CRITIC, quantity="epsilon of the policy")), math.nan
    )


def growth(rows: Sequence[Row], setting: str) -> float:
    """By how much a norm on a grid grows in the last halving of the cells; the mean of the last ones if some miss."""
    norms = sorted((one["at"], one["value"]) for one in where(rows, setting=setting, quantity="norm on a grid"))
    (coarse, before), (fine, after) = norms[-2:]
    return (after / before) ** (1 / math.log2(fine / coarse))
