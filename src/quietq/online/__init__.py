"""People who come by: policies that learn from their answers, one file each.

`arm = policy.choose(context)`, then `policy.learn(context, arm, reward)`; see `docs/bandits.md`.
"""

from quietq.online.elimination import Elimination as Elimination
from quietq.online.episodes import Episodes as Episodes
from quietq.online.linear import Linear as Linear, LinearTree as LinearTree, LinUCB as LinUCB
from quietq.online.policy import Policy as Policy, PrivateBandit as PrivateBandit
from quietq.online.state import POLICIES as POLICIES, resume as resume, save as save
from quietq.online.ucb import UCB as UCB, LocalUCB as LocalUCB, Thompson as Thompson, TreeUCB as TreeUCB
