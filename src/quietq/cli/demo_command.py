"""`quietq demo`."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import AsJson, answer, app
from quietq.cli.ledger_command import LedgerSource, LedgerUrl, open_account
from quietq.cli.steps import ProgressSteps

if TYPE_CHECKING:
    from quietq.audit import Finding

BUDGET = (0.5, 1e-5)
"""Of each of two releases."""
RATINGS, REWARD_PLOT, VALUES_PLOT = "PRIVATE-ratings.csv", "reward.png", "values.png"
RATED, CANDIDATES, MAP = "PRIVATE-candidates.csv", "candidates.qq", "candidates.png"
OUTCOME, REPORT, OUTCOME_REPORT = "NOT-PRIVATE-outcome.png", "report.html", "NOT-PRIVATE-report.html"
TRUE_MAP = "NOT-PRIVATE-candidates.png"
AUDITED = 100_000
"""Releases of each of two functions, to attack the mechanism with."""
NOTE = f"""\
What may be published, under the promise in {folder.CERTIFICATE}:
  {folder.REWARD}: the voters' mean reward, made private; {REWARD_PLOT} shows it
  {folder.AGENT}: a policy that was planned on it; {VALUES_PLOT} shows its values
  {folder.CERTIFICATE}: what was promised, to whom and under which assumptions
What may be published too; with it, both budgets add up, for the people are the same:
  {CANDIDATES}: the voters' mean rating of candidates in two dimensions, made private; {MAP} shows it
  {REPORT}: all of this in words and pictures, with an audit
Every demo draws new noise: if you publish several, their budgets add up.

NOT PRIVATE, for you only, because they look at the true reward:
  {folder.SCORES}: how well the agent does; {OUTCOME} shows it, {TRUE_MAP} the true map
  {OUTCOME_REPORT}: the report, with how well the agent does

PRIVATE:
  {RATINGS} and {RATED}: what the voters like; they are not needed any more
