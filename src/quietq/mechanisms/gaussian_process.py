"""The Gaussian process mechanism: a function of one's own in, a private function out, once.

A door to `release` for whoever has a function and knows how far apart neighbours are: the path of the kernel is added
to it, and the theorem of `path` says why that is enough.
"""

import os
import threading
import warnings
from typing import Any, ClassVar

from quietq.feedback.own_function import Input, OwnFunction
from quietq.mechanisms.path import InKernel, Path, best_kernel
from quietq.mechanisms.release import release, simulate
from quietq.noise.box import Domain, box_for
from quietq.noise.kernels import Kernel
from quietq.noise.own_values import shows_nothing
from quietq.privacy import Account, Assumption, Budget, Relation, RkhsBall, weak_promise
from quietq.privacy.checks import instance, positive, same_process
from quietq.privacy.errors import BudgetExhausted, InvalidInput, PrivacyWarning
from quietq.released.private_function import PrivateFunction

_A_BUDGET = "a Budget, e.g. Budget(epsilon=0.9, delta=1e-4)"
_A_RELATION = "a relation, e.g. people(50, low=0, high=0.5, slope=1)"


class GaussianProcessMechanism:
    """Adds the noise of `kernel`, scaled to `sensitivity` and `budget`, to one function, once.

    What `apply` takes depends on the kernel: a vectorised function of states for Exponential and Product (returning one
    value per state, or one row per state for several outputs such as actions), one such function per coordinate for
    Additive. Kernels of finitely many features are in `quietq.paper`.

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
        kernel: Kernel,
        sensitivity: float,
        budget: Budget,
        *,
        relation: Relation | None = None,
        domain: Domain | None = None,
        account: Account | None = None,
        assumption: Assumption | None = None,
        **options: Any,
    ) -> None:
        """`assumption` says how the caller makes sure of the relation; without it the certificate says "trusted".

        `options` are `largest`, a public bound on the size of all values, `accuracy`, one on the error of each, for
        values that are less exact than float64, and `levels`, how fine the grid is: else as fine as that allows.
        """
        instance("kernel", kernel, Kernel, "a kernel, e.g. Exponential(beta=4.0)")
        instance("budget", budget, Budget, _A_BUDGET)
        instance("relation", relation, Relation | None, _A_RELATION)
        instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
        instance("assumption", assumption, Assumption | None, "an Assumption(text, enforced)")
        radius = positive("sensitivity", sensitivity)
        self.relation = RkhsBall(radius, kernel) if relation is None else relation
        needed = self.relation.rkhs_radius(kernel)
        if radius < needed * (1 - 1e-12):
            raise InvalidInput(f"sensitivity {radius!r} is below the relation's radius in this kernel, {needed!r}.")
        self.kernel, self.budget, self.box = kernel, budget, box_for(kernel.dimension, domain)
        self.mechanism = self.noise(self.relation, budget, kernel, radius, self.box, **options)
        self.levels = getattr(self.mechanism, "levels", 0)
        self.mu, self.sensitivity, self.sigma = budget.mu, self.mechanism.sensitivity, self.mechanism.sigma
        self._account, self._assumptions = account, () if assumption is None else (assumption,)
        self._spent, self._process, self._lock = False, os.getpid(), threading.Lock()
        if sentence := weak_promise(budget, self.relation.people):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)

    @classmethod
    def for_relation(
        cls, relation: Relation, budget: Budget, *, level: bool = True, **options: Any
    ) -> "GaussianProcessMechanism":
        """The mechanism with the best kernel for the relation: Exponential at its best beta, or the RkhsBall's own.

        With the function's `level` the noise is least; without, it is least about its own mean, as `privatise` has it.
        """
        instance("relation", relation, Relation, _A_RELATION)
        instance("level", level, bool, "True if a constant counts, or False")
        kernel = best_kernel(relation, level)
        return cls(kernel, relation.rkhs_radius(kernel), budget, relation=relation, **options)

    @shows_nothing
    def apply(self, f: Input) -> PrivateFunction:
        """The one release. Wrong input is refused before anything is spent; after that the budget is gone."""
        same_process(self._process, "This mechanism")  # before the lock, which a fork may have copied while it was held
        with self._lock:
            if self._spent:
                raise BudgetExhausted(
                    "This mechanism has made its one release; a second needs a budget and a mechanism of its own."
                )
            private = release(self.mechanism, self._feedback(f), self._account)
            self._spent = True
        return private

    def simulate(self, f: Input, seed: int) -> PrivateFunction:
        """The same noise from a seed, as often as you like, for experiments: private to nobody, standing `none`."""
        return simulate(self.mechanism, self._feedback(f), seed)

    def _feedback(self, f: Input) -> OwnFunction:
        return OwnFunction(f, self.relation, self._assumptions)

    def __reduce__(self) -> str:
        raise TypeError("A mechanism spends its budget once and is not copied or pickled; share what `apply` returned.")

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.kernel}, sensitivity={self.sensitivity:g}, budget={self.budget}, "
            f"sigma={self.sigma:g}, spent={self._spent})"
        )
