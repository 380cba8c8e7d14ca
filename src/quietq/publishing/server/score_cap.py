"""What no algorithm with a certificate's promise can beat, in words."""

import math

from quietq.privacy import Certificate, InvalidInput, Trajectories, cap_any_dp, cap_gdp
from quietq.privacy.words import plural

_NOTHING_LEFT = 0.995
"""From here on a cap reads 1.00, and says nothing that a reader could use."""


def cap_in_words(certificate: Certificate) -> dict[str, float | str] | None:
    """What no algorithm with this promise can beat, where the number of people is known: replacing all of them one by
    one leads from any reward to its opposite. Of trajectories no policy is learned, so there is no score.
    """
    relation, budget = certificate.relation, certificate.budget
    if certificate.standing != "certified" or budget is None or relation is None or relation.people is None:
        return None
    if isinstance(relation, Trajectories):
        return None
    people = relation.people
    try:
        mu = certificate.mu
        score = cap_any_dp(budget, people) if mu is None else cap_gdp(mu, people)
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
