"""`quietq audit`."""

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

import quietq as qq
from quietq.cli import hyper
from quietq.cli.app import AsJson, app
from quietq.cli.audit_plan import Plan
from quietq.cli.audited_release import write_beside
from quietq.release import open_release

if TYPE_CHECKING:
    from quietq.audit import Finding


@app.command(cls=hyper.WithHyperParameters)
def audit(
    context: typer.Context,
    method: Annotated[str, typer.Argument(help="One of the methods that `quietq methods` lists, or all.")],
    world: Annotated[
        str | None, typer.Option(help="One of the worlds that `quietq worlds` lists; default walk.")
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs under r, and as many under r', at least 40; most are judged.")] = 1000,
    people: Annotated[
        int | None, typer.Option(help="How many people stand behind the reward; default 50.")
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="Instead of people: most that neighbouring rewards differ, however rough.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget that is promised; default 0.9.")] = None,
    delta: Annotated[float | None, typer.Option(help="Probability that the promise may fail; default 1e-4.")] = None,
    noise: Annotated[
        Literal["auto", "path", "k-norm", "knots"] | None, typer.Option(help="Noise of a private reward; default path.")
    ] = None,
    pieces: Annotated[int | None, typer.Option(help="Pieces between the knots of k-norm and knots.")] = None,
    move: Annotated[
        str | None, typer.Option(help="How r' differs from r: shift, flip, bumps, zigzag; default the worst known.")
    ] = None,
    view: Annotated[
        Literal["reward", "final", "policy", "every"] | None,
        typer.Option(help="What the adversary sees: final values, the policy, every release, or the private reward."),
    ] = None,
    queries: Annotated[int | None, typer.Option(help="States a coordinate that are asked for.")] = None,
    moments: Annotated[
        int | None, typer.Option(help="How often the adversary looks, with --view every; default 10.")
    ] = None,
    score: Annotated[
        Literal["mean", "learned"] | None, typer.Option(help="Mean of what is seen, or learned on a quarter of it.")
    ] = None,
    public_walk: Annotated[
        bool | None,
        typer.Option(
            "--public-walk/--secret-walk", help="Is the walk known to the adversary? Default yes, but of published no."
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of each training; default 5000.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of all randomness: audits are simulations; default 0.")] = None,
    confidence: Annotated[float, typer.Option(help="With which the bounds hold together.")] = 0.95,
    out: Annotated[Path | None, typer.Option(help="Folder for the table and the plot of `all`.")] = None,
    release: Annotated[
        Path | None, typer.Option(help="A release of the same promise; the result is laid beside it, for its page.")
    ] = None,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep results, and go on where an audit was stopped.")
    ] = True,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Measures what a method gives away: trains it under two neighbouring rewards and tries to tell them apart."""
    named = {
        "world": world, "people": people, "radius": radius, "epsilon": epsilon, "delta": delta, "noise": noise,
        "pieces": pieces, "move": move, "view": view, "queries": queries, "moments": moments, "score": score,
        "public_walk": public_walk, "steps": steps, "seed": seed, "out": out,
    }  # fmt: skip
    given = {name: value for name, value in named.items() if value is not None}
    plan = Plan(method, runs, confidence, given, hyper.given(context), _folder() if cache else None)
    if release is not None:
        if method == "all":
            raise qq.InvalidInput("--release is for the audit of one method, not of all.")
        open_release(release)  # refused now rather than after the audit
    if method == "all":
        _all(plan, as_json)
        return
    run = plan.audit()
    with _bar(method) as progress:
        finding = run(progress)
    beside = None if release is None else write_beside(finding, release)
    if as_json:
        print(json.dumps(finding.to_dict() | ({} if beside is None else {"written": str(beside)})))
        return
    _print([finding])
    attack = finding.attack
    print(f"r' differs from r by the move {attack.move!r}. Seen: {attack.view}. Score: {attack.score}.")
    print(sentence(finding))
    if beside is not None:
        print(f"Written: {beside}")


def sentence(finding: "Finding") -> str:
    """The outcome in words."""
    promise, bound = finding.promise, finding.epsilon_lower
    word = "claims" if promise.standing == "claimed" else "is certified for"
    text = f"{finding.attack.method} {word} epsilon {promise.epsilon:g} at delta {promise.delta:g}"
    if promise.mu is not None:
        text += f" (mu {promise.mu:.4g})"
    text += f"; measured: epsilon at least {bound:.3g}, mu at least {finding.mu_lower:.3g}"
    text += f", at confidence {finding.confidence:g}, by {finding.runs} runs a world."
    if finding.verdict == "refuted":
        return f"REFUTED. {text}"
    text = f"Consistent. {text} A lower bound cannot prove a promise; it can only fail to break it."
    if promise.mu is not None:
        text += f" The best test would see twice the promised mu by {_needed(finding, 2.0)} runs a world"
        text += f", a tenth more by {_needed(finding, 1.1)}."
    return text


def _needed(finding: "Finding", times: float) -> str:
    """Runs a world, those included that are not judged, to refute the promise nine times out of ten."""
    from quietq.audit import runs_needed

    promised = finding.promise.mu
    assert promised is not None
    try:
        judged = runs_needed(times * promised, promised, finding.each)
    except qq.InvalidInput:  # beyond what is worth computing
        return "more than a million"
    return str(math.ceil(judged * finding.runs / finding.by_mu.runs_with))


def _all(plan: Plan, as_json: bool) -> None:
    from quietq.audit import entries, sensitivities, write_movements, write_table
    from quietq.report import require
    from quietq.report.audit import plot_findings

    require()
    budget, people, out = plan.for_all()
    out.mkdir(parents=True, exist_ok=True)
    planned = list(entries(plan.runs, budget, people, plan.folder))
    each = 1 - (1 - plan.confidence) / len(planned)  # so that all bounds hold together with this confidence
    findings: dict[str, Finding] = {}
    for entry in planned:
        with _bar(entry.title) as progress:
            findings[entry.title] = entry.run(progress).at(each)
    with _bar("sensitivity, with frozen noise"):
        movements = sensitivities(budget)
    files = [*write_table(findings, out), *write_movements(movements, out), out / "audit.png"]
    plot_findings(findings, out / "audit.png")
    if as_json:
        table = [{"name": name, **finding.to_dict()} for name, finding in findings.items()]
        moved = [movement.to_dict() for movement in movements]
        print(json.dumps({"findings": table, "sensitivity": moved, "files": [str(file) for file in files]}))
        return
    _print(list(findings.values()), list(findings))
    exceeding = [movement.name for movement in movements if movement.exceeds]
    found = "none of them" if not exceeding else ", ".join(exceeding)
    print(f"With the noise held fixed, of {len(movements)} private steps {found} moved farther than stated.")
    print(f"Written: {', '.join(str(file) for file in files)}")


def _print(findings: "list[Finding]", names: list[str] | None = None) -> None:
    table = Table(title="What is promised, and what was measured")
    for heading in ("method", "epsilon", "epsilon ≥", "mu", "mu ≥", "runs", "verdict"):
        table.add_column(heading, justify="left" if heading in ("method", "epsilon", "verdict") else "right")
    for index, finding in enumerate(findings):
        promise = finding.promise
        table.add_row(
            finding.attack.method if names is None else names[index], f"{promise.epsilon:.3g} {promise.standing}",
            f"{finding.epsilon_lower:.3g}", "-" if promise.mu is None else f"{promise.mu:.3g}",
            f"{finding.mu_lower:.3g}", str(finding.runs), finding.verdict,
        )  # fmt: skip
    Console().print(table)


def _folder() -> Path | None:
    from quietq.learning.cache import cache_folder

    place = cache_folder()
    return None if place is None else place / "audit"


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr with the time left, if somebody looks."""
    from quietq.learning.report import bar

    try:
        with bar(sys.stderr.isatty()) as shown:
            task = shown.add_task(f"Audit of {title}", total=None)
            yield lambda done, total: shown.update(task, completed=done, total=total)
    except KeyboardInterrupt:
        print("\nquietq: stopped; trainings that are done are kept: run it again to go on.", file=sys.stderr)
        raise
