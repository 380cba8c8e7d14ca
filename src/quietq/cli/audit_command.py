"""`quietq audit`: attacks on what is released."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import quietq as qq
from quietq.cli.app import NOISES, answer, app, names, number, show_table
from quietq.cli.known_names import FEEDBACK, WORLD_FEEDBACK, WORLDS
from quietq.cli.options import JSON, LazyCommand, Options, add_group, option

if TYPE_CHECKING:
    from quietq.audit import Finding, Movement, PlannedAudit

REWARD, ALL = "reward", "all"
RUNS: Options = {
    "runs": option(int, "Runs under r, and as many under r', at least 40; default 1000; most are judged."),
    "confidence": option(float, "With which the bounds hold together; default 0.95."),
}
BUDGET: Options = {
    "people": option(int, "How many people stand behind the reward; default 50."),
    "epsilon": option(float, "Privacy budget that is promised; default 0.9."),
    "delta": option(float, "Probability that the promise may fail; default 1e-4."),
}
ONE: Options = {
    "seed": option(int, "Of all randomness: audits are simulations; default 0."),
}
ROWS: Options = {
    "noise": option(
        str, "Kind of noise for a model of everybody's rows; default auto, a public rule.", autocompletion=NOISES
    ),
    "dimension": option(int, "Coordinates of a state; default 2."),
    "tries": option(int, "How long to search for the worst rows; default 40."),
    "view": option(Literal["answers", "file"], "What is seen: every noisy answer (default), or the published file."),
}
OUT: Options = {"out": option(Path, "Folder for the table and the plot; default runs/audit.")}
PAIR: Options = {
    "world": option(str, "One of the worlds that `quietq worlds` lists; default walk.", autocompletion=names(WORLDS)),
    "move": option(Literal["shift", "flip", "bumps", "zigzag"], "How r' differs from r; default the worst known."),
}
NOISE: Options = {
    "noise": option(str, "Kind of noise on the reward; default path.", autocompletion=NOISES),
    "pieces": option(int, "Pieces between the knots of k-norm and knots."),
}


def _commands() -> Iterator[LazyCommand]:
    yield LazyCommand(ALL, "All that is released: a table and a plot.", _all_options, audit_all)
    summary = "A private reward: drawn from two neighbouring rewards, and told apart by the best test."
    yield LazyCommand(REWARD, summary, lambda: {**RUNS, **BUDGET, **NOISE, **PAIR, **ONE, **JSON}, audit_reward)
    for name in FEEDBACK:
        made = "A world" if name in WORLD_FEEDBACK else "A model"
        summary = f"{made} of everybody's {name}: one person's are replaced by the worst that a search finds."
        yield LazyCommand(name, summary, lambda: {**RUNS, **BUDGET, **ROWS, **ONE, **JSON}, partial(audit_rows, name))


def _all_options() -> Options:
    return {**RUNS, **BUDGET, **OUT, **JSON}


add_group(
    app,
    "audit",
    "Measure what a release gives away: it is drawn under two neighbouring rewards or sets of rows, and the audit "
    "tries to tell them apart. Trainings are attacked by `quietq paper audit`.",
    "KIND [OPTIONS]",
    _commands,
)


def audit_reward(values: dict[str, Any]) -> None:
    from quietq.audit import audit_reward
    from quietq.audit.everything import check_confidence
    from quietq.mechanisms.mechanism import Task
    from quietq.mechanisms.privatise import choose
    from quietq.privacy.checks import count
    from quietq.worlds import find_world

    runs, budget, people = promise(values)
    confidence, seed = values.get("confidence", 0.95), count("seed", values.get("seed", 0), 0)
    check_confidence(confidence)
    world = find_world(values.get("world", "walk"))
    task = Task(world.relation(people), budget, world.box, pieces=values.get("pieces"))
    mechanism = choose(values.get("noise", "path"), task)
    with bar("reward") as progress:
        finding = audit_reward(
            world, mechanism, count("runs", runs, 40), move=values.get("move", "worst"), seed=seed,
            confidence=confidence, progress=progress,
        )  # fmt: skip
    tell(finding, in_short(finding), values.get("json", False))


def in_short(finding: "Finding") -> str:
    attack = finding.attack
    return f"r' differs from r by the move {attack.move!r}. Seen: {attack.view}. Score: {attack.score}."


def audit_rows(kind: str, values: dict[str, Any]) -> None:
    """With the noise held fixed, and by whole releases of the two farthest neighbours."""
    from quietq.audit import all_but_two, worst_rows
    from quietq.audit.everything import check_confidence
    from quietq.privacy.checks import count

    runs, budget, people = promise(values)
    confidence, seed = values.get("confidence", 0.95), count("seed", values.get("seed", 0), 0)
    check_confidence(confidence)
    runs, tries = count("runs", runs, 40), count("tries", values.get("tries", 40), 4)
    crowd = all_but_two(kind, people, values.get("dimension", 2), seed)
    with bar(kind) as progress:
        worst = worst_rows(*crowd, budget, noise=values.get("noise", "auto"), tries=tries, seed=seed)
        attack = worst.audit_file if values.get("view") == "file" else worst.audit
        finding = attack(runs, seed=seed, confidence=confidence, progress=progress)
    sensitivity = worst.movement.to_dict()
    tell(finding, _frozen_in_words(worst.movement), values.get("json", False), sensitivity=sensitivity)


def tell(finding: "Finding", sentence: str, as_json: bool, **more: object) -> None:
    """Prints what was found."""
    from quietq.audit import in_words

    if as_json:
        return answer(True, finding.to_dict() | more)
    show({finding.attack.method: finding})
    print(sentence)
    print(in_words(finding))


def _frozen_in_words(movement: "Movement") -> str:
    verdict = "EXCEEDED" if movement.exceeds else "Never exceeded"
    text = f"{verdict}. With the noise held fixed, the worst rows of one person moved the farthest query by "
    text += f"{movement.share:.3f} of what is stated (found as: {movement.by})"
    if movement.together is None:
        return text + "."
    return f"{text}, and all {len(movement.queries)} queries together by {movement.together:.3f} of the promised mu."


def promise(values: dict[str, Any]) -> "tuple[int, qq.Budget, int]":
    budget = qq.Budget(values.get("epsilon", 0.9), values.get("delta", 1e-4))
    return values.get("runs", 1000), budget, values.get("people", 50)


def audit_all(values: dict[str, Any]) -> None:
    from quietq.audit import plan_releases
    from quietq.privacy.checks import count

    runs, budget, people = promise(values)
    carry_out(list(plan_releases(count("runs", runs, 40), budget, people)), values)


def carry_out(audits: "list[PlannedAudit]", values: dict[str, Any]) -> None:
    """Runs these audits and frozen-noise checks, and writes one table and one plot of all of them."""
    from quietq.audit import write_movements, write_table
    from quietq.audit.everything import check_confidence
    from quietq.cli.report import require
    from quietq.cli.report.audit_table import plot_findings

    confidence = values.get("confidence", 0.95)
    check_confidence(confidence)
    require()
    out = values.get("out", Path("runs/audit"))
    out.mkdir(parents=True, exist_ok=True)
    together = sum(planned.run is not None for planned in audits)
    each = 1 - (1 - confidence) / together  # so that all bounds hold together with this confidence
    findings: dict[str, Finding] = {}
    movements: list[Movement] = []
    for planned in audits:
        with bar(planned.title) as progress:
            if planned.run is not None:
                findings[planned.title] = planned.run(progress=progress).at(each)
            if planned.check is not None:
                movements.append(planned.check())
    files = [*write_table(findings, out), *write_movements(movements, out), out / "audit.png"]
    plot_findings(findings, out / "audit.png")
    if values.get("json"):
        table = [{"name": name, **finding.to_dict()} for name, finding in findings.items()]
        moved = [movement.to_dict() for movement in movements]
        return answer(True, {"findings": table, "sensitivity": moved, "files": [str(file) for file in files]})
    show(findings)
    found = ", ".join(movement.name for movement in movements if movement.exceeds) or "none of them"
    print(f"With the noise held fixed, of {len(movements)} private steps {found} moved farther than stated.")
    print(f"Written: {', '.join(str(file) for file in files)}")


def show(findings: "dict[str, Finding]") -> None:
    headings = ("method", "epsilon", "epsilon ≥", "mu", "mu ≥", "runs", "verdict")
    rows = [
        (
            name, f"{one.promise.epsilon:.3g} {one.promise.standing}", f"{one.epsilon_lower:.3g}",
            number(one.promise.mu, 3), f"{one.mu_lower:.3g}", one.runs, one.verdict,
        )
        for name, one in findings.items()
    ]  # fmt: skip
    show_table("What is promised, and what was measured", headings, rows, ("method", "epsilon", "verdict"))


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr with the time left, if somebody looks."""
    from quietq.progress import progress_bar

    try:
        with progress_bar(sys.stderr.isatty()) as shown:
            task = shown.add_task(f"Audit of {title}", total=None)
            yield lambda done, total: shown.update(task, completed=done, total=total)
    except KeyboardInterrupt:
        print("\nquietq: stopped; trainings that are done are kept: run it again to go on.", file=sys.stderr)
        raise SystemExit(130) from None  # it has said what there is to say
