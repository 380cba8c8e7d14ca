"""Names that can be chosen on the command line, so that help and completion need neither NumPy nor Gymnasium.

A test holds them against the tables themselves: `quietq.mechanisms.privatise.MECHANISMS`, `quietq.worlds.WORLDS` and
`quietq.feedback.FEEDBACK`.
"""

NOISES = ("path", "k-norm", "knots", "rounds", "moments")
WORLDS = ("walk", "thermostat", "navigation")
REWARD_FEEDBACK = ("ratings", "comparisons")
"""Kinds of feedback of which a reward is made."""
WORLD_FEEDBACK = ("sessions",)
FEEDBACK = (*REWARD_FEEDBACK, *WORLD_FEEDBACK)
