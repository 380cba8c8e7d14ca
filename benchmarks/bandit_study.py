"""People who come by: regret of bandits.

Bernoulli arms without context, 100 runs in each draw, and linear ones of 5 and 10 features, 40 runs; and travellers,
5 runs. `python -m benchmarks bandits --draws 1` makes what is stored.

Free constants are chosen on development arms, other arms and seeds than those that are reported, by
`python -m benchmarks.bandit_study`. The rule, which was written down before anything was looked at and is the same for
every policy: each point of the grid is played 20 times on each of three sets of arms, for half of the reported
arrivals; the five with the least score are played 100 times more at fresh seeds, and of these the least score then is
chosen. A score is the geometric mean over the sets of arms of mean regrets: means, so that runs that lose the best arm
count in full, and a second round, because such runs are rare and 20 of them may have none. If the choice is at an end
of the grid, the file says so.

Local flips are tuned for each epsilon by itself. The rule said so of the tree too, but it takes longest: before any of
its results was there it was cut to epsilon = 0.25, where it is judged, and has the same constants elsewhere.
Elimination is not here, whose constants are printed, nor are episodes: theirs is at its default, just above what the
theorem asks for.

Widths of linear policies are tried on rows of three kinds; what came out is the default of `width`.
"""

import argparse
import functools
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import quietq as qq
from benchmarks import bandit_page, bandit_plays
from benchmarks.bandit_data import ARMS as TRAVELLERS_ARMS, travellers
from benchmarks.bandit_plays import ARMS, LINEAR_ARMS, arms_of, directions, in_blocks, play_linear, thompson
from benchmarks.search import Chosen, Settings
from benchmarks.study import ROOT, Case, Numbers, Study
from quietq.online import UCB, Elimination, Episodes, Linear, LinearTree, LinUCB
from quietq.online.running_sums import spreads
from quietq.privacy.limits import guess_right, of_hundred

RUNS, LINEAR_RUNS, TRAVELLERS_RUNS = 100, 40, 5
SEED = 40_000
"""Added to every draw: seeds that no constant was tuned at."""
EPSILONS = (0.005, 0.02, 0.1, 0.25, 1.0)
ARRIVALS = (10**4, 10**5, 10**6)
LATER = (10**6, 10**7, 10**8)
"""Arrivals after which most is settled, for the order in ln T."""
SMALL = (0.00125, 0.0025, 0.005, 0.01)
"""All below a quarter of the least gap of all arms, 0.05/4, so that privacy binds."""
DELTA = 1e-7
LINEAR = qq.Budget(1.0, 1e-6)
OPEN = "none"
KINDS: dict[str, Any] = {"linear, factors": Linear, "linear, tree": LinearTree, "LinUCB": LinUCB}
CHOSEN = Chosen("tune-bandits", ("policy", "epsilon"))
DEVELOPMENT = {"two arms": (0.6, 0.54), "four arms": (0.85, 0.7, 0.5, 0.3), "ten arms": (0.5, *(0.4,) * 9)}
TUNED_FOR, TUNED_AT = 500_000, 10**6
"""Arrivals, and a seed."""
FIRST, FINALISTS, SECOND = 20, 5, 100
TUNED_EPSILONS: dict[str, tuple[float | None, ...]] = {
    "tree UCB": (0.25,),
    "local flips": (0.005, 0.02, 0.1, 0.25, 1.0),
}
EXPLORATION = {"exploration": (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.1, 1.6, 2.4)}
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "tree UCB": {"sampling": (0.03, 0.1, 0.3, 1.0, 2.0), "noise": (0.35, 0.5, 0.7, 1.0, 1.4)},
    "local flips": EXPLORATION,
    "UCB": EXPLORATION,
}
WIDTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
WIDTH_RUNS = 24
PLAYS = ROOT / "benchmarks" / "bandit_plays.py"
PACKAGE = ROOT / "src" / "quietq" / "online"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="policies whose names begin with this")
    parser.add_argument("--arms", default="", help="arms whose names begin with this")


