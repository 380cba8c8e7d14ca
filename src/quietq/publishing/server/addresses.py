"""What all addresses of a release have in common: finding it, marking what is said of it, and what may be refused."""

from collections.abc import Sequence
from typing import Any

from fastapi import HTTPException, Response, params

from quietq.publishing.server.catalogue import ID_DIGITS, Catalogue, Served
from quietq.publishing.server.records import Marked, Refusal

Guards = Sequence[params.Depends]


def find(catalogue: Catalogue, id: str) -> Served:
    entry = catalogue.get(id[:ID_DIGITS])
    if entry is None or not entry.record.hash.startswith(id):
        raise HTTPException(404, "There is no release of that id: /v1/releases lists those that there are.")
    return entry


def marked(record: Any, response: Response) -> Any:
    response.headers.update(marks(record))
    return record


def marks(record: Marked) -> dict[str, str]:
    return {"X-Quietq-Privacy": record.privacy, "X-Quietq-Signed": record.signed}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Refusal} for status in statuses}
