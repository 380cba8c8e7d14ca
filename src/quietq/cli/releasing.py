"""What the commands share that read people's files and release something of them, once."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

import quietq as qq
from quietq.cli.app import warn
from quietq.cli.options import missing, read_names, read_pair, read_pairs, spread_pairs

if TYPE_CHECKING:
    from quietq.released.publishable import Publishable

NOTHING_SPENT = "Nothing was spent, and nothing written."


def read_sessions(
    files: Sequence[Path] | None,
    *,
    people: int | None,
    state: list[str] | None,
    box: list[str] | None,
    action: list[str] | None,
    actions: list[str] | None,
    action_box: list[str] | None = None,
    low: float | None,
    high: float | None,
    step: str | None,
    every: float | None,
    engine: Literal["local", "ray"] | None,
    progress: Callable[[int], None] | None = None,
    **more: object,
) -> "qq.Sessions":
    """Reads people's sessions; of what `more` holds, whatever is None is left to its default."""
    from quietq.feedback.engines import engine_called

    pairs = read_pairs(box)
    acting = read_pairs(action_box, "action_box")
    listed = {} if acting is not None else {"actions": actions}
    if people is None or pairs is None or None in listed.values() or low is None or high is None:
        raise missing("Sessions need", people=people, box=box, **listed, low=low, high=high)
    if not files:
        raise qq.InvalidInput("There must be a file to read: CSV or Parquet, one row per step.")
    state = state or ["state"]
    action = action or ["action"]
    declared: dict[str, object] = {"reward": "reward", "action": action, "state": state}
    declared |= {name: value for name, value in more.items() if value is not None}
    declared["box"] = spread_pairs(pairs, len(state))
    if every is not None and step is None:
        raise missing("--every needs", step=step)
    if step is not None:
        declared["step"] = step if every is None else (step, every)
    if acting is not None and actions is not None:
        raise qq.InvalidInput("There must be --actions, a public list, or else an --action-box, not both.")
    if acting is not None:
        declared["actions"] = spread_pairs(acting, len(action), "action_box")
    elif actions is not None:
        declared["actions"] = read_names(actions, "actions")
        if len(action) > 1:
            raise qq.InvalidInput(f"Actions of a list are in one column: --action must be given once, not {action!r}.")
        declared["action"] = action[0]
    declared["engine"] = engine_called(engine or "local", progress)
    return qq.Sessions.read(files, people=people, low=low, high=high, **declared)  # pyright: ignore[reportArgumentType]


def typed_options(context: typer.Context) -> dict[str, object]:
    """Gives the options and arguments that were typed as JSON has them, but for --json and --check."""
    typed: dict[str, object] = {}
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or name in ("as_json", "check"):
            continue
        if name in ("box", "action_box"):
            value = [read_pair(text, name) for text in value]
        elif isinstance(value, list | tuple):
            value = [str(one) if isinstance(one, Path) else one for one in value]
        typed[name] = str(value) if isinstance(value, Path) else value
    return typed


def counts_in_words(counts: dict[str, int]) -> str:
    told = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in counts.items())
    return f"Not private, for you only: {told}"


def check_outputs(files: Sequence[Path], out: Path, plot: Path | None, policy: Path | None = None) -> None:
    """Refuses, before anything is read or spent, results that cannot be written, or only over what is needed."""
    from quietq.released.container import check_target

    sources = {path.resolve() for path in files}
    named = {"out": out, "plot": plot, "policy": policy}
    results = {name: path for name, path in named.items() if path is not None}
    if len({*sources, *(path.resolve() for path in results.values())}) < len(sources) + len(results):
        raise qq.InvalidInput(f"{', '.join(results)} and the files to read must be different files.")
    for name, path in results.items():
        if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise qq.InvalidInput(f"{name} must name a file in a folder that can be written to, not {str(path)!r}.")
        with tempfile.TemporaryFile(dir=path.parent):  # some folders only say that they can be written to
            pass
    check_target(out)
    if policy is not None:
        check_target(policy)
    if plot is not None:
        from quietq.cli.report.look import checked  # says what to install, if it has to, before anything is spent

        checked(plot)


def publish(released: "Publishable", out: Path) -> str:
    """Writes a release that was paid for; if that fails, says so."""
    if out.exists():
        warn(f"{out} is overwritten by a new release; if the old one was shared, budgets add up.")
    try:
        return qq.publish(released, out)
    except (OSError, qq.QuietqError) as error:
        raise qq.QuietqError(f"The budget was spent, but the release could not be written to {out}: {error}") from error


def draw(plot: Path | None, picture: Callable[[Path], None]) -> Path | None:
    """Draws a picture, and gives its file if there is one; the release stands without it."""
    if plot is None:
        return None
    try:
        picture(plot)
    except (OSError, qq.QuietqError) as error:
        warn(f"the release is written, but its picture is not: {error}")
        return None
    return plot
