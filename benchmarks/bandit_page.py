"""The picture and the tables of docs/bandits.md, from the stored results.

`python -m benchmarks bandits` makes them anew, and `python -m benchmarks.bandit_page` alone.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.bandit_plays import ARMS
from benchmarks.study import RESULTS, ROOT
from quietq.cli.report.look import new_figure, save

STYLES: dict[str, dict[str, Any]] = {
    "episodes": {"color": "#0072B2", "marker": "o"},
    "episodes, Gaussian": {"color": "#56B4E9", "marker": "s", "linestyle": "--"},
    "elimination": {"color": "#D55E00", "marker": "o"},
    "tree UCB, tuned": {"color": "#009E73", "marker": "v", "linestyle": "-."},
    "local flips, tuned": {"color": "#CC79A7", "marker": "^", "linestyle": ":"},
}
SHOWN = {"episodes, Gaussian": "episodes, Gaussian (same ε, more protection)"}
"""What is said beside a name: all others of these are pure, which is less protection at the same epsilon."""
EPSILONS = (0.005, 0.02, 0.1, 0.25, 1.0)
BEGIN, END = "<!-- {} -->", "<!-- end -->"
ARRIVALS = 10**6


def draw(rows: list[dict[str, Any]]) -> Any:
    figure = new_figure(11, 4.6)
    axes = figure.subplots(1, len(ARMS))
    for axis, (arms, means) in zip(axes, ARMS.items(), strict=True):
        here = [
            row for row in rows if (row["arms"], row["arrivals"]) == (arms, ARRIVALS) and "regret" in row["numbers"]
        ]
        for policy, style in STYLES.items():
            found = sorted((row["epsilon"], _regret(row)) for row in here if row["policy"] == policy)
            if found:
                axis.plot(*zip(*found, strict=True), label=SHOWN.get(policy, policy), **style)
        for row in here:
            if row["policy"] == "UCB, tuned":
                axis.axhline(_regret(row), color="black", linewidth=1, linestyle="--", label="UCB, not private")
        chance = ARRIVALS * (max(means) - sum(means) / len(means))
        axis.axhline(chance, color="grey", linewidth=1, linestyle=":", label="arms at random")
        kinds = f"{means[0]:g} and {len(means) - 1} of {means[1]:g}" if len(means) > 5 else ", ".join(map(str, means))
        axis.set(xscale="log", yscale="log", xlabel="epsilon", title=f"{arms}: {kinds}")
        axis.set_xticks([0.005, 0.02, 0.1, 0.25, 1.0], ["0.005", "0.02", "0.1", "0.25", "1"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("regret after a million arrivals, in answers")
    handles = {label: one for axis in axes for one, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def _regret(row: dict[str, Any]) -> float:
    return row["numbers"]["regret"]["mean"]


def _number(row: dict[str, Any] | None, name: str, form: str = ",.0f") -> str:
    return "" if row is None or name not in row["numbers"] else format(row["numbers"][name]["mean"], form)


def _with_error(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{_number(row, 'regret')} ± {_number(row, 'standard error over the runs', ',.2g')}"


def _interval(row: dict[str, Any] | None, name: str, form: str = ".2f") -> str:
    if row is None or name not in row["numbers"]:
        return ""
    return f"{_number(row, name, form)} ({_number(row, f'{name}, from', form)} to {_number(row, f'{name}, to', form)})"


def tables(rows: list[dict[str, Any]]) -> dict[str, list[list[str]]]:
    """By the name in the marker that stands before each on the page."""
    known = {(row["arms"], row["policy"], row["arrivals"], row["epsilon"]): row for row in rows}

    def of(*labels: Any) -> dict[str, Any] | None:
        return known.get(labels)

    columns = [f"ε = {epsilon:g}" for epsilon in EPSILONS]
    named = {
        name: ", ".join(map(str, means)) if len(means) < 6 else "0.75, fifteen of 0.6" for name, means in ARMS.items()
    }
    regret = [["arms", "policy", *columns]]
    powers = {"power of 1/ε, T = 10⁶": (10**6, "0.005 to 0.02"), "power of 1/ε, T = 10⁸": (10**8, "0.00125 to 0.01")}
    spans = {"10⁴ to 10⁶": "1e4 to 1e6", "10⁶ to 10⁸": "1e6 to 1e8"}
    orders = [["arms", "policy", *powers]]
    grown = [["arms", "policy", *(f"{told}, ε = {e:g}" for told in spans for e in EPSILONS[-2:])]]
    growth = "growth over the last tenfold over that before"
    for name, told in named.items():
        for policy in STYLES:
            cells = [_number(of(name, policy, ARRIVALS, epsilon), "regret") for epsilon in EPSILONS]
            regret.append([told, SHOWN.get(policy, policy), *cells])
        regret += [
            [told, f"{policy}, not private", *[_number(of(name, policy, ARRIVALS, "none"), "regret")] * 5]
            for policy in ("UCB, tuned", "Thompson")
            if of(name, policy, ARRIVALS, "none")
        ]
        for policy in ("episodes", "elimination"):
            found = [_interval(of(name, policy, *at), "power of 1/epsilon") for at in powers.values()]
            orders.append([told, policy, *found])
            rows_of = [of(name, policy, span, epsilon) for span in spans.values() for epsilon in EPSILONS[-2:]]
            grown.append([told, policy, *(_interval(row, growth) for row in rows_of)])
    linear = [["features", "policy", "regret at the default width", "power of T", "regret at width 1", "power of T"]]
    factors = [["features", "width", "regret of the tree over that of factors", "what the errors promise"]]
    for d in (5, 10):
        for policy, epsilon in (("linear, factors", 1.0), ("linear, tree", 1.0), ("LinUCB", "none")):
            cells = []
            for told in ("", ", width 1"):
                row = of(f"linear, {d} features", policy + told, 10**5, epsilon)
                cells += [_with_error(row), _interval(row, "power of arrivals")]
            linear.append([str(d), policy, *cells])
        for told, width in (("", "default"), (", width 1", "1")):
            row = of(f"linear, {d} features", f"linear, tree over factors{told}", 10**5, 1.0)
            cells = [_interval(row, factors[0][2]), _number(row, "root of the factor between their errors", ".2f")]
            factors.append([str(d), width, *cells])
    share, people = "share that was shown what they chose", [row for row in rows if row["arms"] == "travellers"]
    arrivals = sorted({row["arrivals"] for row in people})
    travellers = [["policy", *(f"{n:,} arrivals" for n in arrivals)]]
    for policy in dict.fromkeys(row["policy"] for row in people):
        found = {row["arrivals"]: row for row in people if row["policy"] == policy}
        travellers.append([policy, *(_number(found.get(n), share, ".1%") for n in arrivals)])
    timed = [row for row in rows if (row["arms"], row["arrivals"]) == ("five arms", ARRIVALS)]
    seconds = [["policy", "seconds"]]
    seconds += [[row["policy"], _number(row, "seconds", ".1f")] for row in timed if row["epsilon"] in (0.25, "none")]
    found = {"regret": regret, "orders": orders, "growth": grown, "linear": linear, "factors": factors}
    return found | {"travellers": travellers, "seconds": seconds}


def write_picture(target: Path) -> None:
    save(draw(_stored()), target)


def _stored() -> list[dict[str, Any]]:
    return json.loads((RESULTS / "bandits.json").read_text())["rows"]


def write() -> None:
    rows = _stored()
    save(draw(rows), ROOT / "docs" / "bandits.png")
    page = ROOT / "docs" / "bandits.md"
    text = page.read_text()
    for name, lines in tables(rows).items():
        before, begin, rest = text.partition(BEGIN.format(name))
        if not begin:
            continue
        after = rest.partition(END)[2]
        grid = ["| " + " | ".join(cells) + " |" for cells in (lines[0], ["---"] * len(lines[0]), *lines[1:])]
        text = "\n".join([before + begin, "", *grid, "", END]) + after
    page.write_text(text)


if __name__ == "__main__":
    write()
