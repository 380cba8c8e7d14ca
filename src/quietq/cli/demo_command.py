"""`quietq demo`: ratings in; a private reward, a private agent and a report out."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import INTERRUPTED, answer, app
from quietq.cli.ledger_command import open_account
from quietq.cli.options import AsJson, LedgerSource, LedgerUrl
from quietq.progress import NumberedSteps

if TYPE_CHECKING:
    import numpy as np

    from quietq.audit import Finding
    from quietq.ledger import SourceAccount
    from quietq.released import PrivateNetwork

RATINGS, REWARD_PLOT, VALUES_PLOT, REPORT = "PRIVATE-ratings.csv", "reward.png", "values.png", "report.html"
FILES = {
    *(RATINGS, REWARD_PLOT, VALUES_PLOT, REPORT),
    *(folder.REWARD, folder.AGENT, folder.CERTIFICATE, folder.SCORES, folder.README),
}
"""All that a demo writes, and the next one replaces."""
NOTE = f"""\
What may be published, under the promise in {folder.CERTIFICATE}:
  {folder.REWARD}: the voters' mean reward, made private; {REWARD_PLOT} shows it
  {folder.AGENT}: a policy that was planned on it; {VALUES_PLOT} shows its values
  {folder.CERTIFICATE}: what was promised, to whom and under which assumptions
  {REPORT}: all of this in words and pictures, with an audit
Every demo draws new noise: if you publish several, their budgets add up.

NOT PRIVATE, for you only, because it uses the true reward:
  {folder.SCORES}: how well the agent does

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
    from quietq.cli import report
    from quietq.feedback import voters

    voters.require()
    report.require()
    if not (out.is_dir() and {path.name for path in out.iterdir()} <= FILES):
        folder.choose(out, "")  # refuses a folder with anything but an earlier demo in it
    account = open_account(ledger, source, "demo")
    out.mkdir(parents=True, exist_ok=True)
    for path in out.iterdir():  # so that an end half-way leaves nothing of an earlier demo among what is new
        path.unlink()
    steps = NumberedSteps(STEPS, not as_json)
    try:
        certificate, result = _show(out, account, steps, audit_runs=5_000 if quick else 100_000)
    except KeyboardInterrupt:
        print(_stopped(out, steps.number), file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None  # it has said what there is to say
    seconds = round(time.monotonic() - began, 3)
    program = sys.argv[0] if Path(sys.argv[0]).name == "quietq" else "quietq"
    record = {"certificate": certificate.to_dict(), "out": str(out), "seconds": seconds, "not_private": result}
    lines = [
        f"{certificate}\n",
        NOTE,
        f"NOT PRIVATE, for you only: the agent's return under the voters' true reward is {result['return']:.2f}; the "
        f"best policy has {result['best']:.2f}, random actions {result['random']:.2f} and the worst policy "
        f"{result['worst']:.2f}.",
        f"To look at it in a browser: {program} serve {out / folder.AGENT} {out / folder.REWARD}",
        f"Read {out / REPORT}. It took {seconds:.0f} seconds.",
    ]
    if sys.stdout.isatty():
        lines.append(f"The report, to click on: {(out / REPORT).absolute().as_uri()}")
    answer(as_json, record, *lines)


def _show(
    out: Path, account: "SourceAccount | None", steps: NumberedSteps, audit_runs: int
) -> tuple["qq.Certificate", dict[str, float]]:
    """Does all of it; gives the agent's certificate, and how well it does, which is not private."""
    from quietq.feedback import voters
    from quietq.worlds import WALK, best_return, plan_on_grid, policy_return, random_return, score, worst_return

    budget = qq.Budget(0.5, 1e-5)
    steps.begin()
    folder.write(out / RATINGS, voters.ratings().write_csv())
    people = voters.read(out / RATINGS)
    steps.begin()
    private = qq.privatise(people, budget, account=account)
    qq.publish(private, out / folder.REWARD)
    steps.begin()
    plan = plan_on_grid(WALK, private)
    agent = plan.as_function()
    qq.publish(plan, out / folder.AGENT)
    folder.write_json(out / folder.CERTIFICATE, agent.certificate.to_dict())
    steps.begin()
    finding = _audit(private.certificate, budget, audit_runs)
    steps.begin()
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
    folder.write_json(out / folder.SCORES, result)
    folder.write(out / folder.README, NOTE)
    return agent.certificate, result


def _write_report(out: Path, private: "qq.PrivateFunction", agent: "PrivateNetwork", finding: "Finding") -> None:
    """Draws the reward and the plan's values, and writes the page with both."""
    from quietq.cli.report.page import picture
    from quietq.cli.report.pictures import plot_function
    from quietq.cli.report.release_page import WORDS, write_release_report
    from quietq.worlds import WALK

    names = ["position, from left to right"]
    plot_function(private, out / REWARD_PLOT, names=names, title="What 944 voters like: the private reward")
    title = "What the plan is worth: values by action"
    plot_function(agent, out / VALUES_PLOT, names=names, actions=WALK.action_names, title=title)
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
    """Attacks the mechanism that the release was made by, a path, with synthetic functions."""
    from quietq.audit import audit_mechanism
    from quietq.privacy.norms import ExponentialNorm

    norm = certificate.queries[0].norm
    assert isinstance(norm, ExponentialNorm)  # that of a path
    return audit_mechanism(budget.mu, runs, beta=norm.betas[0], levels=3, delta=budget.delta, seed=None)
