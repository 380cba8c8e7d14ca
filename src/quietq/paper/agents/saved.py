"""What the file of an agent says of its training: nothing of it is believed before it was checked."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.paper.agents.hyper_parameters import options_of
from quietq.paper.agents.in_loop_method import InLoopMethod, UnitNoise
from quietq.paper.agents.method import EnvironmentSpaces, Method
from quietq.paper.agents.reward_learner import RewardLearner
from quietq.privacy import InvalidInput, PrivacyWarning, SupBall
from quietq.privacy.checks import count, shown
from quietq.privacy.norms import sensitivity
from quietq.released.private_network import PrivateNetwork
from quietq.worlds.environment import WORLDS

MOST_BYTES = 2**30  # of the noise of one run in float32
MOST_STEPS = 10**8


def find_name(world: str | None) -> str:
    """The world that a file names, if it is one of quietq's: a name of Gymnasium's could import any module."""
    if world is None:
        raise InvalidInput("This agent was trained in an environment without a name: give it as `world`.")
    if world not in WORLDS:
        raise InvalidInput(f"The file names a world that is not one of quietq's, {shown(world)}.")
    return world


def method_from(settings: Mapping[str, Any]) -> Method:
    """A method of these hyper-parameters, without budget or data: enough to answer with."""
    name = settings.get("method")
    from quietq.paper.methods import METHODS  # which hold the agents that this module belongs to

    kind = METHODS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidInput(f"There is no method called {shown(name)}.")
    known = {name: settings[name] for name in options_of(kind) if name in settings}
    if unknown := sorted(set(settings) - set(known) - {"method", "private"}):
        raise InvalidInput(f"The file's settings name what {shown(name)} does not have: {shown(unknown[0])}.")
    if str(known.get("optimiser")).startswith("GradientTransformation"):  # an object; answering needs none
        known.pop("optimiser")
    try:
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in known.items()})
    except InvalidInput:
        raise
    except Exception as error:  # of whatever kind: a setting that nobody thought of may fail anywhere
        raise InvalidInput("The file's settings are not those of an agent that was saved.") from error


def check_form(settings: Mapping[str, Any], network: PrivateNetwork) -> None:
    """Settings that speak of the network must be its own; before anything is built by them."""
    widths = [weights.shape[1] for weights in network.weights[:-1]]
    for name, found in (("network", network.form), ("widths", widths if network.form == "mlp" else None)):
        if network.form != "grid" and found is not None and settings.get(name, found) != found:
            raise InvalidInput(f"The setting {name!r} in the file is not that of its network.")


def check_promise(method: Method, network: PrivateNetwork) -> None:
    """A method's agents have the certificates that the method gives for these settings, and no other."""
    certificate, training = network.certificate, network.training or {}
    if certificate.standing != "certified" or isinstance(method, RewardLearner):  # which has its source's
        return
    if not isinstance(method, InLoopMethod) or certificate.method != method.name:
        raise InvalidInput(f"A certificate of {shown(certificate.method)} does not belong to {method.name!r}.")
    steps = count("The file's steps", training["steps"], most=MOST_STEPS)
    spaces = EnvironmentSpaces(
        network.box, network.actions, count("The file's episode", training["episode"], most=MOST_STEPS)
    )
    assert certificate.relation is not None
    assert certificate.budget is not None
    relation = certificate.relation
    ball = SupBall(relation.sup_radius, people=relation.people)  # all that these methods see of it
    again = replace(method, relation=ball, budget=certificate.budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        again.check(spaces, steps)
        noise = again.draw(spaces, steps, _Bounded())
    norm = again.norm(spaces, steps, noise)
    found = [(query.norm, query.sensitivity) for query in certificate.queries]
    if found != [(norm, sensitivity(norm, relation))]:
        raise InvalidInput("The file's certificate is not the one that its method gives for its settings and steps.")
    if not set(again.conditions(steps)) <= set(certificate.assumptions):
        raise InvalidInput("The file's certificate does not state what its method does with these settings.")
    if certificate.sigma is None or certificate.sigma < float(noise.scale) * float(noise.normals.min()):
        raise InvalidInput("The file's certificate states less noise than its method draws for its settings and steps.")


class _Bounded(UnitNoise):
    """No more of it than a training could have held."""

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        if 4 * math.prod(shape) > MOST_BYTES:
            raise InvalidInput("The file's steps and settings ask for more noise than a training can hold.")
        return np.broadcast_to(1.0, shape)
