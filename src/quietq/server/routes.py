"""The routes under `/v1`: what is known of each release, and its values and policy at any states."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, HTTPException, Path, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.params import Depends

from quietq.server.catalogue import ID_DIGITS, Catalogue, Entry
from quietq.server.metrics import Metrics
from quietq.server.models import Actions, CertificateRecord, Marked, Refusal, ReleaseList, ReleaseRecord, Values
from quietq.server.states import Question, States, answer, parse_bytes, parse_json, state_types

JSON, BYTES = "application/json", "application/octet-stream"
_SMALL = 1024  # bytes of a body whose answer does not keep others waiting
_REFUSALS = {
    400: "The Host header names another machine, or the body was cut off.",
    401: "The access token is missing or wrong.",
    404: "There is no such release.",
    405: "The address has other methods, which `Allow` names.",
    409: "The release is a function, and only an agent has a policy.",
    413: "The request holds too many states, or has too many bytes.",
    415: "The body is neither JSON nor bytes.",
    422: "The states are not ones that this release knows: wrong shape, not numbers, or outside of its box.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the OpenAPI document says of these statuses."""
    return {status: {"model": Refusal, "description": _REFUSALS[status]} for status in statuses}


def add_questions(app: FastAPI, catalogue: Catalogue, metrics: Metrics, guards: Sequence[Depends]) -> None:
    """Values and actions, at one state or at many, as JSON or as bytes."""
    Id, (State, Body) = _id_type(catalogue), state_types(catalogue)
    numbers = {"schema": {"type": "string", "format": "binary", "description": "Little-endian, state by state."}}
    sent = {"requestBody": {"required": True, "content": {JSON: {"schema": Body.model_json_schema()}, BYTES: numbers}}}
    answers: Any = {200: {"content": {BYTES: numbers}}, **refusals(404, 422)}

    def add(path: str, question: Question, model: type[Marked], more: dict[int | str, Any]) -> None:
        def respond(entry: Entry, states: States, request: Request, response: Response) -> Any:
            found, record = answer(entry, question, states), entry.record
            metrics.count_states(record.id, question, len(states))
            if request.headers.get("accept", "").strip().lower() == BYTES:
                content = found.astype("<f8" if question == "values" else "<i8").tobytes()
                shape = {"X-Quietq-Shape": ",".join(map(str, found.shape))}
                return Response(content, media_type=BYTES, headers=_marks(record) | shape)
            response.headers.update(_marks(record))
            marks = {"privacy": record.privacy, "signed": record.signed}
            return model.model_construct(**marks, **{question: found.tolist()})  # nothing of ours needs a check

        @app.get(path, response_model=model, responses=answers | more, dependencies=guards)
        async def at_one_state(id: Id, state: State, request: Request, response: Response) -> Any:
            entry = _find(catalogue, id)
            if len(state) != entry.dimension:
                raise HTTPException(422, f"state must be given once for each of {entry.dimension} coordinates.")
            return respond(entry, np.array([state]), request, response)

        @app.post(
            path, response_model=model, responses=answers | refusals(413, 415) | more, dependencies=guards,
            openapi_extra=sent,
        )  # fmt: skip
        async def at_many_states(id: Id, request: Request, response: Response) -> Any:
            entry = _find(catalogue, id)
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind not in (JSON, BYTES):
                raise HTTPException(415, f"Content-Type must be {JSON} or {BYTES}.")
            body = await request.body()

            def work() -> Any:
                states = parse_json(entry, body, Body) if kind == JSON else parse_bytes(entry, body)
                return respond(entry, states, request, response)

            return work() if len(body) <= _SMALL else await run_in_threadpool(work)

    add("/v1/releases/{id}/values", "values", Values, {})
    add("/v1/releases/{id}/policy", "actions", Actions, refusals(409))


def add_records(app: FastAPI, catalogue: Catalogue, guards: Sequence[Depends]) -> None:
    """What is known of the releases."""
    Id, listed = _id_type(catalogue), ReleaseList.of(entry.record for entry in catalogue.values())

    @app.get("/v1/releases", dependencies=guards)
    async def all_releases(response: Response) -> ReleaseList:
        response.headers.update(_marks(listed))
        return listed

    @app.get("/v1/releases/{id}", responses=refusals(404), dependencies=guards)
    async def one_release(id: Id, response: Response) -> ReleaseRecord:
        record = _find(catalogue, id).record
        response.headers.update(_marks(record))
        return record

    @app.get("/v1/releases/{id}/certificate", responses=refusals(404), dependencies=guards)
    async def certificate(id: Id, response: Response) -> CertificateRecord:
        record = _find(catalogue, id).certificate
        response.headers.update(_marks(record))
        return record


def _id_type(catalogue: Catalogue) -> Any:
    return Annotated[str, Path(json_schema_extra={"enum": list(catalogue)})]


def _find(catalogue: Catalogue, id: str) -> Entry:
    entry = catalogue.get(id[:ID_DIGITS])
    if entry is None or not entry.record.hash.startswith(id):
        raise HTTPException(404, "There is no release of that id: /v1/releases lists those that there are.")
    return entry


def _marks(record: Marked) -> dict[str, str]:
    return {"X-Quietq-Privacy": record.privacy, "X-Quietq-Signed": record.signed}
