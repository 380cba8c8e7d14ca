"""A new kind of feedback, in one file, as a contributor would write it: people's answers, yes or no."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quietq.feedback.feedback import Feedback, read_people
from quietq.feedback.statistic import Vector
from quietq.mechanisms.release import SLACK, Mechanism, Query
from quietq.noise.box import Box
from quietq.noise.laws import Gaussian
from quietq.privacy.account import Cost, Issued
from quietq.privacy.assumptions import Code
from quietq.privacy.certificate import Certificate
from quietq.privacy.norms import ObservedRewards
from quietq.privacy.relations import SupBall


@dataclass(frozen=True)
class Leaning(Vector):
    """From -1, always no, to 1, always yes; raised to a power, for those who ask more than once."""

    power: int = 1
    size = 1
    bound = 1.0

    def of_people(self, starts, columns):
        signs = 2.0 * columns["answer"] - 1
        means = np.add.reduceat(signs, starts) / np.diff(starts, append=len(signs))
        return means[:, None] ** self.power


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answers(Feedback):
    """How people lean on the whole."""

    @classmethod
    def read(cls, source, *, people, person="person", answer="answer", **options):
        from quietq.feedback.schema import Category, Schema

        schema = Schema("answers", person, {"answer": Category(answer, "answer", ("no", "yes"))})
        return cls(box=Box.of((0, 1)), **read_people(source, schema, Leaning(), people, **options))

    @cached_property
    def relation(self):
        return SupBall(2 * Leaning.bound / self.people, people=self.people)

    @cached_property
    def assumptions(self):
        return Code.ONE_OF_DECLARED(self.people), Code.NAMES()

    @cached_property
    def largest(self):
        return Leaning.bound


@dataclass(frozen=True)
class PrivateLeaning(Issued):
    """What is released."""

    value: float
    certificate: Certificate


class NoisyMean(Mechanism):
    """Gaussian noise on one mean."""

    name = "mean"
    conditions = ()

    @classmethod
    def is_for(cls, feedback):
        return isinstance(feedback, Answers)

    def __init__(self, answers, budget):
        self.relation, self.budget, self.box, self.largest, self.error = (
            answers.relation,
            budget,
            answers.box,
            1.0,
            0.0,
        )
        self.sensitivity = answers.relation.radius * SLACK
        self.law = Gaussian(self.sensitivity / budget.mu, ObservedRewards(1, 0))

    @property
    def cost(self):
        return Cost.gaussian(self.budget.mu)

    def run(self):
        return (yield Query(lambda feedback: feedback.mean(Leaning()), self.sensitivity, self.law))

    def result(self, released, certificate):
        return PrivateLeaning(float(released[0]), certificate)
