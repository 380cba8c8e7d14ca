"""`quietq demo`."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import AsJson, answer, app
from quietq.cli.ledger import LedgerSource, LedgerUrl, open_account
from quietq.cli.steps import Steps

if TYPE_CHECKING:
    from quietq.audit import Finding
    from quietq.feedback import Ratings

BUDGET = (0.5, 1e-5)
"""Of each of two releases."""
RATINGS, REWARD_PLOT, VALUES_PLOT = "PRIVATE-ratings.csv", "reward.png", "values.png"
RATED, CANDIDATES, MAP = "PRIVATE-candidates.csv", "candidates.qq", "candidates.png"
OUTCOME, REPORT, OUTCOME_REPORT = "NOT-PRIVATE-outcome.png", "report.html", "NOT-PRIVATE-report.html"
TRUE_MAP = "NOT-PRIVATE-candidates.png"
AUDITS = {folder.REWARD: "reward.audit.json", folder.AGENT: "agent.audit.json"}
"""Where `quietq serve` looks for what an audit found."""
AUDITED = 100_000
"""Releases of each of two functions, to attack the mechanism with."""
FEWER = 1_000
"""As many, of a mechanism of which not many can be drawn together."""
NOTE = f"""\
What may be published, under the promise in {folder.CERTIFICATE}:
  {folder.REWARD}: the voters' mean reward, made private; {REWARD_PLOT} shows it
  {folder.AGENT}: an agent that was trained on it; {VALUES_PLOT} shows its values
  {folder.CERTIFICATE}: what was promised, to whom and under which assumptions
  {" and ".join(AUDITS.values())}: what the audit found, for `quietq serve`
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
       *PICTURES.values(), *AUDITS.values()}  # fmt: skip
IMPORTS = 2.5
STEPS = {
    "Reading what 944 voters like": 1.5,
    "Making it private, once, with noise from the operating system: along a line, and in two dimensions": 1.5,
    "Training an agent on the private reward": 4.0,
    "Attacking the mechanism, to see whether its promise holds": 9.0,
    "Drawing pictures, and looking at how well the agent does": 4.0,
}
"""And how many seconds each takes on an idle machine."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for what is made; files of an earlier demo are replaced.")
    ] = Path("runs/demo"),
    quick: Annotated[bool, typer.Option("--quick", help="Train for a fifth of the steps.")] = False,
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
    steps = Steps(STEPS, not as_json, IMPORTS)
    try:
        certificate, result = _show(out, quick, account, steps)
    except KeyboardInterrupt:
        steps.end()
        print(_stopped(out, steps), file=sys.stderr)
        raise typer.Exit(130) from None
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


def _show(out: Path, quick: bool, account: Any, steps: Steps) -> tuple["qq.Certificate", dict[str, float]]:
    """All of it; the agent's certificate, and how well it does, which is not private."""
    from quietq.cli.report.release_page import write_voters_pages
    from quietq.feedback import voters
    from quietq.learning import Agent, RewardNoise
    from quietq.worlds import WALK, best_return, random_return, worst_return

    steps.begin()
    folder.write(out / RATINGS, voters.ratings().write_csv())
    folder.write(out / RATED, voters.candidate_ratings().write_csv())
    people, rated = voters.read(out / RATINGS), voters.read_candidates(out / RATED)
    steps.begin()
    private, candidates = (qq.privatise(one, qq.Budget(*BUDGET), account=account) for one in (people, rated))
    names = {folder.REWARD: qq.publish(private, out / folder.REWARD)}
    qq.publish(candidates, out / CANDIDATES)
    steps.begin()
    true = people.functions()[0]
    agent = Agent(WALK, RewardNoise(private), reward=true)
    agent.learn(1000 if quick else 5000, progress=steps.shown_on_terminal)
    names[folder.AGENT] = qq.publish(agent, out / folder.AGENT)
    folder.write_json(out / folder.CERTIFICATE, agent.certificate.to_dict())
    steps.begin()
    finding = _audit(people, private.certificate, account is not None, 200 if quick else FEWER, steps)
    for file, name in names.items():
        flat = {key: value for key, value in finding.to_dict().items() if key != "errors"}
        folder.write_json(out / AUDITS[file], {"release": name, **flat})
    steps.begin()
    returns, scores = agent.evaluate()
    assert scores is not None
    result = {"score": scores[0], "return": returns[0], "best": best_return(true),
              "random": random_return(true), "worst": worst_return(true)}  # fmt: skip
    folder.write_json(out / folder.SCORES, result)
    paths = {what: out / name for what, name in PICTURES.items()}
    write_voters_pages(agent, private, true, result, finding, paths, candidates)
    folder.write(out / folder.README, NOTE)
    steps.end()
    return agent.certificate, result


def _stopped(out: Path, steps: Steps) -> str:
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


def _audit(people: "Ratings", certificate: "qq.Certificate", gaussian: bool, runs: int, steps: Steps) -> "Finding":
    """An attack on the mechanism that the release was made by, with functions that are nobody's."""
    from quietq.audit import audit_mechanism, audit_reward
    from quietq.mechanisms.mechanism import Task
    from quietq.mechanisms.privatise import choose
    from quietq.worlds import WALK

    budget = qq.Budget(*BUDGET)
    if certificate.method == "reward/path":
        return audit_mechanism(
            budget.mu, AUDITED, beta=people.relation.best_beta(), levels=3, delta=budget.delta, seed=None,
            progress=steps.progress,
        )  # fmt: skip
    mechanism = choose("auto", replace(Task.of(people, budget), gaussian=gaussian))
    return audit_reward(WALK, people.relation, budget, runs, mechanism=mechanism, progress=steps.progress)
