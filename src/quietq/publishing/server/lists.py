"""What a release is a list of, with all values: the items of a catalogue, or policies that were evaluated."""

from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, HTTPException, Path as InPath, Response

from quietq.mechanisms.evaluated_policies import EvaluatedPolicies
from quietq.publishing.server.addresses import Guards, find, marked, refusals
from quietq.publishing.server.catalogue import Catalogue, Served
from quietq.publishing.server.records import Items
from quietq.publishing.server.states import MOST_VALUES


def add_lists(app: FastAPI, catalogue: Catalogue, guards: Guards) -> None:
    in_path = InPath(json_schema_extra={"enum": [*catalogue]})

    @app.get("/v1/releases/{id}/items", responses=refusals(404, 409, 413), dependencies=guards)
    def all_items(id: Annotated[str, in_path], response: Response) -> Items:
        return marked(_list_of(find(catalogue, id)), response)


def _list_of(entry: Served) -> Items:
    function: Any = entry.release.function
    marks: dict[str, Any] = {"privacy": entry.record.privacy, "signed": entry.record.signed}
    if isinstance(function, EvaluatedPolicies):
        value, low, high = function.table.T
        told: dict[str, Any] = {"items": list(function.names), "values": value[:, None].tolist()}
        return Items.model_construct(**marks, **told, low=low.tolist(), high=high.tolist())
    if entry.record.items is None:
        raise HTTPException(409, "This release is no list of items: ask for its values at states.")
    if entry.record.items * entry.record.outputs > MOST_VALUES:
        raise HTTPException(413, f"This list has more than {MOST_VALUES} values: ask for those of some items.")
    values = entry.release.values(np.arange(entry.record.items, dtype=np.float64)[:, None])
    return Items.model_construct(**marks, items=list(function.items), values=values.tolist(), low=None, high=None)
