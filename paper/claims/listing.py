"""Algorithm 1 as it is listed, line by line, and the program that was run in its place."""

import math
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from paper.claims.networks import forward, initial
from paper.claims.statement import TABLE, Found, Statement, verdict
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.learning import Published
from quietq.noise import Exponential, SeededEntropy, SortedPath

STEPS, BATCH, ROUNDS = 5000, 64, 78


def _index(found: Found) -> tuple[Verdict, str]:
    beyond, wanted = found.one("steps numbered T or more"), found.one("steps in all")
    twice = found.one("whole numbers given twice or left out")
    return verdict(beyond + twice == 0), (
        f"{beyond:.0f} of {wanted:.0f} steps get a number of T = 5000 or more, and {twice:.0f} whole numbers are left "
        "out or given twice; jB + b has none of either"
    )


def _sign(found: Found) -> tuple[Verdict, str]:
    printed, turned = found.one("change of the loss", "as printed"), found.one("change of the loss", "sign turned")
    return verdict(printed < 0), (
        f"one step of 3e-4 as printed changes the loss of its own batch by {printed:+.2g}; with the sign turned by "
        f"{turned:+.2g}"
    )


def _terms(found: Found) -> tuple[Verdict, str]:
    terms, missing = found.one("terms"), found.one("terms that do not exist yet")
    return verdict(terms == BATCH and missing == 0), (
        f"the sum has {terms:.0f} terms for a batch of {BATCH}, of which {missing:.0f} is of the next round"
    )


def _variance(found: Found) -> tuple[Verdict, str]:
    printed, true = found.all("variance over sigma^2", "sigma d"), found.all("variance over sigma^2", "sigma^2 d")
    return verdict(all(abs(value - 1) < 0.1 for value in printed)), (
        f"drawn with variance sigma d, values have {printed[0]:.2f} (sigma 0.32) and {printed[1]:.2f} (sigma 3) times "
        f"the variance sigma^2 K(x, x); with sigma^2 d it is {true[0]:.2f} and {true[1]:.2f}"
    )


def _reset(found: Found) -> tuple[Verdict, str]:
    missing, rounds = found.one("look-ups that find nothing"), found.one("rounds")
    return verdict(missing == 0), (
        f"with J = T/B the first action of each of {rounds:.0f} rounds looks up a value that line 8 has just deleted "
        f"({missing:.0f} look-ups find nothing)"
    )


def _program(found: Found) -> tuple[Verdict, str]:
    differing = [str(row["setting"]) for row in found.rows if row["quantity"] == "differs"]
    steps = found.all("gradient steps")
    return verdict(not differing), (
        f"{len(differing)} settings of the authors' program differ from the listing: {'; '.join(differing)}. "
        f"It takes {steps[0]:,.0f} gradient steps, not {steps[1]:.0f}"
    )


SHOWN, METHOD = "tests/paper/test_claims_listing.py::", "tests/learning/test_published_method.py::"
INDEX = Statement(
    "Algorithm 1, line 11: the index",
    "t = jT/B + b numbers the steps",
    SHOWN + "test_the_index_leaves_the_run",
    _index,
    "7",
)
SIGN = Statement(
    "Algorithm 1, line 22: the step", "theta + alpha (1/B) grad sum l_t is a step of SGD",
    SHOWN + "test_the_printed_step_goes_uphill", _sign, "7",
)  # fmt: skip
TERMS = Statement(
    "Algorithm 1, line 22: the sum", "t = jB to (j + 1)B sums over a batch of B",
    SHOWN + "test_the_sum_has_a_term_too_many", _terms, "7",
)  # fmt: skip
VARIANCE = Statement(
    "Algorithm 1, line 16: the variance", "z ~ N(mu, sigma d) draws a path of variance sigma^2 K",
    SHOWN + "test_paths_need_sigma_squared", _variance, "7",
)  # fmt: skip
RESET = Statement(
    "Algorithm 1, line 12: noise at s_t", "the list holds the noise at the state where the agent stands",
    SHOWN + "test_a_reset_deletes_what_the_next_line_needs", _reset, "7",
)  # fmt: skip
PROGRAM = Statement(
    "Experiments: the algorithm that was run", "the experiments run Algorithm 1 with the parameters of appendix E.3",
    METHOD + "test_code_has_the_parameters_of_the_authors_program", _program, "9",
)  # fmt: skip
STATEMENTS = (INDEX, SIGN, TERMS, VARIANCE, RESET, PROGRAM)


