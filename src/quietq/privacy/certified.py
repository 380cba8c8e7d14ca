"""What a certificate must hold to be certified: a known method, and numbers that follow from each other."""

import re
from typing import Any

from quietq.privacy.assumption import check_assumptions, require
from quietq.privacy.checks import shown
from quietq.privacy.gaussian import delta_from_mu
from quietq.privacy.norms import NORMS, Norm, largest_difference, norm_in_words
from quietq.privacy.relations import relation_in_words
from quietq.privacy.trained_methods import TRAINED_METHODS

_METHOD = re.compile("[a-z][a-z0-9/-]*")
_CLOSE = 1e-9
"""Relative: what rounding may do to two ways of computing one number."""


def check_certified(c: Any) -> None:
    """What is certified has a method, assumptions, and numbers that follow from each other."""
    plain = _METHOD.fullmatch(c.method) is not None
    require(plain, f"A certified method must be a plain name such as reward/path, not {shown(c.method)}.")
    entries = [TRAINED_METHODS[part] for part in c.method.split("/") if part in TRAINED_METHODS]
    refuted = "The published theorem does not hold: it can be 'claimed' but not 'certified'."
    nothing = f"The method {c.method!r} promises nothing, so it cannot be certified."
    certified = all(entry.standing == "certified" for entry in entries)
    require(certified, refuted if "published" in c.method else nothing)
    check_assumptions(c.assumptions)
    stated = None not in (c.norm, c.sensitivity)
    require(stated, "What is certified needs the sensitivity, and the norm that it is measured in.")
    norm = NORMS.find(c.norm)
    own = TRAINED_METHODS[c.method].norm if c.method in TRAINED_METHODS else None
    require(own in (None, c.norm["kind"]), f"The noise of {c.method!r} is not measured in {norm_in_words(c.norm)}.")
    needed, relation = largest_difference(c.norm, c.relation), relation_in_words(c.relation)
    enough = c.sensitivity >= needed * (1 - _CLOSE)
    where = f"which {relation} can come to in {norm_in_words(c.norm)}"
    require(enough, f"sensitivity {c.sensitivity!r} is below {needed!r}, {where}.")
    if norm.dimension is not None:
        sides = norm.dimension(c.norm)
        fits = c.domain is not None and len(c.domain) == sides
        require(fits, f"domain must be the box that the norm is defined on, of {sides} coordinate(s).")
    sizes = "Several queries have noise of several sizes, which the norm states: leave sigma and scale out."
    require(not norm.several or (c.sigma, c.scale) == (None, None), sizes)
    name = "epsilon" if c.mu is None else "mu"
    found, stated = (_epsilon if c.mu is None else _mu)(c, norm), getattr(c, name)
    size = "several sizes" if norm.several else f"sigma {c.sigma!r}" if c.scale is None else f"scale {c.scale!r}"
    more = f"{name} = {found!r}, more than the stated {stated!r}"
    require(stated >= found * (1 - _CLOSE), f"Noise of {size} on sensitivity {c.sensitivity!r} is {more}.")


def _mu(c: Any, norm: Norm) -> float:
    require(c.delta > 0, "mu must be absent when delta is 0: Gaussian noise is never pure.")
    implied = delta_from_mu(c.mu, c.epsilon) <= c.delta * (1 + _CLOSE)
    require(implied, f"mu {c.mu!r} does not imply ({c.epsilon!r}, {c.delta!r})-DP.")
    gaussian = (norm.several or c.sigma is not None) and c.scale is None and "gaussian" in norm.families
    require(gaussian, "A certified mu needs the sigma of Gaussian noise that it comes from, and no scale.")
    return c.sensitivity / (c.sigma or 1.0)


def _epsilon(c: Any, norm: Norm) -> float:
    require(norm.several or c.scale is not None, "What is certified without a mu needs the scale of its noise.")
    if norm.epsilon is not None and c.delta > 0:
        require(c.sigma is None, "Noise that follows the data has no sigma that could be stated.")
        return norm.epsilon(c.norm, (c.scale or 1.0) / c.sensitivity, c.delta)
    pure = "pure" in norm.families and c.delta == 0
    require(pure, f"Without a mu, delta {c.delta!r} does not belong to {norm_in_words(c.norm)}.")
    return c.sensitivity / (c.scale or 1.0)
