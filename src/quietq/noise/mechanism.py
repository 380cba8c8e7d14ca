"""The Gaussian process mechanism: a function in, a private function out, once.

Theorem (Hall, Rinaldo & Wasserman 2013; Cameron-Martin). Let g be a Gaussian process with kernel K and let neighbours
satisfy |f - f'|_K <= Delta. Then f + (Delta/mu) g is mu-GDP *as a function*: at every point at once, for any number of
queries. On a grid or in finitely many weights the norm can only be smaller, and reading the released numbers off, by
whatever rule, is post-processing.

What the code does for it: f is looked at on a public grid (or given as weights) and nowhere else; noise comes from the
operating system in float64; the sum is rounded to a public step; f is not kept. See `docs/theory.md`.
"""

import math
import threading
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from quietq.noise.box import Box, Domain, box_for
from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.noise.grid_path import check_grid, draw_grid, grid_points
from quietq.noise.kernels import Additive, BandLimited, Exponential, FiniteRank, Kernel, Product
from quietq.noise.private_function import PrivateFunction, PrivateSum, PrivateTable, PrivateWeights
from quietq.noise.rounding import check_values, round_release, rounding_step
from quietq.privacy.accountant import Accountant
from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.checks import positive
from quietq.privacy.errors import BudgetExhausted, InvalidInput, PrivacyWarning
from quietq.privacy.relations import LipschitzBall, Relation, RkhsBall

Function = Callable[[np.ndarray], np.ndarray]
Input = Function | Sequence[Function] | Sequence[float] | np.ndarray
METHOD = "gaussian-process"
_DEFAULT_LEVELS = {1: 16, 2: 10, 3: 7}


