"""People who come by: regret of bandits.

Bernoulli arms without context, and linear ones of 5 and 10 features, 100 runs in each draw; and travellers.
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
from benchmarks.bandit_tuning import chosen
from benchmarks.study import ROOT, Case, Numbers, Study
from quietq.learning.bandits import Elimination, Episodes, Linear, LinearTree, LinUCB
from quietq.learning.bandits.running_sums import spreads

NAME, RUNS = "bandits", 100
EPSILONS = (0.005, 0.02, 0.1, 0.25, 1.0)
ARRIVALS = (10**4, 10**5, 10**6)
LATER = (10**6, 10**7, 10**8)
"""Arrivals after which most is settled, for the order in ln T."""
SMALL = (0.00125, 0.0025, 0.005, 0.01)
"""All below a quarter of the least gap of all arms, 0.05/4, so that privacy binds."""
DELTA = 1e-7
LINEAR = qq.Budget(1.0, 1e-6)
OPEN = "none"
FILES = {name: ROOT / "benchmarks" / f"bandit_{name}.py" for name in ("plays", "fits")}
PACKAGE = ROOT / "src" / "quietq" / "learning" / "bandits"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", help="policies whose names begin with this")


def study(options: argparse.Namespace) -> Study:
    """The most important first, so that a run that is ended has those."""
    wanted = getattr(options, "only", None) or ""
    remarks = (
        "Regret in answers, over 100 runs in each draw, and the seconds of processor time that these took.",
        "Elimination has the constants that are printed; all others' were tuned on other arms, horizons and seeds "
        "(`python -m benchmarks.bandit_tuning`), those of the tree and of local flips for each epsilon by itself.",
        f"Gaussian noise is for delta = {DELTA:g}, linear policies for delta = {LINEAR.delta:g}.",
        "Intervals, from and to, hold 95% of resampled runs.",
    )
    cases = [*_rarely(), *_slopes(), *_linear(), *_tree(), *_compiled(), *people_cases(LINEAR, OPEN), *_thompson()]
    cases = [case for case in cases if case[-1] is not None]  # those whose constants were not searched for yet
    return Study(
        NAME, "epsilon", [
            Case(labels, measure, made_of, settings=settings or {}, wanted=str(labels["policy"]).startswith(wanted))
            for labels, measure, made_of, settings in cases
        ], remarks, each="draws of 100 runs",
    )  # fmt: skip


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
    means, generator = arms_of(name), np.random.default_rng([draw, 7])
    budget = qq.Budget(epsilon, DELTA if policy == "episodes, Gaussian" else 0.0)

    def make(seed: int) -> Elimination | Episodes:
        if policy == "elimination":
            return Elimination(len(means), budget, arrivals=arrivals, simulate=seed)
        return Episodes(len(means), budget, simulate=seed)

    return np.array([in_blocks(make(draw * RUNS + run), means, arrivals, generator) for run in range(RUNS)])


def _rarely() -> list[Found]:
    return [
        (_labels(name, policy, arrivals, epsilon),
         _measure(functools.partial(_blocks, policy, name, epsilon, arrivals)), (PACKAGE, FILES["plays"]), {})
        for name in ARMS
        for policy in ("elimination", "episodes", "episodes, Gaussian")
        for arrivals in (ARRIVALS if policy != "episodes, Gaussian" else ARRIVALS[-1:])
        for epsilon in EPSILONS
    ]  # fmt: skip


def _slopes() -> list[Found]:
    """In 1/epsilon where privacy binds, and in the logarithm of arrivals."""
    made, found = (PACKAGE, FILES["plays"], FILES["fits"]), []
    for name in ARMS:
        for policy in ("elimination", "episodes"):
            for arrivals, epsilons in ((ARRIVALS[-1], (0.005, 0.02)), (LATER[-1], SMALL)):

                def in_epsilon(
                    draw: int, p: str = policy, n: str = name, t: int = arrivals, e: Any = epsilons
                ) -> Numbers:
                    runs = [_blocks(p, n, one, t, draw) for one in e]
                    return fitted("power of 1/epsilon", power([1 / one for one in e]), runs)

                told = f"{epsilons[0]:g} to {epsilons[-1]:g}"
                found.append((_labels(name, policy, arrivals, told), in_epsilon, made, {}))
            for epsilon in EPSILONS:

                def in_time(draw: int, p: str = policy, n: str = name, e: float = epsilon) -> Numbers:
                    runs = [_blocks(p, n, e, t, draw) for t in LATER]
                    return {
                        "regret after 1e7": float(runs[1].mean()),
                        "regret after 1e8": float(runs[2].mean()),
                        **fitted("regret for each factor of e in arrivals", slope(LATER), runs),
                        **fitted("power of arrivals", power(LATER), runs),
                        **fitted("growth from 1e7 to 1e8 over that from 1e6 to 1e7", later_over_earlier, runs),
                    }

                found.append((_labels(name, policy, "1e6 to 1e8", epsilon), in_time, made, {}))
    return found


def _tree() -> list[Found]:
    """Epsilon = 0.25 first."""
    found: list[Found] = []
    for epsilon in sorted(EPSILONS, key=lambda one: one != 0.25):
        settings = chosen("tree UCB", epsilon)
        for name in ARMS:

            def tree(draw: int, n: str = name, e: float = epsilon, s: Any = settings) -> np.ndarray:
                return bandit_plays.tree(arms_of(n), ARRIVALS[-1], RUNS, draw, e, **s)

            labels = _labels(name, "tree UCB, tuned", ARRIVALS[-1], epsilon)
            found.append((labels, _measure(tree), (FILES["plays"],), settings))
    return found


def _compiled() -> list[Found]:
    found: list[Found] = []
    for name in ARMS:
        settings = chosen("UCB", None)

        def ucb(draw: int, n: str = name, s: Any = settings) -> np.ndarray:
            return bandit_plays.ucb(arms_of(n), ARRIVALS[-1], RUNS, draw, **s)

        found.append((_labels(name, "UCB, tuned", ARRIVALS[-1], OPEN), _measure(ucb), (FILES["plays"],), settings))
        for epsilon in EPSILONS:
            settings = chosen("local flips", epsilon)

            def local(draw: int, n: str = name, e: float = epsilon, s: Any = settings) -> np.ndarray:
                return bandit_plays.local(arms_of(n), ARRIVALS[-1], RUNS, draw, e, **s)

            labels = _labels(name, "local flips, tuned", ARRIVALS[-1], epsilon)
            found.append((labels, _measure(local), (FILES["plays"],), settings))
    return found


def _thompson() -> list[Found]:
    def play(draw: int, name: str, arrivals: int) -> np.ndarray:
        return bandit_plays.thompson(arms_of(name), arrivals, RUNS, draw)

    return [
        (_labels(name, "Thompson", arrivals, OPEN), _measure(functools.partial(play, name=name, arrivals=arrivals)),
         (FILES["plays"],), {})
        for arrivals in ARRIVALS[1:]
        for name in ARMS
    ]  # fmt: skip


KINDS: dict[str, Any] = {"linear, factors": Linear, "linear, tree": LinearTree, "LinUCB": LinUCB}


@functools.cache
def _linear_runs(policy: str, d: int, width: float | None, draw: int) -> dict[int, np.ndarray]:
    given: dict[str, Any] = {"dimension": d} if width is None else {"dimension": d, "width": width}
    if policy == "LinUCB" and width is None:
        given |= chosen("LinUCB", None) or {}
    if policy != "LinUCB":
        given |= {"budget": LINEAR, "arrivals": ARRIVALS[1], "simulate": draw}
    made = KINDS[policy](linear_bandit_plays.ARMS, **given)
    return linear_bandit_plays.play(made, ARRIVALS[1], RUNS, draw)


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