@dataclass(frozen=True)
class Listing(Task):
    """The listing taken literally."""

    table: ClassVar[str] = TABLE
    paths: int = 4000

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: the listing"

    def rows(self) -> list[Row]:
        """Measures."""
        return [*_indices(), *_steps(), *_sums(), *self._variances(), *_look_ups(), *_settings()]

    def _variances(self) -> list[Row]:
        """The law that line 16 asks for, in the list whose other rules are right: noise of variance sigma d, not d."""
        unit = np.array([SortedPath(Exponential(1.0), entropy=SeededEntropy(i))([0.3, 0.6]) for i in range(self.paths)])
        rows = []
        for sigma in (0.32, 3.0):
            for words, size in (("sigma d", math.sqrt(sigma)), ("sigma^2 d", sigma)):
                measured = float((size * unit).var()) / sigma**2
                rows.append(VARIANCE.row("variance over sigma^2", measured, 1, setting=words, x=sigma))
        return rows


def _indices() -> list[Row]:
    j, b = np.meshgrid(np.arange(ROUNDS), np.arange(BATCH), indexing="ij")
    numbers, right = j * STEPS / BATCH + b, j * BATCH + b
    whole = np.floor(numbers).astype(int).ravel()
    astray = len(set(right.ravel()) - set(whole)) + len(whole) - len(set(whole))
    return [
        INDEX.row("steps in all", numbers.size),
        INDEX.row("steps numbered T or more", (numbers >= STEPS).sum(), 0),
        INDEX.row("whole numbers given twice or left out", astray, 0),
    ]


def _steps(rate: float = 3e-4, gamma: float = 0.999) -> list[Row]:
    """The loss before and after; targets are held fixed, as in Q-learning."""
    rng, theta = np.random.default_rng(0), initial(1, 1.0, 0)
    states, following = rng.random((BATCH, 1)), rng.random((BATCH, 1))
    targets = 0.5 - np.abs(following[:, 0] - 0.5) + gamma * forward(following, "relu", theta)

    def loss(parameters: np.ndarray) -> float:
        return float(((forward(states, "relu", parameters) - targets) ** 2).mean() / 2)

    moves = 1e-6 * np.eye(len(theta))
    gradient = np.array([(loss(theta + move) - loss(theta - move)) / 2e-6 for move in moves])
    return [
        SIGN.row("change of the loss", loss(theta + side * rate * gradient) - loss(theta), setting=words)
        for words, side in (("as printed", 1), ("sign turned", -1))
    ]


def _sums() -> list[Row]:
    """Round j knows the losses of its own steps, and of those before it."""
    last = ROUNDS - 2
    summed = range(last * BATCH, (last + 1) * BATCH + 1)  # inclusive, as a sum's limits are
    known = range((last + 1) * BATCH)
    return [
        TERMS.row("terms", len(summed), BATCH),
        TERMS.row("terms that do not exist yet", len(set(summed) - set(known)), 0),
    ]


def _look_ups() -> list[Row]:
    """Lines 4 to 17 with states in place of noise: which states are in the list when line 12 asks for one?"""
    rng, missing = np.random.default_rng(1), 0
    state, known = float(rng.random()), set()
    for _ in range(ROUNDS):
        known.clear()  # line 8, with J = T/B
        for _ in range(BATCH):
            missing += state not in known  # line 12
            state = float(rng.random())  # line 13
            known.add(state)  # lines 15 to 17
    return [RESET.row("look-ups that find nothing", missing, 0), RESET.row("rounds", ROUNDS)]


def _settings() -> list[Row]:
    """What both presets say; noise anew every episode and for each network is in the code of one and not the other.

    Settings that follow from others, or that the listing has no use for, are left out: it never explores, so nothing
    decays.
    """
    code, text, rows = Published.code(), Published.text(), []
    for field in fields(Published):
        one, other = getattr(code, field.name), getattr(text, field.name)
        if one != other and field.name not in ("preset", "levels", "replay", "start", "explore_decay"):
            words = f"{field.name} {_short(one)}, not {_short(other)}"
            rows.append(PROGRAM.row("differs", 1, 0, setting=words))
    for words, method in (("code", code), ("text", text)):
        steps = sum((t + 1) % method.train_every == 0 for t in range(method.start - 1, STEPS))
        rows.append(PROGRAM.row("gradient steps", steps, setting=words))
    return rows


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