def _right(epsilon: float, delta: float) -> str:
    return of_hundred(guess_right(epsilon, delta, qq.Budget(epsilon, delta).mu if delta else None))


def study(options: argparse.Namespace) -> Study:
    """The most important first, so that a run that is ended has those."""
    remarks = (
        f"Regret in answers, over {RUNS} runs in each draw ({LINEAR_RUNS} of linear policies), and the seconds of "
        "processor time that these took.",
        "Elimination has the constants that are printed; all others' were tuned on other arms and seeds "
        "(`python -m benchmarks.bandit_study`), those of local flips for each epsilon by itself, those of the tree at "
        "epsilon = 0.25, where it is judged.",
        f"Gaussian noise is for delta = {DELTA:g}, linear policies for delta = {LINEAR.delta:g}; all others are pure, "
        "delta = 0. At the same epsilon these are not at the same protection: at epsilon = 1 a guesser is right in "
        f"{_right(1.0, 0.0)} of 100 cases where noise is pure, in {_right(1.0, DELTA)} with Gaussian noise, and in "
        f"{_right(1.0, LINEAR.delta)} with that of linear policies.",
        "Intervals, from and to, hold 95% of resampled runs.",
    )
    cases = [
        *_rarely(),
        *_slopes(ARRIVALS, EPSILONS[:2], EPSILONS),
        *_tree(),
        *_compiled(),
        *_linear(),
        *_thompson(),
        *_people(),
        *_slopes(LATER, SMALL, EPSILONS[-2:]),
    ]
    cases = [case for case in cases if case[-1] is not None]  # those whose constants were not searched for yet
    return Study(
        "bandits",
        "epsilon",
        [
            Case(labels, measure, made_of, settings=settings or {}, wanted=_wanted(labels, options))
            for labels, measure, made_of, settings in cases
        ],
        remarks,
        each="draws",
    )


def _wanted(labels: dict[str, Any], options: argparse.Namespace) -> bool:
    return labels["policy"].startswith(options.only) and labels["arms"].startswith(options.arms)


def write_page() -> None:
    bandit_page.write()


Found = tuple[dict[str, Any], Callable[[int], Numbers], tuple[Any, ...], dict[str, Any] | None]


def _measure(play: Callable[[int], np.ndarray]) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        began = time.process_time()
        regret = play(draw)
        seconds = time.process_time() - began
        error = float(regret.std(ddof=1) / np.sqrt(len(regret)))
        return {"regret": float(regret.mean()), "standard error over the runs": error, "seconds": seconds}

    return measure


def _labels(arms: str, policy: str, arrivals: int | str, epsilon: float | str) -> dict[str, Any]:
    return {"arms": arms, "policy": policy, "arrivals": arrivals, "epsilon": epsilon}


@functools.cache
def _blocks(policy: str, name: str, epsilon: float, arrivals: int, draw: int) -> np.ndarray:
    """Of the policies themselves, which decide rarely."""
    means, generator = arms_of(name), np.random.default_rng([SEED + draw, 7])
    budget = qq.Budget(epsilon, DELTA if policy == "episodes, Gaussian" else 0.0)

    def make(seed: int) -> Elimination | Episodes:
        if policy == "elimination":
            return Elimination(len(means), budget, arrivals=arrivals, simulate=seed)
        return Episodes(len(means), budget, simulate=seed)

    return np.array([in_blocks(make(SEED + draw * RUNS + run), means, arrivals, generator) for run in range(RUNS)])


def _rarely() -> list[Found]:
    return [
        (
            _labels(name, policy, arrivals, epsilon),
            _measure(functools.partial(_blocks, policy, name, epsilon, arrivals)),
            (PACKAGE, PLAYS),
            {},
        )
        for name in ARMS
        for policy in ("elimination", "episodes", "episodes, Gaussian")
        for arrivals in (ARRIVALS if policy != "episodes, Gaussian" else ARRIVALS[-1:])
        for epsilon in EPSILONS
    ]


