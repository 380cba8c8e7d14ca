"""A path: Gaussian noise that is itself a function, on a fine public grid.

Theorem (Hall, Rinaldo & Wasserman 2013; Cameron-Martin). Let g be a Gaussian process with kernel K and let neighbours
satisfy |f - f'|_K <= Delta. Then f + (Delta/mu) g is mu-GDP *as a function*: at every point at once, for any number of
queries. On a grid the norm can only be smaller, and reading the released numbers off, by whatever rule, is
post-processing. The norm amplifies rounding errors of f, so the sensitivity has an allowance for them
(`noise.rounding`), and the grid is as fine as that allows. Proof: docs/theory.md#gaussian-process.
"""

import math
import os
import threading
import warnings
from abc import abstractmethod
from collections.abc import Generator
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.feedback.own_function import Input, OwnFunction
from quietq.mechanisms.release import SLACK, AnyFeedback, Mechanism, Query, release, simulate
from quietq.noise.box import Box, Domain, box_for, grid_points
from quietq.noise.grid_path import GridNoise, check_grid, grid_axes
from quietq.noise.laws import Gaussian
from quietq.noise.rounding import (
    check_allowance,
    check_values,
    finest_levels,
    largest_and_error,
    needed_levels,
    values_at,
    worst_norm,
)
from quietq.privacy import (
    Account,
    Assumption,
    Budget,
    BudgetExhausted,
    Certificate,
    InvalidInput,
    LipschitzBall,
    PrivacyWarning,
    Relation,
    RkhsBall,
    weak_promise,
)
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import count, instance, positive, same_process
from quietq.privacy.errors import shows_nothing
from quietq.privacy.relations import Exponential, HasNorm
from quietq.released.private_function import PrivateFunction, PrivateTable

FINEST_LEVELS = {1: 16, 2: 10, 3: 7}
"""How fine a grid is at the most, by its number of axes: some million values."""
_A_RELATION = "a relation, e.g. people(50, low=0, high=0.5, slope=1)"


def _with_path(kernel: HasNorm) -> Exponential:
    """The kernel, if its paths on a grid are exact."""
    if isinstance(kernel, Exponential):
        return kernel
    raise InvalidInput(
        f"There is no exact path for {kernel.norm.in_words()}: use quietq.paper.FiniteRankMechanism with it."
    )


class InKernel(Mechanism):
    """Noise in the norm of a kernel, in which the relation has a radius."""

    asks_code = False
    law: Gaussian
    """The noise, of size `sigma`; made when it is asked for first."""

    def __init__(
        self,
        feedback: AnyFeedback,
        budget: Budget,
        kernel: HasNorm,
        *,
        radius: float | None = None,
        levels: int | None = None,
        fewest: bool = False,
    ) -> None:
        """Scales the noise of `kernel` to what neighbours differ by; nothing is drawn or built yet.

        Args:
            feedback: What is to be released, of which only what is public is looked at.
            budget: The (epsilon, delta) that it may cost.
            kernel: How the noise is correlated.
            radius: The most that neighbours differ by in the kernel's norm, before rounding; by default the relation's.
            levels: How fine the grid is, of 2^levels cells a side; by default as fine as rounding errors allow.
            fewest: Whether a table is to have no more points than a reward of the declared slope needs.

        """
        self.relation = relation = feedback.relation
        self.budget, self.kernel = budget, kernel
        self.outputs, self._exact = getattr(relation, "actions", 1), feedback.accuracy is None
        self._slope = _declared_slope(relation, feedback.slope) if fewest else None
        radius = relation.rkhs_radius(kernel) * SLACK if radius is None else radius
        self.box = box_for(kernel.dimension, feedback.box)
        self.largest, self.error = largest_and_error(
            radius / budget.mu, radius, relation.people, feedback.largest, feedback.accuracy
        )
        allowance = 2 * self.error * self.prepare(radius, levels)
        check_allowance(allowance, radius, self.error)
        self.sensitivity = radius + allowance
        self.sigma = self.sensitivity / budget.mu

    @abstractmethod
    def prepare(self, radius: float, levels: int | None) -> float:
        """Settles where the function is looked at, and gives the norm that errors of size 1 can have there."""

    @abstractmethod
    def values(self, feedback: AnyFeedback) -> np.ndarray:
        """Returns what is looked at: numbers that the noise goes into."""

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        return (yield Query(self.values, self.sensitivity, self.law))

    @cached_property
    def expected_error(self) -> float:
        return self.sigma


def _declared_slope(ball: Relation, slope: float | None) -> float | None:
    """The reward's slope, per width of the box: of people whose mean it is, one can change it by twice that."""
    if slope is None and isinstance(ball, LipschitzBall) and ball.people is not None:
        return ball.lipschitz * ball.people / 2
    return slope


