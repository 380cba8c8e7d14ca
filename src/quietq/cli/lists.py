"""`quietq methods` and `quietq worlds`: what there is to train with, and where."""

from typing import Annotated

import typer

from quietq.cli.app import AsJson, answer, app, show_table
from quietq.registry import METHODS, WORLDS


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods: what they promise and where their noise enters."""
    if as_json:
        shown = ("standing", "noise", "summary")
        listed = [{"name": name} | {word: getattr(entry, word) for word in shown} for name, entry in METHODS.items()]
        return answer(True, {"methods": listed})
    headings = ("name", "standing", "where the noise enters")
    show_table("Methods", headings, [(name, one.standing, one.noise) for name, one in METHODS.items()], headings)
    print("certified: a theorem covers what is released. claimed: the paper's theorem, which does not hold.")
    print("\n".join(f"{name}: {entry.summary}" for name, entry in METHODS.items()))


@app.command()
def worlds(
    people: Annotated[int, typer.Option(help="So many people stand behind the reward, in what is promised.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the worlds to train in, and what must stay hidden there; any Gymnasium id will do too."""
    from quietq.privacy.words import plural
    from quietq.worlds import find_world

    records, lines = [], []
    for name, entry in WORLDS.items():
        world = find_world(name)
        dimension, actions, relation = world.box.dimension, list(world.action_names), str(world.relation(people))
        records.append({"name": name, "gymnasium_id": entry.gymnasium_id, "dimension": dimension, "actions": actions,
                        "relation": relation})  # fmt: skip
        lines.append(f"{name} ({entry.gymnasium_id}): {plural(dimension, 'dimension')}; actions {', '.join(actions)}")
        lines.append(f"    promised to look alike: {relation}")
    answer(as_json, {"worlds": records}, *lines)