def _slopes(times: tuple[int, ...], small: tuple[float, ...], epsilons: tuple[float, ...]) -> list[Found]:
    """In 1/epsilon after the last of these times, and in their logarithm."""
    made, found = (PACKAGE, PLAYS), []
    spans = f"{times[0]:.0e} to {times[-1]:.0e}".replace("e+0", "e")
    for name in ARMS:
        for policy in ("elimination", "episodes"):

            def in_epsilon(draw: int, p: str = policy, n: str = name) -> Numbers:
                runs = [_blocks(p, n, one, times[-1], draw) for one in small]
                return fitted("power of 1/epsilon", power([1 / one for one in small]), runs)

            labels = _labels(name, policy, times[-1], f"{small[0]:g} to {small[-1]:g}")
            found.append((labels, in_epsilon, made, {}))
            for epsilon in epsilons:

                def in_time(draw: int, p: str = policy, n: str = name, e: float = epsilon) -> Numbers:
                    runs = [_blocks(p, n, e, t, draw) for t in times]
                    return {
                        **{
                            f"regret after {t:.0e}".replace("e+0", "e"): float(r.mean())
                            for t, r in zip(times, runs, strict=True)
                        },
                        **fitted("regret for each factor of e in arrivals", slope(times), runs),
                        **fitted("power of arrivals", power(times), runs),
                        **fitted("growth over the last tenfold over that before", later_over_earlier, runs),
                    }

                found.append((_labels(name, policy, spans, epsilon), in_time, made, {}))
    return found


def _tree() -> list[Found]:
    """Epsilon = 0.25 first, where the tree is judged, and where its constants were tuned."""
    found: list[Found] = []
    settings = CHOSEN.settings("tree UCB", 0.25)
    for epsilon in sorted(EPSILONS, key=lambda one: one != 0.25):
        for name in ARMS:

            def tree(draw: int, n: str = name, e: float = epsilon, s: Any = settings) -> np.ndarray:
                return bandit_plays.tree(arms_of(n), ARRIVALS[-1], RUNS, SEED + draw, e, **s)

            labels = _labels(name, "tree UCB, tuned", ARRIVALS[-1], epsilon)
            found.append((labels, _measure(tree), (PLAYS,), settings))
    return found


def _compiled() -> list[Found]:
    found: list[Found] = []
    for name in ARMS:
        settings = CHOSEN.settings("UCB", None)

        def ucb(draw: int, n: str = name, s: Any = settings) -> np.ndarray:
            return bandit_plays.ucb(arms_of(n), ARRIVALS[-1], RUNS, SEED + draw, **s)

        found.append((_labels(name, "UCB, tuned", ARRIVALS[-1], OPEN), _measure(ucb), (PLAYS,), settings))
        for epsilon in EPSILONS:
            settings = CHOSEN.settings("local flips", epsilon)

            def local(draw: int, n: str = name, e: float = epsilon, s: Any = settings) -> np.ndarray:
                return bandit_plays.local(arms_of(n), ARRIVALS[-1], RUNS, SEED + draw, e, **s)

            labels = _labels(name, "local flips, tuned", ARRIVALS[-1], epsilon)
            found.append((labels, _measure(local), (PLAYS,), settings))
    return found


def _thompson() -> list[Found]:
    def play(draw: int, name: str) -> np.ndarray:
        return thompson(arms_of(name), ARRIVALS[-1], RUNS, SEED + draw)

    return [
        (
            _labels(name, "Thompson", ARRIVALS[-1], OPEN),
            _measure(functools.partial(play, name=name)),
            (PLAYS,),
            {},
        )
        for name in ARMS
    ]


