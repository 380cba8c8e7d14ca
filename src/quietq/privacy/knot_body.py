"""What neighbours in a LipschitzBall can do to values at equally spaced knots: a body, by its vertices."""

import numpy as np
from jaxtyping import Float

from quietq.privacy.errors import InvalidInput

MOST_PIECES = 8
_MOST_VERTICES = 200_000


def vertices(step: float, pieces: int) -> Float[np.ndarray, "vertices knots"]:
    """Points that include every vertex of {|v_j| <= 1, |v_{j+1} - v_j| <= step}, up to sign.

    At a vertex the knots fall into runs whose steps are all full, up or down, and each of which touches 1 or -1. So a
    knot's value is sign (1 - k step) with a whole k of at most `pieces`, and k changes by one within a run.
    """
    if not 1 <= pieces <= MOST_PIECES:
        raise InvalidInput(f"Shaped Gaussian noise has 1 to {MOST_PIECES} pieces between knots, not {pieces}.")
    spots = {
        (sign, k): sign * (1 - k * step) for sign in (1, -1) for k in range(pieces + 1) if 1 - k * step >= -1 - 1e-9
    }
    near = {
        spot: [other for other in spots if abs(spots[other] - value) <= step * (1 + 1e-9)]
        for spot, value in spots.items()
    }
    found: list[list[float]] = []

    def extend(path: list[tuple[int, int]], settled: bool) -> None:
        if len(found) > _MOST_VERTICES:
            raise InvalidInput(f"{pieces} pieces have too many vertices for this range and slope: use fewer knots.")
        left = pieces + 1 - len(path)
        if not left:
            if settled:
                found.append([spots[spot] for spot in path])
            return
        sign, k = path[-1]
        on = [spot for spot in ((sign, k - 1), (sign, k + 1)) if spot in spots and (settled or spot[1] < left)]
        for spot in on:  # the run goes on
            extend([*path, spot], settled or spot[1] == 0)
        for spot in near[path[-1]] if settled else ():  # another run may begin
            if spot[1] < left:
                extend([*path, spot], spot[1] == 0)

    for spot in [spot for spot, value in spots.items() if value >= -1e-9]:
        extend([spot], spot[1] == 0)
    return np.unique(np.array(found), axis=0)