"""
PICTURES = {"reward": REWARD_PLOT, "values": VALUES_PLOT, "outcome": OUTCOME, "report": REPORT,
            "outcome report": OUTCOME_REPORT, "candidates": MAP, "candidates outcome": TRUE_MAP}  # fmt: skip
OWN = {folder.REWARD, folder.AGENT, folder.CERTIFICATE, folder.SCORES, folder.README, RATINGS, RATED, CANDIDATES,
       *PICTURES.values()}  # fmt: skip
IMPORTS = 2.5
STEPS = {
    "Reading what 944 voters like": 1.5,
    "Making it private, once, with noise from the operating system: along a line, and in two dimensions": 1.5,
    "Planning what is best under the private reward": 0.5,
    "Attacking the mechanism, to see whether its promise holds": 1.5,
    "Drawing pictures, and looking at how well the agent does": 4.0,
}
"""And how many seconds each takes on an idle machine."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for what is made; files of an earlier demo are replaced.")
    ] = Path("runs/demo"),
    quick: Annotated[bool, typer.Option("--quick", help="Attack the mechanism with fewer releases.")] = False,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Show everything on 944 voters: ratings in; private rewards, a private agent and a report out."""
    began = time.monotonic()
    from quietq.cli import report
    from quietq.feedback import voters

    voters.require()
    report.require()
    if not (out.is_dir() and {path.name for path in out.iterdir()} <= OWN):  # an earlier demo's, and nothing else
        folder.choose(out, "")
    account = open_account(ledger, source, "demo")
    _check(account)
    out.mkdir(parents=True, exist_ok=True)
    for path in out.iterdir():  # so that an end half-way leaves nothing of an earlier demo among what is new
        path.unlink()
    steps = ProgressSteps(STEPS, not as_json, IMPORTS)
    try:
        certificate, result = _show(out, quick, account, steps)
    except KeyboardInterrupt:
        steps.end()
        print(_stopped(out, steps), file=sys.stderr)
        raise SystemExit(130) from None  # it has said what there is to say
    seconds = round(time.monotonic() - began, 3)
    program = sys.argv[0] if Path(sys.argv[0]).name == "quietq" else "quietq"
    record = {"certificate": certificate.to_dict(), "out": str(out), "seconds": seconds, "not_private": result}
    page = (out / REPORT).absolute().as_uri()
    answer(
        as_json,
        record,
        f"{certificate}\n",
        NOTE,
        f"NOT PRIVATE, for you only: the agent's return under the voters' true reward is {result['return']:.2f}; the "
        f"best policy has {result['best']:.2f}, random actions {result['random']:.2f} and the worst policy "
        f"{result['worst']:.2f}.",
        f"To look at it in a browser: {program} serve {out / folder.AGENT} {out / folder.REWARD} {out / CANDIDATES}",
        f"Read {out / REPORT}, or {out / OUTCOME_REPORT} with the outcome. It took {seconds:.0f} seconds.",
        *([f"The report, to click on: {page}"] if sys.stdout.isatty() else []),
    )


def _check(account: Any) -> None:
    """Refuses a ledger that has no room for both releases, before either is charged."""
    budget = qq.Budget(*BUDGET)
    if account is not None and not account.spending.covers(qq.Cost.gaussian(2**0.5 * budget.mu)):
        raise qq.BudgetExhausted(
            f"The demo makes two releases of epsilon = {budget.epsilon:g}, delta = {budget.delta:g}, and the ledger's "
            f"source {account.source!r} has no room for both; nothing was booked."
        )


def _show(out: Path, quick: bool, account: Any, steps: ProgressSteps) -> tuple["qq.Certificate", dict[str, float]]:
    """All of it; the agent's certificate, and how well it does, which is not private."""
    from quietq.cli.report.release_page import write_voters_pages
    from quietq.feedback import voters
    from quietq.worlds import WALK, best_return, plan_on_grid, policy_return, random_return, score, worst_return

    steps.begin()
    folder.write(out / RATINGS, voters.ratings().write_csv())
    folder.write(out / RATED, voters.candidate_ratings().write_csv())
    people, rated = voters.read(out / RATINGS), voters.read_candidates(out / RATED)
    steps.begin()
    private, candidates = (qq.privatise(one, qq.Budget(*BUDGET), account=account) for one in (people, rated))
    qq.publish(private, out / folder.REWARD)
    qq.publish(candidates, out / CANDIDATES)
    steps.begin()
    true = people.functions()[0]
    plan = plan_on_grid(WALK, private)
    agent = plan.as_function()
    qq.publish(plan, out / folder.AGENT)
    folder.write_json(out / folder.CERTIFICATE, agent.certificate.to_dict())
    steps.begin()
    finding = _audit(private.certificate, steps)
    steps.begin()

    def policy(states: Any) -> Any:
        return agent.predict(states[:, None])[0]

    result = {
        "score": score(policy, true), "return": policy_return(policy, true), "best": best_return(true),
        "random": random_return(true), "worst": worst_return(true),
    }  # fmt: skip
    folder.write_json(out / folder.SCORES, result)
    paths = {what: out / name for what, name in PICTURES.items()}
    write_voters_pages(agent, private, true, result, finding, paths, candidates)
    folder.write(out / folder.README, NOTE)
    steps.end()
    return agent.certificate, result


def _stopped(out: Path, steps: ProgressSteps) -> str:
    """What is there when somebody ends it half-way."""
    there = sorted(path.name for path in out.iterdir())
    kept = [name for name in there if "PRIVATE" in name]
    released = [name for name in there if "PRIVATE" not in name]
    parts = [f"Stopped in {steps.where}. What is done is kept in {out}."]
    if released:
        parts.append(f"May be published: {', '.join(released)}.")
    if kept:
        parts.append(f"PRIVATE, or not private, and for you only: {', '.join(kept)}.")
    parts.append("Another demo begins anew, in place of this one, and draws new noise.")
    return "\n".join(parts)


def _audit(certificate: "qq.Certificate", steps: ProgressSteps) -> "Finding":
    """An attack on the mechanism that the release was made by, a path, with functions that are nobody's."""
    from quietq.audit import audit_mechanism

    budget, norm = qq.Budget(*BUDGET), certificate.to_dict()["norm"]
    return audit_mechanism(
        budget.mu, AUDITED, beta=norm["beta"], levels=3, delta=budget.delta, seed=None,
        progress=steps.progress,
    )  # fmt: skip
