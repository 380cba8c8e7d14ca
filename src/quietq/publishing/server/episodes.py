"""Episodes in a released world, drawn from a seed: the same question gets the same answer from every worker.

All of it is computed from released numbers, so watching costs no privacy, and no request takes more steps than
`MOST_STEPS`. What was declared as known when the world was made is a function, which no file holds: rewards are then
left out, episodes do not end by themselves, or begin at the mean of people's states.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from fastapi import HTTPException
from jaxtyping import Float
from pydantic import BaseModel, BeforeValidator, Field, FiniteFloat

from quietq.mechanisms.private_network import observed
from quietq.mechanisms.private_world import PrivateWorld
from quietq.mechanisms.world_model import WorldModel
from quietq.noise.box import Box
from quietq.privacy.words import plural
from quietq.publishing.server.catalogue import ID_DIGITS, Catalogue, Served
from quietq.publishing.server.stages import MOVES, first_state

MOST_STEPS, LARGEST_SEED = 500, 2**32 - 1
RANDOM = "random"
_NO_WORLD = "This release is no world, and only in a world can anybody act: ask for its values."
_NO_MOVES = (
    "How some coordinates of this world move was declared as known when it was made, and a file holds no functions: "
    "load it, give them by with_known, and act in it by env."
)
Act = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _whole(number: Any) -> Any:
    """JSON has one kind of number: 2.0 is as whole as 2."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


class RolloutBody(BaseModel, extra="forbid", strict=True):
    """Who acts, for how long, from where, and which draw of chance."""

    policy: Annotated[str | int | list[FiniteFloat], BeforeValidator(_whole)] = Field(
        default=RANDOM,
        description="`random`, the id of a served agent, or the one action to take at every step: its number, or its "
        "own numbers.",
    )
    steps: Annotated[int, BeforeValidator(_whole)] = Field(default=200, ge=1, le=MOST_STEPS)
    seed: Annotated[int, BeforeValidator(_whole)] = Field(default=0, ge=0, le=LARGEST_SEED)
    start: list[FiniteFloat] | None = Field(
        default=None, description="The first state; drawn as people's first states lie if it is left out."
    )


class Episode(NamedTuple):
    """What happened, in the world's own units."""

    states: Float[np.ndarray, "moments d"]
    actions: np.ndarray
    rewards: Float[np.ndarray, " steps"] | None
    ending: str
    reason: str


def schema(catalogue: Catalogue) -> dict[str, Any]:
    """What the OpenAPI document says of a body; exact if there is one world."""
    body = RolloutBody.model_json_schema()
    worlds = [entry for entry in catalogue.values() if entry.record.stage is not None]
    stages = [entry.record.stage for entry in worlds if entry.record.stage is not None]
    named = {"type": "string", "enum": [RANDOM, *sorted({id for stage in stages for id in stage.policies})]}
    policies: list[dict[str, Any]] = [named]
    if counts := [stage.actions for stage in stages if stage.actions is not None]:
        policies.append({"type": "integer", "minimum": 0, "maximum": max(counts) - 1})
    if boxes := [stage.action_box for stage in stages if stage.action_box is not None]:
        policies.append(_points([(side.low, side.high) for side in boxes]))
    body["properties"]["policy"] |= {"anyOf": policies}
    if worlds:
        sides = [(entry.record.box.low, entry.record.box.high) for entry in worlds]
        body["properties"]["start"]["anyOf"] = [_points(sides), {"type": "null"}]
    return body


def _points(sides: list[tuple[list[float], list[float]]]) -> dict[str, Any]:
    number = {"type": "number", "minimum": min(min(low) for low, _ in sides),
              "maximum": max(max(high) for _, high in sides)}  # fmt: skip
    sizes = [len(low) for low, _ in sides]
    return {"type": "array", "items": number, "minItems": min(sizes), "maxItems": max(sizes)}


