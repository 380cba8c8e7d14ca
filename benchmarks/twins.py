"""What the same data gives without privacy: models of the same columns, tuned by cross-validation over people.

Tuning sees the people that a model is fitted to, and nobody else. In choices every person counts once, as in how they
are scored; in ratings every row does. Each model is asked for a score of each state, of which only differences matter
for choices. Boosted trees (scikit-learn's) take the two states of a pair as they are, so that they need not be a reward
at all: what cannot be reached by one shows in them. Nothing here depends on how quietq estimates.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.real_data import Choices, Rated

Reward = Callable[[np.ndarray], np.ndarray]
"""Of states, shape (..., coordinates)."""
Model = Callable[[Any], np.ndarray]
"""What a model thinks of each alternative, (tasks, alternatives), or of each row."""
RIDGES = 10.0 ** np.arange(-6, 1.1, 0.5)
FOLDS, TREE_FOLDS = 5, 3
LEAVES = {4: 600, 8: 400, 16: 200, 32: 150, 64: 80, 128: 40}
"""Of a tree, with the most trees that are tried: every number of them up to it."""
LEAST = (20, 100)
"""Rows in a leaf."""


def fit(name: str, data: Choices | Rated) -> Model:
    """A twin by its name."""
    if name == "boosted trees":
        return _boosted_choices(data) if isinstance(data, Choices) else _boosted_ratings(data)
    reward = _rewards(data)[name]()
    return lambda other: reward(other.states)


TWINS = ("linear", "quadratic", "boosted trees", "constant")


def _rewards(data: Choices | Rated) -> dict[str, Callable[[], Reward]]:
    fitted = (lambda *how: fit_logit(data, *how)) if isinstance(data, Choices) else (lambda *how: fit_ridge(data, *how))
    mean = 0.0 if isinstance(data, Choices) else float(np.mean(data.rows["rating"].to_numpy()))
    return {
        "linear": fitted,
        "quadratic": lambda: fitted(with_products),
        "constant": lambda: lambda states: np.full(states.shape[:-1], mean),
    }


def with_products(points: np.ndarray) -> np.ndarray:
    """Coordinates, their squares and their products."""
    dimension = points.shape[-1]
    pairs = [(i, i) for i in range(dimension)] + list(combinations(range(dimension), 2))
    return np.concatenate([points, *(points[..., [i]] * points[..., [j]] for i, j in pairs)], axis=-1)


def fit_logit(data: Choices, features: Callable = lambda points: points) -> Reward:
    """A multinomial logit, its ridge by the log-likelihood of people left out: a reward in log-odds."""
    flat = features(_to_unit(data, data.states))
    scale = np.maximum(flat[data.offered].std(axis=0), 1e-9)
    person = np.unique(data.person, return_inverse=True)[1]
    weight = 1 / np.bincount(person)[person]

    def fitted(kept: np.ndarray) -> Callable[[float], np.ndarray]:
        states = flat[kept] / scale
        return lambda ridge: _newton(states, data.offered[kept], data.chosen[kept], weight[kept], ridge)

    def loss(left_out: np.ndarray, theta: np.ndarray) -> float:
        chances = _chances(flat[left_out] / scale @ theta, data.offered[left_out])
        return -float(weight[left_out] @ np.log(chances[np.arange(len(chances)), data.chosen[left_out]] + 1e-300))

    theta = _cross_validated(person, fitted, loss) / scale
    return lambda states: features(_to_unit(data, states)) @ theta


def _to_unit(data: Choices | Rated, states: np.ndarray) -> np.ndarray:
    low, high = np.array(list(data.box.values()), float).T
    return (states - low) / (high - low)


def _cross_validated(person: np.ndarray, fitted: Callable, loss: Callable) -> np.ndarray:
    fold, losses = _folds(person, FOLDS), np.zeros(len(RIDGES))
    for i in range(FOLDS):
        solve = fitted(fold != i)
        losses += [loss(fold == i, solve(ridge)) for ridge in RIDGES]
    return fitted(np.ones(len(person), bool))(RIDGES[np.argmin(losses)])


def _folds(person: np.ndarray, number: int) -> np.ndarray:
    """Of each row; all rows of a person are in one fold."""
    return np.random.default_rng(0).permutation(person.max() + 1)[person] % number


def _chances(scores: np.ndarray, offered: np.ndarray) -> np.ndarray:
    scores = np.where(offered, scores, -np.inf)
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _newton(states: np.ndarray, offered: np.ndarray, chosen: np.ndarray, weight: np.ndarray, ridge: float):
    """The weights of a multinomial logit: Newton's steps, halved until they help."""
    weight = weight / weight.sum()
    rank, taken = states.shape[-1], np.arange(len(chosen))

    def value(theta: np.ndarray) -> float:
        chances = _chances(states @ theta, offered)[taken, chosen]
        return float(ridge / 2 * theta @ theta - weight @ np.log(chances + 1e-300))

    theta = np.zeros(rank)
    for _ in range(50):
        chances = _chances(states @ theta, offered)
        mean = np.einsum("ta,tak->tk", chances, states)
        gradient = -weight @ (states[taken, chosen] - mean) + ridge * theta
        spread = np.einsum("t,ta,taj,tak->jk", weight, chances, states, states, optimize=True)
        curvature = spread - (mean * weight[:, None]).T @ mean + (ridge + 1e-9) * np.eye(rank)
        step, size = np.linalg.solve(curvature, gradient), 1.0
        while value(theta - size * step) > value(theta) and size > 1e-6:
            size /= 2
        theta = theta - size * step
        if np.abs(size * step).max() < 1e-7:
            break
    return theta


