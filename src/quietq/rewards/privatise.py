"""The one draw: people's mean reward in, a private reward with its certificate out.

After it, everything is post-processing: any library may train on the result, for as long as it likes, in any number of
environments and processes. The raw data is not needed again and can be deleted.
"""

from quietq.noise.box import Domain, box_for
from quietq.noise.evaluation import shows_nothing
from quietq.noise.kernels import Additive, Exponential, Features, Kernel
from quietq.noise.mechanism import GaussianProcessMechanism, Input
from quietq.noise.private_function import PrivateFunction
from quietq.privacy.account import Account
from quietq.privacy.budget import Budget
from quietq.privacy.certificate import Assumption
from quietq.privacy.checks import instance
from quietq.privacy.errors import InvalidInput
from quietq.privacy.once import OnceAccount
from quietq.privacy.relations import LipschitzBall, Relation, RkhsBall
from quietq.rewards.ball_noise import is_better, release_weights
from quietq.rewards.choice import Choice, Noise, check_kind, choose
from quietq.rewards.knots import SLACK, check_range, release_on_knots
from quietq.rewards.people import People


@shows_nothing
def privatise(
    source: People | Input,
    budget: Budget,
    *,
    noise: Noise = "auto",
    pieces: int | None = None,
    relation: Relation | None = None,
    domain: Domain | None = None,
    accuracy: float | None = None,
    account: Account | None = None,
    simulate: int | None = None,
) -> PrivateFunction:
    """Makes a reward private, once.

    `source` is `People`, whose relation and box are enforced and known, or a function of your own with the `relation`
    and `domain` that you declare for it (then the certificate says "trusted"). `noise` is "path" (a Gaussian process
    on a fine grid), "k-norm" (pure epsilon, on knots or on the weights of features), "knots" (Gaussian, on knots) or
    "auto", a public rule; `pieces` is the number of pieces between knots. A function must compute in float64; if it
    cannot, say with `accuracy` how far off each of its values may be, which costs noise and fineness. `account` (an
    Accountant, or a source's account in a Ledger) is charged before the draw; with one, "auto" takes Gaussian noise
    unless delta is 0. Without one, the same People are released once, and a second time is refused. `simulate` draws
    from a seed instead, for experiments, protects nobody and is not charged.

    >>> import polars
    >>> ratings = polars.DataFrame({"person": range(50), "state": [0.5] * 50, "rating": [1.0] * 50})
    >>> people = People.read(ratings, box=(0, 1), low=0, high=1, slope=1, count=50)
    >>> private = privatise(people, Budget(epsilon=0.9, delta=1e-4))
    >>> private.certificate.standing, private([0.0, 0.5]).shape
    ('certified', (2,))
    """
    instance("budget", budget, Budget, "a Budget(epsilon, delta)")
    if isinstance(source, People):
        if relation is not None or domain is not None:
            raise InvalidInput("People bring their own relation and box: leave relation and domain out.")
        if accuracy is not None:
            raise InvalidInput(
                "accuracy is for a function of your own; people's sums are exact to float64: leave it out."
            )
        relation, domain = source.relation, source.declared.box
        assumptions, slope = (source.assumption, *source.trusted), source.declared.slope
        largest = source.largest
    else:
        if relation is None:
            raise InvalidInput("A function of your own needs a relation: which change of it must stay hidden?")
        assumptions, slope, largest = (), None, None
    if simulate is None:
        instance(
            "account", account, Account | None, "an Accountant, or a source's account, Ledger(url).account(source)"
        )
    charged: Account | None = account
    if isinstance(source, People) and simulate is None:
        source.once.check(account)
        charged = OnceAccount(source.once, account)
    if isinstance(relation, LipschitzBall):
        choice = choose(noise, relation, budget, slope, pieces, gaussian=account is not None)
        if choice.kind != "path":
            f = source.functions()[0] if isinstance(source, People) else source
            return release_on_knots(
                f, largest, accuracy, choice, relation, budget, box_for(1, domain), assumptions, charged, simulate
            )
    elif _pure_weights(noise, pieces, relation, budget, account):
        ball, kernel = relation, relation.kernel  # pyright: ignore[reportAttributeAccessIssue]
        weights = source.weights() if isinstance(source, People) else source
        box = box_for(kernel.dimension, domain)
        return release_weights(weights, accuracy, kernel, ball, budget, box, assumptions, charged, simulate)  # pyright: ignore[reportArgumentType]
    elif noise not in ("auto", "path") or pieces is not None:
        check_kind(noise)
        raise InvalidInput(
            "Noise on knots works in one dimension only, and not with features: use noise='auto' here, without pieces."
        )
    else:
        choice = None
    mechanism = _path_mechanism(relation, budget, domain, largest, accuracy, charged, assumptions, choice)
    check_range(largest, mechanism.sigma)
    f = _input(source, mechanism)
    return mechanism.apply(f) if simulate is None else mechanism.simulate(f, simulate)


def _pure_weights(
    noise: Noise, pieces: int | None, relation: Relation, budget: Budget, account: Account | None
) -> bool:
    """Whether weights of features get pure noise: asked for, or by the public rule of `ball_noise`."""
    if not isinstance(relation, RkhsBall) or not isinstance(relation.kernel, Features) or pieces is not None:
        return False
    if noise == "auto":
        return (account is None or budget.is_pure) and is_better(relation.kernel, budget, relation.actions)
    return noise == "k-norm"


def _path_mechanism(
    relation: Relation,
    budget: Budget,
    domain: Domain | None,
    largest: float | None,
    accuracy: float | None,
    account: Account | None,
    assumptions: tuple[Assumption, ...],
    choice: Choice | None,
) -> GaussianProcessMechanism:
    own = relation.kernel if isinstance(relation, RkhsBall) else None
    kernel = own if isinstance(own, Kernel) else Exponential(relation.best_beta())
    return GaussianProcessMechanism(
        kernel,
        relation.rkhs_radius(kernel) * SLACK,
        budget,
        relation=relation,
        domain=domain,
        largest=largest,
        accuracy=accuracy,
        account=account,
        assumption=assumptions[0] if assumptions else None,
        further=assumptions[1:],
        remarks=() if choice is None else (choice.reason,),
    )


def _input(source: People | Input, mechanism: GaussianProcessMechanism) -> Input:
    if not isinstance(source, People):
        return source
    if isinstance(mechanism.relation, RkhsBall) and not isinstance(mechanism.kernel, Additive):
        return source.weights()
    functions = source.functions()
    return functions if isinstance(mechanism.kernel, Additive) else functions[0]
