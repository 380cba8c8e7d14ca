"""The extensions that the paper names in its Discussion, one small experiment each: does it work, and at what cost?"""

from typing import ClassVar

from paper.experiment import Claim, Experiment, Tables
from paper.extensions.band_limited import BrokenLine, Released, Terms
from paper.extensions.interval import Scaled, Thermostat
from paper.extensions.kernel_verdicts import kernel_claims
from paper.extensions.learners import KEPT, SHARES, Learning, LearningFromValues, exploring, keeping
from paper.extensions.product import Covariance, Dimension, Membership
from paper.extensions.queries import PointByPoint, Queries
from paper.extensions.random_features import RandomFourier
from paper.extensions.released import Promises, RawAdvantages
from paper.extensions.replaying import PayingAgain, PublishedReplay
from paper.extensions.row import ACTOR_CRITIC, EXPLORATION, REPLAY, TABLE
from paper.extensions.verdicts import learner_claims
from paper.extensions.worlds import Planned, Trained
from paper.task import Task

DEEP_Q, ON_REWARDS = "deep Q-learning on private rewards", "actor-critic on private rewards"
__all__ = ["Extensions"]


class Extensions(Experiment):
    """Other learners, intervals, dimensions and kernels.

    >>> Extensions().tasks(quick=True)[0].table
    'extensions'
    """

    name: ClassVar[str] = "extensions"
    title: ClassVar[str] = "The extensions that the paper's Discussion names"

    def tasks(self, quick: bool) -> list[Task]:
        """The long ones first, so that no core is left with one at the end."""
        return [*(_quick_learners() if quick else _learners()), *_others(quick)]

    def claims(self, tables: Tables) -> list[Claim]:
        """What the Discussion says of each, and what was found."""
        return [*learner_claims(tables[TABLE]), *kernel_claims(tables[TABLE])]


def _quick_learners() -> list[Task]:
    """Two programs to compile, small ones."""
    stated = ((ACTOR_CRITIC, DEEP_Q), (REPLAY, keeping(KEPT[0])), (EXPLORATION, exploring(SHARES[2])))
    small = {"people": (100,), "draws": 2, "steps": 1_000, "network": "splines"}
    return [
        Learning(stated, "deep-q", explore=SHARES[2], **small),
        Learning(((ACTOR_CRITIC, ON_REWARDS),), "actor-critic", batch=250, **small),
        *(PayingAgain(50, 0, every) for every in (100, 25)),
        PayingAgain(50, 0, 1_000, batch=1_000, new_only=True),
    ]


def _learners() -> list[Task]:
    people, draws = (50, 100), 8
    return [
        Trained("recommender", ("path", "k-norm"), 100, draws, 15_000),
        Trained("navigation", ("path",), 100, draws, 20_000),
        Trained("recommender", (), 100, 4, 15_000),
        Trained("navigation", (), 100, 4, 20_000),
        Learning(((ACTOR_CRITIC, DEEP_Q), (REPLAY, keeping(KEPT[0]))), "deep-q", people, draws),
        Learning(((REPLAY, keeping(KEPT[1])),), "deep-q", people, draws, replay=KEPT[1]),
        *(Learning(((EXPLORATION, exploring(share)),), "deep-q", people, draws, explore=share) for share in SHARES),
        Learning(((ACTOR_CRITIC, ON_REWARDS),), "actor-critic", people, draws),
        LearningFromValues(people, draws),
        *(PayingAgain(50, draws, every) for every in (10, 25, 100)),
        PayingAgain(50, draws, 1_000, batch=1_000, new_only=True),
    ]


def _others(quick: bool) -> list[Task]:
    draws, some = (1, (100,)) if quick else (8, (50, 100, 200))
    half_widths = (5.0,) if quick else (5.0, 20.0)
    return [
        *(Released(half_width, some, draws) for half_width in (0.0, *half_widths)),
        *(Terms(half_width, 200 if quick else 4_000) for half_width in half_widths),
        Planned("navigation", "path", some, draws),
        *(Planned("recommender", noise, some, draws) for noise in ("path", "k-norm")),
        *(Dimension(dimension, 100, 20 if quick else 500) for dimension in (1, 2, 3)),
        Covariance(200 if quick else 4_000),
        Membership((3, 5, 7) if quick else (2, 3, 4, 5, 6, 7, 8, 9, 10, 11)),
        RandomFourier(50, 128 if quick else 256),
        *(
            Queries(kernel, (500, 2_000, 8_000) if quick else (4_000, 16_000, 64_000, 256_000))
            for kernel in ("exponential", "additive", "product", "features")
        ),
        Queries("band-limited", (100, 400, 1_600) if quick else (1_000, 4_000, 16_000)),
        PointByPoint((300, 500, 900) if quick else (400, 800, 1_600)),
        BrokenLine(),
        RawAdvantages(),
        Scaled(-3.0, 7.0, 100, draws),
        Thermostat(100, draws),
        Promises(100),
        PublishedReplay(),
    ]
