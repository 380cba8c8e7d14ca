"""A new kind of feedback, in one file, as a contributor would write it: people's answers, yes or no."""

from dataclasses import dataclass

import numpy as np

from quietq.feedback.feedback import Feedback, read_people
from quietq.feedback.statistic import Vector
from quietq.mechanisms.release import Mechanism, mean_of_people
from quietq.noise.box import Box
from quietq.privacy.account import Issued
from quietq.privacy.assumptions import Code
from quietq.privacy.certificate import Certificate


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
    """How people lean on the whole. Any one person's rows may be replaced by others: the relation is the default."""

    @classmethod
    def read(cls, source, *, people, person="person", answer="answer", **options):
        from quietq.feedback.schema import Category, Schema

        schema = Schema("answers", person, {"answer": Category(answer, "answer", ("no", "yes"))})
        return cls(box=Box.of((0, 1)), **read_people(source, schema, Leaning(), people, **options))


@dataclass(frozen=True)
class PrivateLeaning(Issued):
    """What is released."""

    value: float
    certificate: Certificate


class NoisyMean(Mechanism):
    """Gaussian noise on one mean of people."""

    name = "mean"
    feedback_kind = "answers"
    conditions = (Code.MEANS_OF_PEOPLE(),)

    def __init__(self, answers, budget):
        self.relation = answers.relation
        self.budget = budget
        self.box = answers.box
        self.largest = Leaning.bound
        self.error = 1e-12  # people are summed in whole numbers: only the mean is rounded

    def run(self):
        return (yield mean_of_people(Leaning(), self.people, self.budget.mu))

    def result(self, released, certificate):
        return PrivateLeaning(float(released[0]), certificate)
