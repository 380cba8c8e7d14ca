"""The one draw: people's mean reward in, a private reward with its certificate out.

After it, everything is post-processing: any library may train on the result, for as long as it likes, in any number of
environments and processes. The raw data is not needed again and can be deleted.
"""

import math

import numpy as np

from quietq.noise.box import Box, Domain, box_for
from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.noise.kernels import Additive
from quietq.noise.mechanism import GaussianProcessMechanism, Input
from quietq.noise.private_function import PrivateFunction, PrivateKnots
from quietq.noise.rounding import check_values, round_release, rounding_step
from quietq.privacy.accountant import Accountant
from quietq.privacy.budget import Budget
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall, Relation, RkhsBall
from quietq.rewards import ellipsoid, k_norm
from quietq.rewards.choice import Choice, Noise, choose
from quietq.rewards.people import People

# Sums over people are done in floating point: this much more noise covers their rounding errors many times over.
_SLACK = 1 + 1e-6


def privatise(
    source: People | Input,
    budget: Budget,
    *,
    noise: Noise = "auto",
    pieces: int | None = None,
    relation: Relation | None = None,
    domain: Domain | None = None,
    ledger: Accountant | None = None,
    simulate: int | None = None,
) -> PrivateFunction:
    """Makes a reward private, once.

    `source` is `People`, whose relation and box are enforced and known, or a function of your own with the `relation`
    and `domain` that you declare for it (then the certificate says "trusted"). `noise` is "path" (a Gaussian process
    on a fine grid), "k-norm" (pure epsilon, on knots), "knots" (Gaussian, on knots) or "auto", a public rule;
    `pieces` is the number of pieces between knots. `ledger` is charged before the draw. `simulate` draws from a seed
    instead, for experiments, protects nobody and is not charged.

    >>> import polars
    >>> ratings = polars.DataFrame({"person": range(50), "state": [0.5] * 50, "rating": [1.0] * 50})
    >>> people = People.read(ratings, box=(0, 1), low=0, high=1, slope=1, count=50)
    >>> private = privatise(people, Budget(epsilon=0.9, delta=1e-4))
    >>> private.certificate.standing, private([0.0, 0.5]).shape
    ('certified', (2,))
    """
    if isinstance(source, People):
        if relation is not None or domain is not None:
            raise InvalidInput("People bring their own relation and box: leave relation and domain out.")
        relation, domain = source.relation, source.declared.box
        assumption, slope = source.assumption, source.declared.slope
    else:
        if relation is None:
            raise InvalidInput("A function of your own needs a relation: which change of it must stay hidden?")
        assumption, slope = None, None
    if simulate is None and ledger is not None and not isinstance(ledger, Accountant):
        raise InvalidInput(f"ledger must be an Accountant, not {type(ledger).__name__}.")
    if isinstance(relation, LipschitzBall):
        choice = choose(noise, relation, budget, slope, pieces)
        if choice.kind != "path":
            f = source.functions()[0] if isinstance(source, People) else source
            return _on_knots(f, choice, relation, budget, box_for(1, domain), assumption, ledger, simulate)
    elif noise not in ("auto", "path") or pieces is not None:
        raise InvalidInput(f"noise {noise!r} on knots works in one dimension only; leave noise and pieces out.")
    else:
        choice = None
    mechanism = _path_mechanism(relation, budget, domain, ledger, assumption, choice)
    f = _input(source, mechanism)
    return mechanism.apply(f) if simulate is None else mechanism.simulate(f, simulate)


def _path_mechanism(
    relation: Relation,
    budget: Budget,
    domain: Domain | None,
    ledger: Accountant | None,
    assumption: Assumption | None,
    choice: Choice | None,
) -> GaussianProcessMechanism:
    best = GaussianProcessMechanism.for_relation(relation, budget, domain=domain)
    return GaussianProcessMechanism(
        best.kernel,
        relation.rkhs_radius(best.kernel) * _SLACK,
        budget,
        relation=relation,
        domain=domain,
        accountant=ledger,
        assumption=assumption,
        remarks=() if choice is None else (choice.reason,),
    )


