"""The Gaussian process mechanism: a function in, a private function out, once.

Theorem (Hall, Rinaldo & Wasserman 2013; Cameron-Martin). Let g be a Gaussian process with kernel K and let neighbours
satisfy |f - f'|_K <= Delta. Then f + (Delta/mu) g is mu-GDP *as a function*: at every point at once, for any number of
queries. On a grid or in finitely many weights the norm can only be smaller, and reading the released numbers off, by
whatever rule, is post-processing.

What the code does for it: f is looked at on a public grid (or given as weights) and nowhere else; noise comes from the
operating system in float64; the sum is rounded to a public step; f is not kept. The norm amplifies rounding errors of
f, so the sensitivity has an allowance for them (`allowance`), and f is looked at in float64. See `docs/theory.md`.
"""

import math
import os
import threading
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from quietq.noise.allowance import FLOAT64, check_allowance, finest_levels, size_bound, worst_norm
from quietq.noise.box import Domain, box_for
from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.noise.evaluation import in_weights, on_grid, shows_nothing
from quietq.noise.grid_path import check_grid, draw_grid
from quietq.noise.kernels import Additive, BandLimited, Exponential, FiniteRank, Kernel, Product
from quietq.noise.private_function import PrivateFunction, PrivateSum, PrivateTable, PrivateWeights
from quietq.noise.rounding import check_values, largest_value, round_release, rounding_in_words
from quietq.privacy.account import Account, Receipt
from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.certificate import CHOSEN, Assumption, Certificate
from quietq.privacy.checks import count, instance, positive, same_process
from quietq.privacy.cost import Cost
from quietq.privacy.errors import BudgetExhausted, InvalidInput, PrivacyWarning
from quietq.privacy.once import accounted
from quietq.privacy.relations import Relation, RkhsBall
from quietq.privacy.words import kernel_in_words

