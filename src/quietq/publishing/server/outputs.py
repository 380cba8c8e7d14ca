"""What the numbers that a release gives at a state are: a name for each, and what they measure, in a word or two."""

from quietq.mechanisms.evaluated_policies import EvaluatedPolicies
from quietq.mechanisms.network_reward import NetworkReward
from quietq.mechanisms.private_model import PrivateModel
from quietq.mechanisms.private_network import PrivateNetwork
from quietq.mechanisms.private_policy import PrivatePolicy
from quietq.mechanisms.private_world import PrivateWorld
from quietq.mechanisms.publishable import Publishable


def names_of(function: Publishable) -> list[str]:
    """One name for each output, in their order."""
    outputs = range(function.outputs)
    if isinstance(function, EvaluatedPolicies):
        return list(function.names)
    if isinstance(function, PrivateWorld):
        states, actions = range(function.spaces.states), function.spaces.actions
        after = ["the middle action"] if actions is None else [f"action {k}" for k in range(actions)]
        place = ["state"] if len(states) == 1 else [f"coordinate {i}" for i in states]
        return [f"next {where} after {action}" for action in after for where in place]
    if function.choices is not None:
        return [f"action {k}" for k in outputs]
    if isinstance(function, PrivatePolicy):
        return ["action"] if len(outputs) == 1 else [f"action[{k}]" for k in outputs]
    if len(outputs) == 1:
        return ["value"]
    each = "action" if isinstance(function, PrivateModel | NetworkReward) else "output"
    return [f"{each} {k}" for k in outputs]


def measure_of(function: Publishable) -> str:
    """What an axis with these numbers is called."""
    if isinstance(function, PrivateWorld):
        return "expected next state"
    if isinstance(function, PrivatePolicy | PrivateNetwork) and function.output != "values":
        return "log-probability" if function.output == "log-probabilities" else "action taken"
    return "released value"
