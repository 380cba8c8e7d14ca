"""Noise on the weights of public features: the whole function w . phi is released at once.

Theorem. If neighbours' weights differ by at most Delta in the Euclidean norm, then w + N(0, (Delta/mu)^2 I) is mu-GDP
(`Weights`; it is the Gaussian process mechanism in the kernel phi . phi), and w + z of density proportional to
exp(-epsilon |z|/Delta) is epsilon-DP, without a delta (`BallWeights`; see `noise.ball`). With a delta, such noise may
be smaller (`noise.ball_curve`). A function that is projected on finitely many terms can differ by a little more than
it did before, by the kernel's `stretch`.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.laws import Gaussian, KNorm, Law
from quietq.mechanisms.mechanism import Mechanism, Task
from quietq.mechanisms.path import InKernel
from quietq.mechanisms.private_function import PrivateWeights
from quietq.noise import Box, Entropy
from quietq.noise.ball import Ball
from quietq.noise.ball_curve import epsilon_of_ball, loss_of_ball
from quietq.noise.evaluation import check_outputs, in_weights
from quietq.noise.kernels import FiniteRank
from quietq.noise.whitening import Whitened, as_they_are
from quietq.privacy import Assumption, Budget, Certificate, Cost, InvalidInput, Relation
from quietq.privacy.checks import count, shown
from quietq.privacy.kinds import thaw
from quietq.privacy.norms import NORMS, Norm, Record, largest_difference, norm_in_words
from quietq.privacy.words import plural

_WORTH = 0.98
"""Where a delta saves less noise than that, the noise stays pure."""


@dataclass(frozen=True)
class Independent:
    """Independent normals; `norm` is what certificates call their Euclidean norm."""

    norm: dict[str, Any]

    def draw(self, shape: tuple[int, ...], entropy: Entropy) -> Float[np.ndarray, "..."]:
        return entropy.normals(shape)

    def length(self, difference: np.ndarray) -> float:
        return float(np.linalg.norm(difference))

    def whiten(self, numbers: np.ndarray, step: float) -> Whitened:
        return as_they_are(numbers, step)

    def restore(self, whitened: np.ndarray) -> Float[np.ndarray, "..."]:
        return whitened


class Weights(InKernel):
    """Gaussian noise on the weights."""

    name = "weights"
    error_unit = "of each weight"

    def __init__(
        self, relation: Relation, budget: Budget, kernel: FiniteRank, radius: float, box: Box, **options: Any
    ) -> None:
        super().__init__(relation, budget, kernel, radius * kernel.stretch, box, **options)

    @property
    def conditions(self) -> tuple[Assumption, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        projected = "looked at only at public sample points and projected, or "
        looked = f"{'' if self.kernel.sample_points is None else projected}given as weights"
        return (Assumption(f"The function was {looked}, noised once, and not kept.", True),)

    def prepare(self, radius: float, levels: int | None) -> float:
        return self.kernel.worst_projection * self.outputs**0.5

    def make_law(self, sensitivity: float) -> Law:
        return Gaussian(self.size(sensitivity), Independent(self.kernel.describe()))

    def values(self, feedback: Any) -> Float[np.ndarray, "..."]:
        weights = in_weights(feedback.weights(), self.kernel, self.box, self._exact, self.largest)
        check_outputs(weights.shape[1:], self.relation, self.box)
        return weights

    def result(self, released: np.ndarray, certificate: Certificate) -> PrivateWeights:
        return PrivateWeights(released, self.kernel, self.box, certificate)

    @classmethod
    def unfit(cls, task: Task, kernel: Any) -> str:
        if not isinstance(kernel, FiniteRank):
            return f"Noise {cls.name!r} is for weights of features, which this relation does not have."
        pure = task.budget.is_pure
        return "Noise 'weights' is Gaussian and needs delta above 0; 'ball' works with delta = 0." if pure else ""


@dataclass(frozen=True)
class BallNoise(KNorm):
    """Noise of uniform direction and Gamma length whose rate takes a delta into account."""

    body: Ball
    delta: float

    def cost(self, sensitivity: float) -> Cost:
        return Cost.apart(epsilon_of_ball(self.rate * sensitivity, self.body.size, self.delta), self.delta)

    def measured(self) -> dict[str, Any]:
        norm = {"kind": "ball", "numbers": self.body.size, "kernel": self.body.norm}
        return {"norm": norm, "scale": 1 / self.rate}


class BallWeights(Weights):
    """Noise of uniform direction and Gamma length, on all weights together: pure, unless a delta saves some of it."""

    name = "ball"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        promise = "pure, without a delta" if self.cost.delta == 0 else "just enough for epsilon and delta together"
        self.remarks = (f"Noise of uniform direction and Gamma length, in all weights together: {promise}.",)

    @property
    def cost(self) -> Cost:
        return Cost.apart(self.budget.epsilon, self.budget.delta if self._loss > self.budget.epsilon else 0.0)

    @property
    def _loss(self) -> float:
        """What neighbours may lose at the most: more than epsilon, if that is worth a delta."""
        epsilon, delta = self.budget.epsilon, self.budget.delta
        loss = epsilon if delta == 0 else loss_of_ball(epsilon, self.kernel.rank * self.outputs, delta)
        return loss if loss * _WORTH > epsilon else epsilon

    def make_law(self, sensitivity: float) -> Law:
        body = Ball(self.kernel.rank * self.outputs, self.kernel.describe())
        rate = math.nextafter(self._loss / sensitivity, 0.0)  # not a last place too much
        return KNorm(body, rate) if self.cost.delta == 0 else BallNoise(body, rate, self.budget.delta)

    def size(self, sensitivity: float) -> float:
        return self.make_law(sensitivity).sigma

    @classmethod
    def propose(cls, task: Task) -> list[Mechanism]:
        """Under an account the noise is pure, so that it takes no delta of what was set apart."""
        pure = task.gaussian and task.asked
        return super().propose(replace(task, budget=Budget(task.budget.epsilon, 0.0)) if pure else task)

    def values(self, feedback: Any) -> Float[np.ndarray, "..."]:
        weights = super().values(feedback)
        if weights.size != self.kernel.rank * self.outputs:
            raise InvalidInput(
                f"There must be {self.outputs} column(s) of weights, as the relation says, not shape {weights.shape}."
            )
        return weights

    @classmethod
    def unfit(cls, task: Task, kernel: Any) -> str:
        if not isinstance(kernel, FiniteRank):
            return super().unfit(task, kernel)
        if kernel.sample_points is not None:
            return "Noise 'ball' is for weights of features; use noise='weights' for a function that is projected."
        return "'auto' takes Gaussian noise." if task.gaussian and not (task.asked or task.budget.is_pure) else ""


def _ball_difference(norm: Record, relation: Record) -> float | None:
    numbers = norm["kernel"]["rank"] * relation.get("actions", 1)
    return largest_difference(norm["kernel"], relation) if norm["numbers"] == numbers else None


def _check_kernel(name: str, value: object) -> None:
    kernel: Any = value
    if not isinstance(NORMS.find(kernel), Norm) or kernel["kind"] != "features":
        raise InvalidInput(f"{name} must be that of features, not {shown(thaw(value))}.")


NORMS["ball"] = Norm(
    fields={"numbers": count, "kernel": _check_kernel},
    difference=_ball_difference,
    words=lambda norm: f"{norm_in_words(norm['kernel'])}, with noise on {plural(norm['numbers'], 'number')} together",
    dimension=lambda norm: norm["kernel"]["dimension"],
    epsilon=lambda norm, scale, delta: epsilon_of_ball(1 / scale, norm["numbers"], delta),
)
