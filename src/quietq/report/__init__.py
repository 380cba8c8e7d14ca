"""Pictures of what was released; they show nothing that the release itself does not."""

from quietq.report.reward import plot_reward, require

__all__ = ["plot_reward", "require"]
