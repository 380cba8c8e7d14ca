"""`evaluate_policies`: sessions and policies in, released values out."""

import warnings
from collections.abc import Mapping

from quietq.feedback.returns import Policy
from quietq.feedback.sessions import Sessions
from quietq.feedback.trajectories import Cells
from quietq.mechanisms.given_policies import AnyPolicy, policy_of, values_at_points
from quietq.mechanisms.policy_values import PolicyValues, Question
from quietq.mechanisms.release import release, simulate as simulate_release
from quietq.noise.own_values import shows_nothing
from quietq.privacy import Account, Budget, InvalidInput, PrivacyWarning, weak_promise
from quietq.privacy.checks import instance, real, shown
from quietq.released.evaluated_policies import LONGEST, EvaluatedPolicies


@shows_nothing
def evaluate_policies(
    sessions: Sessions, policies: Mapping[str, AnyPolicy], budget: Budget, *, returns: tuple[float, float],
    discount: float = 1.0, per_step: bool = False, against: str | None = None,
    behaviour: Policy | Cells | None = None, model: Policy | None = None, confidence: float = 0.95,
    account: Account | None = None, simulate: int | None = None,
) -> EvaluatedPolicies:  # fmt: skip
    """What each policy would have been worth to these people, with intervals; released once.

    A policy is a function from states, shape (states, d), to probabilities of the declared actions; or a published
    agent; or the name of an action that is always taken. `returns` is the range that each person's mean weighted
    return, over their episodes, is held to: declare it from what you know of the task. `per_step` divides an
    episode's return by its number of steps. `against` names the policy that all others are compared with: then it is
    their advantage over that one which is held to the range, around 0, and released, with narrower intervals than a
    difference of two values has. `behaviour` is the policy by which actions were chosen, unless a column of the
    sessions says how probable each was; public `Cells` of states have it learnt, for a tenth of the budget, as shares
    of actions in each cell. `model` is a public function like a policy, of the values of actions: a good one makes
    intervals narrower, and a bad one wider, not wrong.

    >>> import polars
    >>> rows = polars.DataFrame({"person": range(400), "x": [0.5] * 400, "go": [0, 1] * 200, "y": [0.0, 1.0] * 200})
    >>> sessions = Sessions.read(rows, state="x", next_state=[], action="go", actions=[0, 1], reward="y", box=(0, 1),
    ...                          people=400)
    >>> coin = lambda states: [[0.5, 0.5]] * len(states)
    >>> found = evaluate_policies(sessions, {"go": "1", "stay": "0"}, Budget(1, 1e-5), returns=(-2, 2), behaviour=coin)
    >>> found["go"].low < 1 < found["go"].high, found.difference("go", "stay").low > 0
    (True, True)
    """
    question = question_of(sessions, policies, budget, returns, discount, per_step, against, behaviour, model)
    if not 0 < (confidence := real("confidence", confidence)) < 1:
        raise InvalidInput(f"confidence must lie between 0 and 1, not {confidence!r}.")
    if budget.is_pure:
        raise InvalidInput("Values of policies have Gaussian noise: delta must be above 0.")
    if sentence := weak_promise(budget, sessions.people):
        warnings.warn(sentence, PrivacyWarning, stacklevel=3)
    mechanism = PolicyValues(question, budget, confidence)
    if simulate is not None:
        return simulate_release(mechanism, sessions, simulate)
    instance("account", account, Account | None, "an Accountant, or a source's account, Ledger(url).account(source)")
    return release(mechanism, sessions, account)


def question_of(
    sessions: Sessions, policies: Mapping[str, AnyPolicy], budget: Budget, returns: tuple[float, float],
    discount: float, per_step: bool, against: str | None, behaviour: Policy | Cells | None, model: Policy | None,
) -> Question:  # fmt: skip
    """What is asked, all of it checked without a look at the rows."""
    instance("sessions", sessions, Sessions, "Sessions.read(...)")
    instance("budget", budget, Budget, "a Budget(epsilon, delta)")
    if sessions.actions is None:
        raise InvalidInput("Policies are evaluated on sessions with a declared list of actions.")
    if "reward" not in sessions.columns:
        raise InvalidInput("These sessions have no rewards: name their column as Sessions.read(..., reward=...).")
    if behaviour is None and "propensity" not in sessions.columns:
        raise InvalidInput(
            "There must be a behaviour, the policy by which actions were chosen, or else a column that says how "
            "probable each was: Sessions.read(..., propensity=...)."
        )
    if not isinstance(policies, Mapping) or not policies:
        raise InvalidInput("policies must name at least one policy, such as {'always high': 'high'}.")
    low, high = (real("returns", end) for end in returns)
    if not low < high:
        raise InvalidInput(f"returns must be a range, low below high, not {returns!r}.")
    if not 0 <= (discount := real("discount", discount)) <= 1:
        raise InvalidInput(f"discount must lie between 0 and 1, not {discount!r}.")
    box, names = sessions.box, sessions.actions
    asked_of = {str(name): policy_of(f"Policy {name!r}", policy, box, names) for name, policy in policies.items()}
    if behaviour is not None and not isinstance(behaviour, Cells):
        behaviour = policy_of("behaviour", behaviour, box, names)
    if model is not None:
        values_at_points("model", model, box, len(names))
    if against is not None and (against not in asked_of or len(asked_of) < 2):
        raise InvalidInput(f"against must be one of at least two policies, {list(asked_of)}, not {against!r}.")
    if against is not None and low != -high:
        raise InvalidInput(f"Advantages have either sign: returns must be a range around 0, not {returns!r}.")
    if bad := [name for name in asked_of if not name.isprintable() or not 0 < len(name) <= LONGEST]:
        raise InvalidInput(f"Names of policies must be printable, and of 1 to {LONGEST} letters, not {shown(bad[0])}.")
    other = None if against is None else (against, asked_of.pop(against))
    return Question(
        tuple(asked_of), tuple(asked_of.values()), behaviour, model, (low, high), discount, bool(per_step), other,
        sessions,
    )  # fmt: skip
