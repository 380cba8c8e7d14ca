"""Private bandits: policies that learn from people's answers as they arrive.

`arm = policy.choose(context)`, then `policy.learn(context, arm, reward)`; see `docs/bandits.md`.
"""

from quietq.online.elimination import Elimination as Elimination
from quietq.online.episodes import Episodes as Episodes
from quietq.online.linear import Linear as Linear
from quietq.online.policy import PrivateBandit as PrivateBandit
from quietq.online.state import POLICIES as POLICIES, resume as resume, save as save
from quietq.online.ucb import LocalUCB as LocalUCB, TreeUCB as TreeUCB
