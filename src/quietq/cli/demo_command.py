"""`quietq demo`: ratings in; a private reward, a private agent and a report out."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import answer, app
from quietq.cli.ledger_command import open_account
from quietq.cli.options import AsJson, LedgerSource, LedgerUrl

if TYPE_CHECKING:
    import numpy as np

    from quietq.audit import Finding
    from quietq.released import PrivateNetwork

RATINGS, REWARD_PLOT, VALUES_PLOT, REPORT = "PRIVATE-ratings.csv", "reward.png", "values.png", "report.html"
FILES = {RATINGS, REWARD_PLOT, VALUES_PLOT, REPORT, folder.REWARD, folder.AGENT}
"""All that a demo writes, and the next one replaces."""
NOTE = f"""\
What may be published, under this promise:
  {folder.REWARD}: the voters' mean reward, made private; {REWARD_PLOT} shows it
  {folder.AGENT}: a policy that was planned on it; {VALUES_PLOT} shows its values
  {REPORT}: all of this in words and pictures, with an audit
Every demo draws new noise: if you publish several, their budgets add up.

PRIVATE:
  {RATINGS}: what the voters like; it is not needed any more
"""
STEPS = (
    "Reading what 944 voters like",
    "Making it private, once, with noise from the operating system",
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
    """Show everything on 944 voters: ratings in; a private reward, a private agent and a report out."""
    began = time.monotonic()
    from quietq.audit import audit_mechanism
    from quietq.cli import report
    from quietq.feedback import voters
    from quietq.privacy import Exponential
    from quietq.released.release_file import write_whole
    from quietq.worlds import WALK, best_return, plan_on_grid, policy_return, random_return, score, worst_return

    voters.require()
    report.require()
    if not (out.is_dir() and {path.name for path in out.iterdir()} <= FILES):
        folder.choose(out, "")  # refuses a folder with anything but an earlier demo in it
    account = open_account(ledger, source, "demo")
    out.mkdir(parents=True, exist_ok=True)
    for path in out.iterdir():  # so that an end half-way leaves nothing of an earlier demo among what is new
        path.unlink()
    budget = qq.Budget(0.5, 1e-5)

    def begin(step: int) -> None:
        if not as_json:
            print(f"{step}/{len(STEPS)} {STEPS[step - 1]}", file=sys.stderr, flush=True)

    begin(1)
    write_whole(out / RATINGS, voters.ratings().write_csv().encode(), 0o600)
    people = voters.read(out / RATINGS)
    begin(2)
    private = qq.privatise(people, budget, account=account)
    qq.publish(private, out / folder.REWARD)
    begin(3)
    plan = plan_on_grid(WALK, private)
    agent = plan.as_function()
    qq.publish(plan, out / folder.AGENT)
    begin(4)
    norm = private.certificate.queries[0].norm
    assert isinstance(norm, Exponential)  # that of a path
    # The mechanism that the release was made by is attacked with synthetic functions.
    runs = 5_000 if quick else 100_000
    finding = audit_mechanism(budget.mu, runs, beta=norm.betas[0], levels=3, delta=budget.delta, seed=None)
    begin(5)
    _write_report(out, private, agent, finding)

    def policy(states: "np.ndarray") -> "np.ndarray":
        return agent.predict(states[:, None])[0]

    true = people.functions()[0]
    result = {
        "score": score(policy, true),
        "return": policy_return(policy, true),
        "best": best_return(true),
        "random": random_return(true),
        "worst": worst_return(true),
    }
    seconds = round(time.monotonic() - began, 3)
    record = {"certificate": agent.certificate.to_dict(), "out": str(out), "seconds": seconds, "not_private": result}
    lines = [
        f"{agent.certificate}\n",
        NOTE,
        f"NOT PRIVATE, for you only: the agent's return under the voters' true reward is {result['return']:.2f}; the "
        f"best policy has {result['best']:.2f}, random actions {result['random']:.2f} and the worst policy "
        f"{result['worst']:.2f}.",
        f"To look at it in a browser: quietq serve {out / folder.AGENT} {out / folder.REWARD}",
        f"Read {out / REPORT}. It took {seconds:.0f} seconds.",
        f"The report, to click on: {(out / REPORT).absolute().as_uri()}",
    ]
    answer(as_json, record, *lines)


def _write_report(out: Path, private: "qq.PrivateFunction", agent: "PrivateNetwork", finding: "Finding") -> None:
    """Draws the reward and the plan's values, and writes the page with both."""
    from quietq.cli.report.page import WORDS, picture, write_release_report
    from quietq.cli.report.pictures import plot_function

    plot_function(private, out / REWARD_PLOT, "What 944 voters like: the private reward")
    plot_function(agent, out / VALUES_PLOT, "What the plan is worth: values by action")
    of_reward = f"`{folder.REWARD}`: the voters' mean reward with noise on it."
    of_values = f"`{folder.AGENT}`: the values of going left and right, planned on that reward."
    write_release_report(
        out / REPORT,
        title="What 944 voters like, and what an agent made of it",
        lead=WORDS["voters"],
        certificate=agent.certificate,
        range_of_one=1.0,
        finding=finding,
        pictures=[
            picture(out / REWARD_PLOT, of_reward, "private reward"),
            picture(out / VALUES_PLOT, of_values, "agent's values"),
        ],
    )
