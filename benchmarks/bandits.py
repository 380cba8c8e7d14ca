"""Users arriving online: regret of bandits.

Bernoulli arms without context, 100 runs in each draw, and linear ones of 5 and 10 features, 40 runs. One draw is what
is stored. The tables and the picture of docs/bandits.md are made from it.

Free constants are chosen on other arms and seeds than those that are reported (two, four and ten arms, half of the
reported arrivals). The rule, which was written down before anything was looked at and is the same for every policy:
each point of a grid was played 20 times on each set of arms; the five with the least geometric mean of mean regrets
were played 100 times more at fresh seeds, and of these the least was chosen. Means, so that runs that lose the best arm
count in full, and a second round, because such runs are rare and 20 of them may have none. No choice was at an end of
its grid.

Local flips were tuned for each epsilon by itself. The rule said so of the tree too, but it takes longest: before any of
its results was there it was cut to epsilon = 0.25, where it is judged, and has the same constants elsewhere.
Elimination has the constants that are printed, and episodes their default, just above what the theorem asks for.

Widths of linear policies were tried on rows of three other kinds; what came out is the default of `width`.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import quietq as qq
from benchmarks import bandit_plays
from benchmarks.bandit_plays import ARMS, LINEAR_ARMS, LinUCB, arms_of, in_blocks, play_linear
from benchmarks.page import grid
from benchmarks.study import ROOT, Case, Entry, Label, Numbers, Results, Study, Table, own_files
from quietq.cli.report.pictures import new_figure, save
from quietq.online import Elimination, Episodes, Linear
from quietq.privacy.budget import guess_right, of_hundred

RUNS, LINEAR_RUNS = 100, 40
SEED = 40_000
"""Added to every draw: seeds that no constant was tuned at."""
EPSILONS = (0.005, 0.02, 0.1, 0.25, 1.0)
PAGE_EPSILONS = (0.02, 0.25, 1.0)
"""Rows of the table in docs/bandits.md; the picture and the CSV file have all of them."""
ARRIVALS, LINEAR_ARRIVALS = 10**6, 10**5
DELTA = 1e-7
LINEAR = qq.Budget(1.0, 1e-6)
OPEN = "none"
LINEAR_POLICIES = ("linear, factors", "LinUCB")
UCB_EXPLORATION = 0.3
LOCAL_EXPLORATION = {0.005: 0.4, 0.02: 0.3, 0.1: 0.3, 0.25: 0.4, 1.0: 0.4}
TREE = {"sampling": 0.1, "noise": 0.7}
LINUCB_WIDTH = 0.2
MADE_OF = (ROOT / "src" / "quietq" / "online", *own_files("bandit_plays", "bandits"))


def _right(epsilon: float, delta: float) -> str:
    return of_hundred(guess_right(epsilon, delta, qq.Budget(epsilon, delta).mu if delta else None))


def study() -> Study:
    """The most important first, so that a run that is ended has those."""
    remarks = (
        f"Regret in answers, over {RUNS} runs in each draw ({LINEAR_RUNS} of linear policies).",
        "Elimination has the constants that are printed; all others' were tuned on other arms and seeds, those of "
        "local flips for each epsilon by itself, those of the tree at epsilon = 0.25, where it is judged "
        "(`benchmarks/bandits.py`).",
        f"Gaussian noise is for delta = {DELTA:g}, linear policies for delta = {LINEAR.delta:g}; all others are pure, "
        "delta = 0. At the same epsilon these are not at the same protection: at epsilon = 1 a guesser is right in "
        f"{_right(1.0, 0.0)} of 100 cases where noise is pure, in {_right(1.0, DELTA)} with Gaussian noise, and in "
        f"{_right(1.0, LINEAR.delta)} with that of linear policies.",
    )
    return Study("bandits", "epsilon", [*_arms(), *_linear()], remarks, draws=1)


def _labels(arms: str, policy: str, arrivals: int, epsilon: Label) -> dict[str, Label]:
    return {"arms": arms, "policy": policy, "arrivals": arrivals, "epsilon": epsilon}


def _regret(play: Callable[[int], np.ndarray], draw: int) -> Numbers:
    """Of runs at the seeds of a draw."""
    regret = play(SEED + draw)
    error = float(regret.std(ddof=1) / np.sqrt(len(regret)))
    return {"regret": float(regret.mean()), "standard error over the runs": error}


def _arms() -> list[Case]:
    """Without contexts. Policies that decide rarely are played themselves; plays of others are compiled."""
    plays: dict[str, dict[Label, Callable[..., np.ndarray]]] = {
        policy: {epsilon: functools.partial(_blocks, policy, epsilon) for epsilon in EPSILONS}
        for policy in ("elimination", "episodes", "episodes, Gaussian")
    }
    trees = sorted(EPSILONS, key=lambda one: one != 0.25)  # first where it is judged
    plays["tree UCB, tuned"] = {e: functools.partial(bandit_plays.tree, epsilon=e, **TREE) for e in trees}
    plays["UCB, tuned"] = {OPEN: functools.partial(bandit_plays.ucb, exploration=UCB_EXPLORATION)}
    plays["local flips, tuned"] = {
        epsilon: functools.partial(bandit_plays.local, epsilon=epsilon, exploration=exploration)
        for epsilon, exploration in LOCAL_EXPLORATION.items()
    }
    return [
        Case(
            _labels(name, policy, ARRIVALS, epsilon),
            functools.partial(_regret, functools.partial(play, arms_of(name), ARRIVALS, RUNS)),
            MADE_OF,
        )
        for policy, by_epsilon in plays.items()
        for epsilon, play in by_epsilon.items()
        for name in ARMS
    ]


def _blocks(policy: str, epsilon: float, means: np.ndarray, arrivals: int, runs: int, seed: int) -> np.ndarray:
    """Of the policies themselves, which decide rarely."""
    generator = np.random.default_rng([seed, 7])
    budget = qq.Budget(epsilon, DELTA if policy == "episodes, Gaussian" else 0.0)

    def make(seed: int) -> Elimination | Episodes:
        if policy == "elimination":
            return Elimination(len(means), budget, arrivals=arrivals, simulate=seed)
        return Episodes(len(means), budget, simulate=seed)

    first = SEED + (seed - SEED) * runs
    return np.array([in_blocks(make(first + run), means, arrivals, generator) for run in range(runs)])


def _linear() -> list[Case]:
    """By the width that is the default, and by that of the theorem."""
    return [
        Case(
            _labels(f"linear, {d} features", policy + told, LINEAR_ARRIVALS, OPEN if policy == "LinUCB" else 1.0),
            functools.partial(_regret, functools.partial(_linear_runs, policy, d, width)),
            MADE_OF,
        )
        for d in (5, 10)
        for told, width in (("", None), (", width 1", 1.0))
        for policy in LINEAR_POLICIES
    ]


def _linear_runs(policy: str, d: int, width: float | None, seed: int) -> np.ndarray:
    if policy == "LinUCB":
        made: Linear | LinUCB = LinUCB(d, LINUCB_WIDTH if width is None else width)
    else:
        given: dict[str, Any] = {} if width is None else {"width": width}
        made = Linear(LINEAR_ARMS, LINEAR, dimension=d, arrivals=LINEAR_ARRIVALS, simulate=seed, **given)
    return play_linear(made, LINEAR_ARRIVALS, LINEAR_RUNS, seed)


# The page and its picture, from the stored results.

STYLES: dict[str, dict[str, Any]] = {
    "episodes": {"color": "#0072B2", "marker": "o"},
    "episodes, Gaussian": {"color": "#56B4E9", "marker": "s", "linestyle": "--"},
    "elimination": {"color": "#D55E00", "marker": "o"},
    "tree UCB, tuned": {"color": "#009E73", "marker": "v", "linestyle": "-."},
    "local flips, tuned": {"color": "#CC79A7", "marker": "^", "linestyle": ":"},
}
SHOWN = {"episodes, Gaussian": "episodes, Gaussian (same ε, more protection)"}
"""What is said beside a name: all others of these are pure, which is less protection at the same epsilon."""


def write_picture(target: Path) -> None:
    entries = Results.load("bandits").entries
    figure = new_figure(11, 4.6)
    axes = figure.subplots(1, len(ARMS))
    for axis, (arms, means) in zip(axes, ARMS.items(), strict=True):
        here = [entry for entry in entries if entry.labels["arms"] == arms]
        for policy, style in STYLES.items():
            found = sorted(
                (float(entry.labels["epsilon"]), entry.numbers["regret"].mean)
                for entry in here
                if entry.labels["policy"] == policy
            )
            if found:
                axis.plot(*zip(*found, strict=True), label=SHOWN.get(policy, policy), **style)
        for entry in here:
            if entry.labels["policy"] == "UCB, tuned":
                regret = entry.numbers["regret"].mean
                axis.axhline(regret, color="black", linewidth=1, linestyle="--", label="UCB, not private")
        chance = ARRIVALS * (max(means) - sum(means) / len(means))
        axis.axhline(chance, color="grey", linewidth=1, linestyle=":", label="arms at random")
        kinds = f"{means[0]:g} and {len(means) - 1} of {means[1]:g}" if len(means) > 5 else ", ".join(map(str, means))
        axis.set(xscale="log", yscale="log", xlabel="epsilon", title=f"{arms}: {kinds}")
        axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("regret after a million arrivals, in answers")
    handles = {label: one for axis in axes for one, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False)
    save(figure, target)


def page_tables(entries: list[Entry]) -> dict[str, Table]:
    """By the name in the marker that stands before each on the page."""
    known = {tuple(entry.labels.values()): entry for entry in entries}

    def shown(form: str, name: str, *labels: Label) -> str:
        entry = known.get(labels)
        return "" if entry is None else format(entry.numbers[name].mean, form)

    regret: Table = [["arms", "ε", *STYLES, "UCB, tuned, not private"]]
    for name in ARMS:
        for epsilon in PAGE_EPSILONS:
            cells = [shown(",.0f", "regret", name, policy, ARRIVALS, epsilon) for policy in STYLES]
            open_regret = shown(",.0f", "regret", name, "UCB, tuned", ARRIVALS, OPEN)
            regret.append([name.removesuffix(" arms"), f"{epsilon:g}", *cells, open_regret])
    linear: Table = [["features", "policy", "regret at the default width", "regret at width 1"]]
    for d in (5, 10):
        for policy in LINEAR_POLICIES:
            cells = []
            for told in ("", ", width 1"):
                epsilon: Label = OPEN if policy == "LinUCB" else 1.0
                labels = (f"linear, {d} features", policy + told, LINEAR_ARRIVALS, epsilon)
                error = shown(",.2g", "standard error over the runs", *labels)
                cells.append(f"{shown(',.0f', 'regret', *labels)} ± {error}")
            linear.append([str(d), policy, *cells])
    return {"regret": regret, "linear": linear}


def write_page() -> None:
    """Tables go between the markers <!-- name --> and <!-- end --> of docs/bandits.md."""
    write_picture(ROOT / "docs" / "bandits.png")
    page = ROOT / "docs" / "bandits.md"
    text = page.read_text()
    for name, lines in page_tables(Results.load("bandits").entries).items():
        before, begin, rest = text.partition(f"<!-- {name} -->")
        end = "<!-- end -->"
        text = "\n".join([before + begin, "", *grid(lines), "", end]) + rest.partition(end)[2]
    page.write_text(text)
