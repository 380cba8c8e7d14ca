"""`quietq paper`: the system of Wang & Hegde (2019), listed, trained and attacked."""

import json
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import answer, app, show_help, show_table, warn
from quietq.cli.audit_command import attack_in_words, audit_progress, carry_out as carry_out_audits, tell
from quietq.cli.ledger_command import absolute, open_account
from quietq.cli.options import (
    WORLDS,
    AsJson,
    AuditedWorld,
    AuditFolder,
    Confidence,
    HyperParameters,
    LedgerSource,
    LedgerUrl,
    MethodName,
    Move,
    Noise,
    Pieces,
    Radius,
    Runs,
    complete,
    given,
    read_assignment,
    read_pairs,
    refuse_others,
)
from quietq.paper.method_table import METHOD_TABLE

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
    if method is not None:
        return _show_method(method, as_json)
    if as_json:
        return answer(True, {"methods": [_describe(name) for name in METHOD_TABLE]})
    headings = ("name", "standing", "where the noise enters")
    show_table("Methods", headings, [(name, one.standing, one.noise) for name, one in METHOD_TABLE.items()], headings)
    print("certified: a theorem covers what is released. claimed: the paper's theorem, which does not hold.")
    print("\n".join(f"{name}: {one.summary}" for name, one in METHOD_TABLE.items()))


def _describe(name: str) -> dict[str, object]:
    one = METHOD_TABLE[name]
    return {"name": name, "standing": one.standing, "noise": one.noise, "summary": one.summary}


def _show_method(method: str, as_json: bool) -> None:
    check_method(method, list(METHOD_TABLE))
    described = METHOD_TABLE[method]
    found: list[dict[str, str]] = []
    if described.in_worlds:
        from quietq.paper.agents.hyper_parameters import name_kind, options_of, write_value
        from quietq.paper.methods import METHODS, build_method

        defaults = build_method(method, {})
        for name, field in options_of(METHODS[method]).items():
            default = write_value(getattr(defaults, name))
            kind = name_kind(METHODS[method], name)
            found.append({"name": name, "kind": kind, "default": default, "sentence": field.metadata["help"]})
    if as_json:
        return answer(True, _describe(method) | {"hyper_parameters": found})
    print(f"{method}: {described.summary} Noise: {described.noise}. Standing: {described.standing}.")
    print("Hyper-parameters, for --set NAME=VALUE, with their defaults:" if found else "It has no hyper-parameters.")
    for one in found:
        print(f"  {one['name']}={one['default']}  {one['kind']}\n      {one['sentence']}")


def check_method(method: str, known: list[str]) -> None:
    """Refuses a name that is none of the methods'."""
    from quietq.privacy.checks import one_of

    one_of("METHOD", method, known)


