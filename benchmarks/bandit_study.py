"""People who come by: regret of bandits.

Bernoulli arms without context, 100 runs in each draw, and linear ones of 5 and 10 features, 40 runs; and travellers,
5 runs. `python -m benchmarks bandits --draws 1` makes what is stored.
"""

import argparse
import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import quietq as qq
from benchmarks import bandit_page, bandit_plays, linear_bandit_plays
from benchmarks.bandit_fits import fitted, later_over_earlier, power, slope
from benchmarks.bandit_people import people_cases
from benchmarks.bandit_plays import ARMS, arms_of, in_blocks
from benchmarks.bandit_thompson import thompson
from benchmarks.bandit_tuning import chosen
from benchmarks.study import ROOT, Case, Numbers, Study
from quietq.learning.bandits import Elimination, Episodes, Linear, LinearTree, LinUCB
from quietq.learning.bandits.running_sums import spreads

NAME, RUNS, LINEAR_RUNS = "bandits", 100, 40
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
FILES = {name: ROOT / "benchmarks" / f"bandit_{name}.py" for name in ("plays", "fits", "thompson")}
PACKAGE = ROOT / "src" / "quietq" / "learning" / "bandits"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="policies whose names begin with this")
    parser.add_argument("--arms", default="", help="arms whose names begin with this")


def study(options: argparse.Namespace) -> Study:
    """The most important first, so that a run that is ended has those."""
    remarks = (
        f"Regret in answers, over {RUNS} runs in each draw ({LINEAR_RUNS} of linear policies), and the seconds of "
        "processor time that these took.",
        "Elimination has the constants that are printed; all others' were tuned on other arms and seeds "
        "(`python -m benchmarks.bandit_tuning`), those of local flips for each epsilon by itself, those of the tree at "
        "epsilon = 0.25, where it is judged.",
        f"Gaussian noise is for delta = {DELTA:g}, linear policies for delta = {LINEAR.delta:g}.",
        "Intervals, from and to, hold 95% of resampled runs.",
    )
    cases = [
        *_rarely(), *_slopes(ARRIVALS, EPSILONS[:2], EPSILONS), *_tree(), *_compiled(), *_linear(), *_thompson(),
        *people_cases(LINEAR, OPEN), *_slopes(LATER, SMALL, EPSILONS[-2:]),
    ]  # fmt: skip
    cases = [case for case in cases if case[-1] is not None]  # those whose constants were not searched for yet
    return Study(
        NAME, "epsilon", [
            Case(labels, measure, made_of, settings=settings or {}, wanted=_wanted(labels, options))
            for labels, measure, made_of, settings in cases
        ], remarks, each="draws",
    )  # fmt: skip


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
        (_labels(name, policy, arrivals, epsilon),
         _measure(functools.partial(_blocks, policy, name, epsilon, arrivals)), (PACKAGE, FILES["plays"]), {})
        for name in ARMS
        for policy in ("elimination", "episodes", "episodes, Gaussian")
        for arrivals in (ARRIVALS if policy != "episodes, Gaussian" else ARRIVALS[-1:])
        for epsilon in EPSILONS
    ]  # fmt: skip


def _slopes(times: tuple[int, ...], small: tuple[float, ...], epsilons: tuple[float, ...]) -> list[Found]:
    """In 1/epsilon after the last of these times, and in their logarithm."""
    made, found = (PACKAGE, FILES["plays"], FILES["fits"]), []
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
    settings = chosen("tree UCB", 0.25)
    for epsilon in sorted(EPSILONS, key=lambda one: one != 0.25):
        for name in ARMS:

            def tree(draw: int, n: str = name, e: float = epsilon, s: Any = settings) -> np.ndarray:
                return bandit_plays.tree(arms_of(n), ARRIVALS[-1], RUNS, SEED + draw, e, **s)

            labels = _labels(name, "tree UCB, tuned", ARRIVALS[-1], epsilon)
            found.append((labels, _measure(tree), (FILES["plays"],), settings))
    return found


