"""`quietq world`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import quietq as qq
from quietq.cli.app import answer, number
from quietq.cli.ledger import open_account
from quietq.cli.options import JSON, Options, add_command, option
from quietq.cli.releasing import (
    NOTHING_SPENT,
    PROMISE,
    check_outputs,
    counts_in_words,
    draw,
    plain,
    publish,
    reading,
    require,
    results,
    warn_of_rows,
)
from quietq.cli.session_options import SESSIONS, read_sessions

if TYPE_CHECKING:
    from quietq.mechanisms import PrivateWorld

OPTIONS: Options = {
    **{name: one for name, one in SESSIONS.items() if name != "propensity"},
    "next_state": option(
        list[str], "Column of the next state, once per coordinate; default: the state of the episode's next row.",
        metavar="COLUMN",
    ),
    "action": option(
        list[str], "Column that says what was done; once per coordinate where actions are numbers; default action.",
        metavar="COLUMN",
    ),
    "actions": option(
        list[str], "Their public list: a file with one name per line, or once per action. This or --action-box.",
        metavar="FILE",
    ),
    "action_box": option(
        list[str], "Where actions lie that are numbers: once for all coordinates, or once for each; public.",
        metavar="LOW HIGH",
    ),
    "degree": option(int, "Of the polynomials of state and action that changes of the state are made of; default 1."),
    **PROMISE,
    **results("world"),
    **JSON,
}  # fmt: skip


def world(values: dict[str, Any]) -> None:
    as_json, check, given = values.pop("json", False), values.pop("check", False), dict(values)
    files, plot = values.get("files", []), values.pop("plot", None)
    model = qq.WorldModel(**{name: values.pop(name) for name in ("degree",) if name in values})
    if check:
        sessions = read_sessions(values)
        _warn_of_bad_rows(sessions)
        model.feature_map(sessions.spaces)  # refused now rather than later
        counts = sessions.not_private
        return answer(as_json, {"not_private": counts}, NOTHING_SPENT, counts_in_words(counts))
    require("A private world needs", values, "epsilon", "delta", "out")
    budget, out = qq.Budget(values.pop("epsilon"), values.pop("delta")), values.pop("out")
    account = open_account(values.pop("ledger", None), values.pop("source", None), "world")
    check_outputs(files, out, plot)
    with reading("sessions") as (told, say):
        sessions = read_sessions(values, progress=told)
        _warn_of_bad_rows(sessions)
        say("Making the world private")
        private = qq.privatise(sessions, budget, world=model, account=account)
    name = publish(private, out)
    names = given.get("state", ["state"])
    plot = draw(plot, partial(_plot, private, names))
    record = {
        **_record(private), "certificate": private.certificate.to_dict(), "out": str(out), "hash": name,
        "plot": None if plot is None else str(plot), "options": plain({**given, "files": [*map(str, files)]}),
        "not_private": sessions.not_private,
    }  # fmt: skip
    written = f"\nMay be published: {out}" + ("" if plot is None else f" and {plot}")
    counts = counts_in_words(sessions.not_private)
    answer(as_json, record, *_in_words(private, names), "", private.certificate, written, counts)


def _record(private: "PrivateWorld") -> dict[str, Any]:
    from quietq.cli.report.world_picture import spreads

    told = {name: getattr(private, name) for name in ("go", "missed", "missed_error", "reward_error")}
    moved = {name: column.tolist() for name, column in spreads(private)._asdict().items()}
    return {**told, "spreads": {"coordinates": list(private.moved), **moved}}


def _in_words(private: "PrivateWorld", names: list[str]) -> list[str]:
    """What was released, for whoever has to decide whether to train in it."""
    from quietq.cli.report.world_picture import spreads
    from quietq.mechanisms.private_world import GO

    verdict = "GO" if private.go else "NO GO"
    lines = [
        f"{verdict}: people's own episodes, played again in the released dynamics, end {number(private.missed, 2)} off "
        f"(0 is exact, 1 useless, below {GO:g} is go), with noise of deviation {number(private.missed_error, 2)}."
    ]
    found = spreads(private)
    for place, i in enumerate(private.moved):
        noise, residual = (number(float(one[place]), 2) for one in (found.noise, found.residual))
        lines.append(
            f"Steps of {names[i]}: noise moves what is expected by about {noise}; people's own scatter around it by "
            f"{residual}."
        )
    low, high = private.spaces.low, private.spaces.high
    if private.reward is not None:
        error = number(private.reward_error, 2)
        lines.append(f"Rewards, from {low:g} to {high:g}: noise may have moved them by about {error}.")
    lines.append("Episodes end by themselves as people's did." if private.ends is not None else "Episodes never end.")
    return lines


def _warn_of_bad_rows(sessions: "qq.Sessions") -> None:
    counts, people = sessions.not_private, sessions.count
    rows, steps, present = counts["rows"], counts["transitions"], counts["people_present"]
    whole = "check columns, --step, --every, --actions, and where next states are"
    outside = [
        (counts.get(f"clipped_{what}s", 0), what.replace("_", " "), option)
        for what, option in (
            ("state", "--box"), ("next_state", "--box"), ("action", "--action-box"), ("reward", "--low and --high")
        )
    ]  # fmt: skip
    warn_of_rows(
        [
            (steps < rows / 3, f"only {steps:,} of {rows:,} rows begin a whole step: {whole}"),
            *((n > rows / 10, f"{n:,} {what}s lie outside {option}: check these") for n, what, option in outside),
            (present < people / 2, f"only {present:,} of {people:,} people have a whole step: check --people"),
        ]
    )


def _plot(private: "PrivateWorld", names: list[str], plot: Path) -> None:
    from quietq.cli.report.world_picture import plot_world

    plot_world(private, plot, names=names)


add_command(
    "world", "Make a world of people's logged sessions private, once: to train in with any RL library.",
    lambda: OPTIONS, world,
)  # fmt: skip
