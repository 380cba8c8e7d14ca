"""A certificate in words: the one rendering that terminal, page, report and docs use.

`explain(certificate, audience)` tells somebody who has never read a certificate what is promised (`"everybody"`),
whoever signs a release off what it stands on (`"signer"`), and the engineer how its numbers were drawn, bounded and
rounded (`"engineer"`). Nothing is left out over the three, and what somebody must vouch for is called trusted.
"""

from typing import Literal, NamedTuple

from quietq.privacy.budget import guess_right, of_hundred, weak_epsilon
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import Arrivals, Relation, Trajectories

Audience = Literal["everybody", "signer", "engineer"]
Mark = Literal["promise", "warning", "trusted", "enforced", "note"]
NOT_PRIVATE = "NOT PRIVATE"
MODELS_OF_ROWS = ("rounds",)
"""Mechanisms that know a reward where people's states lie. Other noise is alike in all of the box."""


PROMISED = (
    "Any output is at most e^epsilon times as likely, plus delta, as it would have been with any one person's data "
    "changed. mu says the same as one exact number; without it there is pure noise, or no exact number. Is delta well "
    "below 1/people?"
)
GUESSED = (
    "What that means for one person in the worst case. Judge by this line, not by epsilon alone. What would a right "
    "guess cost the person?"
)
ALIKE = "Who is protected, and against what. Are these the people, with all that they gave?"
PLACES = "The public box. Are these limits known from the task? 15.37 to 24.81 sounds like somebody's data."
OFF = "How good it is, not how private. It is computed from public numbers alone, so it can be published."
MEASURED = "Whenever the certificate is made or read, noise and promise are compared in this unit."
"""What the lines of a promise mean, for whoever signs it."""


class Sentence(NamedTuple):
    """One sentence about a certificate."""

    mark: Mark
    text: str
    ask: str = ""
    """What it means, or what whoever signs should ask."""

    def __str__(self) -> str:
        if self.mark == "promise":
            return self.text
        return f"WARNING: {self.text}" if self.mark == "warning" else f"- {self.mark}: {self.text}"


def explain(certificate: Certificate, audience: Audience) -> list[Sentence]:
    """Returns what this reader has to know of a certificate, line by line.

    Args:
        certificate: The certificate of a release.
        audience: "everybody" for plain words, "signer" for whoever signs the release off, "engineer" for how numbers
            were drawn and rounded.

    """
    if audience == "everybody":
        lines = _plainly(certificate) if certificate.standing == "certified" else _not_private(certificate)
        return [*_warning(certificate), *(Sentence("promise", text) for text in lines)]
    stands_on = sorted(certificate.assumptions, key=lambda one: one.enforced)  # what is trusted comes first
    lines = [
        Sentence("enforced" if one.enforced else "trusted", one.text, one.code.question)
        for one in stands_on
        if one.code.reader == audience
    ]
    if audience == "engineer":
        return [*(Sentence("note", text, MEASURED) for text in _measured(certificate)), *lines]
    return [*_promise(certificate), *lines, *(Sentence("note", remark) for remark in certificate.remarks)]


def guess(certificate: Certificate) -> float:
    """Returns how often somebody who knows all but one person is right about that one at the most; at chance it is half
    of the time.

    Args:
        certificate: The certificate of a release.

    """
    if certificate.epsilon is None:
        raise InvalidInput(f"A certificate of standing {certificate.standing!r} promises nothing to bet on.")
    return guess_right(certificate.epsilon, certificate.delta or 0.0, certificate.mu)


def _measured(certificate: Certificate) -> list[str]:
    """Returns what sensitivity and noise are measured in: of several queries, each in units of its own noise."""
    if not certificate.queries or certificate.standing != "certified":
        return []
    ruler = str(certificate.queries[0].norm)
    if len(certificate.queries) > 1:
        ruler = f"units of each query's own noise, over {len(certificate.queries)} queries together"
    return [f"Sensitivity and noise are measured in {ruler}."]


def in_print(certificate: Certificate) -> str:
    """Returns all of a certificate: first what whoever signs it needs, then what only the engineer can judge."""
    lines = [str(line) for line in explain(certificate, "signer")]
    for_engineer = [str(line) for line in explain(certificate, "engineer")]
    return "\n".join([*lines, *(["For the engineer:", *for_engineer] if for_engineer else [])])


def error_in_words(method: str, error: float) -> str:
    """Returns the expected error of the released values, over which states it is, and what it leaves out."""
    off = f"The expected error of the values is about {error:.3g}"
    if method.rpartition("/")[2] in MODELS_OF_ROWS:
        return (
            f"{off} where people's states lie, root mean square and apart from a constant; more elsewhere, "
            "and for a reward that is rougher than expected or that the features cannot represent."
        )
    return f"{off} (more where the reward is rough), root mean square over the box and apart from a constant."


