"""`quietq world` and `quietq evaluate-policies`: what is made of people's logged sessions."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import quietq as qq
from quietq.cli.app import answer, app, number, show_table
from quietq.cli.config import Config, repeat, spends_again
from quietq.cli.ledger_command import open_account
from quietq.cli.options import (
    ActionBox,
    ActionColumns,
    Actions,
    AsJson,
    Box,
    Check,
    Cut,
    End,
    Engine,
    Episode,
    Every,
    HighReward,
    LedgerSource,
    LedgerUrl,
    LowReward,
    NeededDelta,
    NeededEpsilon,
    NeededPeople,
    Out,
    Person,
    Plot,
    RewardColumn,
    SessionFiles,
    State,
    StepColumn,
    missing,
    read_assignment,
)
from quietq.cli.releasing import check_outputs, counts_in_words, draw, publish, read_sessions, tell_counts
from quietq.progress import progress_line

if TYPE_CHECKING:
    import numpy as np

    from quietq.feedback.cells import Cells
    from quietq.privacy import Account
    from quietq.released.publishable import Publishable
    from quietq.worlds import CheckedPolicy

COLUMN = "COLUMN"


@app.command(rich_help_panel="Make people's data private")
def world(
    context: typer.Context,
    files: SessionFiles = None,
    people: NeededPeople = None,
    person: Person = None,
    episode: Episode = None,
    step: StepColumn = None,
    every: Every = None,
    state: State = None,
    next_state: Annotated[
        list[str] | None,
        typer.Option(
            metavar=COLUMN,
            help="Column of the next state, once per coordinate; default: the state of the episode's next row.",
        ),
    ] = None,
    box: Box = None,
    action: ActionColumns = None,
    actions: Actions = None,
    action_box: ActionBox = None,
    reward: RewardColumn = None,
    low: LowReward = None,
    high: HighReward = None,
    end: End = None,
    cut: Cut = None,
    engine: Engine = None,
    degree: Annotated[
        int | None,
        typer.Option(
            help="Of the polynomials of state and action that changes of the state are made of: a higher one has more "
            "noise; default 1."
        ),
    ] = None,
    wanted: Annotated[
        float | None,
        typer.Option(
            help="Return that a plan must be worth: a tenth of the budget (of mu squared) then pays for a private go "
            "or no-go."
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Of an episode of that plan; default 300.")] = None,
    go: Annotated[
        float | None,
        typer.Option(
            help="From which share of people on their votes are for the plan, above 0 and at most 1; default 0.5."
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            help="File for that plan, as a policy that can be published with the certificate of world and check."
        ),
    ] = None,
    epsilon: NeededEpsilon = None,
    delta: NeededDelta = None,
    check: Check = False,
    out: Out = None,
    plot: Plot = None,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Make a world of people's logged sessions private, once: to train in with any RL library."""
    from quietq.cli.report.pictures import plot_world
    from quietq.privacy.checks import count, real
    from quietq.released.private_world import spreads
    from quietq.worlds.policy_check import GO, checked_go

    if wanted is None and (steps, go, policy) != (None, None, None):
        raise qq.InvalidInput(
            "--steps, --go and --policy are of a plan that is checked: say with --wanted what it must be worth."
        )
    # What `check` would refuse is refused now: then the world would be paid for already.
    steps = 300 if steps is None else count("steps", steps)
    if wanted is not None:
        real("wanted", wanted)
    go = checked_go(GO if go is None else go)
    model = qq.WorldModel() if degree is None else qq.WorldModel(degree=degree)
    if check:
        sessions = read_sessions(context.params, next_state=next_state)
        model.feature_map(sessions.spaces)  # refused now rather than later
        return tell_counts(sessions.not_private, as_json)
    if epsilon is None or delta is None or out is None:
        raise missing("A private world needs", epsilon=epsilon, delta=delta, out=out)
    budget = qq.Budget(epsilon, delta)
    account = open_account(ledger, source, "world")
    for_world, for_check = budget, None
    if wanted is not None:
        for_world, for_check, account = _divide(budget, account)
    check_outputs(files or [], out=out, plot=plot, policy=policy)
    checked = None
    with progress_line("Reading sessions") as say:
        sessions = read_sessions(
            context.params, next_state=next_state, progress=lambda rows: say(f"Reading sessions: {rows:,} rows")
        )
        say("Making the world private")
        private = qq.privatise(sessions, for_world, world=model, account=account)
        name = publish(private, out)
        if wanted is not None and for_check is not None:
            say("Checking a plan")
            checked = _check(private, sessions, wanted, for_check, steps, go, account, out, policy)
    plot = draw(plot, partial(plot_world, private))
    found = spreads(private, private.box, private.moved)
    record = {
        "errors": private.errors.to_dict(),
        "spreads": {name: column.tolist() for name, column in found._asdict().items()}
        | {"coordinates": list(private.moved)},
        "check": None if checked is None else checked.to_dict(),
        "certificate": private.certificate.to_dict(),
        "out": str(out),
        "hash": name,
        "plot": None if plot is None else str(plot),
        "policy": None if policy is None else str(policy),
        "again": repeat(context),
        "not_private": sessions.not_private,
    }
    lines: list[object] = [] if checked is None else [_verdict(checked)]
    lines += [*_describe(private), "", private.certificate]
    if checked is not None:
        lines.append(f"World and check together are ({budget.epsilon:g}, {budget.delta:g})-DP.")
    lines.append(f"\nMay be published: {' and '.join(str(one) for one in (out, plot, policy) if one is not None)}")
    answer(as_json, record, *lines, spends_again(context), counts_in_words(sessions.not_private))


