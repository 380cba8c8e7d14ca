"""What a world is to be made of, before anything is looked at: features of its dynamics, and what is known already."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any, Literal, get_args

from quietq.feedback.spaces import Spaces
from quietq.noise import Box as Box
from quietq.noise.feature_maps import MOST_TERMS, FeatureMap, Polynomials, Term, is_data
from quietq.privacy import InvalidInput
from quietq.privacy.checks import count, instance, interval, shown

Known = Callable[..., Any]
KnownName = Literal["reward", "end", "start"]
MOST_FEATURES = 300
"""The most features of the dynamics: their moments are some fifty thousand numbers."""

ENOUGH_PER_NUMBER = 7.0
"""How many times the numbers of a step, features and changes, people times mu must be for polynomials of their degree.
From 7 on, asking for one degree more cost at most 1.45 times the squared error on the development systems, where it
bent nothing; at 5 to 6 it was up to 9 times."""


@dataclass(frozen=True)
class WorldModel:
    """Public choices for a private world. What is known is neither learned nor paid for.

    Known functions take arrays of any shape in front, in the units of the sessions, and are yours: they are not in a
    published file, and whoever loads one gives them again. `reward(states, actions, next_states)` gives rewards,
    `end(next_states)` whether an episode ends there, `start(draws)` first states from as many uniform numbers as a
    state has coordinates, and `moves[i](states, actions, next_states)` the next value of coordinate i, where all
    coordinates that are learned have been filled in.

    >>> WorldModel(degree=2).feature_map(Spaces(Box.of([(0, 1), (0, 1)]), actions=2)).rank
    8
    """

    degree: int = 1
    """Of the polynomials in state and action that changes of the state are made of, at the most: people and budget may
    be too few for it (`affordable_degree`)."""
    features: FeatureMap | None = None
    """Instead of polynomials, a public map of state and action: coordinates of the state, then those of the action."""
    reward: Known | None = None
    end: Known | None = None
    start: Known | None = None
    step_rewards: tuple[float, float] | None = None
    """The range of the rewards of steps that end no episode, within the sessions' own. Then the rewards of steps that
    end one, such as a crash's -100, are learned separately, as one mean: they do not smear over all states, and other
    rewards have the noise of the narrow range."""
    moves: Mapping[int, Known] = field(default_factory=dict)
    circles: tuple[tuple[int, int], ...] = ()
    """Pairs of coordinates that are cosine and sine of one angle, in either order: ((0, 1),). First states and steps of
    the private world are projected to the unit circle of each."""

    def __post_init__(self) -> None:
        count("degree", self.degree, most=6)
        instance("features", self.features, FeatureMap | None, "a public feature map, e.g. Fourier.draw(...)")
        if self.features is not None and not is_data(self.features):
            raise InvalidInput(
                f"features must be one of quietq's own public maps, and {type(self.features).__name__} is code, which "
                "could depend on several people at once: take one of them, or leave features out."
            )
        for name in get_args(KnownName):
            instance(name, getattr(self, name), Callable | None, "a function")
        if not all(type(i) is int and i >= 0 and callable(one) for i, one in dict(self.moves).items()):
            raise InvalidInput("moves must give functions by the numbers of coordinates, from 0 on.")
        object.__setattr__(self, "circles", _pairs(self.circles))
        if self.step_rewards is not None:
            object.__setattr__(self, "step_rewards", interval("step_rewards", self.step_rewards))
            if self.reward is not None:
                raise InvalidInput("step_rewards is for rewards that are learned: leave it out, or reward.")

    @property
    def known(self) -> tuple[KnownName, ...]:
        """What is declared, by name."""
        return tuple(name for name in get_args(KnownName) if getattr(self, name) is not None)

    def learned(self, states: int) -> tuple[int, ...]:
        """Returns the coordinates of a state whose changes are learned."""
        if any(i >= states for i in self.moves):
            raise InvalidInput(f"moves must be of coordinates 0 to {states - 1}, not of {max(self.moves)}.")
        if len(self.moves) == states:
            raise InvalidInput("moves must leave a coordinate whose change is learned.")
        return tuple(i for i in range(states) if i not in self.moves)

    def require_circles(self, box: Box) -> None:
        """Refuses circles that do not lie in the box of states."""
        for i in (one for pair in self.circles for one in pair):
            if i >= box.dimension:
                raise InvalidInput(f"circles must be of coordinates 0 to {box.dimension - 1}, not of {i}.")
            if not (box.low[i] <= -1 and box.high[i] >= 1):
                raise InvalidInput(
                    f"circles must be of coordinates whose box holds -1 to 1; that of coordinate {i} is "
                    f"{box.low[i]:g} to {box.high[i]:g}."
                )

    def feature_map(self, spaces: Spaces) -> FeatureMap:
        """Besides a constant: of points that states and actions are together."""
        found = self.features
        if found is None:
            found = Polynomials(spaces.dimension, _terms(spaces, self.degree))
        found = found.sized(spaces.dimension)
        if found.rank > MOST_FEATURES:
            raise InvalidInput(
                f"The dynamics must be made of at most {MOST_FEATURES} features, not {found.rank}: take a lower degree."
            )
        return found

    def affordable_degree(self, spaces: Spaces, people_times_mu: float) -> int:
        """Returns the highest degree, up to the one asked for, that so many people and this budget can carry.

        The noise of a step grows with the number of its features, in all of them. It is a public rule, and 1 is always
        taken.
        """
        degree, targets = self.degree, len(self.learned(spaces.states))
        while degree > 1 and self.features is None:
            numbers = 1 + len(_terms(spaces, degree)) + targets
            if people_times_mu >= ENOUGH_PER_NUMBER * numbers:
                break
            degree -= 1
        return degree


def _pairs(given: object) -> tuple[tuple[int, int], ...]:
    """Pairs of coordinates, each of which is in one of them at most."""
    pairs: Any = given if isinstance(given, tuple | list) else [given]
    sized = all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs)
    if not sized or not all(type(i) is int and i >= 0 for pair in pairs for i in pair):
        raise InvalidInput(f"circles must be pairs of numbers of coordinates, such as ((0, 1),), not {shown(given)}.")
    if len({i for pair in pairs for i in pair}) < 2 * len(pairs):
        raise InvalidInput(f"circles must name each coordinate once, not {shown(given)}.")
    return tuple((one, other) for one, other in pairs)


def _terms(spaces: Spaces, degree: int) -> tuple[Term, ...]:
    """All products of up to `degree` coordinates; of one that is 0 or 1 there is no square, and of two no product."""
    corners = range(spaces.states, spaces.dimension) if spaces.actions is not None else range(0)
    terms: list[Term] = []
    for size in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(spaces.dimension), size):
            if sum(i in corners for i in chosen) < 2:
                terms.append(tuple((i, chosen.count(i)) for i in sorted(set(chosen))))
            if len(terms) > MOST_TERMS:
                raise InvalidInput(f"degree must be lower: {degree} gives more than {MOST_TERMS} features.")
    return tuple(sorted(terms, key=len))
