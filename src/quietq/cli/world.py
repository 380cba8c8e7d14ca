"""`quietq world`."""

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import quietq as qq
from quietq.cli.app import answer, number
from quietq.cli.ledger import open_account
from quietq.cli.options import JSON, Options, add_command, option
from quietq.cli.releasing import (
    NOTHING_SPENT,
    PROMISE,
    check_outputs,
    counts_in_words,
    draw,
    plain,
    publish,
    reading,
    require,
    results,
)
from quietq.cli.session_options import SESSIONS, read_sessions

if TYPE_CHECKING:
    from quietq.mechanisms import PrivateWorld
    from quietq.privacy import Account
    from quietq.worlds import CheckedPlan

CHECKED = 0.1
"""Of mu squared, for the check of a plan."""
OPTIONS: Options = {
    **{name: one for name, one in SESSIONS.items() if name != "propensity"},
    "next_state": option(
        list[str], "Column of the next state, once per coordinate; default: the state of the episode's next row.",
        metavar="COLUMN",
    ),
    "action": option(
        list[str], "Column that says what was done; once per coordinate where actions are numbers; default action.",
        metavar="COLUMN",
    ),
    "actions": option(
        list[str], "Their public list: a file with one name per line, or once per action. This or --action-box.",
        metavar="FILE",
    ),
    "action_box": option(
        list[str], "Where actions lie that are numbers: once for all coordinates, or once for each; public.",
        metavar="LOW HIGH",
    ),
    "degree": option(int, "Of the polynomials of state and action that changes of the state are made of; default 1."),
    "wanted": option(
        float, "Return that a plan must be worth: a tenth of the budget (of mu squared) then pays for a private go or "
        "no-go.",
    ),
    "steps": option(int, "Of an episode of that plan; default 300."),
    **PROMISE,
    **results("world"),
    **JSON,
}  # fmt: skip


def world(values: dict[str, Any]) -> None:
    as_json, check, given = values.pop("json", False), values.pop("check", False), dict(values)
    files, plot = values.get("files", []), values.pop("plot", None)
    wanted = _read_wanted(values)
    model = qq.WorldModel(**{name: values.pop(name) for name in ("degree",) if name in values})
    if check:
        sessions = read_sessions(values)
        model.feature_map(sessions.spaces)  # refused now rather than later
        counts = sessions.not_private
        return answer(as_json, {"not_private": counts}, NOTHING_SPENT, counts_in_words(counts))
    require("A private world needs", values, "epsilon", "delta", "out")
    budget, out = qq.Budget(values.pop("epsilon"), values.pop("delta")), values.pop("out")
    account = open_account(values.pop("ledger", None), values.pop("source", None), "world")
    check_outputs(files, out, plot)
    with reading("sessions") as (told, say):
        sessions = read_sessions(values, progress=told)
        say("Making the world private")
        whole, part = budget, None
        if wanted is not None:
            whole, part, account = _divide(budget, account)
        private = qq.privatise(sessions, whole, world=model, account=account)
        name = publish(private, out)
        checked = None
        if wanted is not None and part is not None:
            say("Checking a plan")
            checked = _check(private, sessions, part, account, *wanted, out)
    plot = draw(plot, partial(_plot, private, checked))
    record = {
        **_record(private, checked), "certificate": private.certificate.to_dict(), "out": str(out), "hash": name,
        "plot": None if plot is None else str(plot), "options": plain({**given, "files": [*map(str, files)]}),
        "not_private": sessions.not_private,
    }  # fmt: skip
    written = f"\nMay be published: {out}" + ("" if plot is None else f" and {plot}")
    lines = [*_in_words(private), "", private.certificate]
    if checked is not None:
        lines = [_verdict(checked), *lines, f"World and check together are ({budget.epsilon:g}, {budget.delta:g})-DP."]
    answer(as_json, record, *lines, written, counts_in_words(sessions.not_private))


