"""`quietq reconstruct`."""

import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import quietq as qq
from quietq.cli import run_directory as run
from quietq.cli.app import AsJson, app
from quietq.cli.settings import world_of
from quietq.privacy.certificate import Certificate
from quietq.release import open_release
from quietq.worlds.environment import world_reward
from quietq.worlds.world import World

if TYPE_CHECKING:
    from quietq.audit.reconstruct import Attack, Reconstruction

REWARD_SUFFIX, PRIVATE_REWARD = ".qq", "private reward"
CAVEAT = (
    "The comparison is with the {}'s own reward, and holds only if the release was made from that reward: made from "
    "ratings or any other, these numbers say nothing of how well it is hidden."
)
ALONE = (
    "There is nothing to compare with: the file does not say which reward it was made from. If it was a world's own, "
    "name that world with --world."
)


@app.command()
def reconstruct(
    release: Annotated[
        Path, typer.Argument(help="An agent (agent.npz, or its run's folder) or a private reward (.qq).")
    ],
    world: Annotated[
        str | None,
        typer.Option(help="Whose reward to compare with; default: the agent's own world, and none for a reward."),
    ] = None,
    points: Annotated[
        int | None, typer.Option(help="Points of the grid a coordinate; default 65, or 13 in two.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="A picture of what was recovered (NOT PRIVATE), .png or .svg.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What a thief learns of the reward from a release: attacks, measured against the world's own reward."""
    if plot is not None:
        from quietq import report  # says what to install, if it has to, before anything is computed

        report.require()
        if plot.suffix.lower() not in (".png", ".svg") or not plot.parent.is_dir():
            raise qq.InvalidInput(f"plot must name a .png or .svg file in a folder that exists, not {str(plot)!r}.")
    file = _file(release)
    if file.suffix == REWARD_SUFFIX and world is None:
        if plot is not None or points is not None:
            raise qq.InvalidInput(
                "--plot and --points need --world, the world whose own reward this one was made from."
            )
        _show_alone(open_release(file).certificate, as_json)
        return
    kind, certificate, there, found = _attacked(file, world, points)
    if plot is not None:
        from quietq.report.reconstruction import plot_reconstruction

        heading = f"what a thief learns of the {there.name}'s reward, first of {len(found)} draws"
        plot_reconstruction(found[0], plot, certificate=certificate, title=None if len(found) == 1 else heading)
    record = {
        "release": kind,
        "world": there.name,
        "standing": certificate.standing,
        "points": found[0].grid.points,
        "draws": len(found),
        "attacks": [_record(same) for same in zip(*(one.attacks for one in found), strict=True)],
        "caveat": CAVEAT.format(there.name),
        "not_private": {"constant_rmse": found[0].constant_error},
    }
    if found[0].planned is not None:
        record["not_private"]["planned_score"] = found[0].planned
    if as_json:
        print(json.dumps(record))
        return
    _show(record)


def _file(release: Path) -> Path:
    """The file to attack, which is there."""
    file = release / run.AGENT if release.is_dir() else release
    if not file.is_file():
        what = f"{run.AGENT} in the folder" if release.is_dir() else "file"
        raise qq.InvalidInput(f"There is no {what} {str(release)!r} to attack.")
    return file


def _attacked(
    file: Path, name: str | None, points: int | None
) -> tuple[str, Certificate, World, list["Reconstruction"]]:
    """The kind of release, its certificate, its world and the attacks on each of its draws."""
    from quietq.audit.reconstruct import ATTACKS, ON_POLICIES, discount  # slow to import: other commands go without
    from quietq.audit.reconstruct import reconstruct as attack_all

    if file.suffix == REWARD_SUFFIX and name is not None:
        release, world = open_release(file), world_of(name)
        if release.what == "agent":
            raise qq.InvalidInput(
                f"{str(file)!r} does not say how its agent was trained, which the attack needs: give its agent.npz."
            )
        found = [attack_all(release.function, world, truth=world_reward(world), points=points)]
        return PRIVATE_REWARD, release.certificate, world, found
    from quietq.learning import agent_file

    record, leaves = agent_file.read(file)
    own = record.get("world")
    if own is None:
        raise qq.InvalidInput("Only agents of quietq's own worlds can be attacked here, and this one has another.")
    agent, world = agent_file.restore(qq.Agent, record, leaves, None), world_of(own)
    if name is not None and world_of(name).name != own:
        raise qq.InvalidInput(
            f"The agent was trained in the {own}, not in the {world_of(name).name}: leave --world out."
        )
    gamma = discount(agent.method.settings(), world.steps)
    # Seeds of one release are averaged; simulated draws are releases of their own.
    draws = int(record["trained"]["draws"])
    members = [None] if draws == 1 else range(agent.members)
    # Probabilities are no values: there is no Bellman equation to turn round.
    attacks = ON_POLICIES if agent.method.name == "actor-critic" else ATTACKS
    truth = world_reward(world)
    found = [
        attack_all(
            lambda states, member=member: agent.q_values(states, member),
            world, gamma, truth=truth, points=points, attacks=attacks,
        )
        for member in members
    ]  # fmt: skip
    return f"agent ({agent.method.name})", agent.certificate, world, found


def _show_alone(certificate: Certificate, as_json: bool) -> None:
    """A private reward of which nobody said what it was made from."""
    if as_json:
        record = {"release": PRIVATE_REWARD, "world": None, "standing": certificate.standing, "points": None}
        print(json.dumps(record | {"draws": 1, "attacks": [], "caveat": ALONE, "not_private": None}))
        return
    print(f"The release: {PRIVATE_REWARD}. Its standing: {certificate.standing}. {ALONE}")


def _record(same: tuple["Attack", ...]) -> dict[str, Any]:
    """One attack on all draws: means, and each draw's correlation if there are several."""
    judged = [attack.not_private.to_dict() for attack in same if attack.not_private is not None]
    means: dict[str, Any] = {name: statistics.fmean(one[name] for one in judged) for name in judged[0]}
    if len(judged) > 1:
        means["correlations"] = [one["correlation"] for one in judged]
    return {"name": same[0].name, "blind_to": list(same[0].blind_to), "not_private": means}


def _show(record: dict[str, Any]) -> None:
    """The same as a table."""
    many = f", means of {record['draws']} simulated draws" if record["draws"] > 1 else ""
    table = Table(
        title=f"NOT PRIVATE: the {record['world']}'s reward, as recovered from this {record['release']}{many}"
    )
    for heading in ("attack", "blind to", "correlation", "error (rms)", "relative error"):
        table.add_column(heading, justify="left" if heading in ("attack", "blind to") else "right")
    for attack in record["attacks"]:
        numbers = [attack["not_private"][name] for name in ("correlation", "rmse", "relative_error")]
        table.add_row(attack["name"], ", ".join(attack["blind_to"]) or "-", *(f"{number:.3f}" for number in numbers))
    Console().print(table)
    print(
        f"The release's standing: {record['standing']}. A relative error of 1 is that of guessing the mean everywhere."
    )
    if "planned_score" in record["not_private"]:
        score = record["not_private"]["planned_score"]
        print(f"Planning on it scores {score:.3f}, where random actions have 0 and the best policy 1.")
    print(record["caveat"])
    print("A private release is meant to tell what people want together; what it hides is any one of them.")
