"""What an audit found, in words."""

import math

from quietq.audit.bounds import runs_needed
from quietq.audit.finding import Finding
from quietq.privacy.errors import InvalidInput


def in_words(finding: Finding) -> str:
    """The outcome: refuted or consistent, what was promised and what was measured."""
    promise, bound = finding.promise, finding.epsilon_lower
    word = "claims" if promise.standing == "claimed" else "is certified for"
    text = f"{finding.attack.method} {word} epsilon {promise.epsilon:g} at delta {promise.delta:g}"
    if promise.mu is not None:
        text += f" (mu {promise.mu:.4g})"
    text += f"; measured: epsilon at least {bound:.3g}, mu at least {finding.mu_lower:.3g}"
    text += f", at confidence {finding.confidence:g}, by {finding.runs} runs a world."
    if finding.verdict == "refuted":
        return f"REFUTED. {text}"
    text = f"Consistent. {text} A lower bound cannot prove a promise; it can only fail to break it."
    if promise.mu is not None:
        text += f" The best test would see twice the promised mu by {_needed(finding, promise.mu, 2.0)} runs a world"
        text += f", a tenth more by {_needed(finding, promise.mu, 1.1)}."
    return text


def _needed(finding: Finding, promised: float, times: float) -> str:
    """Runs a world, those included that are not judged, to refute the promise nine times out of ten."""
    try:
        judged = runs_needed(times * promised, promised, finding.each)
    except InvalidInput:  # beyond what is worth computing
        return "more than a million"
    return str(math.ceil(judged * finding.runs / finding.by_mu.runs_with))
