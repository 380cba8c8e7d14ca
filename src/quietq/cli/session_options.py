"""The options by which commands read people's sessions."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import quietq as qq
from quietq.cli.options import Options, dashed, option, read_pair

NEEDED = "  [required]"
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


def read_sessions(given: dict[str, Any], **more: Any) -> qq.Sessions:
    """Takes what concerns sessions out of `given`, and reads them."""
    told = {name: given.pop(name) for name in SESSIONS if name in given}
    if missing := [name for name in ("people", "box", "actions", "low", "high") if name not in told]:
        raise qq.InvalidInput(f"Sessions need {dashed(*missing)}.")
    files, count = told.pop("files", []), told.pop("people")
    if not files:
        raise qq.InvalidInput("There must be a file to read: CSV or Parquet, one row per step.")
    states, boxes = told.pop("state", ["state"]), [read_pair(text) for text in told.pop("box")]
    if len(boxes) not in (1, len(states)):
        raise qq.InvalidInput(
            f"--box must be given once, for all coordinates, or once for each of the {len(states)}, in their order, "
            f"not {len(boxes)} times."
        )
    actions = told.pop("actions")
    declared = {"action": "action", "reward": "reward", "actions": actions[0] if len(actions) == 1 else actions}
    box = boxes * len(states) if len(boxes) == 1 else boxes
    return qq.Sessions.read(files, state=states, box=box, count=count, **{**declared, **told, **more})
