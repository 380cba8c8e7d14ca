"""The report of a release, for the person who signs it off: what is promised, what it costs, what the audit found.

Everything in it comes from what was released, from its certificate, and from an audit of the mechanism in a world that
is nobody's; so the page may leave with the release. With `outcome` it also tells how well the agent does under the true
reward: then it is NOT PRIVATE, and says so at its top. `write_voters_pages` is that of `quietq demo`.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quietq.audit.finding import Finding
from quietq.cli.report.page import Part, Picture, Section, Table, write_page
from quietq.cli.report.released import plot_reward, plot_values
from quietq.cli.report.truth import plot_outcome
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.limits import guess
from quietq.worlds import WALK, plan

RETURNS = {"the agent": "return", "the best policy": "best", "random actions": "random", "the worst policy": "worst"}
VOTERS = (
    "In the American National Election Study of 1996, 944 people said where they stand between left and right. Each is "
    "taken to like a position (the state, from 0, left, to 1, right) the better the nearer it is. What they like "
    "together was made private, once, as a function; an agent was trained on that to move a position to the left or to "
    "the right."
)
WARNING = "NOT PRIVATE: this page looks at the true reward. It is for the operator only and must not be published."


def write_release_report(
    path: str | os.PathLike[str],
    *,
    title: str,
    lead: str,
    certificate: Certificate,
    range_of_one: float,
    finding: Finding,
    pictures: Sequence[Picture],
    outcome: Picture | None = None,
    returns: Mapping[str, float] | None = None,
) -> Path:
    """Writes the page; `range_of_one` is the width of the range in which one person's reward lies, which is public.

    `outcome` and `returns` (of the agent, of random actions, the best and the worst policy) look at the true reward.
    """
    if certificate.standing != "certified" or certificate.epsilon is None or certificate.delta is None:
        raise InvalidInput("A release report is for a certified release.")
    sections = [
        Section("What is promised", _promised(certificate)),
        Section("What was released", list(pictures)),
        Section("What it costs", _costs(certificate, range_of_one, outcome is None)),
        Section("What the audit found", _audit(finding)),
    ]
    if outcome is not None and returns is not None:
        table = Table(("policy", "return under the true reward"), [(name, value) for name, value in returns.items()])
        sections.append(Section("How well it does (NOT PRIVATE)", [table, outcome]))
    return write_page(path, title, lead, sections, None if outcome is None else WARNING)


def _promised(certificate: Certificate) -> list[Part]:
    people = (certificate.relation or {}).get("people")
    who = "any one person" if people is None else f"any one of {people} people"
    assumptions = [(one.text, "enforced" if one.enforced else "trusted") for one in certificate.assumptions]
    return [
        f"Whatever is computed from the files of this release gives {who} away by no more than epsilon = "
        f"{certificate.epsilon:g}, delta = {certificate.delta:g}, in the sense of differential privacy.",
        "In plain words: suppose somebody knows what everybody else said, and that the one person said one of two "
        "things, either as likely as the other. By tossing a coin they are right in 50 of 100 cases; with all of this "
        f"in their hands, in at most {100 * guess(certificate):.1f}. That holds for any number of questions to it, and "
        "any computer. (Who could guess better before can still guess better, by as little.)",
        "The promise rests on the following. What is enforced is done by the code; what is trusted is yours to make "
        "sure of.",
        Table(("assumption", "by"), assumptions),
        *(f"Note: {remark}" for remark in certificate.remarks),
    ]


def _costs(certificate: Certificate, range_of_one: float, public: bool) -> list[Part]:
    parts: list[Part] = []
    if certificate.sigma is not None:
        parts.append(
            f"Privacy is paid for in noise. Here it has a standard deviation of {certificate.sigma:.3g} on a reward "
            f"in which one person ranges over {range_of_one:g}: that is {certificate.sigma / range_of_one:.1%} of the "
            "range. It was drawn once; training on the noisy reward costs nothing more, for however long."
        )
    if public:
        parts.append(
            "How well the agent does under the true reward would look at that reward again, so it is not on this page. "
            "The operator finds it in the files called NOT-PRIVATE."
        )
    parts.append(
        "Releasing again costs again: noise that is drawn a second time, for the same people, adds to what is given "
        "away. Copies of these files do not."
    )
    return parts


def _audit(finding: Finding) -> list[Part]:
    promise = finding.promise
    row = (promise.epsilon, finding.epsilon_lower, promise.mu, finding.mu_lower, finding.runs, finding.verdict)
    verdict = "broke the promise" if finding.verdict == "refuted" else "did not break the promise"
    headings = "epsilon promised", "measured, at least", "mu promised", "measured, at least", "releases each", "verdict"
    return [
        "A promise is an upper bound. The same kind of mechanism, with the same kernel and budget, was attacked "
        f"by the best test there is: {finding.runs:,} releases of each of two functions that are as far apart as one "
        f"person can make them, {finding.attack.view}, told apart as well as can be. The functions are nobody's. What "
        f"is given away at least (confidence {finding.confidence:g}) {verdict}:",
        Table(headings, [row], strong=frozenset({"refuted"})),
        "Mu is another measure of the same: how many standard deviations of noise one person is worth. It is seen more "
        "sharply than epsilon, which is a matter of rare events. A lower bound cannot prove a promise; it can only "
        "fail to break it.",
    ]


def write_voters_pages(
    agent: Any, private: Any, true: Any, result: dict[str, float], finding: Finding, files: Mapping[str, Path]
) -> None:
    """Pictures and pages of what 944 voters like: those that may be published, and the operator's, with the outcome."""
    plot_reward(private, files["reward"], title="What 944 voters like: the private reward")
    plot_values(agent, files["values"], title="What the agent released: values by action, and the best action")
    pictures = [
        Picture(files["reward"], "`reward.qq`: the voters' mean reward with noise on it.", "private reward"),
        Picture(files["values"], "`agent.qq`: the agent's values of going left and right.", "agent's values"),
    ]
    states = np.linspace(0, 1, 1025)
    policies = {"agent": agent.predict(states[:, None])[0], "best policy": plan(true)(states)}
    title = f"true return of the agent {result['return']:.2f}, of the best policy {result['best']:.2f}"
    plot_outcome(
        files["outcome"], states=states, true=true, private=private, policies=policies, actions=WALK.action_names,
        title=title,
    )  # fmt: skip
    outcome = Picture(files["outcome"], "The true reward, the private one, and what the agent does.", "true reward")
    returns = {name: result[key] for name, key in RETURNS.items()}
    for file, more in (("report", {}), ("outcome report", {"outcome": outcome, "returns": returns})):
        write_release_report(
            files[file], title="What 944 voters like, and what an agent made of it", lead=VOTERS,
            certificate=agent.certificate, range_of_one=1.0, finding=finding, pictures=pictures, **more,
        )  # fmt: skip
