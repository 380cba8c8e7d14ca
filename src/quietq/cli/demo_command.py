"""`quietq demo`: ratings in; private rewards, a private agent and a report out."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import INTERRUPTED, answer, app
from quietq.cli.folder import DemoFile
from quietq.cli.ledger_command import open_account
from quietq.cli.options import AsJson, LedgerSource, LedgerUrl
from quietq.progress import NumberedSteps

if TYPE_CHECKING:
    import numpy as np

    from quietq.audit import Finding
    from quietq.ledger import SourceAccount

NOTE = f"""\
What may be published, under the promise in {folder.CERTIFICATE}:
  {folder.REWARD}: the voters' mean reward, made private; {DemoFile.REWARD_PLOT} shows it
  {folder.AGENT}: a policy that was planned on it; {DemoFile.VALUES_PLOT} shows its values
  {folder.CERTIFICATE}: what was promised, to whom and under which assumptions
What may be published too; with it, both budgets add up, for the people are the same:
  {DemoFile.CANDIDATES}: the voters' mean rating of candidates in two dimensions, made private; \
{DemoFile.CANDIDATES_MAP} shows it
  {DemoFile.REPORT}: all of this in words and pictures, with an audit
Every demo draws new noise: if you publish several, their budgets add up.

NOT PRIVATE, for you only, because they look at the true reward:
  {folder.SCORES}: how well the agent does; {DemoFile.OUTCOME_PLOT} shows it, {DemoFile.TRUE_MAP} the true map
  {DemoFile.OUTCOME_REPORT}: the report, with how well the agent does

PRIVATE:
  {DemoFile.RATINGS} and {DemoFile.RATED_CANDIDATES}: what the voters like; they are not needed any more
