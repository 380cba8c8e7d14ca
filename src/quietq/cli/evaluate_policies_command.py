"""`quietq evaluate-policies`."""

from pathlib import Path
from typing import Any

import quietq as qq
from quietq.cli.app import answer, number, show_table
from quietq.cli.ledger_command import LEDGER, SOURCE, open_account
from quietq.cli.options import JSON, Options, add_command, dashed, option
from quietq.cli.releasing import NEEDED
from quietq.cli.session_options import SESSIONS, read_sessions

OPTIONS: Options = {
    **SESSIONS,
    "policy": option(
        list[str], "A policy: the action that is always taken, or a published agent; give it once per policy." + NEEDED,
        metavar="NAME=ACTION or NAME=FILE.qq",
    ),
    "behaviour": option(
        str, "Probabilities with which actions were chosen, in the order of their list, or learnt, for a tenth of the "
        "budget; default: the column --propensity.", metavar="P,P,...",
    ),
    "returns": option(tuple[float, float], "Range that each person's weighted return is held to; public." + NEEDED),
    "discount": option(float, "Of later rewards; default 1."),
    "per_step": option(bool, "Divide each episode's return by its number of steps.", "--per-step"),
    "against": option(str, "Policy that all others are compared with.", metavar="NAME"),
    "confidence": option(float, "Of all intervals together; default 0.95."),
    "epsilon": option(float, "Privacy budget: how much any one person's data may matter, above 0." + NEEDED),
    "delta": option(float, "Probability that the promise fails; well below 1/people." + NEEDED),
    "out": option(Path, "The file that may leave: values and their certificate."),
    "ledger": option(str, LEDGER),
    "source": option(str, SOURCE),
    **JSON,
}  # fmt: skip


def evaluate_policies(values: dict[str, Any]) -> None:
    as_json, out = values.pop("json", False), values.pop("out", None)
    if missing := [name for name in ("policy", "returns", "epsilon", "delta") if name not in values]:
        raise qq.InvalidInput(f"Evaluating policies needs {dashed(*missing)}.")
    budget = qq.Budget(values.pop("epsilon"), values.pop("delta"))
    account = open_account(values.pop("ledger", None), values.pop("source", None), "evaluate-policies")
    policies = dict(map(_read_policy, values.pop("policy")))
    behaviour = _read_behaviour(values.pop("behaviour", None))
    sessions = read_sessions(values, next_state=[])
    found = qq.evaluate_policies(sessions, policies, budget, behaviour=behaviour, account=account, **values)
    record = {**found.to_dict(), "not_private": sessions.not_private, "out": None if out is None else str(out)}
    if out is not None:
        record["hash"] = qq.publish(found, out)
    if as_json:
        return answer(True, record)
    rows = [(name, *map(number, one)) for name, one in found.values.items()]
    show_table("", ("policy", "value", "from", "to"), rows, ("policy",))
    answer(False, record, found.certificate, *([] if out is None else [f"\nMay be published: {out}"]))


def _read_policy(word: str) -> tuple[str, Any]:
    name, equals, given = word.partition("=")
    if not equals or not name or not given:
        raise qq.InvalidInput(f"--policy must be NAME=ACTION or NAME=FILE.qq, e.g. --policy always=high, not {word!r}.")
    return name, qq.load(given) if given.endswith(".qq") else given


def _read_behaviour(word: str | None) -> Any:
    import numpy as np

    from quietq.feedback.trajectories import Cells

    if word is None:
        return None
    if word == "learnt":
        return Cells(1, lambda states: np.zeros(len(states)))
    try:
        chosen = np.array([float(one) for one in word.split(",")])
    except ValueError:
        raise qq.InvalidInput(
            f"--behaviour must be numbers such as 0.5,0.3,0.2, one for each action, or learnt, not {word!r}."
        ) from None
    return lambda states: np.tile(chosen, (len(states), 1))


add_command(
    "evaluate-policies", "Tell what policies would have been worth to the people of logged sessions.",
    lambda: OPTIONS, evaluate_policies,
)  # fmt: skip
