"""`release`: the only place where what people gave is looked at, charged, noised, rounded and certified.

Theorem. A mechanism's queries, each built from the answers so far, cost together sqrt(sum mu_i^2) (Gaussian; Dong, Roth
& Su 2022, adaptively Smith & Thakurta 2022) or sum epsilon_i (pure). That sum is capped by what was charged before the
first draw, so the promise is what was charged, whatever the mechanism asks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from quietq.mechanisms.mechanism import Mechanism, Query
from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.noise.own_values import shows_nothing
from quietq.noise.rounding import check_size, check_values, largest_value
from quietq.privacy import Cost, InvalidInput
from quietq.privacy.account import Account, accounted
from quietq.privacy.certificate import CHOSEN, FAIR, Certificate
from quietq.privacy.checks import LARGEST, SMALLEST, numbers as checked_numbers
from quietq.privacy.errors import EngineFailed
from quietq.privacy.limits import pure_at
from quietq.privacy.norms import MOST_QUERIES

CHARGED = "what was charged stays charged, and nothing was released"
"""What is said of a failure after the charge."""


class _Run:
    """A mechanism that is asked, query by query: what each costs is added up and held to what is charged."""

    def __init__(self, mechanism: Mechanism, feedback: Any) -> None:
        if mechanism.relation != feedback.relation or mechanism.takes != getattr(feedback, "gives", mechanism.takes):
            raise InvalidInput(
                f"Noise {mechanism.name!r} is made for {mechanism.relation}, but what is to be released is about "
                f"{feedback.relation}: make it for that."
            )
        if (box := getattr(feedback, "box", None)) is not None and box != mechanism.box:
            raise InvalidInput(f"Noise {mechanism.name!r} is made for the box {mechanism.box}, not for {box}.")
        self.mechanism, self.feedback = mechanism, feedback
        # asked once: what is charged, capped and certified is the same, and fixed beforehand
        self.cost = mechanism.cost
        mechanism.budget.require_mu(self.cost.mu, f"noise {mechanism.name!r}")
        self.steps = mechanism.run()
        self.queries: list[Query] = []
        self._total: Cost | None = None
        self.ask(next(self.steps))

    def ask(self, query: Query) -> None:
        """Takes the next query, if all so far cost no more than what is charged for them."""
        asked = query.law.cost(query.sensitivity)
        self._total = asked if self._total is None else Cost.of_all([self._total, asked])
        covered = self._total is not None and self._total.at_most(self.cost)
        if not covered or len(self.queries) == MOST_QUERIES:
            raise InvalidInput(
                f"Noise {self.mechanism.name!r} asks for a query of {asked}, and with the {len(self.queries)} before "
                f"it that is more than the {self.cost} that is charged: it needs more noise, or fewer queries; nothing "
                "was released."
            )
        self.queries.append(query)

    def look(self) -> np.ndarray:
        """What the last query asks for: finite, and small enough for its rounding to hide behind the noise."""
        query = self.queries[-1]
        check_size(self.mechanism.largest, query.law.sigma)
        numbers = checked_numbers("What a query looks at", query.numbers(self.feedback))
        check_values(numbers, largest_value(query.law.sigma))
        return numbers

    def answer(self, numbers: np.ndarray, entropy: Entropy) -> Any:
        """Answers queries until there are no more: what is released."""
        while True:
            try:
                self.ask(self.steps.send(self.queries[-1].law.add(numbers, entropy)))
            except StopIteration as last:
                return last.value
            numbers = self.look()

    def certify(self, account: Account | None) -> Certificate:
        """States what was promised; refused if a query's sensitivity is below what the relation comes to."""
        mechanism, cost, budget = self.mechanism, self.cost, self.mechanism.budget
        # Of each kind of noise the finest: steps are powers of two, so what it says of rounding is true of the others.
        laws = {type(query.law): query.law for query in sorted(self.queries, key=lambda query: -query.law.sigma)}
        drawn = [one for law in laws.values() for one in law.conditions(mechanism.largest, mechanism.error)]
        return Certificate(
            method=f"{mechanism.releases}/{mechanism.name}",
            standing="certified",
            relation=mechanism.relation.describe(),
            epsilon=budget.epsilon,
            delta=budget.delta if cost.mu is not None else cost.delta,
            mu=cost.mu,
            domain=tuple(zip(mechanism.box.low, mechanism.box.high, strict=True)),
            **_measured(self.queries),
            expected_error=self.expected_error(),
            assumptions=(
                *self.feedback.assumptions,
                CHOSEN,
                *mechanism.conditions,
                *dict.fromkeys(drawn),
                FAIR,
                accounted(account),
            ),
            remarks=(*mechanism.remarks, *(pure_at(budget) if cost.mu is None and cost.delta == 0 else ())),
        )

    def expected_error(self) -> float | None:
        """As certificates state it, if the mechanism can tell."""
        found, of_rewards = self.mechanism.expected_error(), self.mechanism.error_unit == Mechanism.error_unit
        return found if of_rewards and SMALLEST <= found <= LARGEST else None