@functools.cache
def _linear_runs(policy: str, d: int, width: float | None, draw: int) -> dict[int, np.ndarray]:
    given: dict[str, Any] = {"dimension": d} if width is None else {"dimension": d, "width": width}
    if policy == "LinUCB" and width is None:
        given |= CHOSEN.settings("LinUCB", None) or {}
    if policy != "LinUCB":
        given |= {"budget": LINEAR, "arrivals": ARRIVALS[1], "simulate": SEED + draw}
    made = KINDS[policy](LINEAR_ARMS, **given)
    return play_linear(made, ARRIVALS[1], LINEAR_RUNS, SEED + draw)


def _linear() -> list[Found]:
    """By the width that is the default, and by that of the theorem."""
    package = [PACKAGE / f"{name}.py" for name in ("policy", "linear", "running_sums")]
    files = (*package, PLAYS)
    found: list[Found] = []
    for d, width in ((5, None), (10, None), (5, 1.0), (10, 1.0)):
        arms, told = f"linear, {d} features", "" if width is None else f", width {width:g}"
        for policy in KINDS:

            def regret(draw: int, p: str = policy, d: int = d, w: float | None = width) -> Numbers:
                numbers = _measure(lambda draw: list(_linear_runs(p, d, w, draw).values())[-1])(draw)
                runs = _linear_runs(p, d, w, draw)
                return numbers | fitted("power of arrivals", power(list(runs)), list(runs.values()), paired=True)

            epsilon = OPEN if policy == "LinUCB" else LINEAR.epsilon
            found.append((_labels(arms, policy + told, ARRIVALS[1], epsilon), regret, files, {}))

        def factor(draw: int, d: int = d, w: float | None = width) -> Numbers:
            runs = [list(_linear_runs(f"linear, {p}", d, w, draw).values())[-1] for p in ("factors", "tree")]
            measured = fitted("regret of the tree over that of factors", lambda means: float(means[1] / means[0]), runs)
            return {**measured, "root of the factor between their errors": _promised(d)}

        labels = _labels(arms, f"linear, tree over factors{told}", ARRIVALS[1], LINEAR.epsilon)
        found.append((labels, factor, files, {}))
    return found


def _promised(d: int) -> float:
    """The root of how much smaller the error of running sums is, over all times: what the bound on regret has of it."""
    steps, deviations = np.arange(1, ARRIVALS[1] + 1), []
    for kind in (Linear, LinearTree):
        policy = kind(2, LINEAR, dimension=d, arrivals=ARRIVALS[1], simulate=0)
        way: Any = policy._sums  # pyright: ignore[reportPrivateUsage]
        spread = np.bitwise_count(steps) if kind is LinearTree else spreads(way.scales, way.decays, steps)
        deviations.append(policy.law.sigma * np.sqrt(np.mean(spread)))
    return float(np.sqrt(deviations[1] / deviations[0]))


def power(places: Sequence[float]) -> Callable[[np.ndarray], float]:
    """The slope of the logarithm of regret in that of the place: 1 is linear, 1/2 a root, near 0 a logarithm."""
    logs = np.log(places)
    return lambda means: float(np.polyfit(logs, np.log(means), 1)[0])


def slope(places: Sequence[float]) -> Callable[[np.ndarray], float]:
    """Of regret in the logarithm of the place."""
    logs = np.log(places)
    return lambda means: float(np.polyfit(logs, means, 1)[0])


def later_over_earlier(means: np.ndarray) -> float:
    """Growth from the second place to the third over that from the first: 1 for a logarithm where places are powers."""
    return float((means[2] - means[1]) / (means[1] - means[0]))


def fitted(name: str, fit: Callable[[np.ndarray], float], runs: Sequence[np.ndarray], paired: bool = False) -> Numbers:
    """The fit to mean regrets, one for each group of runs, and where 95% of its resamplings lie.

    Groups that are the same runs at several times are `paired`: they are resampled together.
    """
    generator, found = np.random.default_rng(0), []
    for _ in range(2000):
        drawn = [generator.integers(0, len(one), len(one)) for one in (runs[:1] if paired else runs)]
        means = [one[drawn[0 if paired else i]].mean() for i, one in enumerate(runs)]
        found.append(fit(np.array(means)))
    low, high = np.percentile(found, [2.5, 97.5])
    mean = fit(np.array([one.mean() for one in runs]))
    return {name: mean, f"{name}, from": float(low), f"{name}, to": float(high)}