def _compiled() -> list[Found]:
    found: list[Found] = []
    for name in ARMS:
        settings = chosen("UCB", None)

        def ucb(draw: int, n: str = name, s: Any = settings) -> np.ndarray:
            return bandit_plays.ucb(arms_of(n), ARRIVALS[-1], RUNS, SEED + draw, **s)

        found.append((_labels(name, "UCB, tuned", ARRIVALS[-1], OPEN), _measure(ucb), (FILES["plays"],), settings))
        for epsilon in EPSILONS:
            settings = chosen("local flips", epsilon)

            def local(draw: int, n: str = name, e: float = epsilon, s: Any = settings) -> np.ndarray:
                return bandit_plays.local(arms_of(n), ARRIVALS[-1], RUNS, SEED + draw, e, **s)

            labels = _labels(name, "local flips, tuned", ARRIVALS[-1], epsilon)
            found.append((labels, _measure(local), (FILES["plays"],), settings))
    return found


def _thompson() -> list[Found]:
    def play(draw: int, name: str) -> np.ndarray:
        return thompson(arms_of(name), ARRIVALS[-1], RUNS, SEED + draw)

    return [
        (_labels(name, "Thompson", ARRIVALS[-1], OPEN), _measure(functools.partial(play, name=name)),
         (FILES["thompson"],), {})
        for name in ARMS
    ]  # fmt: skip


KINDS: dict[str, Any] = {"linear, factors": Linear, "linear, tree": LinearTree, "LinUCB": LinUCB}


@functools.cache
def _linear_runs(policy: str, d: int, width: float | None, draw: int) -> dict[int, np.ndarray]:
    given: dict[str, Any] = {"dimension": d} if width is None else {"dimension": d, "width": width}
    if policy == "LinUCB" and width is None:
        given |= chosen("LinUCB", None) or {}
    if policy != "LinUCB":
        given |= {"budget": LINEAR, "arrivals": ARRIVALS[1], "simulate": SEED + draw}
    made = KINDS[policy](linear_bandit_plays.ARMS, **given)
    return linear_bandit_plays.play(made, ARRIVALS[1], LINEAR_RUNS, SEED + draw)


def _linear() -> list[Found]:
    """By the width that is the default, and by that of the theorem."""
    package = [PACKAGE / f"{name}.py" for name in ("lin_ucb", "linear", "running_sums")]
    files = (*package, ROOT / "benchmarks" / "linear_bandit_plays.py")
    found: list[Found] = []
    for d, width in ((5, None), (10, None), (5, 1.0), (10, 1.0)):
        arms, told = f"linear, {d} features", "" if width is None else f", width {width:g}"
        for policy in KINDS:

            def regret(draw: int, p: str = policy, d: int = d, w: float | None = width) -> Numbers:
                numbers = _measure(lambda draw: list(_linear_runs(p, d, w, draw).values())[-1])(draw)
                runs = _linear_runs(p, d, w, draw)
                return numbers | fitted("power of arrivals", power(list(runs)), list(runs.values()), paired=True)

            epsilon = OPEN if policy == "LinUCB" else LINEAR.epsilon
            found.append((_labels(arms, policy + told, ARRIVALS[1], epsilon), regret, (*files, FILES["fits"]), {}))

        def factor(draw: int, d: int = d, w: float | None = width) -> Numbers:
            runs = [list(_linear_runs(f"linear, {p}", d, w, draw).values())[-1] for p in ("factors", "tree")]
            measured = fitted("regret of the tree over that of factors", lambda means: float(means[1] / means[0]), runs)
            return {**measured, "root of the factor between their errors": _promised(d)}

        labels = _labels(arms, f"linear, tree over factors{told}", ARRIVALS[1], LINEAR.epsilon)
        found.append((labels, factor, (*files, FILES["fits"]), {}))
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
