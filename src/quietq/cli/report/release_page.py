"""The report of a release, for the person who signs it off: what is promised, what it costs, what the audit found.

Everything in it comes from what was released, from its certificate, and from an audit of the mechanism in a world that
is nobody's; so the page may leave with the release. With `outcome` it also tells how well the agent does under the true
reward: then it is NOT PRIVATE, and says so at its top. `write_voters_pages` is that of `quietq demo`.
"""

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from quietq.audit.finding import Finding
from quietq.cli import folder
from quietq.cli.folder import DemoFile
from quietq.cli.report.page import Part, Picture, Section, Table, write_page
from quietq.cli.report.pictures import find_best, plot_beside_truth, plot_reward
from quietq.feedback.voters import CANDIDATE, RATED, mean_candidate_rating
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.explain import Audience, error_in_words, explain
from quietq.privacy.limits import guess, guess_right, of_hundred
from quietq.released import PrivateNetwork
from quietq.released.private_function import PrivateFunction
from quietq.worlds import WALK

WORDS: dict[str, str] = tomllib.loads(Path(__file__).with_name("release_page.toml").read_text(encoding="utf-8"))


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
    also: tuple[Certificate, Section] | None = None,
) -> Path:
    """Writes the page; `range_of_one` is the width of the range in which one person's reward lies, which is public.

    `outcome` and `returns` (of the agent, of random actions, the best and the worst policy) look at the true reward.
    `also` is a second release of the same people, and its section: then the page says what both together promise.
    """
    if certificate.standing != "certified" or certificate.epsilon is None or certificate.delta is None:
        raise InvalidInput("A release report is for a certified release.")
    sections = [
        Section("What is promised", _promised(certificate, None if also is None else also[0])),
        Section("What was released", list(pictures)),
        *(() if also is None else also[1:]),
        Section("What it costs", _costs(certificate, range_of_one, outcome is None)),
        Section("What the audit found", _audit(finding)),
    ]
    if outcome is not None and returns is not None:
        table = Table(("policy", "return under the true reward"), [(name, value) for name, value in returns.items()])
        sections.append(Section("How well it does (NOT PRIVATE)", [table, outcome]))
    return write_page(path, title, lead, sections, None if outcome is None else WORDS["warning"])


def _promised(certificate: Certificate, second: Certificate | None) -> list[Part]:
    people = None if certificate.relation is None else certificate.relation.people
    certificates = [one for one in (certificate, second) if one is not None]
    audiences: tuple[Audience, ...] = ("signer", "engineer")
    stated = [line for one in certificates for audience in audiences for line in explain(one, audience)]
    assumptions = dict.fromkeys((line.text, line.mark) for line in stated if line.mark in ("trusted", "enforced"))
    # Releases of the same people add up, by basic composition, which holds for any two.
    budgets = [one.budget for one in certificates if one.budget is not None]
    epsilon, delta = sum(one.epsilon for one in budgets), sum(one.delta for one in budgets)
    right = guess(certificate) if second is None else guess_right(epsilon, delta)
    who = "any one person" if people is None else f"any one of {people} people"
    return [
        WORDS["promised"].format(who=who, epsilon=epsilon, delta=delta),
        WORDS["guess"].format(right=of_hundred(right)),
        WORDS["assumptions"],
        Table(("assumption", "by"), list(assumptions)),
        *(f"Note: {remark}" for remark in certificate.remarks),
    ]


def _costs(certificate: Certificate, range_of_one: float, public: bool) -> list[Part]:
    parts: list[Part] = []
    if (sigma := certificate.sigma) is not None:
        parts.append(WORDS["noise"].format(sigma=sigma, range=range_of_one, share=sigma / range_of_one))
    if public:
        parts.append(WORDS["no_outcome"])
    return [*parts, WORDS["again"]]


