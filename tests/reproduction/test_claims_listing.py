"""Algorithm 1 taken literally (erratum 7), and what its rounds give away (errata 5 and 6)."""

import math

import numpy as np
import pytest

from quietq import Budget
from quietq.paper import Published
from reproduction.claims import listing, spaces, statements_of
from reproduction.claims.statement import Measurements, PaperStatement


def found(statement: PaperStatement, rows: list) -> Measurements:
    return Measurements([row for row in rows if row["claim"] == statement.name])


def test_the_index_leaves_the_run() -> None:
    numbers = [j * 5000 / 64 + b for j in range(78) for b in range(64)]
    assert max(numbers) > 6000
    rows = found(listing.INDEX, listing._indices())
    assert rows.one("steps numbered T or more") == sum(number >= 5000 for number in numbers) > 0
    assert sorted(j * 64 + b for j in range(78) for b in range(64)) == list(range(78 * 64))


def test_the_printed_step_goes_uphill() -> None:
    """In a model whose gradient is known: a line through targets."""
    rng = np.random.default_rng(0)
    x, targets, theta = rng.random(64), rng.random(64), 0.2
    gradient = ((theta * x - targets) * x).mean()

    def loss(parameter: float) -> float:
        return float(((parameter * x - targets) ** 2).mean() / 2)

    assert loss(theta + 3e-4 * gradient) > loss(theta) > loss(theta - 3e-4 * gradient)
    rows = found(listing.SIGN, listing._steps())
    assert rows.one("change of the loss", "as printed") > 0 > rows.one("change of the loss", "sign turned")


def test_the_sum_has_a_term_too_many() -> None:
    rows = found(listing.TERMS, listing._sums())
    assert rows.one("terms") == 64 + 1
    assert rows.one("terms that do not exist yet") == 1


def test_paths_need_sigma_squared() -> None:
    """1,000 paths: the variance is known to 4.5 % at most (one standard error)."""
    rows = found(listing.VARIANCE, listing._variances(1000))
    printed, true = rows.all("variance over sigma^2", "sigma d"), rows.all("variance over sigma^2", "sigma^2 d")
    assert printed == [pytest.approx(1 / 0.32, rel=0.25), pytest.approx(1 / 3, rel=0.25)]
    assert true == [pytest.approx(1, rel=0.25)] * 2


def test_a_reset_deletes_what_the_next_line_needs() -> None:
    rows = found(listing.RESET, listing._look_ups())
    assert rows.one("look-ups that find nothing") == rows.one("rounds") == 78


def test_hidden_state_does_not_compose() -> None:
    """Releases j a + z_j with a = 0 or 1: the best test has d'^2 = sum of j^2 over the variance."""
    n, mu = 78, Budget(0.9, 1e-4).mu
    sigma = math.sqrt(n) / mu  # as if every round moved by 1
    true = float(np.linalg.norm(np.arange(1, n + 1))) / sigma
    assert true / mu == pytest.approx(math.sqrt((n + 1) * (2 * n + 1) / 6))
    rows = found(listing.HIDDEN, listing._differences())
    assert rows.one("mu", "linear") == pytest.approx(true)
    assert rows.one("factor") == pytest.approx(45.5, abs=0.05)
    assert 12 < rows.one("mu", "linear, with TD errors") < true
    # simulated: 400 sequences a world, told apart without a single mistake
    rng, signal = np.random.default_rng(0), np.arange(1, n + 1)
    scores = [(side * signal + sigma * rng.standard_normal((400, n))) @ signal for side in (0, 1)]
    assert scores[0].max() < scores[1].min()


def test_td_errors_are_not_bounded() -> None:
    """Values of two actions may lie any distance apart."""
    own, best = (
        spaces.network(np.array([[0.4]]), "relu", 10.0, 0),
        spaces.network(np.array([[0.6]]), "relu", 10.0, 1),
    )
    rows = found(listing.ERRORS, listing._td_errors())
    assert rows.one("largest TD error", "ten times") > 2 > rows.one("largest TD error", "weights as PyTorch begins")
    assert abs(own - best)[0] > 2.5  # so no reward in [0, 0.5] makes this one's error small


def test_verdicts_on_the_listing() -> None:
    rows = [*listing.measure(200), *listing._differences(), *listing._successive(), *listing._td_errors()]
    rows += [listing.RETURNED.row("largest noise in what is returned", 0, setting=words) for words in ("text", "code")]
    statements = statements_of(listing)
    assert {statement.claim(rows).verdict for statement in statements} == {"fails"}
    words = listing.PROGRAM.claim(rows).measured
    assert "beta 1, not 16161.6" in words
    assert "explore_first 0.9, not 0" in words
    assert "explore_decay" not in words  # the listing never explores
    assert Published.code().explore_decay != Published.text().explore_decay
    none = [row for row in rows if row["quantity"] != "differs"]
    assert listing.PROGRAM.claim(none).verdict == "holds"


def test_the_network_is_a_network() -> None:
    """`forward` against the layers written out."""
    theta, x = spaces.initial(1, 1.0, 3), np.array([[0.2], [0.9]])
    first, second, third = theta[:32].reshape(2, 16), theta[32:304].reshape(17, 16), theta[304:].reshape(17, 1)
    hidden = np.maximum(x @ first[:1] + first[1], 0)
    hidden = np.maximum(hidden @ second[:16] + second[16], 0)
    np.testing.assert_allclose(spaces.forward(x, "relu", theta), (hidden @ third[:16] + third[16])[:, 0])