@shows_nothing
def release(mechanism: Mechanism, feedback: Any, account: Account | None = None) -> Any:
    """Makes `feedback` private by `mechanism`, once; the account is charged before anything is drawn.

    What can be refused is refused before that. A query beyond what was charged ends the release without a result.
    """
    if feedback.once is not None:
        feedback.once.check(account)
    run = _Run(mechanism, feedback)
    run.certify(account)  # in rehearsal: what it refuses costs nothing
    numbers = None
    if not mechanism.asks_code:
        numbers = or_say("nothing was spent", run.look)
    if feedback.once is not None:
        receipt = feedback.once.spend(account, run.cost, mechanism.relation)
    else:
        receipt = None if account is None else account.charge(run.cost, mechanism.relation)
    if numbers is None:  # a failure must not be a free answer
        numbers = or_say(CHARGED, run.look)
    released = or_say(CHARGED, run.answer, numbers, SystemEntropy())
    return mechanism.result(released, run.certify(account)).with_receipt(receipt)


@shows_nothing
def simulate(mechanism: Mechanism, feedback: Any, seed: int) -> Any:
    """The same release with noise from a seed, as often as you like: private to nobody, charged to nobody."""
    run = _Run(mechanism, feedback)
    entropy = SeededEntropy(seed)
    released = run.answer(run.look(), entropy)
    remark = f"Simulates {mechanism.budget}; drawn from a seed, so it protects nobody."
    certificate = Certificate(
        method=f"{mechanism.releases}/{mechanism.name}", standing="none", reproducible=True, remarks=(remark,),
        sigma=run.queries[0].law.sigma if len(run.queries) == 1 else None, expected_error=run.expected_error(),
    )  # fmt: skip
    return mechanism.result(released, certificate)


def or_say(spent: str, step: Callable[..., Any], *given: Any) -> Any:
    """Takes a step; if the machines that hold people's rows fail, says what became of the budget."""
    try:
        return step(*given)
    except EngineFailed as error:
        failure = EngineFailed(f"{str(error).rstrip('.')}; {spent}.")
    raise failure


def _measured(queries: list[Query]) -> dict[str, Any]:
    """Norm, size of noise and sensitivity: of one query as they are, of several in units of each one's own noise."""
    if len(queries) == 1:
        return {**queries[0].law.measured(), "sensitivity": queries[0].sensitivity}
    total = Cost.of_all([query.law.cost(query.sensitivity) for query in queries])
    assert total is not None  # each query was checked
    kind, size, whole = ("pure", "scale", total.epsilon) if total.mu is None else ("gaussian", "sigma", total.mu)
    parts = [query.law.measured() for query in queries]
    of = [{"norm": part["norm"], "size": part[size]} for part in parts]
    return {"norm": {"kind": f"{kind}-queries", "of": of}, "sensitivity": whole}
