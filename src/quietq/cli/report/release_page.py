"""The report of a release, for the person who signs it off: what is promised, what it costs, what the audit found.

Everything in it comes from what was released, from its certificate, and from an audit of the mechanism in a world that
is nobody's; so the page may leave with the release. With `outcome` it also tells how well the agent does under the true
reward: then it is NOT PRIVATE, and says so at its top.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from quietq.audit.finding import Finding
from quietq.cli.report.page import Part, Picture, Section, Table, write_page
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.limits import guess

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
    assumptions = [(assumption.text, "enforced" if assumption.enforced else "trusted")
                   for assumption in certificate.assumptions]  # fmt: skip
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
    row = (
        promise.epsilon, finding.epsilon_lower, promise.mu, finding.mu_lower, finding.runs, finding.verdict,
    )  # fmt: skip
    verdict = "broke the promise" if finding.verdict == "refuted" else "did not break the promise"
    return [
        "A promise is an upper bound. The same kind of mechanism, with the same kernel and budget, was attacked "
        f"by the best test there is: {finding.runs:,} releases of each of two functions that are as far apart as one "
        f"person can make them, {finding.attack.view}, told apart as well as can be. The functions are nobody's. What "
        f"is given away at least (confidence {finding.confidence:g}) {verdict}:",
        Table(
            ("epsilon promised", "measured, at least", "mu promised", "measured, at least", "releases each", "verdict"),
            [row], strong=frozenset({"refuted"}),
        ),
        "Mu is another measure of the same: how many standard deviations of noise one person is worth. It is seen more "
        "sharply than epsilon, which is a matter of rare events. A lower bound cannot prove a promise; it can only "
        "fail to break it.",
    ]  # fmt: skip