"""
STEPS = (
    "Reading what 944 voters like",
    "Making it private, once, with noise from the operating system: along a line, and in two dimensions",
    "Planning what is best under the private reward",
    "Attacking the mechanism, to see whether its promise holds",
    "Drawing pictures, and looking at how well the agent does",
)


@app.command(rich_help_panel="Before you spend anything")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for what is made; files of an earlier demo are replaced.")] = Path(
        "runs/demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Attack the mechanism with fewer releases.")] = False,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    as_json: AsJson = False,
) -> None:
    """Show everything on 944 voters: ratings in; private rewards, a private agent and a report out."""
    began = time.monotonic()
    from quietq.cli import report
    from quietq.feedback import voters

    voters.require()
    report.require()
    of_training = (folder.REWARD, folder.AGENT, folder.CERTIFICATE, folder.SCORES, folder.README)
    if not (out.is_dir() and {path.name for path in out.iterdir()} <= {*of_training, *DemoFile}):
        folder.choose(out, "")  # refuses a folder with anything but an earlier demo in it
    account = open_account(ledger, source, "demo")
    budget = qq.Budget(0.5, 1e-5)
    if account is not None and not account.spending.covers(qq.Cost.gaussian(2**0.5 * budget.mu)):
        raise qq.BudgetExhausted(
            f"The demo makes two releases of epsilon = {budget.epsilon:g}, delta = {budget.delta:g}, and the ledger's "
            f"source {account.source!r} has no room for both; nothing was booked."
        )
    out.mkdir(parents=True, exist_ok=True)
    for path in out.iterdir():  # so that an end half-way leaves nothing of an earlier demo among what is new
        path.unlink()
    steps = NumberedSteps(STEPS, not as_json)
    try:
        certificate, result = _show(out, budget, account, steps, audit_runs=5_000 if quick else 100_000)
    except KeyboardInterrupt:
        print(_stopped(out, steps.number), file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None  # it has said what there is to say
    seconds = round(time.monotonic() - began, 3)
    program = sys.argv[0] if Path(sys.argv[0]).name == "quietq" else "quietq"
    record = {"certificate": certificate.to_dict(), "out": str(out), "seconds": seconds, "not_private": result}
    page = out / DemoFile.REPORT
    lines = [
        f"{certificate}\n",
        NOTE,
        f"NOT PRIVATE, for you only: the agent's return under the voters' true reward is {result['return']:.2f}; the "
        f"best policy has {result['best']:.2f}, random actions {result['random']:.2f} and the worst policy "
        f"{result['worst']:.2f}.",
        f"To look at it in a browser: {program} serve {out / folder.AGENT} {out / folder.REWARD} "
        f"{out / DemoFile.CANDIDATES}",
        f"Read {page}, or {out / DemoFile.OUTCOME_REPORT} with the outcome. It took {seconds:.0f} seconds.",
    ]
    if sys.stdout.isatty():
        lines.append(f"The report, to click on: {page.absolute().as_uri()}")
    answer(as_json, record, *lines)


def _show(
    out: Path, budget: "qq.Budget", account: "SourceAccount | None", steps: NumberedSteps, audit_runs: int
) -> tuple["qq.Certificate", dict[str, float]]:
    """Does all of it; gives the agent's certificate, and how well it does, which is not private."""
    from quietq.cli.report.release_page import write_voters_pages
    from quietq.feedback import voters
    from quietq.worlds import WALK, best_return, plan_on_grid, policy_return, random_return, score, worst_return

    steps.begin()
    folder.write(out / DemoFile.RATINGS, voters.ratings().write_csv())
    folder.write(out / DemoFile.RATED_CANDIDATES, voters.candidate_ratings().write_csv())
    people = voters.read(out / DemoFile.RATINGS)
    rated = voters.read_candidates(out / DemoFile.RATED_CANDIDATES)
    steps.begin()
    private = qq.privatise(people, budget, account=account)
    candidates = qq.privatise(rated, budget, account=account)
    qq.publish(private, out / folder.REWARD)
    qq.publish(candidates, out / DemoFile.CANDIDATES)
    steps.begin()
    true = people.functions()[0]
    plan = plan_on_grid(WALK, private)
    agent = plan.as_function()
    qq.publish(plan, out / folder.AGENT)
    folder.write_json(out / folder.CERTIFICATE, agent.certificate.to_dict())
    steps.begin()
    finding = _audit(private.certificate, budget, audit_runs)
    steps.begin()

    def policy(states: "np.ndarray") -> "np.ndarray":
        return agent.predict(states[:, None])[0]

    result = {
        "score": score(policy, true),
        "return": policy_return(policy, true),
        "best": best_return(true),
        "random": random_return(true),
        "worst": worst_return(true),
    }
    folder.write_json(out / folder.SCORES, result)
    write_voters_pages(out, agent, private, true, result, finding, candidates)
    folder.write(out / folder.README, NOTE)
    return agent.certificate, result


def _stopped(out: Path, step: int) -> str:
    """Says what is there when somebody ends it half-way."""
    there = sorted(path.name for path in out.iterdir())
    kept = ", ".join(name for name in there if "PRIVATE" in name) or "nothing"
    released = ", ".join(name for name in there if "PRIVATE" not in name) or "nothing"
    return (
        f"Stopped in step {step} of {len(STEPS)}. What is done is kept in {out}.\n"
        f"May be published: {released}.\n"
        f"PRIVATE, or not private, and for you only: {kept}.\n"
        "Another demo begins anew, in place of this one, and draws new noise."
    )


def _audit(certificate: "qq.Certificate", budget: "qq.Budget", runs: int) -> "Finding":
    """Attacks the mechanism that the release was made by, a path, with functions that are nobody's."""
    from quietq.audit import audit_mechanism
    from quietq.privacy.norms import ExponentialNorm

    norm = certificate.queries[0].norm
    assert isinstance(norm, ExponentialNorm)  # that of a path
    return audit_mechanism(budget.mu, runs, beta=norm.beta, levels=3, delta=budget.delta, seed=None)
