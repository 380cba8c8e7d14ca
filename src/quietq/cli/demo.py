"""`quietq demo`."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import quietq as qq
from quietq.cli import run_directory as run
from quietq.cli import voters
from quietq.cli.app import AsJson, app
from quietq.cli.ledger import LedgerSource, LedgerUrl
from quietq.cli.ledger import account as charged_account
from quietq.worlds import WALK, best_return, plan, random_return, worst_return

BUDGET = (0.5, 1e-5)
RATINGS, REWARD_PLOT, VALUES_PLOT, OUTCOME = (
    "PRIVATE-ratings.csv", "reward.png", "values.png", "NOT-PRIVATE-outcome.png",
)  # fmt: skip
REPORT, OUTCOME_REPORT = "report.html", "NOT-PRIVATE-report.html"
AUDITS = {run.REWARD: "reward.audit.json", run.PUBLISHED: "agent.audit.json"}
"""Where `quietq serve` looks for what an audit found."""
RELEASED = (run.REWARD, REWARD_PLOT, run.PUBLISHED, run.AGENT, VALUES_PLOT, run.CERTIFICATE, REPORT, *AUDITS.values())
RETURNS = {"the agent": "return", "the best policy": "best", "random actions": "random", "the worst policy": "worst"}
AUDITED = 100_000
"""Releases of each of two functions, to attack the mechanism with."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for what is made; files of an earlier demo are replaced.")] = Path(
        "runs/demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Train for a fifth of the steps.")] = False,
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    as_json: AsJson = False,
) -> None:
    """944 voters end to end: ratings in; a private reward, a private agent, their certificate and a report out."""
    began = time.monotonic()
    voters.require()
    from quietq import report

    report.require()
    _check_folder(out)
    account = charged_account(ledger, source, "demo")
    from quietq.audit import audit_mechanism
    from quietq.learning import Agent, RewardNoise

    out.mkdir(parents=True, exist_ok=True)
    _tell("1/4 Reading what 944 voters like", as_json)
    run.write(out / RATINGS, voters.ratings().write_csv())
    people = voters.read(out / RATINGS)
    _tell("2/4 Making their mean reward private, once, with noise from the operating system", as_json)
    private = qq.privatise(people, qq.Budget(*BUDGET), account=account)
    names = {run.REWARD: qq.publish(private, out / run.REWARD)}
    _tell("3/4 Training an agent on the private reward", as_json)
    true = people.functions()[0]
    agent = Agent(WALK, RewardNoise(private), reward=true)
    agent.learn(1000 if quick else 5000, progress=sys.stderr.isatty())
    agent.save(out / run.AGENT)
    names[run.PUBLISHED] = qq.publish(agent, out / run.PUBLISHED)
    run.write_json(out / run.CERTIFICATE, agent.certificate.to_dict())
    _tell("4/4 Drawing pictures, and looking at how well it does", as_json)
    judged = agent.evaluate()
    assert judged.scores is not None
    result = {"score": judged.scores[0], "return": judged.returns[0], "best": best_return(true),
              "random": random_return(true), "worst": worst_return(true)}  # fmt: skip
    run.write_json(out / run.SCORES, result)
    _pictures(agent, private, true, result, out)
    budget, beta = qq.Budget(*BUDGET), qq.people(voters.COUNT, low=0, high=1, slope=1).best_beta()
    finding = audit_mechanism(budget.mu, AUDITED, beta=beta, delta=budget.delta, seed=None)
    for file, name in names.items():
        flat = {key: value for key, value in finding.to_dict().items() if key != "errors"}
        run.write_json(out / AUDITS[file], {"release": name, **flat})
    _reports(agent.certificate, finding, result, out)
    _note(out)
    seconds = round(time.monotonic() - began, 3)
    if as_json:
        record = {
            "certificate": agent.certificate.to_dict(),
            "out": str(out),
            "seconds": seconds,
            "not_private": result,
        }
        print(json.dumps(record))
        return
    print(f"{agent.certificate}\n")
    print((out / run.README).read_text(encoding="utf-8"))
    print(
        f"NOT PRIVATE, for you only: the agent's return under the voters' true reward is {result['return']:.2f}; the "
        f"best policy has {result['best']:.2f}, random actions {result['random']:.2f} and the worst policy "
        f"{result['worst']:.2f}."
    )
    program = sys.argv[0] if Path(sys.argv[0]).name == "quietq" else "quietq"
    print(f"To look at it in a browser: {program} serve {out / run.PUBLISHED} {out / run.REWARD}")
    print(f"Read {out / REPORT}, or {out / OUTCOME_REPORT} with the outcome. It took {seconds:.0f} seconds.")