def play(entry: Served, agent: Served | None, asked: RolloutBody) -> Episode:
    """One episode; `agent` acts, if there is one."""
    world, stage = entry.release.function, entry.record.stage
    if not isinstance(world, PrivateWorld) or stage is None:
        raise HTTPException(409, _NO_WORLD)
    if MOVES in stage.unknown:
        raise HTTPException(409, _NO_MOVES)
    act = _simple(world, asked.policy) if agent is None else _by_release(agent)
    generator = np.random.default_rng(asked.seed)
    simulator = _simulator(world)
    if asked.start is None:
        state = simulator.start(generator.random(simulator.draws))
    else:
        state = (_inside("start", asked.start, world.box) - np.array(world.box.low)) / np.array(world.box.width)
    states, actions, rewards, ending = [simulator.raw(state)], [], [], "steps"
    acting = world.spaces.action_box
    for _ in range(asked.steps):
        action = act(states[-1], generator)
        unit = action if acting is None else np.clip((action - np.array(acting.low)) / np.array(acting.width), 0, 1)
        found = simulator.step(state, unit, generator.random(simulator.draws))
        state = np.asarray(found.states)
        states.append(simulator.raw(state))
        actions.append(action)
        rewards.append(float(found.rewards))
        if generator.random() < float(found.ends):
            ending = "ended"
            break
        if bool(found.halted):
            ending = "halted"
            break
    worth = None if "reward" in stage.unknown else np.array(rewards)
    return Episode(np.array(states), np.array(actions), worth, ending, _reason(ending, len(actions), simulator.halt))


@lru_cache(maxsize=64)
def _simulator(world: PrivateWorld) -> Any:
    """With stand-ins for what is not in the file."""
    from quietq.worlds.private_world import Simulator  # loads Gymnasium, which no other release needs

    stand_ins: dict[str, Callable[..., np.ndarray]] = {
        "reward": lambda states, actions, after: np.zeros(states.shape[:-1]),
        "end": lambda after: np.zeros(after.shape[:-1], bool),
        "start": lambda draws: np.broadcast_to(first_state(world), draws.shape),
    }
    return Simulator(world.with_known(WorldModel(**{name: stand_ins[name] for name in world.known})))  # type: ignore[arg-type]


def _simple(world: PrivateWorld, asked: str | int | list[float]) -> Act:
    acting, actions = world.spaces.action_box, world.spaces.actions
    if isinstance(asked, str):
        if acting is None:
            return lambda state, generator: np.asarray(generator.integers(world.spaces.actions or 1))
        return lambda state, generator: generator.uniform(acting.low, acting.high)
    if acting is None:
        assert actions is not None
        if not isinstance(asked, int) or not 0 <= asked < actions:
            raise HTTPException(422, f"policy must be the number of an action here, from 0 to {actions - 1}.")
        return lambda state, generator: np.asarray(asked)
    if isinstance(asked, int):
        detail = f"policy must be an action's numbers here: a list of {plural(acting.dimension, 'number')}."
        raise HTTPException(422, detail)
    constant = _inside("policy", asked, acting)
    return lambda state, generator: constant


def agent_in(catalogue: Catalogue, entry: Served, asked: str | int | list[float]) -> Served | None:
    """The served agent that is asked to act, if it is one."""
    if entry.record.stage is None or not isinstance(asked, str) or asked == RANDOM:
        return None
    agent = catalogue.get(asked[:ID_DIGITS])
    if agent is None or agent.record.id not in entry.record.stage.policies or not agent.record.hash.startswith(asked):
        fitting = ", ".join([RANDOM, *entry.record.stage.policies][:9])
        raise HTTPException(422, f"policy must be one that fits this world, {fitting}, or else an action.")
    return agent


def _by_release(agent: Served) -> Act:
    release = agent.release
    return lambda state, generator: release.policy(observed(state[None], release.box))[0]


def _inside(name: str, given: list[float], box: Box) -> Float[np.ndarray, " d"]:
    if len(given) != box.dimension or not all(
        low <= one <= high for one, low, high in zip(given, box.low, box.high, strict=True)
    ):
        raise HTTPException(422, f"{name} must be {plural(box.dimension, 'number')} within {box}.")
    return np.array(given, np.float64)


def _reason(ending: str, steps: int, halt: float) -> str:
    taken = plural(steps, "step")
    if ending == "ended":
        return f"The episode ended after {taken}, by the chance of an end that was learned from people."
    if ending == "halted":
        return (
            f"Halted after {taken}, where nobody was: {halt:g} deviations of people's states away from their mean or "
            "more, so the release says nothing of what comes next."
        )
    return f"Stopped after {taken}, as many as were asked for."