def fit_ridge(data: Rated, features: Callable = lambda points: points) -> Reward:
    """A ridge regression of everybody's rows."""
    ratings = data.rows["rating"].to_numpy().astype(float)
    flat = features(_to_unit(data, data.states))
    centre, scale = flat.mean(axis=0), np.maximum(flat.std(axis=0), 1e-9)
    white = np.column_stack([np.ones(len(flat)), (flat - centre) / scale])
    person = np.unique(data.rows["person"].to_numpy(), return_inverse=True)[1]

    def fitted(kept: np.ndarray) -> Callable[[float], np.ndarray]:
        gram, moment = white[kept].T @ white[kept] / kept.sum(), white[kept].T @ ratings[kept] / kept.sum()
        penalised = np.diag(np.append(0.0, np.ones(len(moment) - 1)))
        return lambda ridge: np.linalg.solve(gram + ridge * penalised, moment)

    def loss(left_out: np.ndarray, theta: np.ndarray) -> float:
        return float(((white[left_out] @ theta - ratings[left_out]) ** 2).sum())

    theta = _cross_validated(person, fitted, loss)
    return lambda states: theta[0] + (features(_to_unit(data, states)) - centre) / scale @ theta[1:]


def _trees(person: np.ndarray, make: Callable, fit: Callable, losses: Callable) -> Any:
    """Boosted trees, of the size and number that do best on people left out."""
    fold, everybody = _folds(person, TREE_FOLDS), np.ones(len(person), bool)

    def model(leaves: int, least: int, number: int, kept: np.ndarray) -> Any:
        unfitted = make(
            max_iter=number, max_leaf_nodes=leaves, min_samples_leaf=least, early_stopping=False, random_state=0
        )
        return fit(unfitted, kept)

    tried: dict[tuple[int, int, int], float] = {}
    for leaves, most in LEAVES.items():
        for least in LEAST:
            total = np.sum(
                [losses(model(leaves, least, most, fold != i), fold == i) for i in range(TREE_FOLDS)], axis=0
            )
            tried[leaves, least, int(np.argmin(total)) + 1] = total.min()
    return model(*min(tried, key=tried.__getitem__), everybody)


def _boosted_choices(data: Choices) -> Model:
    from sklearn.ensemble import HistGradientBoostingClassifier

    pairs = data.pairs
    sides = [pairs.select(f"{name}_{side}" for name in data.box).to_numpy() for side in ("left", "right")]
    person = np.unique(pairs["person"].to_numpy(), return_inverse=True)[1]
    left = (pairs["choice"] == "left").to_numpy()
    weight = 1 / np.bincount(person)[person]

    def fit(model: Any, kept: np.ndarray) -> Any:
        both = np.vstack([np.hstack([sides[0][kept], sides[1][kept]]), np.hstack([sides[1][kept], sides[0][kept]])])
        return model.fit(both, np.append(left[kept], ~left[kept]), sample_weight=np.tile(weight[kept], 2))

    def losses(model: Any, left_out: np.ndarray) -> list[float]:
        """After each tree."""
        a, b = sides[0][left_out], sides[1][left_out]
        sign, own = np.where(left[left_out], 0.5, -0.5), weight[left_out]
        stages = zip(*(model.staged_decision_function(np.hstack(both)) for both in ((a, b), (b, a))), strict=True)
        return [float(own @ np.logaddexp(0, -sign * np.ravel(one - other))) for one, other in stages]

    model = _trees(person, HistGradientBoostingClassifier, fit, losses)

    def odds(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return model.decision_function(np.hstack([a, b])) - model.decision_function(np.hstack([b, a]))

    def scores(other: Choices) -> np.ndarray:
        """How each does against the others that were offered. For two, that is the pair itself."""
        total = np.zeros(other.offered.shape)
        for a, b in combinations(range(other.states.shape[1]), 2):
            both = other.offered[:, a] & other.offered[:, b]
            against = odds(other.states[both, a], other.states[both, b])
            total[both, a] += against
            total[both, b] -= against
        return total

    return scores


def _boosted_ratings(data: Rated) -> Model:
    from sklearn.ensemble import HistGradientBoostingRegressor

    states, ratings = data.states, data.rows["rating"].to_numpy().astype(float)
    person = np.unique(data.rows["person"].to_numpy(), return_inverse=True)[1]

    def losses(model: Any, left_out: np.ndarray) -> list[float]:
        """After each tree."""
        return [float(((said - ratings[left_out]) ** 2).sum()) for said in model.staged_predict(states[left_out])]

    model = _trees(
        person, HistGradientBoostingRegressor, lambda model, kept: model.fit(states[kept], ratings[kept]), losses
    )
    return lambda other: model.predict(other.states)
