"""A promise as a bet: how often can somebody be right about one person?"""

from scipy.special import expit, ndtr

from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput


def guess(certificate: Certificate) -> float:
    """The most often that somebody who knows all but one person is right about that one, where a coin is right half
    the time: Phi(mu/2) for Gaussian noise, and for any (epsilon, delta) what a randomised answer gives.

    >>> from quietq import Budget, people, privatise
    >>> pure = privatise(lambda s: s, Budget(1.0, 0.0), relation=people(50, low=0, high=1, slope=1)).certificate
    >>> round(guess(pure), 3)
    0.731
    """
    if certificate.mu is not None:
        return float(ndtr(certificate.mu / 2))
    if certificate.epsilon is None:
        raise InvalidInput(f"A certificate of standing {certificate.standing!r} promises nothing to bet on.")
    share = float(expit(certificate.epsilon))
    return share + (1 - share) * (certificate.delta or 0.0)
