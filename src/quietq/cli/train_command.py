"""`quietq paper train`."""

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
from quietq.cli.known_names import WORLDS
from quietq.cli.ledger_command import absolute, open_account
from quietq.cli.options import (
    JSON,
    LazyCommand,
    Options,
    add_group,
    fields_of,
    hyper_parameters,
    kinds,
    option,
    read_pair,
)
from quietq.cli.paper_group import paper
from quietq.paper.method_table import METHOD_TABLE

if TYPE_CHECKING:
    from quietq.cli.checked_training import CheckedTraining
    from quietq.paper import Agent

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
RUN: Options = {"out": option(Path, "Folder of the run; default runs/<world>-<method>-<date-time>.")}


def _commands() -> Iterator[LazyCommand]:
    for name, entry in METHOD_TABLE.items():
        if entry.in_worlds:
            details = f"Noise: {entry.noise}. Standing: {entry.standing}."
            yield LazyCommand(name, entry.summary, partial(_options, name), partial(train, name), details)


add_group(
    paper,
    "train",
    "Train an agent. What it answers may be published if its certificate says so. `quietq paper train METHOD --help` "
    "has a method's options.",
    "METHOD WORLD [OPTIONS]",
    _commands,
)


def _options(method: str) -> Options:
    from quietq.cli.checked_training import Settings

    on_reward, promises = kinds(method)
    parts = ["run", *(["promise", "ledger"] if promises else []), *(["reward", "noise"] if on_reward else [])]
    parts += [] if METHOD_TABLE[method].standing == "none" else ["simulate"]
    return {**WORLD, **fields_of(Settings, *parts), **RUN, **JSON, **hyper_parameters(method)}


def train(method: str, values: dict[str, Any]) -> None:
    began = time.monotonic()
    as_json, out = values.pop("json", False), values.pop("out", None)
    training = _check(method, values)
    settings = training.settings
    out = folder.choose(out, f"{settings.world}-{method}")
    if sentence := training.warning():
        warn(sentence)
    account = open_account(settings.ledger, settings.source, f"train/{method}")
    agent, result = carry_out(training, out, account)
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


def _check(method: str, values: dict[str, Any]) -> "CheckedTraining":
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


def _read_argument(word: str) -> tuple[str, Any]:
    """An environment's argument: its value is JSON if it can be read as such, or else text."""
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise qq.InvalidInput(f"--env-kwarg must be KEY=VALUE, e.g. gravity=-9.8, not {word!r}.")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def carry_out(training: "CheckedTraining", out: Path, account: Any = None) -> tuple["Agent", dict[str, Any]]:
    """Trains, and writes the run's folder; the scores under the true reward are not private."""
    out.mkdir(parents=True, exist_ok=True)
    folder.write_config(out, asdict(training.settings))
    folder.write_note(out, None, True)
    agent, before = None, _charges(account)
    try:
        agent = training.build_agent(out, account)
        _learn(training, agent, out)
        return agent, _write(agent, out)
    except qq.BudgetExhausted:  # nothing was booked, and nothing is left behind
        shutil.rmtree(out)
        raise
    except KeyboardInterrupt:
        spent = agent is not None and agent.spent if account is None else _charges(account) > before
        print(f"\nquietq: stopped: {_what_is_left(training, out, spent)}.", file=sys.stderr)
        raise SystemExit(130) from None  # it has said what there is to say


def _learn(training: "CheckedTraining", agent: "Agent", out: Path) -> None:
    settings = training.settings
    log = out / folder.LOG if settings.log else None
    agent.learn(settings.steps, seeds=settings.seeds, simulate=training.simulate, progress=sys.stderr.isatty(), log=log)


def _write(agent: "Agent", out: Path) -> dict[str, Any]:
    """Writes what was released, and then what is not private, which it gives back."""
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
    folder.write_note(out, agent.certificate.standing, agent.method.uses_true_reward)
    return result


def _charges(account: Any) -> set[str]:
    """The ids of what a ledger booked for trainings by this method: it knows of a charge before this process does."""
    if account is None:
        return set()
    return {one.id for one in account.ledger.balance(account.source).bookings if one.method == account.method}


def _what_is_left(training: "CheckedTraining", out: Path, spent: bool) -> str:
    """What a training that was stopped cost, and what there is of it: noise that is left over is never kept."""
    if (out / folder.AGENT).exists():
        return f"the agent is trained, and in {out / folder.AGENT}; only its scores are missing"
    if (out / folder.REWARD).exists():
        again = f"--reward {out / folder.REWARD} trains on it, and spends nothing"
        return f"the training is lost, but not the private reward that was spent on: {again}"
    if not spent or training.budget is None:
        return "the training is lost; nothing was spent"
    budget = f"epsilon = {training.budget.epsilon:g} and delta = {training.budget.delta:g}"
    return f"the training is lost, and {budget} were spent on it, because its noise had been drawn"


def _spread(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{sum(values) / len(values):.4g} ({min(values):.4g} to {max(values):.4g} over {len(values)} runs)"
