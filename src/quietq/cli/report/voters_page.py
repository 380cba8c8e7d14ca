"""The pictures and pages of `quietq demo`: what 944 voters like, and what an agent made of it."""

from pathlib import Path
from typing import Any

import numpy as np

from quietq.cli.report.agent import plot_outcome, plot_values
from quietq.cli.report.page import Picture
from quietq.cli.report.release_page import write_release_report
from quietq.cli.report.reward import plot_reward
from quietq.privacy.certificate import Certificate
from quietq.worlds import WALK, plan

RETURNS = {"the agent": "return", "the best policy": "best", "random actions": "random", "the worst policy": "worst"}
LEAD = (
    "In the American National Election Study of 1996, 944 people said where they stand between left and right. Each is "
    "taken to like a position (the state, from 0, left, to 1, right) the better the nearer it is. What they like "
    "together was made private, once, as a function; an agent was trained on that to move a position to the left or to "
    "the right."
)


def draw_released(agent: Any, private: Any, reward_file: Path, values_file: Path) -> list[Picture]:
    """Pictures of what was released."""
    plot_reward(private, reward_file, title="What 944 voters like: the private reward")
    plot_values(agent, values_file, title="What the agent released: values by action, and the best action")
    return [
        Picture(reward_file, "`reward.qq`: the voters' mean reward with noise on it.", "private reward"),
        Picture(values_file, "`agent.qq`: the agent's values of going left and right.", "agent's values"),
    ]


def draw_outcome(agent: Any, private: Any, true: Any, result: dict[str, float], file: Path) -> Picture:
    """A picture of how well the agent does. NOT private: it shows the true reward."""
    states = np.linspace(0, 1, 1025)
    policies = {"agent": agent.predict(states[:, None])[0], "best policy": plan(true)(states)}
    title = f"true return of the agent {result['return']:.2f}, of the best policy {result['best']:.2f}"
    plot_outcome(
        file, states=states, true=true, private=private, policies=policies, actions=WALK.action_names, title=title
    )
    return Picture(file, "The true reward, the private one, and what the agent does.", "true reward")


def write_page(
    file: Path, certificate: Certificate, finding: Any, pictures: list[Picture], outcome: Picture | None = None,
    result: dict[str, float] | None = None,
) -> None:  # fmt: skip
    """The page that may be published, or with an outcome the operator's, which also tells how well the agent does."""
    returns = None if result is None else {name: result[key] for name, key in RETURNS.items()}
    write_release_report(
        file, title="What 944 voters like, and what an agent made of it", lead=LEAD, certificate=certificate,
        range_of_one=1.0, finding=finding, pictures=pictures, outcome=outcome, returns=returns,
    )  # fmt: skip