def best_kernel(relation: Relation, level: bool = True) -> Exponential:
    """The kernel that the relation was declared in, or else the exponential one at its best beta.

    That is the one with the least noise or, where the level of one function does not count, with the least noise about
    its mean: longer waves, of which the level takes more. It is a quarter of the other at the least, for its sake.

    >>> from quietq.privacy import people
    >>> [round(best_kernel(people(50, 0, 0.5, 1), level).beta, 2) for level in (True, False)]
    [4.0, 1.04]
    """
    if isinstance(relation, RkhsBall):
        return _with_path(relation.kernel)
    best = relation.best_beta()
    if level or not isinstance(relation, LipschitzBall) or relation.actions != 1:
        return Exponential(best)  # levels of several functions decide between actions

    def noise(beta: float) -> float:
        """Its variance about the mean: the squared radius of the ball, times that of a path."""
        return (relation.radius**2 * (1 + beta / 2) + relation.lipschitz**2 / (2 * beta)) * about_mean(beta)

    return Exponential(min((best * 2 ** (-step / 16) for step in range(33)), key=noise))


def about_mean(beta: float) -> float:
    """The variance of a path of variance 1 about its own mean, averaged over [0, 1].

    >>> round(about_mean(1.0), 4), round(about_mean(1e-6) * 3e6, 4)
    (0.2642, 1.0)
    """
    if beta < 1e-3:
        return beta / 3 - beta**2 / 12
    return 1 - 2 * (beta + math.expm1(-beta)) / beta**2


class Path(InKernel):
    """The path of an exponential kernel, or of the product or sum of several."""

    name = "path"
    conditions = (Code.PUBLIC_POINTS(),)

    kernel: Exponential

    def prepare(self, radius: float, levels: int | None) -> float:
        self.tables = _with_path(self.kernel).tables
        if levels is None:
            finest = FINEST_LEVELS[max(map(len, self.tables))]
            if self._slope is not None:
                finest = min(finest, needed_levels(self.kernel, radius / self.budget.mu, self._slope))
            levels = finest_levels(self.kernel, self.error, radius, finest, self.outputs)
        self.levels = count("levels", levels)
        check_grid(self.kernel, self.levels)
        self.box.check_levels(self.levels)
        return worst_norm(self.kernel, self.levels, self.outputs)

    @cached_property
    def law(self) -> GridNoise:  # pyright: ignore[reportIncompatibleVariableOverride]
        return GridNoise(self.sigma, self.kernel, self.levels)

    def values(self, feedback: AnyFeedback) -> Float[np.ndarray, "..."]:
        functions, parts = feedback.functions(), len(self.tables)
        if len(functions) != parts:
            raise InvalidInput(f"The kernel takes one function per coordinate, {parts} in all, not {len(functions)}.")
        boxes = [self.box] if parts == 1 else [self.box.coordinate(i) for i in range(parts)]
        tables = []
        for f, box in zip(functions, boxes, strict=True):
            found = values_at(f, grid_points(box, self.levels), self._exact)
            tables.append(found.reshape((2**self.levels + 1,) * box.dimension + found.shape[1:]))
        shapes = {table.shape for table in tables}
        if len(shapes) > 1:
            raise InvalidInput(f"All parts must have the same outputs, not of shapes {sorted(shapes)}.")
        values = tables[0] if parts == 1 else np.stack(tables)
        check_values(values, self.largest)
        outputs = check_outputs(values.shape[grid_axes(self.kernel) :], self.relation, self.box)
        check_grid(self.kernel, self.levels, outputs)
        return values

    def result(self, released: np.ndarray, certificate: Certificate) -> PrivateFunction:
        return PrivateTable(released, self.levels, self.box, certificate, summed=len(self.tables) > 1)

    @cached_property
    def expected_error(self) -> float:
        """Returns the error about each table's mean, whose variance is known for a path of one coordinate."""
        parts = [about_mean(table[0]) if len(table) == 1 else 1.0 for table in self.tables]
        return self.sigma * math.sqrt(math.fsum(parts))


def check_outputs(shape: tuple[int, ...], relation: Relation, box: Box) -> int:
    """Returns how many outputs there are; a ball for one function must not be taken for a ball of several."""
    outputs, actions = math.prod(shape), getattr(relation, "actions", 1)
    if outputs > actions:
        rows = "" if box.dimension == 1 else ", e.g. `s[:, 0] + s[:, 1]`, for states come as rows"
        raise InvalidInput(
            f"The function has {outputs} outputs, but the relation lets {actions} change: declare `actions={outputs}` "
            f"in the relation if there is one output per action, and else return one value per state{rows}; nothing "
            "was drawn or spent."
        )
    return outputs


