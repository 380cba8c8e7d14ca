"""`quietq audit`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import quietq as qq
from quietq.cli.app import NOISES, answer, names, number, show_table
from quietq.cli.options import JSON, LazyCommand, Options, add_group, fields_of, hyper_parameters, kinds, option
from quietq.registry import FEEDBACK, METHODS, WORLDS

if TYPE_CHECKING:
    from quietq.audit import Finding, Movement

EVALUATION, ALL = "evaluation", "all"
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
    "release": option(Path, "A release of the same promise; the result is laid beside it, for its page."),
}
ROWS: Options = {
    "noise": option(
        str, "Kind of noise for a model of everybody's rows; default auto, a public rule.", autocompletion=NOISES
    ),
    "dimension": option(int, "Coordinates of a state; default 2."),
    "tries": option(int, "How long to search for the worst rows; default 40."),
    "view": option(Literal["answers", "file"], "What is seen: every noisy answer (default), or the published file."),
}
CACHE: Options = {"cache": option(bool, "Keep results, and go on where an audit was stopped.", "--cache/--no-cache")}
OUT: Options = {"out": option(Path, "Folder for the table and the plot; default runs/audit.")}
SEEN = Literal["final", "policy", "every"]
VIEW = option(SEEN, "What is seen: final values (default), the policy, or every release.")
VIEW_OF_REWARD = option(Literal["reward", SEEN], "What is seen: the private reward (default), or of the training.")
ATTACK: Options = {
    "world": option(str, "One of the worlds that `quietq worlds` lists; default walk.", autocompletion=names(WORLDS)),
    "move": option(Literal["shift", "flip", "bumps", "zigzag"], "How r' differs from r; default the worst known."),
    "queries": option(int, "States a coordinate that are asked for."),
    "moments": option(int, "Looks of the adversary, with --view every; default 10."),
    "score": option(Literal["mean", "learned"], "Mean of what is seen, or learned on a quarter of it."),
    "public_walk": option(bool, "Is the walk known? Default yes, but of published no.", "--public-walk/--secret-walk"),
    "steps": option(int, "Steps of each training; default 5000."),
}


def _commands() -> Iterator[LazyCommand]:
    yield LazyCommand(ALL, "Every method: a table and a plot.", partial(_options, ALL), audit_all)
    for name, entry in METHODS.items():
        if entry.standing != "none":
            yield LazyCommand(name, entry.summary, partial(_options, name), partial(audit, name))
    for name, kind in FEEDBACK.items():
        made = "A world" if kind.releases == "world" else "A model"
        summary = f"{made} of everybody's {name}: one person's are replaced by the worst that a search finds."
        yield LazyCommand(name, summary, partial(_options, name), partial(audit_rows, name))


add_group(
    "audit",
    "Measure what a method gives away. It is trained under two neighbouring rewards, and the audit tries to tell them "
    "apart. `quietq audit METHOD --help` has a method's options.",
    "METHOD [OPTIONS]",
    _commands,
)


def _options(name: str) -> Options:
    if name == ALL:
        return {**RUNS, **BUDGET, **OUT, **CACHE, **JSON}
    if name == EVALUATION:
        return {**RUNS, **BUDGET, **ONE, **JSON}
    if name in FEEDBACK:
        return {**RUNS, **BUDGET, **ROWS, **ONE, **JSON}
    from quietq.cli.checked_training import Settings

    on_reward, promises = kinds(name)
    promise = {**fields_of(Settings, "promise"), **BUDGET} if promises else {}
    noise = fields_of(Settings, "noise") if on_reward else {}
    view = {"view": VIEW_OF_REWARD if on_reward else VIEW}
    return {**RUNS, **promise, **noise, **ATTACK, **view, **ONE, **CACHE, **JSON, **hyper_parameters(name)}


def audit(method: str, values: dict[str, Any]) -> None:
    from quietq.audit import plan_audit
    from quietq.learning.options import read_options
    from quietq.publishing import open_release

    if "people" in values and "radius" in values:
        raise qq.InvalidInput("Give --people or --radius, not both.")
    release, as_json = values.pop("release", None), values.pop("json", False)
    hyper = read_options(METHODS[method].load(), values)
    common = {name: values[name] for name in ("confidence", "seed") if name in values}
    options = {name: value for name, value in values.items() if name not in (*hyper, "people", "epsilon", "delta")}
    run = plan_audit(method, *_promise(values), **common, options=options, hyper=hyper, folder=_find_cache(values))
    if release is not None:
        open_release(release)  # refused now rather than after the audit
    with _bar(method) as progress:
        finding = run(progress=progress)
    attack = finding.attack
    sentence = f"r' differs from r by the move {attack.move!r}. Seen: {attack.view}. Score: {attack.score}."
    _tell(finding, sentence, release, as_json)


def audit_rows(kind: str, values: dict[str, Any]) -> None:
    """With the noise held fixed, and by whole releases of the two farthest neighbours."""
    from quietq.audit import made_up, worst_rows
    from quietq.audit.plan import check_confidence
    from quietq.privacy.checks import count
    from quietq.publishing import open_release

    (runs, budget, people), release = _promise(values), values.get("release")
    confidence, seed = values.get("confidence", 0.95), count("seed", values.get("seed", 0), 0)
    check_confidence(confidence)
    runs, tries = count("runs", runs, 40), count("tries", values.get("tries", 40), 4)
    crowd = made_up(kind, people, values.get("dimension", 2), seed)
    if release is not None:
        open_release(release)  # refused now rather than after the audit
    with _bar(kind) as progress:
        worst = worst_rows(*crowd, budget, noise=values.get("noise", "auto"), tries=tries, seed=seed)
        attack = worst.audit_file if values.get("view") == "file" else worst.audit
        finding = attack(runs, seed=seed, confidence=confidence, progress=progress)
    sensitivity = worst.movement.to_dict()
    _tell(finding, _frozen_in_words(worst.movement), release, values.get("json", False), sensitivity=sensitivity)


def _tell(finding: "Finding", sentence: str, release: Path | None, as_json: bool, **more: object) -> None:
    """What was found, and where it was laid beside the release that it is of."""
    from quietq.audit import in_words
    from quietq.cli.report.audit import write_beside

    beside = None if release is None else write_beside(finding, release)
    if as_json:
        return answer(True, finding.to_dict() | more | ({} if beside is None else {"written": str(beside)}))
    _show({finding.attack.method: finding})
    print(sentence)
    print(in_words(finding))
    if beside is not None:
        print(f"Written: {beside}")


def _frozen_in_words(movement: "Movement") -> str:
    verdict = "EXCEEDED" if movement.exceeds else "Never exceeded"
    text = f"{verdict}. With the noise held fixed, the worst rows of one person moved the farthest query by "
    text += f"{movement.share:.3f} of what is stated (found as: {movement.by})"
    if movement.together is None:
        return text + "."
    return f"{text}, and all {len(movement.queries)} queries together by {movement.together:.3f} of the promised mu."


def _promise(values: dict[str, Any]) -> "tuple[int, qq.Budget, int]":
    budget = qq.Budget(values.get("epsilon", 0.9), values.get("delta", 1e-4))
    return values.get("runs", 1000), budget, values.get("people", 50)


def audit_all(values: dict[str, Any]) -> None:
    from quietq.audit import plan_everything, sensitivities, write_movements, write_table
    from quietq.audit.plan import check_confidence
    from quietq.cli.report import require
    from quietq.cli.report.audit import plot_findings
    from quietq.privacy.checks import count

    (runs, budget, people), confidence = _promise(values), values.get("confidence", 0.95)
    check_confidence(confidence)
    audits = list(plan_everything(count("runs", runs, 40), budget, people, _find_cache(values)))
    require()
    out = values.get("out", Path("runs/audit"))
    out.mkdir(parents=True, exist_ok=True)
    each = 1 - (1 - confidence) / len(audits)  # so that all bounds hold together with this confidence
    findings: dict[str, Finding] = {}
    for planned in audits:
        with _bar(planned.title) as progress:
            findings[planned.title] = planned.run(progress=progress).at(each)
    with _bar("sensitivity, with frozen noise"):
        movements = sensitivities(budget)
    files = [*write_table(findings, out), *write_movements(movements, out), out / "audit.png"]
    plot_findings(findings, out / "audit.png")
    if values.get("json"):
        table = [{"name": name, **finding.to_dict()} for name, finding in findings.items()]
        moved = [movement.to_dict() for movement in movements]
        return answer(True, {"findings": table, "sensitivity": moved, "files": [str(file) for file in files]})
    _show(findings)
    found = ", ".join(movement.name for movement in movements if movement.exceeds) or "none of them"
    print(f"With the noise held fixed, of {len(movements)} private steps {found} moved farther than stated.")
    print(f"Written: {', '.join(str(file) for file in files)}")


def _show(findings: "dict[str, Finding]") -> None:
    headings = ("method", "epsilon", "epsilon ≥", "mu", "mu ≥", "runs", "verdict")
    rows = [
        (
            name, f"{one.promise.epsilon:.3g} {one.promise.standing}", f"{one.epsilon_lower:.3g}",
            number(one.promise.mu, 3), f"{one.mu_lower:.3g}", one.runs, one.verdict,
        )
        for name, one in findings.items()
    ]  # fmt: skip
    show_table("What is promised, and what was measured", headings, rows, ("method", "epsilon", "verdict"))


def _find_cache(values: dict[str, Any]) -> Path | None:
    """Where trainings are kept; None if they are not."""
    from quietq.learning.cache import cache_folder

    place = cache_folder() if values.get("cache", True) else None
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