def _pictures(agent: Any, private: Any, true: Any, result: dict[str, float], out: Path) -> None:
    from quietq.report import plot_outcome, plot_reward, plot_values

    plot_reward(private, out / REWARD_PLOT, title="What 944 voters like: the private reward")
    plot_values(agent, out / VALUES_PLOT, title="What the agent released: values by action, and the best action")
    states = np.linspace(0, 1, 1025)
    policies = {"agent": agent.predict(states[:, None])[0], "best policy": plan(true)(states)}
    title = f"true return of the agent {result['return']:.2f}, of the best policy {result['best']:.2f}"
    run.write(out / OUTCOME, "")  # for its owner only, before anything is in it: it shows the true reward
    plot_outcome(
        out / OUTCOME,
        states=states,
        true=true,
        private=private,
        policies=policies,
        actions=WALK.action_names,
        title=title,
    )


def _reports(certificate: qq.Certificate, finding: Any, result: dict[str, float], out: Path) -> None:
    """One page that may be published, and one for the operator, which also tells how well the agent does."""
    from quietq.report.page import Picture
    from quietq.report.release_page import write_release_report

    common: Any = {
        "title": "What 944 voters like, and what an agent made of it",
        "lead": "In the American National Election Study of 1996, 944 people said where they stand between left and "
        "right. Each is taken to like a position (the state, from 0, left, to 1, right) the better the nearer it is. "
        "What they like together was made private, once, as a function; an agent was trained on that to move a "
        "position to the left or to the right.",
        "certificate": certificate,
        "range_of_one": 1.0,
        "finding": finding,
        "pictures": [
            Picture(out / REWARD_PLOT, f"`{run.REWARD}`: the voters' mean reward with noise on it.", "private reward"),
            Picture(
                out / VALUES_PLOT, f"`{run.PUBLISHED}`: the agent's values of going left and right.", "agent's values"
            ),
        ],
    }
    write_release_report(out / REPORT, **common)
    shown = Picture(out / OUTCOME, "The true reward, the private one, and what the agent does.", "true reward")
    returns = {name: result[key] for name, key in RETURNS.items()}
    run.write(out / OUTCOME_REPORT, "")
    write_release_report(out / OUTCOME_REPORT, **common, outcome=shown, returns=returns)


def _note(out: Path) -> None:
    lines = [
        f"What may be published, under the promise in {run.CERTIFICATE}:",
        f"  {run.REWARD}: the voters' mean reward, made private; {REWARD_PLOT} shows it",
        f"  {run.PUBLISHED}: an agent that was trained on it; {VALUES_PLOT} shows its values",
        f"  {run.AGENT}: the same with its settings, for Agent.load",
        f"  {run.CERTIFICATE}: what was promised, to whom and under which assumptions",
        f"  {REPORT}: all of this in words and pictures, with an audit",
        f"  {' and '.join(AUDITS.values())}: what the audit found, for `quietq serve`",
        "Every demo draws new noise: if you publish several, their budgets add up.",
        "",
        "NOT PRIVATE, for you only, because they look at the true reward:",
        f"  {run.SCORES}: how well the agent does; {OUTCOME} shows it",
        f"  {OUTCOME_REPORT}: the report, with how well the agent does",
        "",
        "PRIVATE:",
        f"  {RATINGS}: what the voters like; it is not needed any more",
    ]
    run.write(out / run.README, "\n".join(lines) + "\n")


def _check_folder(out: Path) -> None:
    """An earlier demo may be replaced, and nothing else."""
    own = {*RELEASED, RATINGS, OUTCOME, OUTCOME_REPORT, run.SCORES, run.README}
    if out.is_dir() and {path.name for path in out.iterdir()} <= own:
        return
    run.choose(out, "", "")


def _tell(sentence: str, quiet: bool) -> None:
    if not quiet:
        print(sentence, file=sys.stderr)