class GaussianProcessMechanism:
    """Adds the noise of a kernel, scaled to a sensitivity and a budget, to one function, once.

    What `apply` takes depends on the kernel: a vectorised function of states (one value per state, or one row per state
    for several outputs such as actions), or one such function per coordinate where exponential kernels are summed.
    Kernels of finitely many features are in `quietq.paper`.

    Args:
        kernel: The kernel of the noise, e.g. `Exponential(4.0)`.
        sensitivity: The largest norm, in that kernel, of the difference of two neighbouring functions.
        budget: The (epsilon, delta) that the release may cost.
        relation: The neighbouring relation that the certificate states; `for_relation` chooses kernel and sensitivity
            for one.
        domain: The public box of states: a pair (low, high), or one for each coordinate.
        account: An `Accountant`, or a source's account in a `Ledger`, which is charged before the draw.
        assumption: What the caller vouches for, where the relation is not enforced: `Code.CALLER(...)`.
        largest: A public bound on the function's values in size, below which the noise covers rounding.
        accuracy: The largest error of a value, if the function does not compute in float64.
        levels: The grid has 2^levels cells for each coordinate.

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

    noise: ClassVar[type[InKernel]] = Path
    """What is released by."""

    def __init__(
        self,
        kernel: HasNorm,
        sensitivity: float,
        budget: Budget,
        *,
        relation: Relation | None = None,
        domain: Domain | None = None,
        account: Account | None = None,
        assumption: Assumption | None = None,
        largest: float | None = None,
        accuracy: float | None = None,
        levels: int | None = None,
    ) -> None:
        """Makes the mechanism; nothing is drawn or charged yet.

        Args:
            kernel: How the noise is correlated.
            sensitivity: The most that neighbours differ by in the kernel's norm.
            budget: The (epsilon, delta) that the release may cost.
            relation: Which functions are neighbouring; by default all that differ by at most the sensitivity.
            domain: Where states lie; by default the unit box.
            account: What is charged before the draw.
            assumption: How the caller makes sure of the relation; without it the certificate says "trusted".
            largest: A public bound on the size of all values.
            accuracy: A bound on the error of each value, for values that are less exact than float64.
            levels: How fine the grid is, of 2^levels cells a side; by default as fine as the accuracy allows.

        """
        instance("kernel", kernel, HasNorm, "a kernel, e.g. Exponential(4.0)")
        instance("budget", budget, Budget, "a Budget, e.g. Budget(epsilon=0.9, delta=1e-4)")
        instance("relation", relation, Relation | None, _A_RELATION)
        instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
        instance("assumption", assumption, Assumption | None, "an Assumption, e.g. Code.CALLER('it was clipped')")
        radius = positive("sensitivity", sensitivity)
        self.relation = RkhsBall(radius, kernel.norm) if relation is None else relation  # pyright: ignore[reportArgumentType]
        needed = self.relation.rkhs_radius(kernel)
        if radius < needed * (1 - 1e-12):
            raise InvalidInput(f"sensitivity {radius!r} is below the relation's radius in this kernel, {needed!r}.")
        self.kernel, self.budget, self.box = kernel, budget, box_for(kernel.dimension, domain)
        assumptions = () if assumption is None else (assumption,)
        self._declared = OwnFunction(None, self.relation, assumptions, self.box, None, largest, accuracy)
        self.mechanism = self.noise(self._declared, budget, kernel, radius=radius, levels=levels)
        self.levels = getattr(self.mechanism, "levels", 0)
        self.mu, self.sensitivity, self.sigma = budget.mu, self.mechanism.sensitivity, self.mechanism.sigma
        self._account = account
        self._spent, self._process, self._lock = False, os.getpid(), threading.Lock()
        if sentence := weak_promise(budget, self.relation.people):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)

    @classmethod
    def for_relation(
        cls, relation: Relation, budget: Budget, *, level: bool = True, **options: Any
    ) -> "GaussianProcessMechanism":
        """Makes the mechanism with the best kernel for a relation: Exponential at its best beta, or the RkhsBall's own.

        Args:
            relation: The neighbouring relation: `people(...)`, a `LipschitzBall` or an `RkhsBall`.
            budget: The (epsilon, delta) that the release may cost.
            level: Whether the noise is least with the function's level; otherwise it is least about its own mean, as in
                `privatise`.
            options: `domain`, `account`, `assumption`, `largest`, `accuracy` and `levels`, as above.

        """
        instance("relation", relation, Relation, _A_RELATION)
        instance("level", level, bool, "True if a constant counts, or False")
        kernel = best_kernel(relation, level)
        return cls(kernel, relation.rkhs_radius(kernel), budget, relation=relation, **options)

    @shows_nothing
    def apply(self, f: Input) -> PrivateFunction:
        """Releases the function with noise, once; wrong input is refused before anything is spent.

        Args:
            f: The function, or one for each coordinate (a sum of kernels), or weights, as the kernel takes it.

        """
        same_process(self._process, "This mechanism")  # before the lock, which a fork may have copied while it was held
        with self._lock:
            if self._spent:
                raise BudgetExhausted(
                    "This mechanism has made its one release; a second needs a budget and a mechanism of its own."
                )
            private = release(self.mechanism, replace(self._declared, source=f), self._account)
            self._spent = True
        return private

    def simulate(self, f: Input, seed: int) -> PrivateFunction:
        """Releases the function with noise from a seed, for experiments: it is not private, and has the standing
        `none`.

        Args:
            f: As in `apply`.
            seed: The seed; whoever knows it can subtract the noise.

        """
        return simulate(self.mechanism, replace(self._declared, source=f), seed)

    def __reduce__(self) -> str:
        raise TypeError("A mechanism spends its budget once and is not copied or pickled; share what `apply` returned.")

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.kernel}, sensitivity={self.sensitivity:g}, budget={self.budget}, "
            f"sigma={self.sigma:g}, spent={self._spent})"
        )
