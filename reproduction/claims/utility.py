"""Proposition 10, the utility in finite worlds: as printed, as its proof has it, and as it can be proved."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from quietq.paper.discrete import Tabular, printed_value_error_bound, random_mdp, solve, value_error_bound
from reproduction.claims.statement import Measurements, at_most, power, says
from reproduction.experiment import Decision, Row, decide

SIGMA, GAMMA = 0.3, 0.9
MEAN, LARGEST = "mean |v' - v*|", "E max |v' - v*|"


@says("Proposition 10: utility")
def UTILITY(found: Measurements) -> Decision:
    means, bounds, errors = dict(found.at(MEAN)), dict(found.at(MEAN, "printed")), dict(found.at("its standard error"))
    beyond = [n for n in means if means[n] - 3 * errors[n] > bounds[n]]
    within = [n for n in means if means[n] <= bounds[n]]
    bound = printed_value_error_bound(1, SIGMA, GAMMA)
    return decide(  # of all worlds: one that is beyond is enough
        not beyond and found.one("E |v' - v*|, one state, 20 actions") <= bound,
        bound=bound,
        mean=means[100],
        error=errors[100],
        allowed=bounds[100],
        beyond=_listed(beyond),
        within=_listed(within),
    )


def _listed(numbers: Iterable[float]) -> str:
    return ", ".join(f"{n:g}" for n in numbers) or "none"


@says("Proposition 10: many states")
def LIMIT(found: Measurements) -> Decision:
    pairs = found.at(MEAN)
    values = ", ".join(f"{value:.2f}" for _, value in pairs)
    return decide(power(pairs) < -0.25, slope=power(pairs), values=values, sizes=_listed(n for n, _ in pairs))


def _right(found: Measurements) -> Decision:
    return decide(found.most("largest relative error") < 1e-6, worlds=len(found.rows))


CORRECTED = says("Ours: Proposition 10, put right")(
    at_most(1, f"{LARGEST}, over its bound", "lost by the greedy policy, over its bound")
)
PROGRAMS = says("Appendix D: the linear program and its dual")(_right)
EXISTENCE = says("Lemma 14: dual solution")(_right)
MASS = says("Claim 15: mass of the dual solution")(_right)
POLICY = says("Claim 17: value of the dual's policy")(_right)
INEQUALITY = says("Appendix D: Bellman's inequality")(lambda found: decide(found.one("least slack") < 0))
DUAL = says("Lemma 16: loss by noised rewards")(
    at_most(1, "lost over the bound")
)  # of all worlds: one that loses more is enough


def _equal(*quantities: str) -> Callable[[Measurements], Decision]:
    """To a tenth of the larger, which comes first."""
    return lambda found: decide(
        abs(found.one(quantities[0]) - found.one(quantities[1])) < 0.1 * found.one(quantities[0])
    )


DIFFERENCE = says("Proposition 10, proof: last step")(_equal("E |v' - v*|_1", "sum v* - E sum v'"))
EQUIVALENT = says("Appendix D: noise on values and on rewards")(
    _equal("|Q'* - Q*| with noised rewards", "|Q + g - Q*| at the end")
)


def optimum(world: Tabular) -> np.ndarray:
    """v* to 1e-10: by policy iteration in small worlds, by value iteration in large ones.

    There without BLAS, whose threads would stand in each other's way and in that of other tasks.
    """
    values, change, least = np.zeros(world.states), math.inf, 1e-10 * (1 - world.gamma)
    while change > least:
        if world.states <= 50:
            new = world.evaluate(world.greedy(values))
        else:
            new = (world.rewards + world.gamma * np.einsum("sat,t->sa", world.transitions, values)).max(axis=1)
        values, change = new, float(np.abs(new - values).max())
    return values


def with_noise(world: Tabular, sigma: float, seed: int) -> Tabular:
    noise = sigma * np.random.default_rng((11, seed)).standard_normal(world.rewards.shape)
    return replace(world, rewards=world.rewards + noise)


def measure(worlds: int = 60, sizes: tuple[int, ...] = (10, 30, 100, 300)) -> list[Row]:
    """Random worlds with noised rewards, solved exactly: so many of up to 100 states; of more, a fifth as many."""
    rows = []
    for n in sizes:  # one noise draw in each of as many worlds
        count = worlds if n <= 100 else max(worlds // 5, 2)
        found = [_errors(n, 2, seed) for seed in range(count)]
        means, bound = [mean for mean, _, _ in found], printed_value_error_bound(n, SIGMA, GAMMA)
        error, words = float(np.std(means)) / math.sqrt(count), f"2 actions, {count} worlds"
        rows += [statement.row(MEAN, np.mean(means), bound, setting=words, x=n) for statement in (UTILITY, LIMIT)]
        rows += [UTILITY.row("its standard error", error, setting=words, x=n), *_bounds(n, 2, found)]
    for n, m in ((3, 10), (20, 5), (1, 50)):
        rows += _bounds(n, m, [_errors(n, m, seed) for seed in range(worlds)])
    one = Tabular(np.ones((1, 20, 1)), np.zeros((1, 20)), GAMMA)
    errors = [abs(optimum(with_noise(one, SIGMA, seed))[0]) for seed in range(20 * worlds)]
    return [
        *rows,
        UTILITY.row("E |v' - v*|, one state, 20 actions", np.mean(errors), printed_value_error_bound(1, SIGMA, GAMMA)),
    ]


def _bounds(n: int, m: int, found: list[tuple[float, float, float]]) -> list[Row]:
    rows, words = [], f"{m} actions, {len(found)} worlds"
    for i, name, greedy in ((1, LARGEST, False), (2, "lost by the greedy policy", True)):
        mean, bound = float(np.mean([each[i] for each in found])), value_error_bound(n, m, SIGMA, GAMMA, greedy)
        rows.append(CORRECTED.row(name, mean, bound, setting=words, x=n))
        rows.append(CORRECTED.row(f"{name}, over its bound", mean / bound, 1, setting=words, x=n))
    return rows


def _errors(n: int, m: int, seed: int) -> tuple[float, float, float]:
    """The mean and the largest of |v' - v*|, and the most that the greedy policy for v' loses."""
    world = random_mdp(n, m, GAMMA, seed)
    other = with_noise(world, SIGMA, seed)
    best, found = optimum(world), optimum(other)
    lost = best - world.evaluate(other.greedy(found))
    return float(np.abs(found - best).mean()), float(np.abs(found - best).max()), float(lost.max())


def measure_programs(worlds: int = 10, draws: int = 2000) -> list[Row]:
    rows = [row for seed in range(worlds) for row in _solved(random_mdp(30, 4, GAMMA, seed), seed)]
    return [*rows, *_noised(draws), *_shared()]


def _solved(world: Tabular, seed: int) -> list[Row]:
    solution, n = solve(world), world.states
    chosen = world.transitions[np.arange(n), solution.policy]
    visits = np.linalg.solve(np.eye(n) - world.gamma * chosen.T, np.ones(n))
    off = solution.occupancy.sum() - solution.occupancy[np.arange(n), solution.policy].sum()
    best, other = optimum(world), solve(with_noise(world, SIGMA, seed))
    worth = world.evaluate(other.policy).sum()
    errors = {
        PROGRAMS: max(solution.gap, np.abs(solution.values - best).max() / best.max()),
        EXISTENCE: max(np.abs(solution.occupancy.sum(axis=1) - visits).max(), off) / visits.max(),
        MASS: abs(solution.occupancy.sum() * (1 - world.gamma) / n - 1),
        POLICY: abs((other.occupancy * world.rewards).sum() / worth - 1),
    }
    return [
        one.row("largest relative error", error, 0, setting="30 states, 4 actions", x=seed)
        for one, error in errors.items()
    ]


def _noised(draws: int) -> list[Row]:
    world, best = random_mdp(30, 4, GAMMA, 1), optimum(random_mdp(30, 4, GAMMA, 1))
    above = best + 1
    slack = (above - world.q(above).max(axis=1)).min()
    found = np.array([optimum(with_noise(world, SIGMA, seed)) for seed in range(draws // 20)])
    small = random_mdp(20, 2, GAMMA, 2)
    others = [with_noise(small, SIGMA, seed) for seed in range(draws // 20)]
    lost = optimum(small).sum() - np.mean([small.evaluate(o.greedy(optimum(o))).sum() for o in others])
    allowed = 2 * math.sqrt(2 / math.pi) * SIGMA / (1 - GAMMA)
    # One state and 1,000 actions, of which the first is 2 sigma better than all others.
    noise = np.random.default_rng(3).standard_normal((draws, 1000))
    wrong = float(((noise + 2.0 * (np.arange(1000) == 0)).argmax(axis=1) != 0).mean())
    return [
        INEQUALITY.row("least slack", slack, setting="v* + 1"),
        INEQUALITY.row("distance from v*", np.abs(above - best).max(), 0, setting="v* + 1"),
        DIFFERENCE.row("E |v' - v*|_1", np.abs(found - best).sum(axis=1).mean()),
        DIFFERENCE.row("sum v* - E sum v'", best.sum() - found.sum(axis=1).mean()),
        DUAL.row("lost over the bound", lost / (20 * allowed), 1, setting="2 actions"),
        DUAL.row("lost over the bound", wrong * 2 * SIGMA / (1 - GAMMA) / allowed, 1, setting="1,000 actions"),
    ]


def _shared(sigma: float = 30.0) -> list[Row]:
    """The listing's fixed point, step size 1, in a table: Q becomes r + gamma P max(Q + g) - g."""
    world = random_mdp(30, 4, GAMMA, 5)
    noise, q = sigma * np.random.default_rng(4).standard_normal(world.rewards.shape), np.zeros(world.rewards.shape)
    for _ in range(400):
        q = world.q((q + noise).max(axis=1)) - noise
    true, other = world.q(optimum(world)), with_noise(world, SIGMA, 5)
    apart = np.abs(other.q(optimum(other)) - true).max()
    return [
        EQUIVALENT.row("|Q + g - Q*| at the end", np.abs(q + noise - true).max(), setting=f"sigma = {sigma:g}"),
        EQUIVALENT.row("|Q'* - Q*| with noised rewards", apart, setting="sigma = 0.3"),
    ]
