"""What the commands share that read people's files and release something of them, once."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import quietq as qq
from quietq.cli.app import answer, warn
from quietq.cli.options import given, missing, one_or_list, read_pairs

if TYPE_CHECKING:
    from quietq.released.publishable import Publishable


def read_sessions(
    options: Mapping[str, Any],
    *,
    next_state: Sequence[str] | None = (),
    progress: Callable[[int], None] | None = None,
) -> "qq.Sessions":
    """Reads people's sessions by the options of a command, which its context has by name (`context.params`).

    Args:
        options: What was typed, or stood in a --config file; None is what was not.
        next_state: Columns of the next state; None finds it in the next row, and none at all leaves it out.
        progress: Hears how many rows were read.

    """
    from quietq.feedback.buckets import engine_called

    people, low, high, step = (options[name] for name in ("people", "low", "high", "step"))
    pairs, acting = read_pairs(options["box"]), read_pairs(options.get("action_box"), "action_box")
    if acting and options["actions"]:
        raise qq.InvalidInput("There must be --actions, a public list, or else an --action-box, not both.")
    declared = one_or_list(options["actions"]) if options["actions"] else acting
    if people is None or pairs is None or declared is None or low is None or high is None:
        raise missing("Sessions need", people=people, box=pairs, actions=declared, low=low, high=high)
    if options["every"] is not None and step is None:
        raise missing("--every needs", step=step)
    if not options["files"]:
        raise qq.InvalidInput("There must be a file to read: CSV or Parquet, one row per step.")
    columns = {name: options.get(name) for name in ("person", "episode", "end", "cut", "propensity")}
    return qq.Sessions.read(
        options["files"],
        people=people,
        state=options["state"] or "state",
        next_state=next_state,
        box=pairs,
        action=one_or_list(options["action"] or ["action"]),
        actions=declared,
        low=low,
        high=high,
        step=step if options["every"] is None else (step, options["every"]),
        reward=options["reward"] or "reward",
        engine=engine_called(options["engine"] or "local", progress),
        **given(**columns),  # pyright: ignore[reportArgumentType]
    )


def counts_in_words(counts: dict[str, int]) -> str:
    told = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in counts.items())
    return f"Not private, for you only: {told}"


def tell_counts(counts: dict[str, int], as_json: bool) -> None:
    """Prints what --check found in the rows."""
    answer(as_json, {"not_private": counts}, "Nothing was spent, and nothing written.", counts_in_words(counts))


def check_outputs(files: Sequence[Path], **named: Path | None) -> None:
    """Refuses, before anything is read or spent, results that cannot be written, or only over what is needed."""
    from quietq.released.release_file import check_target

    sources = {path.resolve() for path in files}
    results = {name: path for name, path in named.items() if path is not None}
    if len({*sources, *(path.resolve() for path in results.values())}) < len(sources) + len(results):
        raise qq.InvalidInput(f"{', '.join(results)} and the files to read must be different files.")
    for name, path in results.items():
        if name == "plot":
            from quietq.cli.report.look import checked  # says what to install, if it has to

            checked(path)
        else:
            check_target(path)
        try:
            tempfile.TemporaryFile(dir=path.parent).close()  # some folders only say that they can be written to
        except OSError as error:
            raise qq.InvalidInput(
                f"{name} must name a file in a folder that can be written to, not {str(path)!r}."
            ) from error


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
