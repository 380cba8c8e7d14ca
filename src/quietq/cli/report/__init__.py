"""Pictures of what was released; they show nothing that the release itself does not, unless they say NOT PRIVATE."""

from quietq.cli.report.agent import plot_outcome, plot_values
from quietq.cli.report.look import require
from quietq.cli.report.reward import plot_reward

__all__ = ["plot_outcome", "plot_reward", "plot_values", "require"]
