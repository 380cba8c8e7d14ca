"""A release's certificate for somebody who has never read one: who is protected, from what, and how well.

Words alone; the numbers come from the certificate. What is not certified is said to be NOT PRIVATE, and why.
"""

import math
from typing import Any

from quietq.privacy import Budget, Certificate, InvalidInput, cap_any_dp, cap_gdp, guess
from quietq.privacy.limits import of_hundred, weak_epsilon
from quietq.privacy.relations import relation_in_words
from quietq.privacy.words import plural
from quietq.released.release_file import NOT_PRIVATE, OpenedFile

_NOTHING_LEFT = 0.995
"""From here on a cap reads 1.00, and says nothing that a reader could use."""


def promise_in_words(release: OpenedFile) -> list[str]:
    """What the certificate promises, and what a reader of the values should know, in sentences."""
    certificate = release.certificate
    promised = _promised(certificate) if release.private else _not_private(certificate)
    return [*promised, *release.function.in_words()]


def _promised(certificate: Certificate) -> list[str]:
    relation = dict(certificate.relation or {})
    secret, who = _who(relation)
    weak = weak_epsilon(certificate.epsilon or 0.0, certificate.delta or 0.0, certificate.mu)
    return [
        *(() if weak is None else (f"WARNING: {weak}",)),
        *who,
        f"The promise is differential privacy with epsilon = {certificate.epsilon:g} and delta = "
        f"{certificate.delta:g}: the smaller they are, the more is hidden.",
        f"In plain words: suppose somebody knows everything but {secret}, and that there are two "
        "possibilities, either as likely as the other. By tossing a coin they guess right in 50 of 100 cases; with "
        f"this release in their hands, in at most {of_hundred(guess(certificate))} of 100.",
        "That holds however long they look, whatever they compute from it, and for any number of questions asked here.",
        f"Promised to look alike: {relation_in_words(relation)}. It covers this difference and no larger one.",
        "Not covered: what is true of the whole group; other releases about the same people, which add up; and data "
        "that lies elsewhere.",
        "It stands on the assumptions below. Those that are trusted, somebody has to vouch for.",
    ]


def _who(relation: dict[str, Any]) -> tuple[str, list[str]]:
    """What is hidden, and who is protected: a person where the relation counts people, else a difference."""
    people = relation.get("people")
    if relation.get("kind") == "replace-trajectory":
        one = plural(relation["count"], "trajectory", "trajectories")
        whole = "It is hidden as a whole: one person, if each person gave one."
        return "one trajectory", [f"Protected is any one of {one}.", whole]
    if people is None:
        counted = (
            "The certificate counts no people. One person is protected if this is as much as one person can change."
        )
        return "the reward", ["Protected is the difference between two rewards.", counted]
    one = "the one person behind it" if people == 1 else f"any one of {people} people"
    return "one person's data", [f"Protected is {one}."]


def _not_private(certificate: Certificate) -> list[str]:
    if certificate.standing == "claimed":
        why = (
            f"The method claims differential privacy with epsilon = {certificate.epsilon:g} and delta = "
            f"{certificate.delta:g}, but the claim is not proven. The notes say what fails."
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


def cap_in_words(certificate: Certificate) -> dict[str, float | str] | None:
    """What no algorithm with this promise can beat, where the number of people is known: replacing all of them one by
    one leads from any reward to its opposite. Of trajectories no policy is learned, so there is no score.
    """
    relation = certificate.relation or {}
    people = relation.get("people")
    if certificate.standing != "certified" or not isinstance(people, int):
        return None
    assert certificate.epsilon is not None
    assert certificate.delta is not None
    try:
        if certificate.mu is not None:
            score = cap_gdp(certificate.mu, people)
        else:
            score = cap_any_dp(Budget(certificate.epsilon, certificate.delta), people)
    except InvalidInput:  # a budget beyond what can be computed with
        return None
    scale = "(0 is the worst policy, 1 the best)"
    who = "the one person behind it wants" if people == 1 else f"all {people} people want"
    sentence = (
        f"No algorithm with this promise can score above {math.ceil(1000 * score) / 1000:.3f} both for what {who} and "
        f"for its opposite {scale}."
    )
    if score >= _NOTHING_LEFT:
        sentence = (
            f"With {plural(people, 'person', 'people')} this promise alone rules out no score up to {_NOTHING_LEFT:g} "
            f"{scale}. That does not make a good score easy."
        )
    return {"score": score, "sentence": sentence}