class GaussianProcessMechanism:
    """Adds the noise of `kernel`, scaled to `sensitivity` and `budget`, to one function, once.

    What `apply` takes depends on the kernel: a vectorised function of states for Exponential and Product (returning one
    value a state, or one row a state for several outputs such as actions), one such function a coordinate for Additive,
    the weights for Features, weights or a function for BandLimited.

    >>> from quietq.privacy import people
    >>> ball = people(50, low=0, high=0.5, slope=1)
    >>> mechanism = GaussianProcessMechanism.for_relation(ball, Budget(0.9, 1e-4))
    >>> private = mechanism.apply(lambda s: 0.5 - abs(s - 0.5))
    >>> private([0.1, 0.5]).shape, private.certificate.standing
    ((2,), 'certified')
    >>> mechanism.apply(lambda s: s)
    Traceback (most recent call last):
    ...
    quietq.privacy.errors.BudgetExhausted: This mechanism has made its one release; ...
    """

    def __init__(
        self,
        kernel: Kernel,
        sensitivity: float,
        budget: Budget,
        *,
        relation: Relation | None = None,
        domain: Domain | None = None,
        levels: int | None = None,
        accountant: Accountant | None = None,
        assumption: Assumption | None = None,
        remarks: tuple[str, ...] = (),
    ) -> None:
        """`assumption` says how the caller makes sure of the relation; without it the certificate says "trusted"."""
        self.kernel = kernel
        self.budget = budget
        self.mu = budget.mu
        positive("sensitivity", sensitivity)
        self.relation = RkhsBall(sensitivity, kernel) if relation is None else relation
        needed = self.relation.rkhs_radius(kernel)
        if sensitivity < needed * (1 - 1e-12):
            raise InvalidInput(
                f"sensitivity {sensitivity!r} is below the relation's radius in this kernel, {needed!r}."
            )
        # A function that is projected on finitely many terms can differ by a little more than it did before.
        self.sensitivity = sensitivity * (kernel.stretch if isinstance(kernel, BandLimited) else 1.0)
        self.sigma = self.sensitivity / self.mu
        self.box = box_for(kernel.dimension, domain)
        self.levels = _DEFAULT_LEVELS.get(kernel.dimension, 16) if levels is None else levels
        for part in _tables(kernel):
            check_grid(part, self.levels)
        self._accountant = accountant
        self._assumption = assumption
        self._remarks = remarks
        self._spent = False
        self._lock = threading.Lock()
        if sentence := weak_delta(budget.delta, self.relation.people):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)

    @classmethod
    def for_relation(
        cls,
        relation: Relation,
        budget: Budget,
        *,
        domain: Domain | None = None,
        levels: int | None = None,
        accountant: Accountant | None = None,
        assumption: Assumption | None = None,
    ) -> "GaussianProcessMechanism":
        """The mechanism with the best kernel for the relation: Exponential at its best beta, or the RkhsBall's own."""
        if isinstance(relation, RkhsBall) and isinstance(relation.kernel, Kernel):
            kernel = relation.kernel
        else:
            kernel = Exponential(relation.best_beta())
        radius = relation.rkhs_radius(kernel)
        return cls(
            kernel,
            radius,
            budget,
            relation=relation,
            domain=domain,
            levels=levels,
            accountant=accountant,
            assumption=assumption,
        )

    def apply(self, f: Input) -> PrivateFunction:
        """The one release. Wrong input is refused before anything is spent; after that the budget is gone."""
        values = self._evaluate(f)
        with self._lock:
            if self._spent:
                raise BudgetExhausted(
                    "This mechanism has made its one release; a second needs a budget and a mechanism of its own."
                )
            if self._accountant is not None:
                self._accountant.charge(self.mu)
            self._spent = True
        return self._release(values, SystemEntropy(), self._certificate())

    def simulate(self, f: Input, seed: int) -> PrivateFunction:
        """The same noise from a seed, as often as you like, for experiments: private to nobody, standing `none`."""
        remark = f"Simulates {self.budget}; drawn from a seed, so it protects nobody."
        certificate = Certificate(
            method=METHOD, standing="none", reproducible=True, sigma=self.sigma, remarks=(remark,)
        )
        return self._release(self._evaluate(f), SeededEntropy(seed), certificate)

    def _evaluate(self, f: object) -> tuple[np.ndarray, ...]:
        """What of f the release is made of, one array a part: tables, or weights."""
        kernel = self.kernel
        if isinstance(kernel, FiniteRank):
            arrays = [self._weights(kernel, f)]
        elif isinstance(kernel, Additive):
            if not isinstance(f, Sequence) or len(f) != kernel.dimension:
                raise InvalidInput(f"An Additive kernel takes one function a coordinate, {kernel.dimension} in all.")
            arrays = [_on_grid(part, self.box.coordinate(i), self.levels) for i, part in enumerate(f)]
        else:
            arrays = [_on_grid(f, self.box, self.levels)]
        for array in arrays:
            check_values(array, self.sigma)
            self._check_outputs(array.shape[1 if len(arrays) > 1 else kernel.dimension :])
        return tuple(arrays)

    def _check_outputs(self, outputs: tuple[int, ...]) -> None:
        """A ball for one function must not be taken for a ball of several."""
        if isinstance(self.relation, LipschitzBall) and math.prod(outputs) > self.relation.actions:
            raise InvalidInput(
                f"The function has {math.prod(outputs)} outputs, but the relation lets {self.relation.actions} change: "
                "declare it with `actions`; nothing was drawn or spent."
            )

    def _weights(self, kernel: FiniteRank, f: object) -> np.ndarray:
        if callable(f):
            if not isinstance(kernel, BandLimited):
                raise InvalidInput("A Features kernel takes the function's weights, not the function.")
            states = self.box.from_unit(kernel.sample_points)
            values = _one_value_each(f, states)
            check_values(values, self.sigma)
            return kernel.project(values)
        weights = np.array(f, dtype=np.float64)
        if weights.ndim < 1 or weights.shape[0] != kernel.rank:
            raise InvalidInput(f"weights must have {kernel.rank} rows, one a feature, not shape {weights.shape}.")
        return weights

    def _release(self, values: tuple[np.ndarray, ...], entropy: Entropy, certificate: Certificate) -> PrivateFunction:
        sigma, kernel, box = self.sigma, self.kernel, self.box
        if isinstance(kernel, FiniteRank):
            noise = sigma * entropy.normals(values[0].shape)
            return PrivateWeights(round_release(values[0], noise, sigma), kernel, box, certificate)
        tables = []
        for i, (part, array) in enumerate(zip(_tables(kernel), values, strict=True)):
            noise = sigma * draw_grid(part, self.levels, array.shape[part.dimension :], entropy)
            side = box.coordinate(i) if isinstance(kernel, Additive) else box
            tables.append(PrivateTable(round_release(array, noise, sigma), self.levels, side, certificate))
        return PrivateSum(tuple(tables), box, certificate) if isinstance(kernel, Additive) else tables[0]

    def _certificate(self) -> Certificate:
        relation = self._assumption or Assumption(f"Neighbouring inputs are {self.relation}.", enforced=False)
        looked = "given as weights" if isinstance(self.kernel, FiniteRank) else "looked at on a public grid only"
        return Certificate(
            method=METHOD,
            standing="certified",
            relation=self.relation.describe(),
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            mu=self.mu,
            sigma=self.sigma,
            sensitivity=self.sensitivity,
            assumptions=(
                relation,
                Assumption("Box, bounds, number of people and budget were chosen without the private data.", False),
                Assumption(f"The function was {looked}, noised once, and not kept.", True),
                Assumption("Noise was drawn in float64 from the operating system's generator.", True),
                Assumption(
                    f"Values were rounded to multiples of {rounding_step(self.sigma):g}; beyond that, floating-point "
                    "noise is taken for ideal Gaussian noise.",
                    False,
                ),
            ),
            remarks=(*self._remarks, f"Noise kernel: {self.kernel.describe()}."),
        )

    def __reduce__(self) -> str:
        raise TypeError("A mechanism spends its budget once and is not copied or pickled; share what `apply` returned.")

    def __repr__(self) -> str:
        return (
            f"GaussianProcessMechanism({self.kernel}, sensitivity={self.sensitivity:g}, budget={self.budget}, "
            f"sigma={self.sigma:g}, spent={self._spent})"
        )


def _tables(kernel: Kernel) -> tuple[Exponential | Product, ...]:
    """The kernels of the tables that a release consists of."""
    if isinstance(kernel, Additive):
        return kernel.parts
    if isinstance(kernel, Exponential | Product):
        return (kernel,)
    if isinstance(kernel, FiniteRank):
        return ()
    raise InvalidInput(f"There is no exact path for the kernel {kernel.describe()}.")


def _on_grid(f: object, box: Box, levels: int) -> np.ndarray:
    """F on the grid, shaped as the table: grid axes first, outputs last."""
    values = _one_value_each(f, grid_points(box, levels))
    return values.reshape((2**levels + 1,) * box.dimension + values.shape[1:])


def _one_value_each(f: object, states: np.ndarray) -> np.ndarray:
    if not callable(f):
        raise InvalidInput(f"A function of states is needed, not {type(f).__name__}.")
    values = np.array(f(states), dtype=np.float64)
    if values.ndim not in (1, 2) or values.shape[0] != len(states):
        raise InvalidInput(
            f"The function must return one value, or one row, for each of {len(states)} states at once, "
            f"not shape {values.shape}; wrap it in numpy.vectorize if it takes one state at a time."
        )
    return values
