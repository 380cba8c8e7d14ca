"""`quietq world`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import quietq as qq
from quietq.cli.app import answer, number
from quietq.cli.ledger_command import open_account
from quietq.cli.options import JSON, Options, add_command, dashed, option
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
    from quietq.privacy import Account
    from quietq.released import PrivateWorld
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
    "degree": option(
        int, "Of the polynomials of state and action that changes of the state are made of: a higher one has more "
        "noise; default 1.",
    ),
    "wanted": option(
        float, "Return that a plan must be worth: a tenth of the budget (of mu squared) then pays for a private go or "
        "no-go.",
    ),
    "steps": option(int, "Of an episode of that plan; default 300."),
    "go": option(
        float, "From which share of people on the plan is a go, above 0 and at most 1; without it, no verdict is given."
    ),
    "policy": option(Path, "A file for that plan, as a policy that may leave: it promises what world and check cost."),
    "made_up": option(
        Path, "Only write made-up sessions to this CSV file, to try all of this on: people push CartPole at random.",
        metavar="FILE",
    ),
    **PROMISE,
    **results("world"),
    **JSON,
}  # fmt: skip


def world(values: dict[str, Any]) -> None:
    if (made_up := values.pop("made_up", None)) is not None:
        return _make_up(made_up, values)
    as_json, check, given = values.pop("json", False), values.pop("check", False), dict(values)
    files, plot, policy = values.get("files", []), values.pop("plot", None), values.pop("policy", None)
    wanted = _read_wanted(values)
    if policy is not None and wanted is None:
        raise qq.InvalidInput("--policy is for a plan that is checked: say with --wanted what it must be worth.")
    model = qq.WorldModel(**{name: values.pop(name) for name in ("degree",) if name in values})
    if check:
        sessions = read_sessions(values)
        model.feature_map(sessions.spaces)  # refused now rather than later
        counts = sessions.not_private
        return answer(as_json, {"not_private": counts}, NOTHING_SPENT, counts_in_words(counts))
    require("A private world needs", values, "epsilon", "delta", "out")
    budget, out = qq.Budget(values.pop("epsilon"), values.pop("delta")), values.pop("out")
    account = open_account(values.pop("ledger", None), values.pop("source", None), "world")
    check_outputs(files, out, plot, policy)
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
            checked = _check(private, sessions, part, account, *wanted, out, policy)
    plot = draw(plot, partial(_plot, private, checked))
    record = {
        **_record(private, checked), "certificate": private.certificate.to_dict(), "out": str(out), "hash": name,
        "plot": None if plot is None else str(plot), "policy": None if policy is None else str(policy),
        "options": plain({**given, "files": [*map(str, files)]}),
        "not_private": sessions.not_private,
    }  # fmt: skip
    written = f"\nMay be published: {' and '.join(str(one) for one in (out, plot, policy) if one is not None)}"
    lines = [*_in_words(private), "", private.certificate]
    if checked is not None:
        lines = [_verdict(checked), *lines, f"World and check together are ({budget.epsilon:g}, {budget.delta:g})-DP."]
    answer(as_json, record, *lines, written, counts_in_words(sessions.not_private))


def _make_up(path: Path, values: dict[str, Any]) -> None:
    from quietq.feedback.synthetic import write_cart_pole_sessions

    as_json, people = values.pop("json", False), values.pop("people", 500)
    if values:
        raise qq.InvalidInput(f"--made-up only writes a file, of --people people: leave {dashed(*values)} out.")
    if path.exists():
        raise qq.InvalidInput(f"There is a file {str(path)!r} already, which made-up sessions do not replace.")
    rows = write_cart_pole_sessions(path, people)
    answer(as_json, {"out": str(path), "rows": rows}, f"Made up {rows:,} steps of {people:,} people: {path}")


def _read_wanted(values: dict[str, Any]) -> tuple[float, int, float | None] | None:
    """The return that is wanted, for episodes of how many steps, and by how many people."""
    from quietq.privacy.checks import count, real

    wanted, steps, go = (values.pop(name, None) for name in ("wanted", "steps", "go"))
    if wanted is None and (steps is not None or go is not None):
        raise qq.InvalidInput(
            "--steps and --go are of a plan that is checked: say with --wanted what it must be worth."
        )
    if go is not None and not 0 < real("go", go) <= 1:
        raise qq.InvalidInput(f"--go must be a share of the people, above 0 and at most 1, not {go:g}.")
    return None if wanted is None else (real("wanted", wanted), count("steps", 300 if steps is None else steps), go)


def _divide(budget: "qq.Budget", account: "Account | None") -> "tuple[qq.Budget, qq.Budget, Account]":
    """What pays for the world and what for its check, from one account that covers both; refused if it does not."""
    if budget.is_pure:
        raise qq.InvalidInput("A world of everybody's steps has Gaussian noise: delta must be above 0.")
    from quietq.privacy import Cost

    account = qq.Accountant(budget) if account is None else account
    if not account.spending.covers(both := Cost.gaussian(budget.mu)):
        raise qq.BudgetExhausted(f"{account.spending.shortage(both)}; nothing was booked.")
    whole, part = budget.split(1 - CHECKED, CHECKED)
    return whole, part, account


def _check(
    private: "PrivateWorld", sessions: "qq.Sessions", budget: "qq.Budget", account: "Account | None", wanted: float,
    steps: int, go: float | None, out: Path, policy: Path | None,
) -> "CheckedPlan":  # fmt: skip
    """Of the best linear policy that is found in the world, which is written too if there is a file for it."""
    try:
        plan = qq.plan_linear(private, steps=steps)
        checked = qq.check_plan(private, sessions, plan, wanted, budget, steps=steps, go=go, account=account)
        if policy is not None:
            qq.publish(plan, policy, trained_on=private, check=checked)
        return checked
    except qq.QuietqError as error:
        raise qq.QuietqError(
            f"The world is released, and written to {out}, but it was not checked, or its plan not written: {error}"
        ) from error


def _record(private: "PrivateWorld", checked: "CheckedPlan | None") -> dict[str, Any]:
    from quietq.cli.report.world_picture import spreads

    moved = {name: column.tolist() for name, column in spreads(private)._asdict().items()}
    moved["coordinates"] = list(private.moved)
    check = None if checked is None else checked.to_dict()
    return {"errors": private.errors.to_dict(), "spreads": moved, "check": check}


def _verdict(checked: "CheckedPlan") -> str:
    """A noisy share of people, with its interval; a verdict only by a threshold that the user gave."""
    low, high = checked.interval
    share, wanted, promised = (number(one, 3) for one in (checked.share, checked.wanted, checked.promised))
    said = (
        f"by their own steps, a plan that was made in this world is worth at least {wanted} for a share {share} of the "
        f"people ({number(low, 3)} to {number(high, 3)}: 95 %, of the noise alone). The world itself promises "
        f"{promised}."
    )
    if checked.threshold is None:
        return (
            f"No verdict: {said} From which share on that is enough differs between systems: give it beforehand with "
            "--go (docs/sessions.md says how to choose it)."
        )
    close = " It lies within the interval, so noise alone may have decided." if checked.is_close else ""
    return f"{'GO' if checked.go else 'NO GO'} by your --go {checked.threshold:g}: {said}{close}"


def _in_words(private: "PrivateWorld") -> list[str]:
    """What was released, for whoever has to decide whether to train in it."""
    from quietq.cli.report.world_picture import spreads

    lines, found = [], spreads(private)
    for place, i in enumerate(private.moved):
        noise, residual = (number(float(one[place]), 2) for one in (found.noise, found.residual))
        lines.append(
            f"Steps of {private.spaces.state_names[i]}: noise moves what is expected by about {noise}; people's own "
            f"scatter around it by {residual}."
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