def _read_wanted(values: dict[str, Any]) -> tuple[float, int] | None:
    """The return that is wanted, and for episodes of how many steps."""
    from quietq.privacy.checks import count, real

    wanted, steps = values.pop("wanted", None), values.pop("steps", None)
    if wanted is None and steps is not None:
        raise qq.InvalidInput("--steps are those of a plan that is checked: say with --wanted what it must be worth.")
    return None if wanted is None else (real("wanted", wanted), count("steps", 300 if steps is None else steps))


def _divide(budget: "qq.Budget", account: "Account | None") -> "tuple[qq.Budget, qq.Budget, Account]":
    """What pays for the world and what for its check, from one account that covers both; refused if it does not."""
    if budget.is_pure:
        raise qq.InvalidInput("A world of everybody's steps has Gaussian noise: delta must be above 0.")
    from quietq.privacy import Cost

    account = qq.Accountant(budget) if account is None else account
    if not account.spending.covers(both := Cost.gaussian(budget.mu)):
        raise qq.BudgetExhausted(f"{account.spending.shortage(both)}; nothing was booked.")
    parts = (budget.mu * math.sqrt(share) * (1 - 1e-9) for share in (1 - CHECKED, CHECKED))  # rounding adds up too
    whole, part = (qq.Budget.from_mu(mu, budget.delta) for mu in parts)
    return whole, part, account


def _check(
    private: "PrivateWorld", sessions: "qq.Sessions", budget: "qq.Budget", account: "Account | None", wanted: float,
    steps: int, out: Path,
) -> "CheckedPlan":  # fmt: skip
    """Of the best linear policy that is found in the world."""
    try:
        plan = qq.plan_linear(private, steps=steps)
        return qq.check_plan(private, sessions, plan, wanted, budget, steps=steps, account=account)
    except qq.QuietqError as error:
        raise qq.QuietqError(f"The world is released, and written to {out}, but it was not checked: {error}") from error


def _record(private: "PrivateWorld", checked: "CheckedPlan | None") -> dict[str, Any]:
    from quietq.cli.report.world_picture import spreads

    moved = {name: column.tolist() for name, column in spreads(private)._asdict().items()}
    moved["coordinates"] = list(private.moved)
    check = None if checked is None else checked.to_dict()
    return {"errors": private.errors.to_dict(), "spreads": moved, "check": check}


def _verdict(checked: "CheckedPlan") -> str:
    from quietq.worlds.plan_check import GO

    share, error, wanted, promised = (
        number(one, 3) for one in (checked.share, checked.error, checked.wanted, checked.promised)
    )
    return (
        f"{'GO' if checked.go else 'NO GO'}: by their own steps, a plan that was made in this world is worth at least "
        f"{wanted} for a share {share} of the people, with noise of deviation {error}; from {GO:g} on it is a go. The "
        f"world itself promises {promised}."
    )


def _in_words(private: "PrivateWorld") -> list[str]:
    """What was released, for whoever has to decide whether to train in it."""
    from quietq.cli.report.world_picture import spreads

    lines, found = [], spreads(private)
    for place, i in enumerate(private.moved):
        noise, residual = (number(float(one[place]), 2) for one in (found.noise, found.residual))
        lines.append(
            f"Steps of {private.spaces.state_names[i]}: noise moves what is expected by about {noise}; people's own scatter around it by "
            f"{residual}."
        )
    lines += private.errors.in_words(private.spaces.low, private.spaces.high)
    return lines if private.ends is not None else [*lines, "Episodes never end by themselves."]


def _plot(private: "PrivateWorld", checked: "CheckedPlan | None", plot: Path) -> None:
    from quietq.cli.report.world_picture import plot_world

    plot_world(private, plot, check=checked)


add_command(
    "world", "Make a world of people's logged sessions private, once: to train in with any RL library.",
    lambda: OPTIONS, world,
)  # fmt: skip
