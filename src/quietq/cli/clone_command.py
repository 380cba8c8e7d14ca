"""`quietq clone`: a private policy that imitates the people of logged sessions who did best."""

from typing import Annotated

import typer

import quietq as qq
from quietq.cli.app import answer, app
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
    RewardColumn,
    SessionFiles,
    State,
    StepColumn,
    missing,
)
from quietq.cli.releasing import check_outputs, counts_in_words, publish, read_sessions, tell_counts
from quietq.progress import progress_line


@app.command(rich_help_panel="Make people's data private")
def clone(
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
    action_box: ActionBox = None,
    reward: RewardColumn = None,
    low: LowReward = None,
    high: HighReward = None,
    end: End = None,
    cut: Cut = None,
    engine: Engine = None,
    returns: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Range that each person's mean return is clipped to; public. Required unless --best is 1."),
    ] = None,
    best: Annotated[
        float, typer.Option(help="About which share of the people to imitate, those with the highest returns.")
    ] = 0.2,
    epsilon: NeededEpsilon = None,
    delta: NeededDelta = None,
    check: Check = False,
    out: Out = None,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Make a policy that imitates the people who did best private, once: to act with, or to publish."""
    if check:
        return tell_counts(read_sessions(context.params).not_private, as_json)
    if epsilon is None or delta is None or out is None:
        raise missing("A private policy needs", epsilon=epsilon, delta=delta, out=out)
    budget = qq.Budget(epsilon, delta)
    account = open_account(ledger, source, "clone")
    check_outputs(files or [], out=out)
    with progress_line("Reading sessions") as say:
        sessions = read_sessions(context.params, progress=lambda rows: say(f"Reading sessions: {rows:,} rows"))
        say("Imitating people")
        private = qq.clone(sessions, budget, returns=returns, best=best, account=account)
        name = publish(private, out)
    record = {
        "threshold": private.threshold,
        "certificate": private.certificate.to_dict(),
        "out": str(out),
        "hash": name,
        "again": repeat(context),
        "not_private": sessions.not_private,
    }
    lines = [*private.in_words(), "", private.certificate, f"\nMay be published: {out}", spends_again(context)]
    answer(as_json, record, *lines, counts_in_words(sessions.not_private))
