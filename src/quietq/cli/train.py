"""`quietq train`."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import answer, names, warn
from quietq.cli.ledger import absolute, open_account
from quietq.cli.options import (
    JSON,
    LazyCommand,
    Options,
    add_group,
    dashed,
    fields_of,
    hyper_parameters,
    kinds,
    option,
    read_pair,
)
from quietq.registry import METHODS, WORLDS

if TYPE_CHECKING:
    from quietq.cli.checked_training import CheckedTraining

WORLD: Options = {
    "world": Annotated[
        str | None,
        typer.Argument(
            metavar="WORLD", help="One that `quietq worlds` lists, or any Gymnasium id.", autocompletion=names(WORLDS)
        ),
    ],
    "box": option(list[str], "Hold a Gymnasium id's observations to it; once per coordinate.", metavar="LOW HIGH"),
    "env_kwarg": option(list[str], "An argument for a Gymnasium id; may be repeated.", metavar="KEY=VALUE"),
}
RUN: Options = {
    "out": option(Path, "Folder of the run; default runs/<world>-<method>-<date-time>."),
    "resume": option(bool, "Go on with the run in --out; nothing else is needed.", "--resume"),
}


def _commands() -> Iterator[LazyCommand]:
    for name, entry in METHODS.items():
        if entry.in_worlds:
            details = f"Noise: {entry.noise}. Standing: {entry.standing}."
            yield LazyCommand(name, entry.summary, partial(_options, name), partial(train, name), details)


add_group(
    "train",
    "Train an agent. What it answers may be published if its certificate says so. `quietq train METHOD --help` has a "
    "method's options.",
    "METHOD WORLD [OPTIONS]",
    _commands,
)


def _options(method: str) -> Options:
    from quietq.cli.checked_training import Settings

    on_reward, promises = kinds(method)
    parts = ["run", *(["promise", "ledger"] if promises else []), *(["reward", "noise"] if on_reward else [])]
    parts += [] if METHODS[method].standing == "none" else ["simulate"]
    return {**WORLD, **fields_of(Settings, *parts), **RUN, **JSON, **hyper_parameters(method)}


def train(method: str, values: dict[str, Any]) -> None:
    began = time.monotonic()
    as_json, resume, out = values.pop("json", False), values.pop("resume", False), values.pop("out", None)
    training = _resume(method, values, out) if resume else _begin(method, values)
    settings = training.settings
    out = out if resume else folder.choose(out, f"{settings.world}-{method}")
    if sentence := training.warning():
        warn(sentence)
    account = open_account(settings.ledger, settings.source, f"train/{method}")
    try:
        agent, result = carry_out(training, out, account)
    except KeyboardInterrupt:
        again = f"to go on: quietq train {method} --resume --out {out}"
        last = again if training.saves_checkpoints else "a training in a Gymnasium environment has to begin anew"
        print(f"\nquietq: stopped; {last}", file=sys.stderr)
        raise
    certificate = agent.certificate
    seconds = round(time.monotonic() - began, 3)
    record = {"certificate": certificate.to_dict(), "out": str(out), "seconds": seconds, "not_private": result}
    files = ", ".join(str(out / name) for name in folder.RELEASED if (out / name).exists())
    may = "May be published" if certificate.standing == "certified" else "Not private, so not to be published"
    score = "" if result["score"] is None else f"score {_spread(result['score'])}, "
    lines = [certificate, f"\n{may}: {files}", f"What else is in {out} stays with you; {folder.README} says why."]
    lines += [f"NOT PRIVATE, for you only: {score}return {_spread(result['return'])}"]
    if score:
        worst = "the worst policy" if settings.world == "walk" else "random actions"
        lines += [f"(A score of 0 is that of {worst}, 1 that of the best policy known.)"]
    answer(as_json, record, *lines)


def _begin(method: str, values: dict[str, Any]) -> "CheckedTraining":
    if "world" not in values:
        raise qq.InvalidInput("Training needs a world: one that `quietq worlds` lists, or a Gymnasium id.")
    from quietq.cli.checked_training import CheckedTraining, Settings

    if "reward" in values:
        values["reward"] = str(Path(values["reward"]).absolute())
    if "ledger" in values:
        values["ledger"] = absolute(values["ledger"])
    values["box"] = tuple(map(read_pair, values.get("box", ())))
    values["env"] = dict(_read_argument(word) for word in values.pop("env_kwarg", ()))
    return CheckedTraining(Settings.new(method, values))


def _resume(method: str, values: dict[str, Any], out: Path | None) -> "CheckedTraining":
    """A training that was begun; all that it is stands in its config.json."""
    if values:
        word = "the world" if "world" in values else dashed(*values)
        raise qq.InvalidInput(f"--resume takes everything from the run's {folder.CONFIG}: leave out {word}.")
    record = folder.read_config(out)
    if record.get("method") != method:
        raise qq.InvalidInput(f"The run in {str(out)!r} is of the method {record.get('method')!r}, not {method!r}.")
    from quietq.cli.checked_training import CheckedTraining, Settings

    training = CheckedTraining(Settings.of_run(record))
    if not training.saves_checkpoints:
        raise qq.InvalidInput(
            "A Gymnasium environment's state cannot be saved, so there is no checkpoint to go on from: train anew, "
            "in another folder."
        )
    return training


def _read_argument(word: str) -> tuple[str, Any]:
    """An environment's argument: its value is JSON if it can be read as such, or else text."""
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise qq.InvalidInput(f"--env-kwarg must be KEY=VALUE, e.g. gravity=-9.8, not {word!r}.")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def carry_out(training: "CheckedTraining", out: Path, account: Any = None) -> tuple["qq.Agent", dict[str, Any]]:
    """Trains, and writes the run's folder; the scores under the true reward are not private."""
    if (out / folder.AGENT).exists() and not (out / folder.CHECKPOINT).exists():
        raise qq.InvalidInput(f"The run in {str(out)!r} is finished: to train again would be another release.")
    new = not (out / folder.CONFIG).exists()
    out.mkdir(parents=True, exist_ok=True)
    folder.write_config(out, asdict(training.settings))
    folder.write_note(out, None, True, training.saves_checkpoints)
    try:
        agent = _learn(training, out, account)
    except qq.BudgetExhausted:
        if new and not (out / folder.CHECKPOINT).exists():  # nothing was booked, and nothing is left behind
            shutil.rmtree(out)
        raise
    if agent.certificate.standing == "certified":
        qq.publish(agent, out / folder.AGENT)
    else:
        agent.save(out / folder.AGENT)  # marked as NOT PRIVATE
    folder.write_json(out / folder.CERTIFICATE, agent.certificate.to_dict())
    if agent.method.uses_true_reward:
        folder.write_returns(out, agent.not_private["episode_returns"])
    evaluation = agent.evaluate()
    result = {"score": evaluation.scores, "return": evaluation.returns}
    folder.write_json(out / folder.SCORES, result)
    folder.write_note(out, agent.certificate.standing, agent.method.uses_true_reward, training.saves_checkpoints)
    return agent, result


def _learn(training: "CheckedTraining", out: Path, account: Any) -> "qq.Agent":
    settings, agent = training.settings, training.build_agent(out, account)
    return agent.learn(
        settings.steps, seeds=settings.seeds, simulate=training.simulate, every=settings.every,
        directory=out if training.saves_checkpoints else None, resume=(out / folder.CHECKPOINT).exists(),
        progress=sys.stderr.isatty(), log=out / folder.LOG if settings.log else None,
    )  # fmt: skip


def _spread(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{sum(values) / len(values):.4g} ({min(values):.4g} to {max(values):.4g} over {len(values)} runs)"
