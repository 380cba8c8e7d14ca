"""`quietq paper reconstruct`."""

from pathlib import Path
from typing import Annotated, Any

import typer

import quietq as qq
from quietq.cli import folder
from quietq.cli.app import AsJson, answer, show_table
from quietq.cli.paper_group import paper

CAVEAT = (
    "The comparison is with the {}'s own reward, and holds only if the release was made from that reward: made from "
    "ratings or any other, these numbers say nothing of how well it is hidden."
)
ALONE = (
    "There is nothing to compare with: the file does not say which reward it was made from. If it was a world's own, "
    "name that world with --world."
)


@paper.command()
def reconstruct(
    release: Annotated[
        Path, typer.Argument(help="An agent (agent.qq, or its run's folder) or a private reward (.qq).")
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
    """Tell what a thief learns of the reward from a release: attacks, measured against the world's own reward."""
    if plot is not None:
        from quietq.cli import report  # says what to install, if it has to, before anything is computed

        report.require()
        if plot.suffix.lower() not in (".png", ".svg") or not plot.parent.is_dir():
            raise qq.InvalidInput(f"plot must name a .png or .svg file in a folder that exists, not {str(plot)!r}.")
    file = release / folder.AGENT if release.is_dir() else release
    if not file.is_file():
        what = f"{folder.AGENT} in the folder" if release.is_dir() else "file"
        raise qq.InvalidInput(f"There is no {what} {str(release)!r} to attack.")
    from quietq.released.release_file import open_release

    opened = open_release(file)
    if opened.what == "function" and world is None:
        if plot is not None or points is not None:
            raise qq.InvalidInput(
                "--plot and --points need --world, the world whose own reward this one was made from."
            )
        return _show_alone(opened.certificate.standing, as_json)
    from quietq.paper.attacks.reconstruct import attack_agent, attack_reward

    attack = attack_agent(file, world, points) if opened.what == "agent" else attack_reward(file, str(world), points)
    if plot is not None:
        from quietq.cli.report.pictures import plot_reconstruction

        several = f"what a thief learns of the {attack.world.name}'s reward, first of {len(attack.draws)} draws"
        title = several if len(attack.draws) > 1 else None
        plot_reconstruction(attack.draws[0], plot, certificate=attack.certificate, title=title)
    record = attack.record() | {"caveat": CAVEAT.format(attack.world.name)}
    if as_json:
        return answer(True, record)
    _show(record)


def _show_alone(standing: str, as_json: bool) -> None:
    """A private reward of which nobody said what it was made from."""
    record = {"release": "private reward", "world": None, "standing": standing, "points": None, "draws": 1}
    record |= {"attacks": [], "caveat": ALONE, "not_private": None}
    answer(as_json, record, f"The release: private reward. Its standing: {standing}. {ALONE}")


def _show(record: dict[str, Any]) -> None:
    many = f", means of {record['draws']} simulated draws" if record["draws"] > 1 else ""
    measured = {"correlation": "correlation", "error (rms)": "rmse", "relative error": "relative_error"}
    rows = [
        (
            one["name"],
            ", ".join(one["blind_to"]) or "-",
            *(f"{one['not_private'][name]:.3f}" for name in measured.values()),
        )
        for one in record["attacks"]
    ]
    title = f"NOT PRIVATE: the {record['world']}'s reward, as recovered from this {record['release']}{many}"
    show_table(title, ("attack", "blind to", *measured), rows, ("attack", "blind to"))
    standing, score = record["standing"], record["not_private"].get("planned_score")
    print(f"The release's standing: {standing}. A relative error of 1 is that of guessing the mean everywhere.")
    if score is not None:
        print(f"Planning on it scores {score:.3f}, where random actions have 0 and the best policy 1.")
    print(record["caveat"])
    print("A private release is meant to tell what people want together; what it hides is any one of them.")
