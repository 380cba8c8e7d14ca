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
from quietq.cli.report.pictures import find_best, plot_outcome, plot_reward, plot_true_map, plot_values
from quietq.feedback.voters import CANDIDATE, RATED, mean_candidate_rating
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.explain import Sentence, error_in_words, explain
from quietq.privacy.limits import guess, guess_right, of_hundred
from quietq.released import PrivateNetwork
from quietq.released.private_function import PrivateFunction
from quietq.worlds import WALK, plan

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
    who = "any one person" if people is None else f"any one of {people} people"
    stated = [line for one in (certificate, second) if one is not None for line in _stands_on(one)]
    assumptions = list(dict.fromkeys((line.text, line.mark) for line in stated))
    epsilon, delta, right = certificate.epsilon, certificate.delta, guess(certificate)
    if second is not None:
        epsilon, delta = add_promises(certificate, second)
        right = guess_right(epsilon, delta)
    return [
        WORDS["promised"].format(who=who, epsilon=epsilon, delta=delta),
        WORDS["guess"].format(right=of_hundred(right)),
        WORDS["assumptions"],
        Table(("assumption", "by"), assumptions),
        *(f"Note: {remark}" for remark in certificate.remarks),
    ]


def _stands_on(certificate: Certificate) -> list[Sentence]:
    lines = [*explain(certificate, "signer"), *explain(certificate, "engineer")]
    return [line for line in lines if line.mark in ("trusted", "enforced")]


def add_promises(first: Certificate, second: Certificate) -> tuple[float, float]:
    """Gives (epsilon, delta) of two releases of the same people, by basic composition, which holds for any two."""
    return (first.epsilon or 0.0) + (second.epsilon or 0.0), (first.delta or 0.0) + (second.delta or 0.0)


def _costs(certificate: Certificate, range_of_one: float, public: bool) -> list[Part]:
    parts, sigma = [WORDS["again"]], certificate.sigma
    if public:
        parts.insert(0, WORDS["no_outcome"])
    if sigma is not None:
        parts.insert(0, WORDS["noise"].format(sigma=sigma, range=range_of_one, share=sigma / range_of_one))
    return [*parts]


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
    reward_plot, values_plot, outcome_plot = (
        out / name for name in (DemoFile.REWARD_PLOT, DemoFile.VALUES_PLOT, DemoFile.OUTCOME_PLOT)
    )
    plot_reward(private, reward_plot, title="What 944 voters like: the private reward")
    heading = "What the plan is worth: values by action, and the best action"
    plot_values(agent, values_plot, actions=WALK.action_names, title=heading)
    pictures = [
        Picture(reward_plot, f"`{folder.REWARD}`: the voters' mean reward with noise on it.", "private reward"),
        Picture(
            values_plot,
            f"`{folder.AGENT}`: the values of going left and right, planned on that reward.",
            "agent's values",
        ),
    ]
    states = np.linspace(0, 1, 1025)
    plot_outcome(
        outcome_plot,
        states=states,
        true=true,
        private=private,
        policies={"agent": agent.predict(states[:, None])[0], "best policy": plan(true)(states)},
        actions=WALK.action_names,
        title=f"true return of the agent {result['return']:.2f}, of the best policy {result['best']:.2f}",
    )
    outcome = Picture(outcome_plot, "The true reward, the private one, and what the agent does.", "true reward")
    returns = {
        "the agent": result["return"],
        "the best policy": result["best"],
        "random actions": result["random"],
        "the worst policy": result["worst"],
    }
    section = _write_candidates(candidates, out / DemoFile.CANDIDATES_MAP)
    true_map = out / DemoFile.TRUE_MAP
    plot_true_map(
        true_map, mean_candidate_rating, candidates, names=CANDIDATE, title="which candidates 944 voters like"
    )
    seen = Picture(true_map, "The true map of candidates, and the private one.", "true map")
    write = partial(
        write_release_report,
        title="What 944 voters like, and what an agent made of it",
        lead=WORDS["voters"],
        certificate=agent.certificate,
        range_of_one=1.0,
        finding=finding,
        pictures=pictures,
    )
    write(out / DemoFile.REPORT, also=(candidates.certificate, section))
    kept = Section(f"{section.title} (NOT PRIVATE)", [*section.parts, seen])
    write(out / DemoFile.OUTCOME_REPORT, also=(candidates.certificate, kept), outcome=outcome, returns=returns)


def _write_candidates(private: PrivateFunction, picture: Path) -> Section:
    """Draws the map of candidates, and gives the report's section, which may be published with the release."""
    plot_reward(private, picture, names=CANDIDATE, title="Which candidates 944 voters like: the private reward")
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
