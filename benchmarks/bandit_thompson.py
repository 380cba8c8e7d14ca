"""Plays of Thompson sampling against Bernoulli arms, exact in law, without a number for every arm at every step.

As long as the leader, the arm with the most answers, draws above a bar and all others below it, the leader is shown.
The others' posteriors do not change meanwhile, so the time until one of them draws above is geometric. That leaves the
leader's own numbers, drawn in bulk along the answers it would get, up to the first step that is not settled so: there
the others' numbers are drawn given on which side of the bar they are. The bar changes nothing but the time it takes.
"""

import numpy as np
from scipy import special

_SPREADS = 4  # the leader's mean is so many deviations above the bar
_MOST = 256  # steps at a time


def thompson(means: np.ndarray, arrivals: int, runs: int, seed: int) -> np.ndarray:
    """The regret of each run of `learning.bandits.Thompson`, in the order in which they end."""
    generator, found, ahead = np.random.default_rng(seed), [], 4
    ones, answers = np.zeros((2, runs, len(means)))
    left = np.full(runs, arrivals)
    while len(left):
        each = np.arange(len(left))
        leading = each, answers.argmax(axis=1)
        a, b = 1 + ones, 1 + answers - ones
        mine = a[leading] / (a + b)[leading]
        bar = np.maximum(mine - _SPREADS * np.sqrt(mine * (1 - mine) / (a + b + 1)[leading]), 0.0)
        above = special.betaincc(a, b, bar[:, None])
        above[leading] = 0.0
        with np.errstate(divide="ignore"):  # never, where the probability is 0
            wait = np.floor(np.log(generator.random(above.shape)) / np.log1p(-above))
        rewards = generator.random((len(left), ahead)) < means[leading[1]][:, None]
        before = np.cumsum(rewards, axis=1) - rewards
        steps = np.arange(ahead)
        drawn = np.asarray(generator.beta(a[leading][:, None] + before, b[leading][:, None] + steps - before))
        low = np.hstack([drawn <= bar[:, None], np.ones((len(left), 1), bool)]).argmax(axis=1)
        stop = np.minimum(low, wait.min(axis=1)).astype(np.int64)
        settled = np.minimum(stop, left)
        answers[leading] += settled
        ones[leading] += (rewards & (steps < settled[:, None])).sum(axis=1)
        left -= settled
        open_ = np.flatnonzero((stop < ahead) & (left > 0))
        values = np.full((len(open_), len(means)), -1.0)
        over = wait[open_] == stop[open_][:, None]
        under = ~over & (low[open_] == stop[open_])[:, None]
        share, p, q, part = generator.random(values.shape), a[open_], b[open_], above[open_]
        values[over] = special.betainccinv(p[over], q[over], share[over] * part[over])
        values[under] = special.betaincinv(p[under], q[under], share[under] * (1 - part[under]))
        values[np.arange(len(open_)), leading[1][open_]] = drawn[open_, np.minimum(stop[open_], ahead - 1)]
        arm = values.argmax(axis=1)
        answers[open_, arm] += 1
        ones[open_, arm] += generator.random(len(open_)) < means[arm]
        left[open_] -= 1
        ahead = int(np.clip(2 * settled.mean(), 4, _MOST))
        if not left.all():
            found.append(answers[left == 0])
            ones, answers, left = ones[left > 0], answers[left > 0], left[left > 0]
    return np.concatenate(found) @ (means.max() - means)