def _divide(budget: "qq.Budget", account: "Account | None") -> "tuple[qq.Budget, qq.Budget, Account]":
    """Splits what pays for the world from what pays for its check; refused if one account does not cover both."""
    both = qq.Cost.gaussian(budget.mu)
    account = qq.Accountant(budget) if account is None else account
    if not account.spending.covers(both):
        raise qq.BudgetExhausted(f"{account.spending.shortage(both)}; nothing was booked.")
    for_world, for_check = budget.split(0.9, 0.1)
    return for_world, for_check, account


def _check(
    private: "qq.PrivateWorld",
    sessions: "qq.Sessions",
    wanted: float,
    budget: "qq.Budget",
    steps: int,
    go: float,
    account: "Account | None",
    out: Path,
    policy: Path | None,
) -> "CheckedPolicy":
    """Checks the best linear policy that is found in the world, and writes it if there is a file for it."""
    try:
        plan = qq.plan_linear(private, steps=steps)
        checked = qq.check(plan, sessions, budget, wanted, steps=steps, go=go, account=account)
        if policy is not None:
            qq.publish(plan, policy, trained_on=private, check=checked)
        return checked
    except qq.QuietqError as error:
        raise qq.QuietqError(
            f"The world is released, and written to {out}, but it was not checked, or its plan not written: {error}"
        ) from error


def _describe(private: "qq.PrivateWorld") -> list[str]:
    """What was released, for whoever has to decide whether to train in it."""
    lines = private.errors.of_steps([private.spaces.state_names[i] for i in private.moved])
    lines += private.errors.in_words(private.spaces.low, private.spaces.high)
    return lines if private.ends is not None else [*lines, "Episodes never end by themselves."]


def _verdict(checked: "CheckedPolicy") -> str:
    """Both opinions with their noise, and the verdict by the rule and the share that the user gave."""
    low, high = checked.interval
    share, wanted, promised = (number(one, 3) for one in (checked.share, checked.wanted, checked.promised))
    said = [
        f"{'GO' if checked.go else 'NO GO'} by --go {checked.threshold:g}: by their own steps, a plan that was made in "
        f"this world is worth at least {wanted} for a share {share} of the people ({number(low, 3)} to "
        f"{number(high, 3)}: 95 %, of the noise alone)."
    ]
    if low <= checked.threshold <= high:
        said.append("The share that you chose lies within, so noise alone may have decided.")
    if checked.agreement is not None and checked.z_score is not None:
        said.append(
            f"Whoever acted more as the plan does did better by an agreement of {number(checked.agreement, 3)} (-1 to "
            f"1; z-score {number(checked.z_score, 2)})."
        )
    said.append(f"The world itself is {promised}.")
    return " ".join(said)


