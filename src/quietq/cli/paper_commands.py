"""`quietq paper`: the system of Wang & Hegde (2019), listed, trained and attacked."""

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import answer, app, show_help, show_table, warn
from quietq.cli.audit_command import attack_in_words, carry_out as carry_out_audits, tell
from quietq.cli.options import (
    WORLDS,
    AsJson,
    AuditedWorld,
    AuditFolder,
    Confidence,
    Config,
    HyperParameters,
    LedgerSource,
    LedgerUrl,
    MethodDelta,
    MethodEpsilon,
    MethodName,
    MethodPeople,
    Move,
    Noise,
    Pieces,
    Radius,
    Runs,
    complete,
    given,
    read_pairs,
    refuse_others,
)
from quietq.paper.method_table import METHOD_TABLE
from quietq.progress import progress_of

paper = typer.Typer(
    help="The system of Wang & Hegde (2019): train agents by its algorithm, its baselines and what repairs it, attack "
    "them, and read rewards off them.",
    callback=show_help,
    invoke_without_command=True,
)
app.add_typer(paper, name="paper", rich_help_panel="The system of Wang & Hegde (2019)")


@paper.command()
def methods(
    method: Annotated[
        str | None,
        typer.Argument(
            metavar="METHOD", help="Show the hyper-parameters of this one.", autocompletion=complete(METHOD_TABLE)
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods: what they promise, where their noise enters, and the hyper-parameters of one."""
    if method is None:
        records = [{"name": name, **one._asdict()} for name, one in METHOD_TABLE.items()]
        if as_json:
            return answer(True, {"methods": records})
        headings = ("name", "standing", "where the noise enters")
        show_table("Methods", headings, [(one["name"], one["standing"], one["noise"]) for one in records], headings)
        print("certified: a theorem covers what is released. claimed: the paper's theorem, which does not hold.")
        return print("\n".join(f"{one['name']}: {one['summary']}" for one in records))
    from quietq.privacy.checks import one_of

    one_of("METHOD", method, list(METHOD_TABLE))
    found: list[dict[str, str]] = []
    if METHOD_TABLE[method].in_worlds:
        from quietq.paper.agents.hyper_parameters import name_kind, options_of, write_value
        from quietq.paper.methods import METHODS, build_method

        kind, defaults = METHODS[method], build_method(method, {})
        found = [
            {
                "name": name,
                "kind": name_kind(kind, name),
                "default": write_value(getattr(defaults, name)),
                "sentence": field.metadata["help"],
            }
            for name, field in options_of(kind).items()
        ]
    record = {"name": method, **METHOD_TABLE[method]._asdict(), "hyper_parameters": found}
    answer(
        as_json,
        record,
        "{name}: {summary} Noise: {noise}. Standing: {standing}.".format_map(record),
        "Hyper-parameters, for --set NAME=VALUE, with their defaults:" if found else "It has no hyper-parameters.",
        *("  {name}={default}  {kind}\n      {sentence}".format_map(one) for one in found),
    )


@paper.command()
def train(
    method: MethodName,
    world: Annotated[
        str,
        typer.Argument(
            metavar="WORLD",
            help=f"One of {', '.join(WORLDS)}, or any Gymnasium id.",
            autocompletion=complete(WORLDS),
        ),
    ],
    people: MethodPeople = None,
    radius: Radius = None,
    epsilon: MethodEpsilon = None,
    delta: MethodDelta = None,
    reward: Annotated[
        Path | None, typer.Option(help="Train on this private reward, which `quietq reward` or publish wrote.")
    ] = None,
    noise: Noise = None,
    pieces: Pieces = None,
    rewards: Annotated[
        int | None, typer.Option(help="With --radius: noised rewards that a reward is made of; default 5000.")
    ] = None,
    hyper_parameters: HyperParameters = None,
    steps: Annotated[int, typer.Option(help="Steps of the world to learn from.")] = 5000,
    seeds: Annotated[int, typer.Option(help="Trainings side by side.")] = 1,
    seed: Annotated[
        int | None, typer.Option(help="Makes training repeatable; noise that protects is new whatever the seed.")
    ] = None,
    simulate: Annotated[
        int | None, typer.Option(help="Number of simulated noise draws, for experiments: they protect nobody.")
    ] = None,
    box: Annotated[
        list[str] | None,
        typer.Option(metavar="LOW HIGH", help="Clip a Gymnasium id's observations to it; once per coordinate."),
    ] = None,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; default runs/<world>-<method>-<date-time>.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Train an agent; what it answers may be published if its certificate says so.

    Methods that learn from a private reward (reward, actor-critic) have --reward, --noise, --pieces and --rewards;
    those that promise nothing have no people and no budget. `quietq paper methods METHOD` lists hyper-parameters.
    """
    began = time.monotonic()
    from quietq.privacy.checks import one_of

    one_of("METHOD", method, [name for name, one in METHOD_TABLE.items() if one.in_worlds])
    from quietq.cli.checked_training import CheckedTraining, read_hyper_parameters

    training = CheckedTraining(
        method,
        world,
        read_pairs(box),
        steps,
        seeds,
        seed,
        read_hyper_parameters(method, hyper_parameters),
        people=people,
        radius=radius,
        epsilon=epsilon,
        delta=delta,
        reward=reward,
        noise=noise,
        pieces=pieces,
        rewards=rewards,
        simulate=simulate,
        ledger=ledger,
        source=source,
    )
    out = folder.choose(out, f"{training.world}-{method}")
    if sentence := training.warning():
        warn(sentence)
    evaluation = training.run(out)
    certificate = training.agent.certificate
    record = {
        "certificate": certificate.to_dict(),
        "out": str(out),
        "seconds": round(time.monotonic() - began, 3),
        "not_private": {"score": evaluation.scores, "return": evaluation.returns},
    }
    files = ", ".join(str(out / name) for name in (folder.AGENT, folder.REWARD) if (out / name).exists())
    may = "May be published" if certificate.standing == "certified" else "Not private, so not to be published"
    lines = [certificate, f"\n{may}: {files}"]
    score = "" if evaluation.scores is None else f"score {_spread(evaluation.scores)}, "
    lines.append(f"NOT PRIVATE, for you only: {score}return {_spread(evaluation.returns)}")
    if score:
        worst = "the worst policy" if training.world == "walk" else "random actions"
        lines.append(f"(A score of 0 is that of {worst}, 1 that of the best policy known.)")
    answer(as_json, record, *lines)


def _spread(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{sum(values) / len(values):.4g} ({min(values):.4g} to {max(values):.4g} over {len(values)} runs)"


@paper.command()
def audit(
    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD",
            help="One that `quietq paper methods` lists, or all, as a table.",
            autocompletion=complete(("all", *METHOD_TABLE)),
        ),
    ],
    runs: Runs = 1000,
    confidence: Confidence = 0.95,
    people: MethodPeople = None,
    radius: Radius = None,
    epsilon: MethodEpsilon = None,
    delta: MethodDelta = None,
    noise: Noise = None,
    world: AuditedWorld = None,
    move: Move = None,
    view: Annotated[
        Literal["reward", "final", "policy", "every"] | None,
        typer.Option(
            help="What the attacker observes: the private reward, if there is one (default), final values, the "
            "policy, or every release."
        ),
    ] = None,
    score: Annotated[
        Literal["mean", "learned"] | None,
        typer.Option(help="Score: the mean of what is observed, or one that is learned on a quarter of it."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of each training; default 5000.")] = None,
    hyper_parameters: HyperParameters = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all randomness: audits are simulations; default 0.")] = None,
    out: AuditFolder = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Measure the privacy loss of a method: it is trained under two neighbouring rewards, to be distinguished."""
    from quietq.privacy.checks import count, one_of

    one_of("METHOD", method, ["all", *(name for name, one in METHOD_TABLE.items() if one.standing != "none")])
    attack = given(radius=radius, noise=noise, world=world, move=move, view=view, score=score, steps=steps)
    _check_options(
        method,
        given(people=people, epsilon=epsilon, delta=delta, seed=seed, out=out, set=hyper_parameters or None) | attack,
    )
    from quietq.audit import PlannedAudit
    from quietq.cli.checked_training import read_hyper_parameters
    from quietq.paper.attacks.attack_plan import plan_audit, plan_training_checks, plan_trainings

    budget = qq.Budget(0.9 if epsilon is None else epsilon, 1e-4 if delta is None else delta)
    crowd = 50 if people is None else people
    if method == "all":
        audits = list(plan_trainings(count("runs", runs, 40), budget, crowd))
        checks = [PlannedAudit(title, check=check) for title, check in plan_training_checks(budget).items()]
        return carry_out_audits([*audits, *checks], confidence, out, as_json)
    run = plan_audit(
        method,
        runs,
        budget,
        crowd,
        confidence=confidence,
        seed=seed or 0,
        options=attack,
        hyper=read_hyper_parameters(method, hyper_parameters) if METHOD_TABLE[method].in_worlds else {},
    )
    with progress_of(f"Audit of {method}") as progress:
        finding = run(progress=progress)
    tell(finding, attack_in_words(finding), as_json)


def _check_options(method: str, options: dict[str, object]) -> None:
    """Refuses options that an audit of this method has no use for."""
    from quietq.cli.checked_training import refused_options

    if method == "all":
        refused = set(options) - {"people", "epsilon", "delta", "out"}
    elif not METHOD_TABLE[method].in_worlds:
        refused = set(options) - {"people", "epsilon", "delta", "seed"}
    else:
        refused = {"out"} | refused_options(method)
    refuse_others(f"An audit of {method!r} has", [name for name in options if name in refused])
    if "people" in options and "radius" in options:
        raise qq.InvalidInput("Give --people or --radius, not both.")


@paper.command()
def reconstruct(
    release: Annotated[
        Path, typer.Argument(help="An agent (agent.qq, or its run's folder) or a private reward (.qq).")
    ],
    world: Annotated[
        str | None,
        typer.Option(help="Whose reward to compare with; default: the agent's own world. Required for a reward."),
    ] = None,
    points: Annotated[
        int | None, typer.Option(help="Points of the grid a coordinate; default 65, or 13 in two.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what a thief learns of the reward from a release: attacks, measured against the world's own reward."""
    from quietq.released.release_file import open_release

    file = release / folder.AGENT if release.is_dir() else release
    if not file.is_file():
        what = f"{folder.AGENT} in the folder" if release.is_dir() else "file"
        raise qq.InvalidInput(f"There is no {what} {str(release)!r} to attack.")
    opened = open_release(file)
    if opened.what == "function" and world is None:
        raise qq.InvalidInput(
            "--world must name the world whose own reward this one was made from: its file does not say, and there is "
            "nothing else to compare with."
        )
    from quietq.paper.attacks.reconstruct import attack_agent, attack_reward

    record = attack_agent(file, world, points) if opened.what == "agent" else attack_reward(file, str(world), points)
    record["caveat"] = (
        f"The comparison is with the {record['world']}'s own reward, and holds only if the release was made from "
        "that reward: made from ratings or any other, these numbers say nothing about how well it is hidden."
    )
    if as_json:
        return answer(True, record)
    many = f", means of {record['draws']} simulated draws" if record["draws"] > 1 else ""
    title = f"NOT PRIVATE: the {record['world']}'s reward, as recovered from this {record['release']}{many}"
    headings = ("attack", "blind to", "correlation", "error (rms)", "relative error")
    rows = [
        (
            one["name"],
            ", ".join(one["blind_to"]) or "-",
            *(f"{one['not_private'][name]:.3f}" for name in ("correlation", "rmse", "relative_error")),
        )
        for one in record["attacks"]
    ]
    show_table(title, headings, rows, ("attack", "blind to"))
    print(
        f"The release's standing: {record['standing']}. A relative error of 1 is that of guessing the mean everywhere."
    )
    if (score := record["not_private"].get("planned_score")) is not None:
        print(f"Planning on it scores {score:.3f}, where random actions have 0 and the best policy 1.")
    print(record["caveat"])
    print("A private release is meant to tell what people want together; what it hides is any one of them.")
