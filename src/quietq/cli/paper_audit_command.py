"""`quietq paper audit`: attacks on trainings."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import quietq as qq
from quietq.cli.audit_command import ALL, BUDGET, NOISE, ONE, OUT, PAIR, RUNS, bar, carry_out, in_short, promise, tell
from quietq.cli.options import JSON, LazyCommand, Options, add_group, fields_of, hyper_parameters, kinds, option
from quietq.cli.paper_group import paper
from quietq.paper.method_table import METHOD_TABLE

EVALUATION = "evaluation"
CACHE: Options = {"cache": option(bool, "Keep results, and go on where an audit was stopped.", "--cache/--no-cache")}
SEEN = Literal["final", "policy", "every"]
VIEW = option(SEEN, "What is seen: final values (default), the policy, or every release.")
VIEW_OF_REWARD = option(Literal["reward", SEEN], "What is seen: the private reward (default), or of the training.")
ATTACK: Options = {
    **PAIR,
    "queries": option(int, "States a coordinate that are asked for."),
    "moments": option(int, "Looks of the adversary, with --view every; default 10."),
    "score": option(Literal["mean", "learned"], "Mean of what is seen, or learned on a quarter of it."),
    "public_walk": option(bool, "Is the walk known? Default yes, but of published no.", "--public-walk/--secret-walk"),
    "steps": option(int, "Steps of each training; default 5000."),
}


def _commands() -> Iterator[LazyCommand]:
    yield LazyCommand(ALL, "Every method: a table and a plot.", partial(_options, ALL), audit_all)
    for name, one in METHOD_TABLE.items():
        if one.standing != "none":
            yield LazyCommand(name, one.summary, partial(_options, name), partial(audit, name))


add_group(
    paper,
    "audit",
    "Measure what a method gives away. It is trained under two neighbouring rewards, and the audit tries to tell them "
    "apart. `quietq paper audit METHOD --help` has a method's options.",
    "METHOD [OPTIONS]",
    _commands,
)


def _options(name: str) -> Options:
    if name == ALL:
        return {**RUNS, **BUDGET, **OUT, **CACHE, **JSON}
    if name == EVALUATION:
        return {**RUNS, **BUDGET, **ONE, **JSON}
    from quietq.cli.checked_training import Settings

    on_reward, promises = kinds(name)
    promised = {**fields_of(Settings, "promise"), **BUDGET} if promises else {}
    noise = NOISE if on_reward else {}
    view = {"view": VIEW_OF_REWARD if on_reward else VIEW}
    return {**RUNS, **promised, **noise, **ATTACK, **view, **ONE, **CACHE, **JSON, **hyper_parameters(name)}


def audit(method: str, values: dict[str, Any]) -> None:
    from quietq.paper.agents.hyper_parameters import read_options
    from quietq.paper.attacks.attack_plan import plan_audit
    from quietq.paper.methods import METHODS

    if "people" in values and "radius" in values:
        raise qq.InvalidInput("Give --people or --radius, not both.")
    as_json = values.pop("json", False)
    hyper = read_options(METHODS[method], values) if method in METHODS else {}
    common = {name: values[name] for name in ("confidence", "seed") if name in values}
    options = {name: value for name, value in values.items() if name not in (*hyper, "people", "epsilon", "delta")}
    run = plan_audit(method, *promise(values), **common, options=options, hyper=hyper, folder=_find_cache(values))
    with bar(method) as progress:
        finding = run(progress=progress)
    tell(finding, in_short(finding), as_json)


def audit_all(values: dict[str, Any]) -> None:
    from quietq.audit import PlannedAudit
    from quietq.paper.attacks.attack_plan import plan_training_checks, plan_trainings
    from quietq.privacy.checks import count

    runs, budget, people = promise(values)
    audits = list(plan_trainings(count("runs", runs, 40), budget, people, _find_cache(values)))
    checks = [PlannedAudit(title, check=check) for title, check in plan_training_checks(budget).items()]
    carry_out([*audits, *checks], values)


def _find_cache(values: dict[str, Any]) -> Path | None:
    """Where trainings are kept; None if they are not."""
    from quietq.paper.attacks.on_trainings import cache_folder

    place = cache_folder() if values.get("cache", True) else None
    return None if place is None else place / "audit"