@app.command(rich_help_panel="Before you spend anything")
def synthetic(
    out: Annotated[Path, typer.Argument(help="A new CSV file.")],
    people: Annotated[int, typer.Option(help="How many people there are in it.")] = 500,
    as_json: AsJson = False,
) -> None:
    """Write sessions of people who do not exist, to try `world` on: they push CartPole at random."""
    from quietq.feedback.synthetic import write_cart_pole_sessions

    if out.exists():
        raise qq.InvalidInput(f"There is a file {str(out)!r} already, which synthetic sessions do not replace.")
    rows = write_cart_pole_sessions(out, people)
    answer(as_json, {"out": str(out), "rows": rows}, f"Wrote {rows:,} steps of {people:,} synthetic people: {out}")


@app.command("evaluate-policies", rich_help_panel="Make people's data private")
def evaluate_policies(
    context: typer.Context,
    files: SessionFiles = None,
    people: NeededPeople = None,
    person: Person = None,
    episode: Episode = None,
    step: StepColumn = None,
    every: Every = None,
    state: State = None,
    box: Box = None,
    action: ActionColumns = None,
    actions: Actions = None,
    reward: RewardColumn = None,
    low: LowReward = None,
    high: HighReward = None,
    end: End = None,
    cut: Cut = None,
    propensity: Annotated[
        str | None,
        typer.Option(metavar=COLUMN, help="Column of the probability with which the action was chosen."),
    ] = None,
    engine: Engine = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ACTION",
            help="A policy: the action that is always taken, or a published agent, NAME=FILE.qq; give it once per "
            "policy. Required.",
        ),
    ] = None,
    behaviour: Annotated[
        str | None,
        typer.Option(
            metavar="P,P,...",
            help="Probabilities with which actions were chosen, in the order of their list, or learnt, for a tenth of "
            "the budget; default: the column --propensity.",
        ),
    ] = None,
    returns: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Range that each person's weighted return is clipped to; public. Required."),
    ] = None,
    discount: Annotated[float, typer.Option(help="Of later rewards.")] = 1.0,
    per_step: Annotated[
        bool, typer.Option("--per-step", help="Divide each episode's return by its number of steps.")
    ] = False,
    against: Annotated[
        str | None, typer.Option(metavar="NAME", help="Policy that all others are compared with.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of all intervals together.")] = 0.95,
    epsilon: NeededEpsilon = None,
    delta: NeededDelta = None,
    out: Out = None,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Tell what policies would have been worth to the people of logged sessions."""
    if policy is None or returns is None or epsilon is None or delta is None:
        raise missing("Evaluating policies needs", policy=policy, returns=returns, epsilon=epsilon, delta=delta)
    budget = qq.Budget(epsilon, delta)
    account = open_account(ledger, source, "evaluate-policies")
    policies = dict(map(_read_policy, policy))
    chosen = _read_behaviour(behaviour)
    check_outputs(files or [], out=out)
    sessions = read_sessions(context.params)
    found = qq.evaluate_policies(
        sessions,
        policies,
        budget,
        behaviour=chosen,
        account=account,
        returns=returns,
        discount=discount,
        per_step=per_step,
        against=against,
        confidence=confidence,
    )
    record = {**found.to_dict(), "not_private": sessions.not_private, "out": None if out is None else str(out)}
    if out is not None:
        record["hash"] = publish(found, out)
    if as_json:
        return answer(True, record)
    rows = [(name, *map(number, one)) for name, one in found.values.items()]
    show_table("", ("policy", "value", "from", "to"), rows, ("policy",))
    answer(False, record, found.certificate, *([] if out is None else [f"\nMay be published: {out}"]))


def _read_policy(word: str) -> "tuple[str, str | Publishable]":
    name, chosen = read_assignment(word, "--policy", "NAME=ACTION or NAME=FILE.qq, e.g. --policy always=high")
    return name, qq.load(chosen) if chosen.endswith(".qq") else chosen


def _read_behaviour(word: str | None) -> "Cells | Callable[[np.ndarray], np.ndarray] | None":
    import numpy as np

    from quietq.feedback.cells import Cells

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