def _people() -> list[Found]:
    """Widths are the default, chosen elsewhere."""
    pure = qq.Budget(LINEAR.epsilon, 0.0)
    files = (PACKAGE, ROOT / "benchmarks" / "bandit_data.py")
    found: list[Found] = []
    for arrivals in (5_000, 20_000):
        given: dict[str, Any] = {"budget": LINEAR, "dimension": 6, "arrivals": arrivals}
        made: dict[str, tuple[float | str, Callable[[int], Any]]] = {
            "linear, factors": (1.0, lambda seed, g=given: Linear(TRAVELLERS_ARMS, simulate=seed, **g)),
            "linear, tree": (1.0, lambda seed, g=given: LinearTree(TRAVELLERS_ARMS, simulate=seed, **g)),
            "linear, factors, width 1": (
                1.0,
                lambda seed, g=given: Linear(TRAVELLERS_ARMS, simulate=seed, width=1.0, **g),
            ),
            "LinUCB": (OPEN, lambda seed: LinUCB(TRAVELLERS_ARMS, dimension=6)),
            "episodes": (1.0, lambda seed: Episodes(TRAVELLERS_ARMS, pure, simulate=seed)),
            "UCB": (OPEN, lambda seed: UCB(TRAVELLERS_ARMS)),
            "always Swissmetro": (OPEN, lambda seed: _Always()),
        }
        for policy, (epsilon, make) in made.items():
            found.append((_labels("travellers", policy, arrivals, epsilon), _share(make, arrivals), files, {}))
    return found


class _Always:
    def choose(self, context: Any) -> int:
        return 1

    def learn(self, context: Any, arm: int, reward: float) -> None:
        pass


def _share(make: Callable[[int], Any], arrivals: int) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        shares = []
        for run in range(SEED + draw * TRAVELLERS_RUNS, SEED + (draw + 1) * TRAVELLERS_RUNS):
            policy, taken = make(run), 0
            for person in travellers(arrivals, run):
                arm = policy.choose(person.context if isinstance(policy, LinUCB) else None)
                policy.learn(person.context, arm, float(arm == person.chosen))
                taken += arm == person.chosen
            shares.append(taken / arrivals)
        return {
            "share that was shown what they chose": float(np.mean(shares)),
            "its standard error over the runs": float(np.std(shares, ddof=1) / np.sqrt(TRAVELLERS_RUNS)),
        }

    return measure


def points(policy: str) -> list[Settings]:
    grid = GRIDS[policy]
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def regrets(
    policy: str, epsilon: float | None, means: np.ndarray, tried: list[Settings], runs: int, seed: int
) -> list[float]:
    """Mean regret of each point; all runs of all points at once."""
    columns = {name: np.repeat([point[name] for point in tried], runs) for name in GRIDS[policy]}
    plays: dict[str, Callable[..., np.ndarray]] = {
        "tree UCB": bandit_plays.tree,
        "local flips": bandit_plays.local,
        "UCB": bandit_plays.ucb,
    }
    given: dict[str, Any] = columns if epsilon is None else {"epsilon": epsilon, **columns}
    found = plays[policy](means, TUNED_FOR, runs * len(tried), seed, **given)
    return found.reshape(-1, runs).mean(axis=1).tolist()


def scores(policy: str, epsilon: float | None, tried: list[Settings], runs: int, seed: int) -> list[float]:
    found = [regrets(policy, epsilon, np.array(means), tried, runs, seed) for means in DEVELOPMENT.values()]
    return np.exp(np.mean(np.log(found), axis=0)).tolist()


