"""People who come by: policies that learn from their answers, one file each.

`arm = policy.choose(context)`, then `policy.learn(context, arm, reward)`; see `docs/bandits.md`.
"""

from quietq.learning.bandits.elimination import Elimination as Elimination
from quietq.learning.bandits.episodes import Episodes as Episodes
from quietq.learning.bandits.lin_ucb import LinUCB as LinUCB
from quietq.learning.bandits.linear import Linear as Linear, LinearTree as LinearTree
from quietq.learning.bandits.local_flips import LocalUCB as LocalUCB
from quietq.learning.bandits.policy import Policy as Policy
from quietq.learning.bandits.private_policy import PrivatePolicy as PrivatePolicy
from quietq.learning.bandits.references import UCB as UCB, Thompson as Thompson
from quietq.learning.bandits.state import POLICIES as POLICIES, resume as resume, save as save
from quietq.learning.bandits.tree_ucb import TreeUCB as TreeUCB