@paper.command()
def train(
    method: MethodName,
    world: Annotated[
        str,
        typer.Argument(
            metavar="WORLD",
            help="One that `quietq worlds` lists, or any Gymnasium id.",
            autocompletion=complete(WORLDS),
        ),
    ],
    people: Annotated[int | None, typer.Option(help="How many people stand behind the reward; public.")] = None,
    radius: Radius = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget, above 0.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Probability that the promise fails, well below 1/people.")
    ] = None,
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
        int | None, typer.Option(help="So many simulated noise draws, for experiments: they protect nobody.")
    ] = None,
    box: Annotated[
        list[str] | None,
        typer.Option(metavar="LOW HIGH", help="Hold a Gymnasium id's observations to it; once per coordinate."),
    ] = None,
    env_kwarg: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An argument for a Gymnasium id; may be repeated.")
    ] = None,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; default runs/<world>-<method>-<date-time>.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train an agent; what it answers may be published if its certificate says so.

    Methods that learn from a private reward (reward, actor-critic) have --reward, --noise, --pieces and --rewards;
    those that promise nothing have no people and no budget. `quietq paper methods METHOD` lists hyper-parameters.
    """
    began = time.monotonic()
    from quietq.cli.checked_training import CheckedTraining, Settings, carry_out, read_hyper_parameters

    check_method(method, [name for name, one in METHOD_TABLE.items() if one.in_worlds])
    common = given(
        people=people,
        radius=radius,
        epsilon=epsilon,
        delta=delta,
        reward=None if reward is None else str(reward.absolute()),
        noise=noise,
        pieces=pieces,
        rewards=rewards,
        seed=seed,
        simulate=simulate,
        ledger=None if ledger is None else absolute(ledger),
        source=source,
    )
    settings = Settings(
        method=method,
        world=world,
        box=tuple(read_pairs(box) or ()),
        env=dict(map(_read_argument, env_kwarg or ())),
        steps=steps,
        seeds=seeds,
        options=read_hyper_parameters(method, hyper_parameters),
        **common,  # pyright: ignore[reportArgumentType]
    )
    training = CheckedTraining(settings)
    out = folder.choose(out, f"{training.settings.world}-{method}")
    if sentence := training.warning():
        warn(sentence)
    account = open_account(settings.ledger, settings.source, f"train/{method}")
    agent, evaluation = carry_out(training, out, account)
    certificate = agent.certificate
    seconds = round(time.monotonic() - began, 3)
    result = {"score": evaluation.scores, "return": evaluation.returns}
    record = {"certificate": certificate.to_dict(), "out": str(out), "seconds": seconds, "not_private": result}
    files = ", ".join(str(out / name) for name in folder.RELEASED if (out / name).exists())
    may = "May be published" if certificate.standing == "certified" else "Not private, so not to be published"
    score = "" if evaluation.scores is None else f"score {_spread(evaluation.scores)}, "
    lines = [certificate, f"\n{may}: {files}", f"What else is in {out} stays with you; {folder.README} says why."]
    lines.append(f"NOT PRIVATE, for you only: {score}return {_spread(evaluation.returns)}")
    if score:
        worst = "the worst policy" if training.settings.world == "walk" else "random actions"
        lines.append(f"(A score of 0 is that of {worst}, 1 that of the best policy known.)")
    answer(as_json, record, *lines)


def _read_argument(word: str) -> tuple[str, object]:
    """Reads an environment's argument: its value is JSON if it can be read as such, or else text."""
    key, value = read_assignment(word, "--env-kwarg", "KEY=VALUE, e.g. gravity=-9.8")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


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
            help="One that `quietq paper methods` lists, or all: a table and a plot.",
            autocompletion=complete(("all", *METHOD_TABLE)),
        ),
    ],
    runs: Runs = 1000,
    confidence: Confidence = 0.95,
    people: Annotated[int | None, typer.Option(help="How many people stand behind the reward; default 50.")] = None,
    radius: Radius = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget that is promised; default 0.9.")] = None,
    delta: Annotated[float | None, typer.Option(help="Probability that the promise may fail; default 1e-4.")] = None,
    noise: Noise = None,
    pieces: Pieces = None,
    world: AuditedWorld = None,
    move: Move = None,
    view: Annotated[
        Literal["reward", "final", "policy", "every"] | None,
        typer.Option(
            help="What is seen: the private reward, if there is one (default), final values, the policy, or every "
            "release."
        ),
    ] = None,
    queries: Annotated[int | None, typer.Option(help="States a coordinate that are asked for.")] = None,
    moments: Annotated[int | None, typer.Option(help="Looks of the adversary, with --view every; default 10.")] = None,
    score: Annotated[
        Literal["mean", "learned"] | None, typer.Option(help="Mean of what is seen, or learned on a quarter of it.")
    ] = None,
    public_walk: Annotated[
        bool | None,
        typer.Option("--public-walk/--secret-walk", help="Is the walk known? Default yes, but of published no."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of each training; default 5000.")] = None,
    hyper_parameters: HyperParameters = None,
    seed: Annotated[int | None, typer.Option(help="Of all randomness: audits are simulations; default 0.")] = None,
    out: AuditFolder = None,
    as_json: AsJson = False,
) -> None:
    """Measure what a method gives away: it is trained under two neighbouring rewards, which the audit tells apart."""
    check_method(method, ["all", *(name for name, one in METHOD_TABLE.items() if one.standing != "none")])
    promise = given(people=people, epsilon=epsilon, delta=delta)
    attack = given(
        radius=radius,
        noise=noise,
        pieces=pieces,
        world=world,
        move=move,
        view=view,
        queries=queries,
        moments=moments,
        score=score,
        public_walk=public_walk,
        steps=steps,
    )
    options = promise | attack | given(set=hyper_parameters or None, seed=seed, out=out)
    _check_options(method, options)
    from quietq.audit import PlannedAudit
    from quietq.cli.checked_training import read_hyper_parameters
    from quietq.paper.attacks.attack_plan import plan_audit, plan_training_checks, plan_trainings
    from quietq.privacy.checks import count

    budget = qq.Budget(0.9 if epsilon is None else epsilon, 1e-4 if delta is None else delta)
    crowd = 50 if people is None else people
    if method == "all":
        audits = list(plan_trainings(count("runs", runs, 40), budget, crowd))
        checks = [PlannedAudit(title, check=check) for title, check in plan_training_checks(budget).items()]
        return carry_out_audits([*audits, *checks], confidence, out, as_json)
    if people is not None and radius is not None:
        raise qq.InvalidInput("Give --people or --radius, not both.")
    hyper = read_hyper_parameters(method, hyper_parameters) if METHOD_TABLE[method].in_worlds else {}
    run = plan_audit(
        method,
        runs,
        budget,
        crowd,
        confidence=confidence,
        seed=seed or 0,
        options=attack,
        hyper=hyper,
    )
    with audit_progress(method) as progress:
        finding = run(progress=progress)
    tell(finding, attack_in_words(finding), as_json)


def _check_options(method: str, options: dict[str, object]) -> None:
    """Refuses options that an audit of this method has no use for."""
    from quietq.cli.checked_training import learns_from_reward, refused_options

    if method == "all":
        taken = {"people", "epsilon", "delta", "out"}
    elif not METHOD_TABLE[method].in_worlds:
        taken = {"people", "epsilon", "delta", "seed"}
    else:
        taken = set(options) - {"out"} - refused_options(method)
    refuse_others(f"An audit of {method!r} has", options, taken)
    if options.get("view") == "reward" and not learns_from_reward(method):
        raise qq.InvalidInput(
            f"--view reward is for methods that learn from a private reward, which {method!r} is not."
        )


@paper.command()
def reconstruct(
    release: Annotated[
        Path, typer.Argument(help="An agent (agent.qq, or its run's folder) or a private reward (.qq).")
    ],
    world: Annotated[
        str | None,
        typer.Option(help="Whose reward to compare with; default: the agent's own world, and none for a reward."),
    ] = None,
    points: Annotated[
        int | None, typer.Option(help="Points of the grid a coordinate; default 65, or 13 in two.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="A picture of what was recovered (NOT PRIVATE), .png or .svg.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what a thief learns of the reward from a release: attacks, measured against the world's own reward."""
    if plot is not None:
        from quietq.cli import report  # says what to install, if it has to, before anything is computed

        report.require()
        if plot.suffix.lower() not in (".png", ".svg") or not plot.parent.is_dir():
            raise qq.InvalidInput(f"plot must name a .png or .svg file in a folder that exists, not {str(plot)!r}.")
    file = release / folder.AGENT if release.is_dir() else release
    if not file.is_file():
        what = f"{folder.AGENT} in the folder" if release.is_dir() else "file"
        raise qq.InvalidInput(f"There is no {what} {str(release)!r} to attack.")
    from quietq.released.release_file import open_release

    opened = open_release(file)
    if opened.what == "function" and world is None:
        if plot is not None or points is not None:
            raise qq.InvalidInput(
                "--plot and --points need --world, the world whose own reward this one was made from."
            )
        return _show_alone(opened.certificate.standing, as_json)
    from quietq.paper.attacks.reconstruct import attack_agent, attack_reward

    attack = attack_agent(file, world, points) if opened.what == "agent" else attack_reward(file, str(world), points)
    if plot is not None:
        from quietq.cli.report.pictures import plot_reconstruction

        several = f"what a thief learns of the {attack.world.name}'s reward, first of {len(attack.draws)} draws"
        title = several if len(attack.draws) > 1 else None
        plot_reconstruction(attack.draws[0], plot, certificate=attack.certificate, title=title)
    caveat = (
        f"The comparison is with the {attack.world.name}'s own reward, and holds only if the release was made from "
        "that reward: made from ratings or any other, these numbers say nothing of how well it is hidden."
    )
    record = attack.record() | {"caveat": caveat}
    if as_json:
        return answer(True, record)
    _show_reconstruction(record)


def _show_alone(standing: str, as_json: bool) -> None:
    """Says that nothing can be attacked of a private reward of which nobody said what it was made from."""
    caveat = (
        "There is nothing to compare with: the file does not say which reward it was made from. If it was a world's "
        "own, name that world with --world."
    )
    record = {"release": "private reward", "world": None, "standing": standing, "points": None, "draws": 1}
    record |= {"attacks": [], "caveat": caveat, "not_private": None}
    answer(as_json, record, f"The release: private reward. Its standing: {standing}. {caveat}")


def _show_reconstruction(record: dict[str, Any]) -> None:
    many = f", means of {record['draws']} simulated draws" if record["draws"] > 1 else ""
    measured = {"correlation": "correlation", "error (rms)": "rmse", "relative error": "relative_error"}
    rows = [
        (
            one["name"],
            ", ".join(one["blind_to"]) or "-",
            *(f"{one['not_private'][name]:.3f}" for name in measured.values()),
        )
        for one in record["attacks"]
    ]
    title = f"NOT PRIVATE: the {record['world']}'s reward, as recovered from this {record['release']}{many}"
    show_table(title, ("attack", "blind to", *measured), rows, ("attack", "blind to"))
    standing, score = record["standing"], record["not_private"].get("planned_score")
    print(f"The release's standing: {standing}. A relative error of 1 is that of guessing the mean everywhere.")
    if score is not None:
        print(f"Planning on it scores {score:.3f}, where random actions have 0 and the best policy 1.")
    print(record["caveat"])
    print("A private release is meant to tell what people want together; what it hides is any one of them.")
