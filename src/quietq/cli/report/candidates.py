"""The part of the demo's report with two dimensions: which candidates 944 voters like.

It is a second release of the same people, so the page must say what both together give away.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from quietq.cli.report.look import checked, new_figure, save
from quietq.cli.report.page import Part, Picture, Section
from quietq.cli.report.reward_picture import SIDE, plot_reward
from quietq.feedback.voters import CANDIDATE, RATED
from quietq.privacy.certificate import Certificate
from quietq.privacy.printed import error_in_words
from quietq.released.private_function import PrivateFunction

LEAD = """
The same people also said how close they are to which party. Let a candidate be both, a place between left and right \
and a place between the parties, and let each of them rate {rated} candidates. `Ratings` and `privatise` are the same \
as above; in two dimensions and more, a model is fitted with noise."""
BEST = """
By this map the candidate that they like best stands at {position:.2f} between left and right, and at {party:.2f} \
between Democrats and Republicans. Reading that from it costs nothing more. {error}"""
OWN = """
`candidates.qq` has a certificate of its own, epsilon = {epsilon:g}, delta = {delta:g}. It is of the same people, so \
the promise at the top of this page is for both together: budgets add up. The attack below is on `reward.qq` alone."""


def together(first: Certificate, second: Certificate) -> tuple[float, float]:
    """(epsilon, delta) of two releases of the same people, by basic composition, which holds for any two."""
    return (first.epsilon or 0.0) + (second.epsilon or 0.0), (first.delta or 0.0) + (second.delta or 0.0)


def write_candidates(private: PrivateFunction, picture: Path) -> Section:
    """Draws the map, and gives the report's section, which may be published with the release."""
    plot_reward(private, picture, names=CANDIDATE, title="Which candidates 944 voters like: the private reward")
    certificate, (position, party) = private.certificate, best(private)
    parts: list[Part] = [
        LEAD.format(rated=RATED),
        Picture(picture, "`candidates.qq`: the voters' mean rating of candidates, with noise on it.", "private map"),
        BEST.format(position=position, party=party, error=_error(certificate)),
        OWN.format(epsilon=certificate.epsilon, delta=certificate.delta),
    ]
    return Section("In two dimensions", parts)


def _error(certificate: Certificate) -> str:
    return error_in_words(certificate.method, certificate.expected_error or 0.0)


def best(private: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The candidate with the largest value, on a grid."""
    points = _grid().reshape(-1, 2)
    return points[int(np.argmax(private(points)))]


def plot_candidates_outcome(
    path: Path, true: Callable[[np.ndarray], np.ndarray], private: Callable[[np.ndarray], np.ndarray]
) -> None:
    """The true map beside the private one; for the operator only."""
    target, points = checked(path), _grid()
    maps = {"true mean (NOT PRIVATE)": true(points), "private": private(points)}
    figure = new_figure(9.6, 4.9)
    panels = figure.subplots(1, 2, sharey=True)
    low, high = min(one.min() for one in maps.values()), max(one.max() for one in maps.values())
    image = None
    for panel, (name, values) in zip(panels, maps.items(), strict=True):
        look = {"origin": "lower", "extent": (0, 1, 0, 1), "cmap": "cividis", "vmin": low, "vmax": high}
        image = panel.imshow(values.T, interpolation="bilinear", **look)
        x, y = points.reshape(-1, 2)[int(values.argmax())]
        panel.plot(x, y, "*", color="white", markeredgecolor="black", markersize=15, clip_on=False)
        panel.set_title(name, fontsize=12)
        panel.set_xlabel(CANDIDATE[0], fontsize=12)
        panel.tick_params(labelsize=11)
    panels[0].set_ylabel(CANDIDATE[1], fontsize=12)
    figure.colorbar(image, ax=list(panels)).set_label("mean rating; the star is the best", fontsize=12)
    save(figure, target, "NOT PRIVATE: which candidates 944 voters like", owner_only=True)


def _grid() -> np.ndarray:
    side = np.linspace(0, 1, SIDE)
    return np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