def _warning(certificate: Certificate) -> list[Sentence]:
    if certificate.standing != "certified" or certificate.budget is None:
        return []
    sentence = weak_epsilon(certificate.budget.epsilon, certificate.budget.delta, certificate.mu)
    return [] if sentence is None else [Sentence("warning", sentence)]


def _promise(certificate: Certificate) -> list[Sentence]:
    """The (epsilon, delta), what somebody who guesses can reach, who is protected, and where values are known."""
    lines: list[Sentence] = []
    budget, relation = certificate.budget, certificate.relation
    if budget is None:
        seeded = " (a seed was given: whoever knows it can subtract the noise)" if certificate.reproducible else ""
        lines.append(Sentence("promise", f"{certificate.method}: no privacy is promised{seeded}."))
    else:
        verb = "is certified" if certificate.standing == "certified" else "is only CLAIMED, not proven,"
        mu = "" if certificate.mu is None else f" (mu = {certificate.mu:.5g})"
        promise = f"({budget.epsilon:g}, {budget.delta:g})-differentially private{mu}"
        lines.append(Sentence("promise", f"{certificate.method}: {verb} to be {promise}.", PROMISED))
    if certificate.standing == "certified" and relation is not None:
        guessed = (
            f"Whoever knows all else and guesses {relation.guessed()} is right in at most "
            f"{of_hundred(guess(certificate))} of 100 cases; by tossing a coin, in 50."
        )
        lines.append(Sentence("promise", guessed, GUESSED))
    lines += _warning(certificate)
    if relation is not None:
        lines.append(Sentence("promise", f"Neighbouring inputs: {relation}.", ALIKE))
    if certificate.domain is not None:
        box = " x ".join(f"[{low:.10g}, {high:.10g}]" for low, high in certificate.domain)
        lines.append(Sentence("promise", f"States lie in {box}.", PLACES))
    if certificate.expected_error is not None:
        error = error_in_words(certificate.method, certificate.expected_error)
        lines.append(Sentence("promise", error, OFF))
    return lines


def _plainly(certificate: Certificate) -> list[str]:
    assert certificate.budget is not None
    assert certificate.relation is not None
    relation, budget = certificate.relation, certificate.budget
    secret, who = _who(relation)
    return [
        *who,
        f"The promise is differential privacy with epsilon = {budget.epsilon:g} and delta = {budget.delta:g}: the "
        "smaller they are, the more is hidden.",
        f"In plain words: suppose somebody knows everything but {secret}, and that there are two possibilities, either "
        "as likely as the other. By tossing a coin they guess right in 50 of 100 cases; with this release, in at "
        f"most {of_hundred(guess(certificate))} of 100.",
        "That holds whatever they compute from it, and for any number of queries to it.",
        f"Neighbouring inputs, which it compares: {relation}. It covers this difference and no larger one.",
        "Not covered: what is true of the whole group; other releases about the same people, which add up; and data "
        "that lies elsewhere.",
        "It stands on the assumptions below. Those that are trusted, somebody has to vouch for.",
    ]


def _who(relation: Relation) -> tuple[str, list[str]]:
    """Returns what is hidden, and who is protected: a person where the relation counts people, else a difference."""
    if isinstance(relation, Trajectories):
        one = "1 trajectory" if relation.count == 1 else f"{relation.count} trajectories"
        whole = "It is hidden as a whole: one person, if each person gave one."
        return "one trajectory", [f"Protected is any one of {one}.", whole]
    if isinstance(relation, Arrivals):
        return "one person's data", ["Protected is any one person who arrives."]
    if relation.people is None:
        counted = (
            "The certificate counts no people. One person is protected if this is as much as one person can change."
        )
        return "the reward", ["Protected is the difference between two rewards.", counted]
    one = "the one person behind it" if relation.people == 1 else f"any one of {relation.people} people"
    return "one person's data", [f"Protected is {one}."]


def _not_private(certificate: Certificate) -> list[str]:
    if certificate.budget is not None:
        why = (
            f"The method claims differential privacy with epsilon = {certificate.budget.epsilon:g} and delta = "
            f"{certificate.budget.delta:g}, but the claim is not proven. The notes say what fails."
        )
    elif certificate.reproducible:
        why = (
            "Its noise was simulated from a seed: whoever knows the seed, or tries all likely ones, can subtract the "
            "noise and read the data."
        )
    else:
        why = "No noise that protects anybody was added, or none that a theorem covers."
    end = "It is for tests and comparisons, and must not be published if the rewards behind it are private."
    return [f"{NOT_PRIVATE}: nothing is promised to anybody.", why, end]
