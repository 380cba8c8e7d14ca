"""`release`: the only place where what people gave is looked at, charged, noised, rounded and certified.

Theorem. A mechanism's queries, each built from the answers so far, cost together sqrt(sum mu_i^2) (Gaussian; Dong, Roth
& Su 2022, adaptively Smith & Thakurta 2022) or sum epsilon_i (pure). That sum is capped by what was charged before the
first draw, so the promise is what was charged, whatever the mechanism asks.
"""

from collections.abc import Generator
from typing import Any

import numpy as np

from quietq.mechanisms.mechanism import Mechanism, Query
from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.noise.evaluation import shows_nothing
from quietq.noise.rounding import check_size, check_values, largest_value
from quietq.privacy import Cost, InvalidInput
from quietq.privacy.account import Account, accounted
from quietq.privacy.certificate import CHOSEN, Certificate


@shows_nothing
def release(mechanism: Mechanism, feedback: Any, account: Account | None = None) -> Any:
    """Makes `feedback` private by `mechanism`, once; the account is charged before anything is drawn.

    What can be refused is refused before that. A query beyond what was charged ends the release without a result.
    """
    if feedback.once is not None:
        feedback.once.check(account)
    steps = mechanism.run()
    first = _checked(next(steps), [], mechanism)
    _certify(mechanism, feedback, [first], account)  # in rehearsal: what it refuses costs nothing
    numbers = _look(first, feedback, mechanism)
    if feedback.once is not None:
        receipt = feedback.once.spend(account, mechanism.cost, mechanism.relation)
    else:
        receipt = None if account is None else account.charge(mechanism.cost, mechanism.relation)
    queries, released = _answer(mechanism, feedback, steps, first, numbers, SystemEntropy())
    certificate = _certify(mechanism, feedback, queries, account)
    return mechanism.result(released, certificate).with_receipt(receipt)


@shows_nothing
def simulate(mechanism: Mechanism, feedback: Any, seed: int) -> Any:
    """The same release with noise from a seed, as often as you like: private to nobody, charged to nobody."""
    steps = mechanism.run()
    first = _checked(next(steps), [], mechanism)
    numbers = _look(first, feedback, mechanism)
    _, released = _answer(mechanism, feedback, steps, first, numbers, SeededEntropy(seed))
    remark = f"Simulates {mechanism.budget}; drawn from a seed, so it protects nobody."
    method, sigma = f"reward/{mechanism.name}", first.law.sigma
    certificate = Certificate(method=method, standing="none", reproducible=True, sigma=sigma, remarks=(remark,))
    return mechanism.result(released, certificate)


def _answer(
    mechanism: Mechanism,
    feedback: Any,
    steps: Generator[Query, np.ndarray, np.ndarray],
    query: Query,
    numbers: np.ndarray,
    entropy: Entropy,
) -> tuple[list[Query], np.ndarray]:
    """Answers queries until there are no more: all of them, and what is released."""
    queries = [query]
    while True:
        try:
            query = steps.send(queries[-1].law.add(numbers, entropy))
        except StopIteration as last:
            return queries, last.value
        queries.append(_checked(query, queries, mechanism))
        numbers = _look(query, feedback, mechanism)


def _look(query: Query, feedback: Any, mechanism: Mechanism) -> np.ndarray:
    """What the query asks for: finite, and small enough for its rounding to hide behind the noise."""
    check_size(mechanism.largest, query.law.sigma)
    numbers = query.numbers(feedback)
    check_values(numbers, largest_value(query.law.sigma))
    return numbers


def _checked(query: Query, before: list[Query], mechanism: Mechanism) -> Query:
    """The query, if it and all before it cost no more than what is charged for them."""
    cost, asked = mechanism.cost, [one.law.cost(one.sensitivity) for one in [*before, query]]
    total = Cost.of_all(asked)
    if total is None or not total.at_most(cost):
        raise InvalidInput(
            f"Noise {mechanism.name!r} asks for a query of {asked[-1]}, and with the {len(before)} before it that is "
            f"more than the {cost} that is charged: it needs more noise, or fewer queries; nothing was released."
        )
    return query


def _certify(mechanism: Mechanism, feedback: Any, queries: list[Query], account: Account | None) -> Certificate:
    """States what was promised; refused if a query's sensitivity is below what the relation comes to in its norm."""
    cost, budget = mechanism.cost, mechanism.budget
    return Certificate(
        method=f"reward/{mechanism.name}",
        standing="certified",
        relation=mechanism.relation.describe(),
        epsilon=budget.epsilon,
        delta=budget.delta if cost.mu is not None else cost.delta,
        mu=cost.mu,
        domain=tuple(zip(mechanism.box.low, mechanism.box.high, strict=True)),
        **_measured(queries),
        assumptions=(
            *feedback.assumptions,
            CHOSEN,
            *mechanism.conditions,
            *queries[0].law.conditions(mechanism.largest, mechanism.error),
            accounted(account),
        ),
        remarks=mechanism.remarks,
    )


def _measured(queries: list[Query]) -> dict[str, Any]:
    """Norm, size of noise and sensitivity: of one query as they are, of several in units of each one's own noise."""
    if len(queries) == 1:
        return {**queries[0].law.measured(), "sensitivity": queries[0].sensitivity}
    total = Cost.of_all([query.law.cost(query.sensitivity) for query in queries])
    assert total is not None  # each query was checked
    kind, size, whole = ("pure", "scale", total.epsilon) if total.mu is None else ("gaussian", "sigma", total.mu)
    parts = [query.law.measured() for query in queries]
    of = [{"norm": part["norm"], "size": part[size]} for part in parts]
    return {"norm": {"kind": f"{kind}-queries", "of": of}, size: 1.0, "sensitivity": whole}