def tuned(policy: str, epsilon: float | None) -> dict[str, Any]:
    first = sorted(
        zip(scores(policy, epsilon, points(policy), FIRST, TUNED_AT), points(policy), strict=True), key=_score
    )
    finalists = [point for _, point in first[:FINALISTS]]
    second = sorted(zip(scores(policy, epsilon, finalists, SECOND, 2 * TUNED_AT), finalists, strict=True), key=_score)
    best = second[0][1]
    ends = [name for name, values in GRIDS[policy].items() if best[name] in (values[0], values[-1])]
    told = [[point | {"regret": round(score, 1)} for score, point in found] for found in (second, first)]
    return {
        "policy": policy,
        "epsilon": epsilon,
        "settings": best,
        "at an end of the grid": ends,
        "arrivals": TUNED_FOR,
        "second round": told[0],
        "first round": told[1],
    }


def _score(scored: tuple[float, Settings]) -> float:
    return scored[0]


def _kind_rows(generator: np.random.Generator, shape: tuple[int, ...], d: int) -> np.ndarray:
    """A constant for each arm's kind, and numbers from 0 to 1 for the rest."""
    kinds = np.broadcast_to(np.eye(shape[-1]), (*shape, shape[-1]))
    rows = np.concatenate([kinds, generator.random((*shape, d - shape[-1]))], axis=-1)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def _block_rows(generator: np.random.Generator, shape: tuple[int, ...], d: int) -> np.ndarray:
    """One row about the person, the same in each arm's block."""
    runs, batch, arms = shape
    person = generator.random((runs, batch, d // arms))
    person[..., 0] = 1.0
    person /= np.linalg.norm(person, axis=-1, keepdims=True)
    return np.einsum("rbf,ac->rbacf", person, np.eye(arms)).reshape(*shape, d)


LINEAR_PROBLEMS: dict[str, dict[str, Any]] = {
    "directions": {"rows": directions, "arms": 5, "dimension": 3, "arrivals": 20_000, "epsilon": 0.5},
    "kinds": {"rows": _kind_rows, "arms": 4, "dimension": 8, "arrivals": 10_000, "epsilon": 2.0},
    "blocks": {"rows": _block_rows, "arms": 3, "dimension": 9, "arrivals": 40_000, "epsilon": 0.8},
}


def width_row(policy: str) -> dict[str, Any]:
    """Mean regrets of each width. The largest within a tenth of the best is chosen: it leans least on rows that look
    in all directions by themselves."""
    kind, regret = KINDS[policy], {}
    for name, problem in LINEAR_PROBLEMS.items():
        given = {"dimension": problem["dimension"]}
        if kind is not LinUCB:
            budget = qq.Budget(problem["epsilon"], 1e-6)
            given |= {"budget": budget, "arrivals": problem["arrivals"], "simulate": TUNED_AT}
        made, runs = kind(problem["arms"], **given), WIDTH_RUNS * len(WIDTHS)
        found = play_linear(made, problem["arrivals"], runs, TUNED_AT, problem["rows"], np.repeat(WIDTHS, WIDTH_RUNS))
        regret[name] = list(found.values())[-1].reshape(-1, WIDTH_RUNS).mean(axis=1)
    score = np.exp(np.mean(np.log(list(regret.values())), axis=0))
    each = {name: [round(one, 1) for one in found.tolist()] for name, found in regret.items()}
    tried = [{"width": w, "regret": round(one, 1)} for w, one in zip(WIDTHS, score.tolist(), strict=True)]
    best = {"width": max(w for w, one in zip(WIDTHS, score, strict=True) if one <= 1.1 * score.min())}
    return {"policy": policy, "epsilon": None, "settings": best, "tried": tried, "each": each}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.bandit_study")
    parser.add_argument("--policy", nargs="+", choices=[*GRIDS, *KINDS], default=[*GRIDS, *KINDS])
    policies = parser.parse_args().policy
    searches = [(policy, epsilon) for policy in policies for epsilon in TUNED_EPSILONS.get(policy, (None,))]
    CHOSEN.write(searches, lambda policy, epsilon: width_row(policy) if policy in KINDS else tuned(policy, epsilon))


if __name__ == "__main__":
    main()
