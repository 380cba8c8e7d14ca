"""`quietq demo`."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import AsJson, answer, app
from quietq.cli.ledger import LedgerSource, LedgerUrl, open_account

if TYPE_CHECKING:
    from quietq.audit import Finding
    from quietq.feedback import Ratings

BUDGET = (0.5, 1e-5)
RATINGS, REWARD_PLOT, VALUES_PLOT = "PRIVATE-ratings.csv", "reward.png", "values.png"
OUTCOME, REPORT, OUTCOME_REPORT = "NOT-PRIVATE-outcome.png", "report.html", "NOT-PRIVATE-report.html"
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
  {REPORT}: all of this in words and pictures, with an audit
  {" and ".join(AUDITS.values())}: what the audit found, for `quietq serve`
Every demo draws new noise: if you publish several, their budgets add up.

NOT PRIVATE, for you only, because they look at the true reward:
  {folder.SCORES}: how well the agent does; {OUTCOME} shows it
  {OUTCOME_REPORT}: the report, with how well the agent does

PRIVATE:
  {RATINGS}: what the voters like; it is not needed any more
"""
OWN = {folder.REWARD, folder.AGENT, folder.CERTIFICATE, folder.SCORES, folder.README, RATINGS,
       REWARD_PLOT, VALUES_PLOT, OUTCOME, REPORT, OUTCOME_REPORT, *AUDITS.values()}  # fmt: skip


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
    """Show everything on 944 voters: ratings in; a private reward, a private agent and a report out."""
    began = time.monotonic()
    from quietq.cli import report
    from quietq.feedback import voters

    voters.require()
    report.require()
    if not (out.is_dir() and {path.name for path in out.iterdir()} <= OWN):  # an earlier demo's, and nothing else
        folder.choose(out, "")
    account = open_account(ledger, source, "demo")
    from quietq.cli.report.release_page import write_voters_pages
    from quietq.learning import Agent, RewardNoise
    from quietq.worlds import WALK, best_return, random_return, worst_return

    def tell(sentence: str) -> None:
        if not as_json:
            print(sentence, file=sys.stderr)

    out.mkdir(parents=True, exist_ok=True)
    tell("1/4 Reading what 944 voters like")
    folder.write(out / RATINGS, voters.ratings().write_csv())
    people = voters.read(out / RATINGS)
    tell("2/4 Making their mean reward private, once, with noise from the operating system")
    private = qq.privatise(people, qq.Budget(*BUDGET), account=account)
    names = {folder.REWARD: qq.publish(private, out / folder.REWARD)}
    tell("3/4 Training an agent on the private reward")
    true = people.functions()[0]
    agent = Agent(WALK, RewardNoise(private), reward=true)
    agent.learn(1000 if quick else 5000, progress=sys.stderr.isatty())
    names[folder.AGENT] = qq.publish(agent, out / folder.AGENT)
    folder.write_json(out / folder.CERTIFICATE, agent.certificate.to_dict())
    tell("4/4 Drawing pictures, and looking at how well it does")
    returns, scores = agent.evaluate()
    assert scores is not None
    result = {"score": scores[0], "return": returns[0], "best": best_return(true),
              "random": random_return(true), "worst": worst_return(true)}  # fmt: skip
    folder.write_json(out / folder.SCORES, result)
    finding = _audit(people, private.certificate, account is not None, 200 if quick else FEWER)
    for file, name in names.items():
        flat = {key: value for key, value in finding.to_dict().items() if key != "errors"}
        folder.write_json(out / AUDITS[file], {"release": name, **flat})
    files = {"reward": REWARD_PLOT, "values": VALUES_PLOT, "outcome": OUTCOME, "report": REPORT,
             "outcome report": OUTCOME_REPORT}  # fmt: skip
    paths = {what: out / name for what, name in files.items()}
    write_voters_pages(agent, private, true, result, finding, paths)
    folder.write(out / folder.README, NOTE)
    seconds = round(time.monotonic() - began, 3)
    program = sys.argv[0] if Path(sys.argv[0]).name == "quietq" else "quietq"
    record = {"certificate": agent.certificate.to_dict(), "out": str(out), "seconds": seconds, "not_private": result}
    answer(
        as_json,
        record,
        f"{agent.certificate}\n",
        NOTE,
        f"NOT PRIVATE, for you only: the agent's return under the voters' true reward is {result['return']:.2f}; the "
        f"best policy has {result['best']:.2f}, random actions {result['random']:.2f} and the worst policy "
        f"{result['worst']:.2f}.",
        f"To look at it in a browser: {program} serve {out / folder.AGENT} {out / folder.REWARD}",
        f"Read {out / REPORT}, or {out / OUTCOME_REPORT} with the outcome. It took {seconds:.0f} seconds.",
    )


def _audit(people: "Ratings", certificate: "qq.Certificate", gaussian: bool, runs: int) -> "Finding":
    """An attack on the mechanism that the release was made by, with functions that are nobody's."""
    from quietq.audit import audit_mechanism, audit_reward
    from quietq.mechanisms.mechanism import Task
    from quietq.mechanisms.privatise import choose
    from quietq.worlds import WALK

    budget = qq.Budget(*BUDGET)
    if certificate.method == "reward/path":
        return audit_mechanism(
            budget.mu, AUDITED, beta=people.relation.best_beta(), levels=3, delta=budget.delta, seed=None
        )
    mechanism = choose("auto", replace(Task.of(people, budget), gaussian=gaussian))
    return audit_reward(WALK, people.relation, budget, runs, mechanism=mechanism)
