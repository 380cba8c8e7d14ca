"""What the Discussion says of several dimensions and of other kernels, beside what the rows say."""

import math
from collections.abc import Sequence

from paper.claims.statement import verdict as of_parts
from paper.experiment import Claim, Verdict
from paper.extensions.band_limited import LINE, SECTION
from paper.extensions.product import PRODUCT
from paper.extensions.queries import UNSTRUCTURED
from paper.extensions.row import BAND_LIMITED, DIMENSIONS, QUERIES, sentences, values
from paper.extensions.verdicts import COMMAND
from paper.extensions.words import by_setting, listed, scores
from paper.task import Row

FAR = 6.0
"""Standard errors that no covariance of right draws is off by."""
LINEAR = 1.5
"""A power of the number of queries below this is nearer to 1 than to 2."""
QUADRATIC = 2.25
"""A power above this is no longer taken for 2."""
SETTLED = 1.05
"""A norm that grows by less than this when cells are halved is taken for bounded."""


def kernel_claims(rows: Sequence[Row]) -> list[Claim]:
    """One claim an extension; each verdict would be another with other rows."""
    return [make(rows) for make in (_several_dimensions, _band_limited, _queries)]


def _several_dimensions(rows: Sequence[Row]) -> Claim:
    off = max(values(rows, DIMENSIONS, None, "the same in standard errors"), default=math.nan)
    peak, unit, tanh = (growth(rows, f"{PRODUCT}, {name}") for name in ("smooth peak", "ReLU unit", "tanh unit"))
    words = sentences(rows, DIMENSIONS)
    quiet = max(values(rows, DIMENSIONS, None, "noise left in the quietest direction"), default=math.nan)
    verdict: Verdict = "fails" if not off < FAR else "holds" if unit < SETTLED and not any(words) else "in part"
    return Claim(
        "several dimensions",
        "The approach can also be extended to high-dimensional spaces by a high-dimensional kernel, such as "
        "exp(-beta |x - y|) with the Manhattan distance.",
        f"Its draws are right (covariance off by at most {off:.1f} standard errors), and smooth functions are in its "
        f"space: when the grid's cells are halved, a tanh unit's norm grows {tanh:.2f}-fold, that of a peak with a "
        f"mixed derivative {peak:.2f}-fold. Lipschitz functions and ReLU networks are not: a ReLU unit's grows "
        f"{unit:.2f}-fold. Refused: {words[-1] if words else 'nothing'} With mixed derivatives bounded, "
        f"sigma: {listed(by_setting(rows, DIMENSIONS, 'sigma'))}. Random features that approximate a kernel leave "
        f"{quiet:.1g} of the noise in a direction. What works, mean scores: {scores(rows, DIMENSIONS, 100)}.",
        verdict,
        f"{COMMAND}; tests/noise/test_kernels.py",
    )


def _band_limited(rows: Sequence[Row]) -> Claim:
    off = max(values(rows, BAND_LIMITED, None, "the same in standard errors"), default=math.nan)
    terms = by_setting(rows, BAND_LIMITED, "terms")
    raw = by_setting(rows, BAND_LIMITED, "norm of the reward as it is, projected")
    kept = by_setting(rows, BAND_LIMITED, "norm of the reward without high frequencies")
    sigmas = by_setting(rows, BAND_LIMITED, "sigma", 100)
    line, section = (values(rows, BAND_LIMITED, None, quantity) for quantity in (LINE, SECTION))
    settled = max(line) < 2 * line[0]
    verdict: Verdict = "fails" if not off < FAR or max(section) > 1 + 1e-6 else "holds" if settled else "in part"
    return Claim(
        "band-limited functions",
        "Other kernels are possible, such as that of band-limited functions; with sigma re-calibrated the guarantee "
        "holds in general for the respective norm.",
        f"Draws are right (covariance off by at most {off:.1f} standard errors), if the reward is projected on the "
        f"same terms ({listed(terms)}). The promise is another: each person has no frequency above W, and a bounded "
        f"norm; for the walk's reward without high frequencies {listed(kept)}, with its kink {listed(raw)}. Functions "
        f"inside are covered; broken lines, and so ReLU networks, {'seem to be' if settled else 'are not'} inside: a "
        f"tent's norm is {line[0]:.2g} on 4 points and {line[-1]:.2g} on 20 (W = 6), where a section of the kernel "
        f"keeps to {max(section):.2f}. Sigma for 100 people: {listed(sigmas)}. Mean scores: "
        f"{scores(rows, BAND_LIMITED, 50)}.",
        verdict,
        f"{COMMAND}; tests/noise/test_kernels.py",
    )


def _queries(rows: Sequence[Row]) -> Claim:
    powers = by_setting(rows, QUERIES, "power of the number of queries")
    unused = powers.pop(UNSTRUCTURED, math.nan)
    parts = unused > LINEAR, LINEAR < unused < QUADRATIC, bool(powers) and min(powers.values()) > LINEAR
    return Claim(
        "time for other kernels",
        "The time of Proposition 9 does not extend to other kernels, which take O(N^2) to draw noise for N queries.",
        "Without structure to use, point by point, each given all before it, N queries take a time like N to the "
        f"power {unused:.2f} here (3 in the end). With structure, drawn at "
        f"once as tables or weights, the powers are {listed(powers)}.",
        of_parts(*parts),
        COMMAND,
    )


def growth(rows: Sequence[Row], setting: str) -> float:
    """By how much a norm on a grid grows in the last halving of the cells; the mean of the last ones if some miss."""
    norms = sorted(
        (float(one["at"] or 0.0), float(one["value"] or 0.0))
        for one in rows
        if (one["setting"], one["quantity"]) == (setting, "norm on a grid")
    )
    (coarse, before), (fine, after) = norms[-2:]
    return (after / before) ** (1 / math.log2(fine / coarse))
