"""The report of a release, for the person who signs it off: pictures, the promise, its cost, the audit, assumptions.

Everything in it comes from what was released, from its certificate, and from an audit of the mechanism on synthetic
functions; so the page can be published with the release.
"""

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

from quietq.audit.finding import Finding
from quietq.cli.report.page import paragraph, table, write_page
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.explain import Audience, explain
from quietq.privacy.limits import guess, of_hundred

WORDS: dict[str, str] = tomllib.loads(Path(__file__).with_name("release_page.toml").read_text(encoding="utf-8"))


def write_release_report(
    path: str | os.PathLike[str],
    *,
    title: str,
    lead: str,
    certificate: Certificate,
    range_of_one: float,
    finding: Finding,
    pictures: Sequence[str],
) -> Path:
    """Writes the page of a certified release.

    Args:
        path: The file.
        title: The heading.
        lead: What the release is of, in a few sentences.
        certificate: That of the release.
        range_of_one: The width of the range in which one person's reward lies, which is public.
        finding: What an audit of the mechanism found.
        pictures: Parts of a page that show what was released.

    """
    if certificate.standing != "certified" or certificate.epsilon is None or certificate.delta is None:
        raise InvalidInput("A release report is for a certified release.")
    sections = {
        "What was released": pictures,
        "What is promised": _promised(certificate),
        "What it costs": _costs(certificate, range_of_one),
        "What the audit found": _audit(finding),
        "What it rests on": _assumptions(certificate),
    }
    return write_page(path, title, lead, sections)


def _promised(certificate: Certificate) -> list[str]:
    people = None if certificate.relation is None else certificate.relation.people
    who = "any one person" if people is None else f"any one of {people} people"
    return [
        paragraph(WORDS["promised"].format(who=who, epsilon=certificate.epsilon, delta=certificate.delta)),
        paragraph(WORDS["guess"].format(right=of_hundred(guess(certificate)))),
    ]


def _costs(certificate: Certificate, range_of_one: float) -> list[str]:
    told = [WORDS["no_outcome"], WORDS["again"]]
    if (sigma := certificate.sigma) is not None:
        told.insert(0, WORDS["noise"].format(sigma=sigma, range=range_of_one, share=sigma / range_of_one))
    return [paragraph(words) for words in told]


def _audit(finding: Finding) -> list[str]:
    promise = finding.promise
    row = (promise.epsilon, finding.epsilon_lower, promise.mu, finding.mu_lower, finding.runs, finding.verdict)
    verdict = "broke the promise" if finding.verdict == "refuted" else "did not break the promise"
    headings = "epsilon promised", "epsilon at least", "mu promised", "mu at least", "releases each", "verdict"
    told = {"runs": finding.runs, "view": finding.attack.view, "confidence": finding.confidence, "verdict": verdict}
    found = table(headings, [row], strong=["refuted"])
    return [paragraph(WORDS["audit"].format(**told)), found, paragraph(WORDS["mu"])]


def _assumptions(certificate: Certificate) -> list[str]:
    """Each assumption once, what is trusted first."""
    audiences: tuple[Audience, ...] = ("signer", "engineer")
    stated = [line for audience in audiences for line in explain(certificate, audience)]
    assumptions = dict.fromkeys(
        (line.text, mark) for mark in ("trusted", "enforced") for line in stated if line.mark == mark
    )
    return [
        paragraph(WORDS["assumptions"]),
        table((f"assumption of {certificate.method}", "by"), list(assumptions)),
        *(paragraph(f"Note: {remark}") for remark in certificate.remarks),
    ]
