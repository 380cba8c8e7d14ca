"""Checks of a reward: the share of people whose own answers it explains, and how much people disagree with it.

Theorem. Each person gives a vote, 1/2 or -1/2, and a cosine, in [-1, 1], as functions of their own rows and of the
reward. Two people are never more than sqrt(5) apart, so replacing one of N moves the mean by at most sqrt(5)/N, and
Gaussian noise of deviation sqrt(5)/(N mu) makes it mu-GDP. Proof: docs/theory.md#reward-check.

What each person is asked. Their rows are put in order by what they say, and dealt out to two halves by turns.

- The *vote* is whether the reward has a smaller loss on their rows than a constant.
- The *cosine* is that of the residual gradients on the two halves: how the loss would fall if public features were
  added to the reward. Noise in answers is independent between halves, so the mean over people is about 0 if what the
  reward leaves unexplained is noise. It is large if people's own rewards differ from it in a way that lasts: because
  there are groups who want opposite things, whose mean satisfies nobody, or because the reward itself is far off.

Everything is computed person by person, so that no bit depends on the batch.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from quietq.feedback.feedback import Feedback
from quietq.feedback.row_statistics import Loss
from quietq.feedback.statistic import Columns, Starts, Vector
from quietq.mechanisms.release import Mechanism, Query, mean_of_people
from quietq.noise.feature_maps import Categorical, FeatureMap, Polynomials
from quietq.privacy import Budget, Certificate, InvalidInput
from quietq.privacy.account import Issued
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import is_own, plural
from quietq.released.private_function import PrivateFunction
from quietq.released.publishable import Json


@dataclass(frozen=True, eq=False)
class OwnAnswers(Vector):
    """Each person's vote, 1/2 or -1/2, and cosine between the residual gradients on two halves of their rows."""

    loss: Loss
    reward: PrivateFunction
    features: FeatureMap
    size: int = 2
    bound: float = 5**0.5 / 2

    @np.errstate(all="ignore")  # what is not finite counts as the middle, and nothing is said of it
    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        ends = np.append(starts[1:], len(next(iter(columns.values()))))
        each = [slice(*both) for both in zip(starts, ends, strict=True)]
        told = [self._of_person({name: column[own] for name, column in columns.items()}) for own in each]
        return np.array(told).reshape(len(starts), 2)

    def _of_person(self, columns: Columns) -> tuple[float, float]:
        rows, half = self._halves(columns)
        if half == len(rows):
            return 0.0, 0.0  # one answer says nothing of two halves
        mine, starts = {name: column[rows] for name, column in columns.items()}, np.array([0, half])

        def design(points: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
            """The reward itself, and beside it the features of what it may leave unexplained."""
            found = self._design(points, actions)
            if self.loss.constant:  # each half has a level of its own: generous people differ in nothing else
                found = np.concatenate([part - part.mean(axis=0) for part in np.split(found, [half])])
            return found

        along = np.zeros(1 + self.features.rank * self.loss.actions)
        slopes = []
        for weight in (0.0, 0.5, 1.0):
            along[0] = weight
            slopes.append(self.loss.gradients(starts, mine, design, along))
        # Simpson's rule, from no reward to all of it: exact for the squared loss.
        gained = -(slopes[0] + 4 * slopes[1] + slopes[2])[:, 0].sum()
        one, other = slopes[2][:, 1:]
        lengths = np.linalg.norm(one) * np.linalg.norm(other)
        return float(np.sign(gained)) / 2, float(np.clip(one @ other / lengths, -1.0, 1.0)) if lengths > 0 else 0.0

    def _halves(self, columns: Columns) -> tuple[Int[np.ndarray, " rows"], int]:
        """A person's rows, first one half and then the other, and how many there are in the first.

        Answers, of one row or of a segment, are sorted by what they say, so that their order in the file plays no part.
        """
        number = len(next(iter(columns.values())))
        begins = np.arange(number)
        if "segment" in columns:
            segments = columns["segment"]
            begins = np.flatnonzero(np.append(True, segments[1:] != segments[:-1]))
        said = [np.fmax.reduceat(column, begins) for name, column in columns.items() if name != "segment"]
        # By states first: dealt out by turns in the order of ratings, the halves' noise would be alike.
        order = np.lexsort(said[::-1])
        answers = np.split(np.arange(number), begins[1:])
        one, other = ([answers[i] for i in order[first::2]] for first in (0, 1))
        return np.concatenate([*one, *other]), sum(map(len, one))

    def rewards(self, points: Float[np.ndarray, "rows d"]) -> Float[np.ndarray, "rows ..."]:
        """The reward at points of the unit box; of items, at the nearest."""
        states = self.reward.box.from_unit(points if points.shape[1] > 1 else points[:, 0])
        return np.asarray(self.reward(np.rint(states) if isinstance(self.features, Categorical) else states))

    def _design(self, points: Float[np.ndarray, "rows d"], actions: np.ndarray | None) -> np.ndarray:
        """The reward of each row in the loss's units, and features, which each action has for itself."""
        values = self.rewards(points)
        features = self.features(points)
        if actions is not None:
            values = values[np.arange(len(values)), actions]
            taken = np.eye(self.loss.actions)[actions]
            features = (taken[:, :, None] * features[:, None, :]).reshape(len(points), -1)
        if self.loss.range is not None:
            low, high = self.loss.range
            values = (values - low) / (high - low) - 0.5
        return np.column_stack([values / self.loss.unit, features])


@dataclass(frozen=True, eq=False)
class CheckedReward(Issued):
    """What people's own answers say of a reward. Numbers are noised, so they may lie outside their range."""

    share: float
    """The share of people whose own answers the reward explains better than a constant does."""
    disagreement: float
    """The mean over people of the cosine between the reward's residual gradients on two halves of their answers: about
    0 if people agree with it up to noise, and larger if they differ from it, or if its error is large."""
    error: float
    """The deviation of the noise of either."""
    certificate: Certificate = field(repr=False)

    def to_dict(self) -> Json:
        numbers = {name: getattr(self, name) for name in ("share", "disagreement", "error")}
        return numbers | {"certificate": self.certificate.to_dict()}

    def __str__(self) -> str:
        return (
            f"The reward explains the answers of a share {self.share:.2f} of the people better than a constant does; "
            f"disagreement {self.disagreement:.2f} (0: up to noise in their answers people agree with it; 1: they "
            f"differ from it in ways that last). The noise of both is {self.error:.2g}.\n{self.certificate}"
        )


class RewardCheck(Mechanism):
    """One noisy mean of votes and cosines."""

    name, feedback_kind = "check", "rows"
    error_unit: ClassVar[str] = "of a share"

    def __init__(self, reward: PrivateFunction, feedback: Feedback, budget: Budget) -> None:
        """Refuses what does not fit; only what is public of the feedback is looked at."""
        if feedback.loss is None:
            raise InvalidInput(
                "feedback must be comparisons, or ratings of which a model is made, to check a reward by."
            )
        if not is_own(reward) or reward.box != feedback.box:
            raise InvalidInput("released must be a private reward on the box that the feedback has.")
        self.relation, self.box, self.budget = feedback.relation, feedback.box, budget
        self.largest, self.error, self.conditions = 1.0, 1e-12, (Code.ONE_COSINE(), Code.NOT_MADE_OF_DATA())
        # One feature for each coordinate: squares and products beside them make the cosine of opposed groups smaller.
        slopes = Polynomials(self.box.dimension, tuple(((i, 1),) for i in range(self.box.dimension)))
        items = feedback.features if isinstance(feedback.features, Categorical) else None
        self.answers = OwnAnswers(feedback.loss, reward, slopes if items is None else items)
        given, actions = self.answers.rewards(np.full((1, self.box.dimension), 0.5)).shape[1:], feedback.loss.actions
        if given != ((actions,) if actions > 1 else ()):  # now, and not at somebody's row
            raise InvalidInput(f"released must have a value for each of {plural(actions, 'action')} of the feedback.")

    def run(self) -> Generator[Query, np.ndarray, tuple[np.ndarray, float]]:
        query = mean_of_people(self.answers, self.people, self.budget.mu)
        answer = yield query
        return answer, query.law.sigma

    def result(self, released: tuple[np.ndarray, float], certificate: Certificate) -> CheckedReward:
        (vote, cosine), error = released
        return CheckedReward(float(vote) + 0.5, float(cosine), error, certificate)
