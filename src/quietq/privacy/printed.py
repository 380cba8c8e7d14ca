"""A certificate as it is printed: first what whoever signs it needs, then what only the engineer can judge.

Nothing is left out, and every line that somebody must vouch for is called trusted, wherever it stands.
"""

from typing import Any

from quietq.privacy.limits import guess_right, of_hundred, weak_epsilon
from quietq.privacy.norms import norm_in_words
from quietq.privacy.relations import guessed_in_words, relation_in_words

RULE = "For the engineer:"
OF_ROWS = ("rounds",)
"""Models of everybody's rows: they know a reward where people's states lie. Other noise is alike in all of the box."""
_OPENINGS = (
    "The numbers that noise was added to stay below ",
    "Numbers stay below ",
    "Weights were computed to within ",
    "Noise of exactly its law was drawn ",
    "Exponential noise was drawn ",
    "Weights were clipped to ",
    "Values were clipped and rounded to ",
    "Noise '",
)
"""How sentences begin that say how numbers were drawn, bounded and rounded, or how the noise was chosen."""


def in_print(certificate: Any) -> str:
    """All of it, in lines."""
    stated = sorted(certificate.assumptions, key=lambda one: one.enforced)  # what is trusted comes first
    marked = [("enforced" if one.enforced else "trusted", one.text) for one in stated]
    marked += [("note", remark) for remark in certificate.remarks]
    for_signer, for_engineer = [], _measured(certificate)
    for mark, text in marked:
        (for_engineer if text.startswith(_OPENINGS) else for_signer).append(f"- {mark}: {text}")
    return "\n".join([*_promise(certificate), *for_signer, *([RULE, *for_engineer] if for_engineer else ())])


def _promise(c: Any) -> list[str]:
    if c.standing == "none":
        head = f"{c.method}: no privacy is promised"
        head += " (a seed was given: whoever knows it can subtract the noise)." if c.reproducible else "."
    else:
        verb = "is certified" if c.standing == "certified" else "is only CLAIMED, not proven,"
        mu = "" if c.mu is None else f" (mu = {c.mu:.5g})"
        head = f"{c.method}: {verb} to be ({c.epsilon:g}, {c.delta:g})-differentially private{mu}."
    lines = [head]
    if c.standing == "certified":
        share = of_hundred(guess_right(c.epsilon, c.delta, c.mu))
        lines.append(
            f"Whoever knows all else and guesses {guessed_in_words(c.relation)} is right in at most {share} of 100 "
            "cases; by tossing a coin, in 50."
        )
        if sentence := weak_epsilon(c.epsilon, c.delta, c.mu):
            lines.append(f"WARNING: {sentence}")
    if c.relation is not None:
        lines.append(f"Promised to look alike: {relation_in_words(c.relation)}.")
    if c.domain is not None:
        lines.append(f"States lie in {' x '.join(f'[{low:.10g}, {high:.10g}]' for low, high in c.domain)}.")
    if c.expected_error is not None:
        lines.append(error_in_words(c.method, c.expected_error))
    return lines


def error_in_words(method: str, error: float) -> str:
    """How far off the released values must be expected to be, over which states, and what is not in that."""
    off = f"Values must be expected to be off by about {error:.3g}"
    if method.rpartition("/")[2] in OF_ROWS:
        return (
            f"{off} where people's states lie, root mean square and apart from a constant; by more elsewhere, "
            "and for a reward that is rougher than expected or that the features cannot represent."
        )
    return f"{off} (more where the reward is rough), root mean square over the box and apart from a constant."


def _measured(c: Any) -> list[str]:
    return [] if c.norm is None else [f"- Sensitivity and noise are measured in {norm_in_words(c.norm)}."]
