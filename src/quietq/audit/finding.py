"""What an audit found, beside what was promised: a lower bound and an upper bound of the same thing."""

from dataclasses import asdict, dataclass, replace
from typing import Literal

from quietq.audit.bounds import Errors, epsilon_lower, mu_lower
from quietq.audit.distinguisher import Scores, Thresholds
from quietq.privacy.budget import Budget
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput

Verdict = Literal["refuted", "consistent"]


@dataclass(frozen=True)
class Promise:
    """What is promised or claimed; mu is None where the promise has none."""

    standing: str
    epsilon: float
    delta: float
    mu: float | None = None

    @classmethod
    def certified(cls, budget: Budget, pure: bool = False) -> "Promise":
        """What noise of this budget promises: Gaussian noise a mu too, pure noise epsilon alone."""
        return cls("certified", budget.epsilon, 0.0 if pure else budget.delta, None if pure else budget.mu)

    @classmethod
    def of(cls, certificate: Certificate) -> "Promise":
        """As a certificate states it."""
        if certificate.epsilon is None or certificate.delta is None:
            raise InvalidInput("There is nothing to audit: this certificate promises nothing.")
        return cls(certificate.standing, certificate.epsilon, certificate.delta, certificate.mu)


@dataclass(frozen=True)
class Attack:
    """Which pair was told apart, by what was seen of it, and how."""

    method: str
    world: str
    relation: str
    move: str
    view: str
    score: str


@dataclass(frozen=True)
class Finding:
    """The outcome of one audit."""

    attack: Attack
    promise: Promise
    runs: int
    """A world, those included that a score or thresholds were learned on."""
    by_epsilon: Errors
    """Errors of the judged runs, at the threshold for epsilon."""
    by_mu: Errors
    """The same at the threshold for mu."""
    confidence: float = 0.95
    """With which all bounds stated here hold together."""
    seconds: float | None = None

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
        """The same errors at another confidence."""
        return replace(self, confidence=confidence)

    def to_dict(self) -> dict[str, object]:
        """All of it in JSON; the promise's epsilon goes by its standing."""
        promise = self.promise
        return {
            **asdict(self.attack),
            f"{promise.standing}_epsilon": promise.epsilon,
            "delta": promise.delta,
            f"{promise.standing}_mu": promise.mu,
            "epsilon_lower": self.epsilon_lower,
            "mu_lower": self.mu_lower,
            "confidence": self.confidence,
            "verdict": self.verdict,
            "runs": self.runs,
            "judged": self.by_epsilon.runs_with,
            "errors": {"epsilon": self.by_epsilon._asdict(), "mu": self.by_mu._asdict()},
            "seconds": self.seconds,
        }


def judge(
    scores: Scores,
    thresholds: Thresholds,
    attack: Attack,
    promise: Promise,
    confidence: float = 0.95,
    learned_on: int = 0,
    seconds: float | None = None,
) -> Finding:
    """Counts the errors of a test that was fixed before."""
    runs = len(scores.first) + learned_on
    by_epsilon, by_mu = scores.errors(thresholds.epsilon), scores.errors(thresholds.mu)
    return Finding(attack, promise, runs, by_epsilon, by_mu, confidence, seconds)
