"""`quietq audit`: attacks on what is released."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import quietq as qq
from quietq.cli.app import answer, app, number, show_help, show_table
from quietq.cli.options import (
    AsJson,
    AuditedWorld,
    AuditFolder,
    Confidence,
    Config,
    Delta,
    Epsilon,
    Noise,
    People,
    Pieces,
    Runs,
    Seed,
)
from quietq.progress import progress_of

if TYPE_CHECKING:
    from quietq.audit import Finding, Movement, PlannedAudit

audit = typer.Typer(
    help="Measure the privacy loss of a release: it is drawn under two neighbouring rewards or sets of rows, and the "
    "audit tries to distinguish them. Trainings are attacked by `quietq paper audit`.",
    callback=show_help,
    invoke_without_command=True,
    subcommand_metavar="KIND [OPTIONS]",
)
app.add_typer(audit, name="audit", rich_help_panel="Attack")


@audit.command("all")
def audit_all(
    runs: Runs = 1000,
    confidence: Confidence = 0.95,
    people: People = 50,
    epsilon: Epsilon = 0.9,
    delta: Delta = 1e-4,
    out: AuditFolder = None,
    as_json: AsJson = False,
) -> None:
    """All that is released, as a table."""
    from quietq.audit import plan_releases
    from quietq.privacy.checks import count

    budget = qq.Budget(epsilon, delta)
    carry_out(list(plan_releases(count("runs", runs, 40), budget, people)), confidence, out, as_json)


@audit.command("reward")
def audit_reward(
    runs: Runs = 1000,
    confidence: Confidence = 0.95,
    people: People = 50,
    epsilon: Epsilon = 0.9,
    delta: Delta = 1e-4,
    noise: Noise = "path",
    pieces: Pieces = None,
    world: AuditedWorld = None,
    seed: Seed = 0,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """A private reward: drawn from two neighbouring rewards, and distinguished by the best test."""
    from quietq.audit import audit_reward
    from quietq.audit.everything import check_confidence
    from quietq.feedback.own_function import OwnFunction
    from quietq.mechanisms.candidates import choose
    from quietq.worlds import find_world

    budget = qq.Budget(epsilon, delta)
    check_confidence(confidence)
    place = find_world(world or "walk")
    declared = OwnFunction(None, place.relation(people), box=place.box)
    mechanism = choose(noise or "path", declared, budget, pieces=pieces)
    with progress_of("Audit of reward") as progress:
        finding = audit_reward(
            place,
            mechanism,
            runs,
            seed=seed,
            confidence=confidence,
            progress=progress,
        )
    tell(finding, attack_in_words(finding), as_json)


@audit.command("sessions", help="A world of everybody's sessions, likewise.")
@audit.command("comparisons", help="A model of everybody's comparisons, likewise.")
@audit.command("ratings", help="A model of everybody's ratings: one person's are the worst that a search finds.")
def audit_rows(
    context: typer.Context,
    runs: Runs = 1000,
    confidence: Confidence = 0.95,
    people: People = 50,
    epsilon: Epsilon = 0.9,
    delta: Delta = 1e-4,
    noise: Noise = "auto",
    dimension: Annotated[int, typer.Option(help="Coordinates of a state.")] = 2,
    tries: Annotated[int, typer.Option(help="How long to search for the worst rows.")] = 40,
    view: Annotated[
        Literal["answers", "file"],
        typer.Option(help="What the attacker observes: every noisy answer, or the published file."),
    ] = "answers",
    seed: Seed = 0,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Attacks with the noise held fixed, and by whole releases of the two farthest neighbours."""
    from quietq.audit import all_but_two, worst_rows
    from quietq.audit.everything import check_confidence
    from quietq.privacy.checks import count

    kind, budget = str(context.info_name), qq.Budget(epsilon, delta)
    check_confidence(confidence)
    count("runs", runs, 40)
    count("tries", tries, 4)
    crowd = all_but_two(kind, people, dimension, seed)
    with progress_of(f"Audit of {kind}") as progress:
        worst = worst_rows(*crowd, budget, noise=noise or "auto", tries=tries, seed=seed)
        attack = worst.audit_file if view == "file" else worst.audit
        finding = attack(runs, seed=seed, confidence=confidence, progress=progress)
    tell(finding, _movement_in_words(worst.movement), as_json, sensitivity=worst.movement.to_dict())


def _movement_in_words(movement: "Movement") -> str:
    verdict = "EXCEEDED" if movement.exceeds else "Never exceeded"
    every = "."
    if movement.together is not None:
        every = f", and all {len(movement.queries)} queries together by {movement.together:.3f} of the promised mu."
    return (
        f"{verdict}. With the noise held fixed, the worst rows of one person moved the farthest query by "
        f"{movement.share:.3f} of what is stated (found as: {movement.by}){every}"
    )


def attack_in_words(finding: "Finding") -> str:
    attack = finding.attack
    return f"r' differs from r by the move {attack.move!r}. Observed: {attack.view}. Score: {attack.score}."


def tell(finding: "Finding", sentence: str, as_json: bool, **more: object) -> None:
    """Prints what was found."""
    from quietq.audit import in_words

    if as_json:
        return answer(True, finding.to_dict() | more)
    _show_findings({finding.attack.method: finding})
    print(sentence)
    print(in_words(finding))


def carry_out(audits: "Sequence[PlannedAudit]", confidence: float, out: Path | None, as_json: bool) -> None:
    """Runs these audits and frozen-noise checks, and writes what they found."""
    from quietq.audit.everything import check_confidence

    check_confidence(confidence)
    out = out or Path("runs/audit")
    out.mkdir(parents=True, exist_ok=True)
    together = sum(planned.run is not None for planned in audits)
    each = 1 - (1 - confidence) / together  # so that all bounds hold together with this confidence
    findings: dict[str, Finding] = {}
    movements: list[Movement] = []
    for planned in audits:
        with progress_of(f"Audit of {planned.title}") as progress:
            if planned.run is not None:
                findings[planned.title] = planned.run(progress=progress).at(each)
            if planned.check is not None:
                movements.append(planned.check())
    record: dict[str, object] = {
        "findings": [{"name": name, **finding.to_dict()} for name, finding in findings.items()],
        "sensitivity": [movement.to_dict() for movement in movements],
    }
    (out / "audit.json").write_text(json.dumps(record, indent=1))
    if as_json:
        return answer(True, record | {"file": str(out / "audit.json")})
    _show_findings(findings)
    found = ", ".join(movement.name for movement in movements if movement.exceeds) or "none of them"
    print(f"With the noise held fixed, of {len(movements)} private steps {found} moved farther than stated.")
    print(f"Written: {out / 'audit.json'}")


def _show_findings(findings: "dict[str, Finding]") -> None:
    headings = ("method", "epsilon", "epsilon ≥", "mu", "mu ≥", "runs", "verdict")
    rows = [
        (
            name,
            f"{one.promise.epsilon:.3g} {one.promise.standing}",
            f"{one.epsilon_lower:.3g}",
            number(one.promise.mu, 3),
            f"{one.mu_lower:.3g}",
            one.runs,
            one.verdict,
        )
        for name, one in findings.items()
    ]
    show_table("What is promised, and what was measured", headings, rows, ("method", "epsilon", "verdict"))
