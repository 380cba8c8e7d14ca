"""The extensions that the paper names in its Discussion, one small experiment each: does it work, and at what cost?"""

from typing import Any

from reproduction.experiment import Experiment, Task, task
from reproduction.extensions import kernels, learners, worlds
from reproduction.extensions.learners import KEPT, SHARES, exploring, keeping
from reproduction.extensions.rows import ACTOR_CRITIC, EXPLORATION, REPLAY, TABLE
from reproduction.extensions.statements import STATEMENTS

DEEP_Q = (ACTOR_CRITIC, "deep Q-learning on private rewards")
ON_REWARDS = (ACTOR_CRITIC, "actor-critic on private rewards")


def of(title: str, measure: Any, own_program: bool = False, **settings: Any) -> Task:
    title = f"extensions: {title}"
    return task(TABLE, title, measure, title if own_program else "", **settings)


def learning(*stated: tuple[str, str], learner: str = "deep-q", **settings: Any) -> Task:
    return of(stated[0][1], learners.measure_learning, True, stated=stated, learner=learner, **settings)


def gradient(train_every: int, draws: int, **settings: Any) -> Task:
    settings |= {"people": 1_000, "draws": draws, "train_every": train_every}
    return of(f"gradient, a step every {train_every}", learners.measure_gradient, True, **settings)


def tasks(quick: bool) -> list[Task]:
    """The long ones first, so that no core is left with one at the end; at a glance two small programs to compile."""
    common: dict[str, Any] = {"people": (50, 100), "draws": 8}
    small: dict[str, Any] = {"people": (100,), "draws": 2, "steps": 1_000, "network": "splines"}
    everything, new_only = (REPLAY, keeping(KEPT[0])), {"batch": 1_000, "new_only": True}
    if quick:
        return [
            learning(DEEP_Q, everything, (EXPLORATION, exploring(SHARES[2])), explore=SHARES[2], **small),
            learning(ON_REWARDS, learner="actor-critic", batch=250, **small),
            *(gradient(every, 0) for every in (100, 25)),
            gradient(1_000, 0, **new_only),
            *_others(quick),
        ]
    return [
        learning(DEEP_Q, everything, **common),
        learning((REPLAY, keeping(KEPT[1])), replay=KEPT[1], **common),
        *(learning((EXPLORATION, exploring(share)), explore=share, **common) for share in SHARES),
        learning(ON_REWARDS, learner="actor-critic", **common),
        of("actor-critic on released values", learners.measure_values, **common),
        *(gradient(every, 8) for every in (10, 25, 100)),
        gradient(1_000, 8, **new_only),
        *_others(quick),
    ]


def _others(quick: bool) -> list[Task]:
    draws, some = (1, (100,)) if quick else (8, (50, 100, 200))
    half_widths = (5.0,) if quick else (5.0, 20.0)
    numbers = dict.fromkeys(
        ("exponential", "product"),
        (500, 2_000, 8_000) if quick else (4_000, 16_000, 64_000, 256_000),
    )
    numbers |= {"band-limited": (100, 400, 1_600) if quick else (1_000, 4_000, 16_000)}
    return [
        *(
            of(
                f"plans, {f'W = {w:g}' if w else kernels.EXPONENTIAL}",
                kernels.measure_releases,
                half_width=w,
                people=some,
                draws=draws,
            )
            for w in (0.0, *half_widths)
        ),
        *(
            of(
                f"terms of the band-limited kernel, W = {w:g}",
                kernels.measure_terms,
                half_width=w,
                draws=200 if quick else 4_000,
            )
            for w in half_widths
        ),
        of("plans for the navigation world", worlds.measure_plans, people=some, draws=draws),
        *(
            of(
                f"product kernel, {d} dimension(s)",
                kernels.measure_dimension,
                dimension=d,
                people=100,
            )
            for d in (1, 2, 3)
        ),
        of("covariance of draws of the product kernel", kernels.measure_covariance, draws=200 if quick else 4_000),
        of(
            "norms in the product kernel",
            kernels.measure_membership,
            levels=(3, 5, 7) if quick else tuple(range(2, 12)),
        ),
        of("50 random frequencies", kernels.measure_random_features, frequencies=50, cells=128 if quick else 256),
        *(
            of(f"queries, {kernel} kernel", kernels.measure_queries, kernel=kernel, numbers=n)
            for kernel, n in numbers.items()
        ),
        of(
            f"queries, {kernels.UNSTRUCTURED}",
            kernels.measure_queries,
            kernel=None,
            numbers=(300, 500, 900) if quick else (400, 800, 1_600),
        ),
        of("norms in the band-limited kernel", kernels.measure_broken_line),
        of("advantages of raw rewards", learners.measure_raw_advantages),
        of("the walk's reward on [-3, 7]", worlds.measure_scaled, low=-3.0, high=7.0, people=100, draws=draws),
        of("what covers a policy", learners.measure_promises, people=100),
        of("replay in the published program", learners.measure_published),
    ]


EXTENSIONS = Experiment(
    name="extensions",
    tasks=tasks,
    claims=lambda tables: [one.claim(tables[TABLE]) for one in STATEMENTS],
)
