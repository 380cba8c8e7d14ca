"""The options by which commands read people's sessions."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import quietq as qq
from quietq.cli.options import Options, option
from quietq.cli.releasing import NEEDED, check_pairs, read_boxes, read_names, require

SESSIONS: Options = {
    "files": Annotated[list[Path] | None, typer.Argument(metavar="FILES", help="CSV or Parquet, one row per step.")],
    "people": option(int, "How many people there are; public, not counted from any rows." + NEEDED),
    "person": option(str, "Column that says who; default person.", metavar="COLUMN"),
    "episode": option(str, "Column that tells a person's episodes apart.", metavar="COLUMN"),
    "step": option(str, "Column of the steps' order; default: the order of rows.", metavar="COLUMN"),
    "every": option(float, "By how much it grows from one step to the next; default 1."),
    "state": option(list[str], "Column of the state; give it once per coordinate; default state.", metavar="COLUMN"),
    "box": option(
        list[str], "Where states lie: once for all coordinates, or once for each, in order; public." + NEEDED,
        metavar="LOW HIGH",
    ),
    "action": option(str, "Column that says what was done; default action.", metavar="COLUMN"),
    "actions": option(
        list[str], "Their public list: a file with one name per line, or once per action." + NEEDED, metavar="FILE"
    ),
    "reward": option(str, "Column that says how good that was; default reward.", metavar="COLUMN"),
    "low": option(float, "Smallest reward of a step; public." + NEEDED),
    "high": option(float, "Largest reward of a step; public." + NEEDED),
    "end": option(str, "Column that is 1 where an episode ended by itself.", metavar="COLUMN"),
    "cut": option(str, "Column that is 1 where an episode was cut off.", metavar="COLUMN"),
    "propensity": option(str, "Column of the probability with which the action was chosen.", metavar="COLUMN"),
    "engine": option(Literal["local", "ray"], "Where people are added up; default local."),
}  # fmt: skip


def read_sessions(given: dict[str, Any], progress: Callable[[int], None] | None = None, **more: Any) -> "qq.Sessions":
    """Takes what concerns sessions out of `given`, and reads them; `progress` is told how many rows were read."""
    from quietq.feedback.engines import engine_called

    told = {name: given.pop(name) for name in (*SESSIONS, "next_state", "action_box") if name in given}
    check_pairs(told)
    listed = () if "action_box" in told else ("actions",)
    require("Sessions need", told, "people", "box", *listed, "low", "high")
    files = told.pop("files", [])
    if not files:
        raise qq.InvalidInput("There must be a file to read: CSV or Parquet, one row per step.")
    states, acting = told.pop("state", ["state"]), told.pop("action", "action")
    columns = [acting] if isinstance(acting, str) else acting
    box = read_boxes("box", told.pop("box"), len(states))
    if "every" in told:
        require("--every needs", told, "step")
        told["step"] = told["step"], told.pop("every")
    if "action_box" in told:
        if "actions" in told:
            raise qq.InvalidInput("There must be --actions, a public list, or else an --action-box, not both.")
        told["actions"] = read_boxes("action_box", told.pop("action_box"), len(columns))
    elif "actions" in told:
        told["actions"] = read_names("actions", told["actions"])
        if len(columns) > 1:
            raise qq.InvalidInput(f"Actions of a list are in one column: --action must be given once, not {columns!r}.")
        acting = columns[0]
    declared = {"action": acting, "reward": "reward", "state": states, "box": box}
    engine = engine_called(told.pop("engine", "local"), progress)
    return qq.Sessions.read(files, engine=engine, **{**declared, **told, **more})
