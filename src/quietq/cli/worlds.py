"""`quietq worlds`."""

from typing import Annotated

import typer

from quietq.cli.app import AsJson, app, print_json


@app.command()
def worlds(
    people: Annotated[int, typer.Option(help="So many people stand behind the reward, in what is promised.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the worlds to train in, and what must stay hidden there; any Gymnasium id will do too."""
    from quietq.privacy.words import plural
    from quietq.registry import WORLDS
    from quietq.worlds import find_world

    records = [
        {
            "name": world.name, "gymnasium_id": WORLDS[world.name].gymnasium_id, "dimension": world.box.dimension,
            "actions": list(world.action_names), "relation": str(world.relation(people)),
        }
        for world in map(find_world, WORLDS)
    ]  # fmt: skip
    if as_json:
        print_json({"worlds": records})
        return
    for record in records:
        dimensions = plural(record["dimension"], "dimension")
        print(f"{record['name']} ({record['gymnasium_id']}): {dimensions}; actions {', '.join(record['actions'])}")
        print(f"    promised to look alike: {record['relation']}")
