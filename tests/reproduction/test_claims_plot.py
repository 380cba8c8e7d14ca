"""The picture of the claims: it is drawn from rows alone, and its titles say what they say."""

import functools
from pathlib import Path
from typing import Any

import pytest

from reproduction.claims import mechanisms, paths, picture, sampler, utility
from reproduction.claims.statement import TABLE
from reproduction.experiment import Row

UTILITY = functools.cache(lambda: utility.measure(2, (10, 100)))


def rows(lower: float) -> list[Row]:
    found = []
    for sigma, statement in mechanisms.AUDITED.items():
        claimed = {0.32: 0.9, 0.74: 0.45}[sigma]
        numbers = {
            "epsilon claimed": claimed,
            "epsilon at least, 95 %": lower,
            "runs a world": 200,
            "steps a run": 5000,
            "judged runs": 300,
            "judged runs mistaken": 1,
        }
        found += [statement.row(words, value) for words, value in numbers.items()]
    found += [paths.MAXIMUM.row(paths.MEAN, 1 + beta**0.1, 8.68 * beta**0.5, x=beta) for beta in (1.0, 10.0, 100.0)]
    kinds = (sampler.LISTED, sampler.DENSE)
    found += [sampler.SPEED.row(kind, 1e-6 * n, x=n) for kind in kinds for n in (100, 1000)]
    return [*found, *UTILITY()]


@pytest.mark.parametrize(
    ("lower", "words", "suffix"), [(3.9, "its promise is broken", "png"), (0.1, "not refuted by these runs", "svg")]
)
def test_it_is_drawn_and_says_what_was_found(
    lower: float, words: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def remember(*size: float) -> Any:
        made.append(figure(*size))
        return made[-1]

    figure = picture.new_figure
    monkeypatch.setattr(picture, "new_figure", remember)
    picture.plot_claims({TABLE: rows(lower)}, tmp_path / f"claims.{suffix}")
    assert (tmp_path / f"claims.{suffix}").stat().st_size > 10_000
    titles = [panel.get_title(loc="left") for panel in made[0].axes]
    assert len(titles) == 4
    assert titles[3].endswith(words)
    assert all(panel.get_xlabel() for panel in made[0].axes[:3])
    assert all(panel.get_ylabel() for panel in made[0].axes)