def _input(source: People | Input, mechanism: GaussianProcessMechanism) -> Input:
    if not isinstance(source, People):
        return source
    if isinstance(mechanism.relation, RkhsBall) and not isinstance(mechanism.kernel, Additive):
        return source.weights()
    functions = source.functions()
    return functions if isinstance(mechanism.kernel, Additive) else functions[0]


def _on_knots(
    f: object,
    choice: Choice,
    ball: LipschitzBall,
    budget: Budget,
    box: Box,
    assumption: Assumption | None,
    ledger: Accountant | None,
    simulate: int | None,
) -> PrivateKnots:
    """K-norm or shaped Gaussian noise: one draw of a vector."""
    if ball.actions != 1:
        raise InvalidInput("Noise on knots is for one reward function; use noise='path' with several actions.")
    wider = LipschitzBall(ball.radius * _SLACK, ball.lipschitz * _SLACK)
    pure = choice.kind == "k-norm"
    knots = _at_knots(f, box, choice.pieces)
    if pure:
        body = k_norm.IncrementBody(wider, choice.pieces)
        scale = k_norm.typical_noise(body, budget.epsilon)
    else:
        shape = ellipsoid.shape(wider, choice.pieces)
        scale = math.sqrt(float(np.trace(shape)) / len(shape)) / budget.mu
    check_values(knots, scale)
    if simulate is not None:
        entropy: Entropy = SeededEntropy(simulate)
        certificate = Certificate(
            method=f"reward/{choice.kind}",
            standing="none",
            reproducible=True,
            sigma=scale,
            remarks=(f"Simulates {budget}; drawn from a seed, so it protects nobody.",),
        )
    else:
        entropy = SystemEntropy()
        certificate = _certificate(choice, ball, budget, scale, assumption)
        if ledger is not None:
            if pure:
                raise InvalidInput("An Accountant adds up Gaussian noise; a pure release has to be booked apart.")
            ledger.charge(budget.mu)
    if pure:
        released = round_release(np.diff(knots), k_norm.draw(body, budget.epsilon, entropy)[0], scale)
        values = k_norm.to_curve(released)
    else:
        root = np.linalg.cholesky(shape)
        values = round_release(knots, root @ entropy.normals((len(knots),)) / budget.mu, scale)
    return PrivateKnots(values, box, certificate)


def _at_knots(f: object, box: Box, pieces: int) -> np.ndarray:
    if not callable(f):
        raise InvalidInput(f"A function of states is needed, not {type(f).__name__}.")
    states = box.from_unit(np.linspace(0, 1, pieces + 1))
    values = np.array(f(states), dtype=np.float64)
    if values.shape != states.shape:
        raise InvalidInput(f"The function must return one value for each of {len(states)} states at once.")
    return values


def _certificate(
    choice: Choice, ball: LipschitzBall, budget: Budget, scale: float, assumption: Assumption | None
) -> Certificate:
    pure = choice.kind == "k-norm"
    what = "increments between" if pure else "values at"
    return Certificate(
        method=f"reward/{choice.kind}",
        standing="certified",
        relation=ball.describe(),
        epsilon=budget.epsilon,
        delta=0.0 if pure else budget.delta,
        mu=None if pure else budget.mu,
        sigma=scale,
        sensitivity=None if pure else scale * budget.mu,
        assumptions=(
            assumption or Assumption(f"Neighbouring inputs are {ball}.", enforced=False),
            Assumption("Box, bounds, number of people and budget were chosen without the private data.", False),
            Assumption(
                f"Only the {what} {choice.pieces + 1} public knots were looked at, noised once, not kept.", True
            ),
            Assumption("Noise was drawn in float64 from the operating system's generator.", True),
            Assumption(
                f"Numbers were rounded to multiples of {rounding_step(scale):g}; beyond that, floating-point noise is "
                "taken for ideal noise.",
                False,
            ),
        ),
        remarks=(choice.reason,),
    )
