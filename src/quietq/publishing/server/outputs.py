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
        after = ["the middle action"] if function.spaces.actions is None else action_names(function)
        return [f"next {where} after {action}" for action in after for where in state_names(function)]
    if function.choices is not None:
        return [f"action {k}" for k in outputs]
    if isinstance(function, PrivatePolicy):
        return ["action"] if len(outputs) == 1 else [f"action[{k}]" for k in outputs]
    if len(outputs) == 1:
        return ["value"]
    each = "action" if isinstance(function, PrivateModel | NetworkReward) else "output"
    return [f"{each} {k}" for k in outputs]


def state_names(world: PrivateWorld) -> list[str]:
    """What coordinates of states are called."""
    return _told("coordinate", world.spaces.state_names)


def action_names(world: PrivateWorld) -> list[str]:
    """What actions of the list are called, or else the numbers that an action is."""
    return _told("action", world.spaces.action_names)


def _told(kind: str, names: tuple[str, ...]) -> list[str]:
    """Names that are numbers would be taken for values: they are told with their place."""

    def told(place: int, name: str) -> str:
        if not _is_number(name):
            return name
        return f"{kind} {place}" if name == str(place) else f"{kind} {place} ({name})"

    return [told(*each) for each in enumerate(names)]


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def measure_of(function: Publishable) -> str:
    """What an axis with these numbers is called."""
    if isinstance(function, PrivateWorld):
        return "expected next state"
    if isinstance(function, PrivatePolicy | PrivateNetwork) and function.output != "values":
        return "log-probability" if function.output == "log-probabilities" else "action taken"
    return "released value"