def _audit(finding: Finding) -> list[Part]:
    promise = finding.promise
    row = (promise.epsilon, finding.epsilon_lower, promise.mu, finding.mu_lower, finding.runs, finding.verdict)
    verdict = "broke the promise" if finding.verdict == "refuted" else "did not break the promise"
    headings = "epsilon promised", "epsilon at least", "mu promised", "mu at least", "releases each", "verdict"
    told = {"runs": finding.runs, "view": finding.attack.view, "confidence": finding.confidence, "verdict": verdict}
    table = Table(headings, [row], strong=frozenset({"refuted"}))
    return [WORDS["audit"].format(**told), table, WORDS["mu"]]


def write_voters_pages(
    out: Path,
    agent: PrivateNetwork,
    private: PrivateFunction,
    true: Callable[[np.ndarray], np.ndarray],
    result: Mapping[str, float],
    finding: Finding,
    candidates: PrivateFunction,
) -> None:
    """Writes pictures and pages of what 944 voters like: those that may be published, and the operator's.

    The operator's page has the outcome too, `result`, by the `true` reward.
    """
    plot_reward(private, out / DemoFile.REWARD_PLOT, title="What 944 voters like: the private reward")
    plot_reward(
        agent, out / DemoFile.VALUES_PLOT, actions=WALK.action_names, title="What the plan is worth: values by action"
    )
    plot_reward(
        candidates,
        out / DemoFile.CANDIDATES_MAP,
        names=CANDIDATE,
        title="Which candidates 944 voters like: the private reward",
    )
    returns = f"true return of the agent {result['return']:.2f}, of the best policy {result['best']:.2f}"
    plot_beside_truth(out / DemoFile.OUTCOME_PLOT, true, private, names=["state"], title=returns)
    plot_beside_truth(
        out / DemoFile.TRUE_MAP,
        mean_candidate_rating,
        candidates,
        names=CANDIDATE,
        title="which candidates 944 voters like",
    )
    write = partial(
        write_release_report,
        title="What 944 voters like, and what an agent made of it",
        lead=WORDS["voters"],
        certificate=agent.certificate,
        range_of_one=1.0,
        finding=finding,
        pictures=[
            Picture(
                out / DemoFile.REWARD_PLOT,
                f"`{folder.REWARD}`: the voters' mean reward with noise on it.",
                "private reward",
            ),
            Picture(
                out / DemoFile.VALUES_PLOT,
                f"`{folder.AGENT}`: the values of going left and right, planned on that reward.",
                "agent's values",
            ),
        ],
    )
    section = _describe_candidates(candidates, out / DemoFile.CANDIDATES_MAP)
    write(out / DemoFile.REPORT, also=(candidates.certificate, section))
    true_map = Picture(out / DemoFile.TRUE_MAP, "The true map of candidates, and the private one.", "true map")
    kept = Section(f"{section.title} (NOT PRIVATE)", [*section.parts, true_map])
    write(
        out / DemoFile.OUTCOME_REPORT,
        also=(candidates.certificate, kept),
        outcome=Picture(out / DemoFile.OUTCOME_PLOT, "The true reward, and the private one.", "true reward"),
        returns={
            "the agent": result["return"],
            "the best policy": result["best"],
            "random actions": result["random"],
            "the worst policy": result["worst"],
        },
    )


def _describe_candidates(private: PrivateFunction, picture: Path) -> Section:
    """Gives the report's section on the map of candidates, which may be published with the release."""
    certificate = private.certificate
    position, party = find_best(private)
    error = error_in_words(certificate.method, certificate.expected_error or 0.0)
    parts: list[Part] = [
        WORDS["candidates"].format(rated=RATED),
        Picture(picture, "`candidates.qq`: the voters' mean rating of candidates, with noise on it.", "private map"),
        WORDS["best_candidate"].format(position=position, party=party, error=error),
        WORDS["candidates_promise"].format(epsilon=certificate.epsilon, delta=certificate.delta),
    ]
    return Section("In two dimensions", parts)
