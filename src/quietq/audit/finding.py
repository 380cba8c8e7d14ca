"""What audits found, beside what was promised: lower bounds of the same thing, and in words."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Literal

from scipy.special import ndtri

from quietq.audit.bounds import Errors, epsilon_lower, mu_lower
from quietq.audit.distinguisher import Seen, Thresholds
from quietq.mechanisms.release import Mechanism
from quietq.privacy import Certificate, InvalidInput, QuietqError
from quietq.privacy.budget import guess_right

Verdict = Literal["refuted", "consistent"]


@dataclass(frozen=True)
class Promise:
    """What is promised or claimed; mu is None where the promise has none."""

    standing: str
    epsilon: float
    delta: float
    mu: float | None = None

    @classmethod
    def of_mechanism(cls, mechanism: Mechanism) -> "Promise":
        """Returns the promise that its certificate will state: pure noise has no mu and needs no delta."""
        cost, budget = mechanism.cost, mechanism.budget
        return cls("certified", budget.epsilon, budget.delta if cost.mu is not None else cost.delta or 0.0, cost.mu)

    @classmethod
    def of(cls, certificate: Certificate) -> "Promise":
        """As a certificate states it."""
        if certificate.epsilon is None or certificate.delta is None:
            raise InvalidInput("There is nothing to audit: this certificate promises nothing.")
        return cls(certificate.standing, certificate.epsilon, certificate.delta, certificate.mu)

    @property
    def right_guesses(self) -> float:
        """How often somebody who guesses which of two neighbours it was can be right, at the most."""
        return guess_right(self.epsilon, self.delta, self.mu)


@dataclass(frozen=True)
class Attack:
    """Which pair was distinguished, by what was observed of it, and how."""

    method: str
    world: str
    relation: str
    move: str
    view: str
    score: str

    @classmethod
    def on_mechanism(cls, mechanism: Mechanism, source: str, move: str, view: str, score: str) -> "Attack":
        """On releases that a mechanism makes of a source."""
        return cls(f"{mechanism.releases}/{mechanism.name}", source, str(mechanism.relation), move, view, score)


@dataclass(frozen=True)
class Finding:
    """What an audit found: the errors of its test, and the lower bounds that follow from them beside the promise."""

    attack: Attack
    promise: Promise
    runs: int  # a world, those included that a score or thresholds were learned on
    by_epsilon: Errors  # errors of the judged runs, at the threshold for epsilon
    by_mu: Errors  # the same at the threshold for mu
    confidence: float = 0.95  # with which all bounds stated here hold together

    @property
    def each(self) -> float:
        """The confidence of each of the two bounds alone: each has half of what may go wrong."""
        return (1 + self.confidence) / 2

    @property
    def epsilon_lower(self) -> float:
        """No (epsilon, delta)-DP method with a smaller epsilon is behind this, at the promise's delta."""
        return epsilon_lower(self.by_epsilon, self.promise.delta, self.each)

    @property
    def mu_lower(self) -> float:
        """No mu-GDP method with a smaller mu is behind this."""
        return mu_lower(self.by_mu, self.each)

    @property
    def verdict(self) -> Verdict:
        """`refuted` if a lower bound lies above what was promised."""
        beyond = self.promise.mu is not None and self.mu_lower > self.promise.mu
        return "refuted" if beyond or self.epsilon_lower > self.promise.epsilon else "consistent"

    def at(self, confidence: float) -> "Finding":
        """The same errors, with bounds that hold together with another confidence."""
        return replace(self, confidence=confidence)

    def to_dict(self) -> dict[str, object]:
        return {
            **asdict(self.attack),
            **asdict(self.promise),
            "epsilon_lower": self.epsilon_lower,
            "mu_lower": self.mu_lower,
            "confidence": self.confidence,
            "verdict": self.verdict,
            "runs": self.runs,
            "judged": self.by_epsilon.runs_with,
            "errors": {"epsilon": self.by_epsilon._asdict(), "mu": self.by_mu._asdict()},
        }


def count_errors(
    scores: Seen,
    thresholds: Thresholds,
    attack: Attack,
    promise: Promise,
    confidence: float = 0.95,
    learned_on: int = 0,
) -> Finding:
    """Counts how often thresholds on scores are wrong, and makes a finding of it.

    Args:
        scores: The scores of the runs.
        thresholds: Those above which a run is taken for one of the second kind.
        attack: What was attacked, and how.
        promise: What was promised.
        confidence: The confidence of the bounds.
        learned_on: Runs that the score was learned on.

    """
    runs = len(scores.first) + learned_on
    by_epsilon, by_mu = scores.errors(thresholds.epsilon), scores.errors(thresholds.mu)
    return Finding(attack, promise, runs, by_epsilon, by_mu, confidence)


def in_words(finding: Finding) -> str:
    """Says the outcome: refuted or consistent, what was promised and what was measured.

    Args:
        finding: The outcome of an audit.

    """
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
        # One interval for all errors of n runs a world: how far it lies below a small mu, as `audit.bounds` has it.
        below = float(ndtri(finding.each)) * math.sqrt(math.pi / finding.by_mu.runs_with)
        text += f" With this many runs, the best test's bound lies about {below:.2g} below the true mu."
    return text


# With the noise held fixed


TOLERANCE = 1e-5  # movements are computed in float32 where the method computes in it: this part of them may be rounding


class Unprotected(QuietqError):
    """There is no noise of the kind that was promised between the reward and what is released."""


@dataclass(frozen=True)
class Movement:
    """The farthest that neighbours were found apart before noise, and how far apart the noise assumes them to be."""

    name: str  # what was audited
    stated: float  # the sensitivity that the noise in it is enough for, by the noise itself and the budget
    found: float  # the largest movement that the search found, in the same norm: the sensitivity is at least this
    by: str  # which search found it
    norm: str = "Euclidean"  # what both are measured in
    queries: tuple[float, ...] = ()  # of several queries, the share that was found of each one's sensitivity
    together: float | None = None  # and of all of their privacy loss together

    @property
    def share(self) -> float:
        """What part of the stated sensitivity was found: above 1, the promise is broken; far below, noise is wasted."""
        return self.found / self.stated

    @property
    def exceeds(self) -> bool:
        """Whether neighbours are farther apart than the noise is made for, by more than rounding."""
        return not self.found <= self.stated * (1 + TOLERANCE)  # True for NaN

    def to_dict(self) -> dict[str, object]:
        names = ("name", "norm", "stated", "found", "share", "by", "exceeds")
        record: dict[str, object] = {name: getattr(self, name) for name in names}
        return record | ({"queries": list(self.queries), "together": self.together} if self.queries else {})
