"""People who come by: policies that learn from their answers, one file each.

`arm = policy.choose(context)`, then `policy.learn(context, arm, reward)`; see `docs/bandits.md`.
"""

from pathlib import Path
from typing import Any

from quietq.learning.bandits import state as _state
from quietq.learning.bandits.elimination import Elimination as Elimination
from quietq.learning.bandits.episodes import Episodes as Episodes
from quietq.learning.bandits.linear import Linear as Linear, LinearTree as LinearTree, LinUCB as LinUCB
from quietq.learning.bandits.local_flips import LocalUCB as LocalUCB
from quietq.learning.bandits.policy import Policy as Policy, PrivatePolicy as PrivatePolicy
from quietq.learning.bandits.references import UCB as UCB, Thompson as Thompson
from quietq.learning.bandits.state import save as save
from quietq.learning.bandits.tree_ucb import TreeUCB as TreeUCB

POLICIES: tuple[type[Policy], ...] = (
    Elimination,
    Episodes,
    TreeUCB,
    LocalUCB,
    UCB,
    Thompson,
    Linear,
    LinearTree,
    LinUCB,
)
"""All that a saved state may name."""


def resume(directory: str | Path, features: Any = None) -> Policy:
    """A policy as `save` left it, once; `features` is the map of one's own that it was made with, if it was."""
    return _state.resume(directory, POLICIES, features)
