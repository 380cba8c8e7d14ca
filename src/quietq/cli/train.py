"""`quietq train`."""

import json
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import quietq as qq
from quietq.cli import hyper
from quietq.cli import run_directory as run
from quietq.cli.app import AsJson, app
from quietq.cli.ledger import LedgerSource, LedgerUrl, located
from quietq.cli.ledger import account as charged_account
from quietq.cli.preparation import Preparation, prepare
from quietq.cli.settings import Settings, fresh, resumed

if TYPE_CHECKING:
    from quietq.privacy import Account


@app.command(cls=hyper.WithHyperParameters)
def train(
    context: typer.Context,
    world: Annotated[str | None, typer.Argument(help="One of the worlds that `quietq worlds` lists.")] = None,
    method: Annotated[str | None, typer.Option(help="One of the methods that `quietq methods` lists.")] = None,
    people: Annotated[int | None, typer.Option(help="How many people stand behind the reward; public.")] = None,
    radius: Annotated[
        float | None, typer.Option(help="Instead of people: most that neighbouring rewards differ, however rough.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget, above 0.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Probability that the promise fails, well below 1/people.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of the world to learn from; default 5000.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Trainings side by side; default 1.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Makes training repeatable; noise that protects is new whatever the seed.")
    ] = None,
    simulate: Annotated[
        int | None, typer.Option(help="So many simulated noise draws, for experiments: they protect nobody.")
    ] = None,
    reward: Annotated[
        Path | None, typer.Option(help="Train on this private reward, which `quietq reward` or publish wrote.")
    ] = None,
    noise: Annotated[
        Literal["auto", "path", "k-norm", "knots"] | None,
        typer.Option(help="Noise of the private reward; default path, or k-norm if delta is 0."),
    ] = None,
    pieces: Annotated[int | None, typer.Option(help="Pieces between the knots of k-norm and knots.")] = None,
    rewards: Annotated[
        int | None, typer.Option(help="With --radius: noised rewards that a reward is made of; default 5000.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; default runs/<world>-<method>-<date-time>.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out; nothing else is needed.")
    ] = False,
    every: Annotated[int | None, typer.Option(help="Steps between checkpoints; default a twentieth or so.")] = None,
    log: Annotated[bool, typer.Option("--log", help="Write a log for TensorBoard, in the run's folder.")] = False,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    as_json: AsJson = False,
) -> None:
    """Trains an agent in a world: what it answers may be published if its certificate says so."""
    began = time.monotonic()
    named = {
        "world": world, "method": method, "people": people, "radius": radius, "epsilon": epsilon, "delta": delta,
        "steps": steps, "seeds": seeds, "seed": seed, "simulate": simulate,
        "reward": None if reward is None else str(reward.absolute()), "noise": noise, "pieces": pieces,
        "rewards": rewards, "every": every, "log": log or None, "ledger": located(ledger), "source": source,
    }  # fmt: skip
    given = {name: value for name, value in named.items() if value is not None}
    texts = hyper.given(context)
    settings = resumed(run.read_config(out), given, texts) if resume else fresh(given, texts)
    prepared = prepare(settings)
    folder = out if resume and out is not None else run.choose(out, settings.world, settings.method)
    if sentence := prepared.warning():
        print(f"quietq: warning: {sentence}", file=sys.stderr)
    account = charged_account(settings.ledger, settings.source, f"train/{settings.method}")
    try:
        agent, result = carry_out(prepared, folder, account)
    except KeyboardInterrupt:
        print(f"\nquietq: stopped; to go on: quietq train --resume --out {folder}", file=sys.stderr)
        raise
    certificate = agent.certificate
    if as_json:
        seconds = round(time.monotonic() - began, 3)
        record = {"certificate": certificate.to_dict(), "out": str(folder), "seconds": seconds, "not_private": result}
        print(json.dumps(record))
        return
    print(certificate)
    files = [str(folder / name) for name in run.RELEASED if (folder / name).exists()]
    if certificate.standing == "certified":
        print(f"\nMay be published: {', '.join(files)}")
    else:
        print(f"\nNot private, so not to be published: {', '.join(files)}")
    print(f"What else is in {folder} stays with you; {run.README} says why.")
    print(f"NOT PRIVATE, for you only: score {_spread(result['score'])}, return {_spread(result['return'])}")
    worst = "the worst policy" if prepared.settings.world == "walk" else "random actions"
    print(f"(A score of 0 is that of {worst}, 1 that of the best policy known.)")


def carry_out(
    prepared: Preparation, folder: Path, account: "Account | None" = None
) -> tuple["qq.Agent", dict[str, Any]]:
    """Trains, and writes the run's folder; the scores under the true reward are not private."""
    settings: Settings = prepared.settings
    if (folder / run.AGENT).exists() and not (folder / run.CHECKPOINT).exists():
        raise qq.InvalidInput(f"The run in {str(folder)!r} is finished: to train again would be another release.")
    new = not (folder / run.CONFIG).exists()
    folder.mkdir(parents=True, exist_ok=True)
    run.write_json(folder / run.CONFIG, settings.record())
    run.write_note(folder, None, True)
    try:
        agent = _learned(prepared, folder, account)
    except qq.BudgetExhausted:
        if new and not (folder / run.CHECKPOINT).exists():  # nothing was booked, and nothing is left behind
            shutil.rmtree(folder)
        raise
    sees_truth = agent.method.uses_true_reward
    agent.save(folder / run.AGENT)
    if agent.certificate.standing == "certified":
        qq.publish(agent, folder / run.PUBLISHED)
    run.write_json(folder / run.CERTIFICATE, agent.certificate.to_dict())
    if sees_truth:
        run.write_returns(folder / run.METRICS, agent.not_private["episode_returns"])
    judged = agent.evaluate()
    result = {"score": judged.scores, "return": judged.returns}
    run.write_json(folder / run.SCORES, result)
    run.write_note(folder, agent.certificate.standing, sees_truth)
    return agent, result


def _learned(prepared: Preparation, folder: Path, account: "Account | None") -> "qq.Agent":
    """Draws, or goes on from what was drawn, and trains."""
    settings, agent = prepared.settings, prepared.agent(folder, account)
    return agent.learn(
        settings.steps,
        seeds=settings.seeds,
        simulate=prepared.simulate,
        directory=folder,
        every=settings.every,
        resume=(folder / run.CHECKPOINT).exists(),
        progress=sys.stderr.isatty(),
        log=folder / run.LOG if settings.log else None,
    )


def _spread(values: list[float] | None) -> str:
    """One number, or the mean and the range of several."""
    if not values:
        return "unknown"
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{sum(values) / len(values):.4g} ({min(values):.4g} to {max(values):.4g} over {len(values)} runs)"