Function = Callable[[np.ndarray], np.ndarray]
Input = Function | Sequence[Function] | Sequence[float] | np.ndarray
METHOD = "gaussian-process"
_A_BUDGET = "a Budget, e.g. Budget(epsilon=0.9, delta=1e-4)"
_A_RELATION = "a relation, e.g. people(50, low=0, high=0.5, slope=1)"


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
        largest: float | None = None,
        accuracy: float | None = None,
        account: Account | None = None,
        assumption: Assumption | None = None,
        further: tuple[Assumption, ...] = (),
        remarks: tuple[str, ...] = (),
    ) -> None:
        """`assumption` says how the caller makes sure of the relation; without it the certificate says "trusted".

        `largest` is a public bound on the size of all values. `accuracy` is one on the error of each, for values that
        are less exact than float64; the grid is then as coarse as it must be, unless `levels` says how fine it is.
        `further` assumptions and `remarks` go into the certificate as they are.
        """
        instance("kernel", kernel, Kernel, "a kernel, e.g. Exponential(beta=4.0)")
        instance("budget", budget, Budget, _A_BUDGET)
        instance("relation", relation, Relation | None, _A_RELATION)
        instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
        instance("assumption", assumption, Assumption | None, "an Assumption(text, enforced)")
        self.kernel = kernel
        self.budget = budget
        self.mu = budget.mu
        sensitivity = positive("sensitivity", sensitivity)
        self.relation = RkhsBall(sensitivity, kernel) if relation is None else relation
        needed = self.relation.rkhs_radius(kernel)
        if sensitivity < needed * (1 - 1e-12):
            raise InvalidInput(
                f"sensitivity {sensitivity!r} is below the relation's radius in this kernel, {needed!r}."
            )
        # A function that is projected on finitely many terms can differ by a little more than it did before.
        sensitivity *= kernel.stretch if isinstance(kernel, BandLimited) else 1.0
        most = largest_value(positive("sensitivity/mu", sensitivity / self.mu))
        if largest is not None:
            self.largest = positive("largest", largest)
        else:
            self.largest = most if accuracy is not None else min(most, size_bound(sensitivity, self.relation.people))
        self._exact = accuracy is None
        self.error = FLOAT64 * self.largest if accuracy is None else positive("accuracy", accuracy)
        self.box = box_for(kernel.dimension, domain)
        outputs = getattr(self.relation, "actions", 1)
        parts = _tables(kernel)
        if levels is None:
            self.levels = _default_levels(kernel)
            if parts:
                self.levels = finest_levels(kernel, self.error, sensitivity, self.levels, outputs)
        else:
            self.levels = count("levels", levels)
        for part in parts:
            check_grid(part, self.levels)
        allowance = 2 * self.error * worst_norm(kernel, self.levels, outputs, projected=True)
        check_allowance(allowance, sensitivity, self.error)
        self.sensitivity = sensitivity + allowance
        self.sigma = self.sensitivity / self.mu
        self._account = account
        self._assumption, self._further = assumption, further
        self._remarks = remarks
        self._spent = False
        self._process = os.getpid()
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
        accuracy: float | None = None,
        account: Account | None = None,
        assumption: Assumption | None = None,
    ) -> "GaussianProcessMechanism":
        """The mechanism with the best kernel for the relation: Exponential at its best beta, or the RkhsBall's own."""
        instance("relation", relation, Relation, _A_RELATION)
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
            accuracy=accuracy,
            account=account,
            assumption=assumption,
        )

    @shows_nothing
    def apply(self, f: Input) -> PrivateFunction:
        """The one release. Wrong input is refused before anything is spent; after that the budget is gone."""
        self._check_unspent()  # before f is looked at in vain
        values, certificate = self._evaluate(f), self._certificate(projected=callable(f))
        receipt = self._spend()
        return self._release(values, SystemEntropy(), certificate).with_receipt(receipt)

    def _check_unspent(self) -> None:
        same_process(self._process, "This mechanism")
        if self._spent:
            raise BudgetExhausted(
                "This mechanism has made its one release; a second needs a budget and a mechanism of its own."
            )

    def _spend(self) -> Receipt | None:
        with self._lock:
            self._check_unspent()
            receipt = None
            if self._account is not None:
                receipt = self._account.charge(Cost.gaussian(self.mu), self.relation)
            self._spent = True
        return receipt

    def simulate(self, f: Input, seed: int) -> PrivateFunction:
        """The same noise from a seed, as often as you like, for experiments: private to nobody, standing `none`."""
        remark = f"Simulates {self.budget}; drawn from a seed, so it protects nobody."
        certificate = Certificate(
            method=METHOD, standing="none", reproducible=True, sigma=self.sigma, remarks=(remark,)
        )
        return self._release(self._evaluate(f), SeededEntropy(seed), certificate)

    def _evaluate(self, f: object) -> tuple[np.ndarray, ...]:
        """What of f the release is made of, one array a part: tables, or weights. All that can be refused is."""
        kernel = self.kernel
        if isinstance(kernel, FiniteRank):
            arrays = [in_weights(f, kernel, self.box, self._exact)]
        elif isinstance(kernel, Additive):
            if not isinstance(f, Sequence) or len(f) != kernel.dimension:
                raise InvalidInput(f"An Additive kernel takes one function a coordinate, {kernel.dimension} in all.")
            arrays = [on_grid(part, self.box.coordinate(i), self.levels, self._exact) for i, part in enumerate(f)]
        else:
            arrays = [on_grid(f, self.box, self.levels, self._exact)]
        for array in arrays:
            check_values(array, self.largest)
        if isinstance(kernel, BandLimited) and callable(f):
            arrays = [kernel.project(arrays[0])]
            check_values(arrays[0], largest_value(self.sigma))
        axes = kernel.dimension if isinstance(kernel, Product) else 1
        shapes = [array.shape[axes:] for array in arrays]
        if len(set(shapes)) > 1:
            raise InvalidInput(
                f"All parts must have the same outputs, not of shapes {shapes}; nothing was drawn or spent."
            )
        self._check_outputs(math.prod(shapes[0]))
        for part in _tables(kernel):
            check_grid(part, self.levels, math.prod(shapes[0]))
        return tuple(arrays)

    def _check_outputs(self, outputs: int) -> None:
        """A ball for one function must not be taken for a ball of several."""
        actions = getattr(self.relation, "actions", 1)
        if outputs > actions:
            rows = "" if self.box.dimension == 1 else ", e.g. `s[:, 0] + s[:, 1]`, for states come as rows"
            raise InvalidInput(
                f"The function has {outputs} outputs, but the relation lets {actions} change: declare "
                f"`actions={outputs}` in the relation if there is one output an action, and else return one value a "
                f"state{rows}; nothing was drawn or spent."
            )

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

    def _certificate(self, projected: bool) -> Certificate:
        relation = self._assumption or Assumption(f"Neighbouring inputs are {self.relation}.", enforced=False)
        looked = "looked at on a public grid only"
        if isinstance(self.kernel, FiniteRank):
            looked = "looked at only at public sample points and projected" if projected else "given as weights"
        return Certificate(
            method=METHOD,
            standing="certified",
            relation=self.relation.describe(),
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            mu=self.mu,
            sigma=self.sigma,
            sensitivity=self.sensitivity,
            norm=self.kernel.describe(),
            domain=tuple(zip(self.box.low, self.box.high, strict=True)),
            assumptions=(
                relation,
                *self._further,
                CHOSEN,
                Assumption(f"The function was {looked}, noised once, and not kept.", True),
                Assumption("Noise was drawn in float64 from the operating system's generator.", True),
                Assumption(rounding_in_words(self.sigma, self.largest, self.error), False),
                accounted(self._account),
            ),
            remarks=self._remarks,
        )

    def __reduce__(self) -> str:
        raise TypeError("A mechanism spends its budget once and is not copied or pickled; share what `apply` returned.")

    def __repr__(self) -> str:
        return (
            f"GaussianProcessMechanism({self.kernel}, sensitivity={self.sensitivity:g}, budget={self.budget}, "
            f"sigma={self.sigma:g}, spent={self._spent})"
        )


def _default_levels(kernel: Kernel) -> int:
    """As fine as a table of some million values allows."""
    return {2: 10, 3: 7}.get(kernel.dimension, 16) if isinstance(kernel, Product) else 16


def _tables(kernel: Kernel) -> tuple[Exponential | Product, ...]:
    """The kernels of the tables that a release consists of."""
    if isinstance(kernel, Additive):
        return kernel.parts
    if isinstance(kernel, Exponential | Product):
        return (kernel,)
    if isinstance(kernel, FiniteRank):
        return ()
    raise InvalidInput(f"There is no exact path for {kernel_in_words(kernel.describe())}.")
